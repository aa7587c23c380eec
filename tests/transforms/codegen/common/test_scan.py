"""`iree_linalg_ext.scan` gives what IREE's lowering gives, the accumulator result included."""

from __future__ import annotations

import numpy as np
import pytest

import irees

TARGETS = ["reference", "cpu", "cuda-emulated"]
START = 10


def program(size: str, inclusive: bool) -> str:
    """A running sum along dim 0 that returns both results; the accumulator starts at `START`."""
    rows, types = f"tensor<{size}x2xi32>", f"tensor<{size}x2xi32>, tensor<2xi32>"
    return f"""
func.func @main(%x: {rows}) -> ({types}) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : {rows}
  %start = arith.constant dense<{START}> : tensor<2xi32>
  %out = tensor.empty({"%n" if size == "?" else ""}) : {rows}
  %r:2 = iree_linalg_ext.scan dimension(0) inclusive({str(inclusive).lower()})
      ins(%x : {rows}) outs(%out, %start : {types}) {{
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    iree_linalg_ext.yield %s : i32
  }} -> {types}
  return %r#0, %r#1 : {types}
}}"""


def expected(x: np.ndarray, inclusive: bool) -> tuple[np.ndarray, np.ndarray]:
    """The prefixes, and the last of them; the start where there is none."""
    sums = np.cumsum(x, axis=0)
    out = sums if inclusive else START + sums - x
    return out, out[-1] if len(out) else np.full(2, START)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_the_accumulator_is_the_last_element_of_the_output(target, inclusive, count):
    x = np.arange(2 * count, dtype=np.int32).reshape(count, 2) + 3
    for size in ("?", str(count)):
        got = irees.compile(program(size, inclusive), target=target)(x)
        for found, wanted in zip(got, expected(x, inclusive), strict=True):
            np.testing.assert_array_equal(found, wanted)
