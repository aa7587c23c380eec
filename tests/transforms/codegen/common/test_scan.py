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


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 16, 21])
def test_rows_in_lanes(rows, inclusive, dynamic):
    """A combiner with math functions: the running values of several rows are one vector."""
    m, n = ("?", "?") if dynamic else (rows, 7)
    x = f"tensor<{m}x{n}xf32>"
    text = f"""
func.func @main(%x: {x}, %out: {x}, %start: tensor<{m}xf32>) -> ({x}, tensor<{m}xf32>) {{
  %r:2 = iree_linalg_ext.scan dimension(1) inclusive({str(inclusive).lower()})
      ins(%x : {x}) outs(%out, %start : {x}, tensor<{m}xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %p = math.exp %a : f32
    %q = arith.mulf %p, %b : f32
    %s = arith.addf %q, %a : f32
    iree_linalg_ext.yield %s : f32
  }} -> {x}, tensor<{m}xf32>
  return %r#0, %r#1 : {x}, tensor<{m}xf32>
}}"""
    generator = np.random.default_rng(rows)
    given = generator.uniform(-1, 0.1, (rows, 7)).astype(np.float32)
    start = generator.uniform(-1, 0.1, rows).astype(np.float32)
    args = (given, np.zeros_like(given), start)
    wanted = irees.compile(text, target="reference")(*args)
    got = irees.compile(text)(*args)
    assert not np.array_equal(wanted[0][:, 1:], wanted[0][:, :-1])
    for found, right in zip(got, wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5)
