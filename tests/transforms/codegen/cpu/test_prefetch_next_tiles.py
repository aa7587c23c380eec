"""Prefetches: where they stand in a program, and that they change no bit of it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

import irees
from irees.dialects.upstream.memref import PrefetchOp
from irees.frontends.mlir import import_mlir

ROWS = 512

SOFTMAX = f"""
func.func @main(%a: tensor<{ROWS}x1024xf32>) -> tensor<{ROWS}x1024xf32> {{
  %e = tensor.empty() : tensor<{ROWS}x1024xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<{ROWS}x1024xf32>) outs(%e : tensor<{ROWS}x1024xf32>) -> tensor<{ROWS}x1024xf32>
  return %r : tensor<{ROWS}x1024xf32>
}}
"""


def prefetches(program) -> int:
    texts = (t for name, t in program.sources.items() if name.startswith("irees_k"))
    return sum(
        text.count("IREES_PREFETCH(p") - text.count("define IREES_PREFETCH(p") for text in texts
    )


def test_the_rows_of_a_large_softmax_are_asked_for_on_both_sides_and_the_result_is_the_same():
    # The facts of a machine decide otherwise; these have an L2 cache of half the input.
    target = "cpu:x86-64-v3"
    made = irees.compile(SOFTMAX, target=target)
    off = ("irees-prefetch-next-tiles", "irees-prefetch-outputs")
    plain = irees.compile(SOFTMAX, target=target, disable_pass=off)
    assert prefetches(made) > 0
    assert prefetches(plain) == 0
    for one in off:
        assert 0 < prefetches(irees.compile(SOFTMAX, target=target, disable_pass=(one,)))
    x = np.random.default_rng(1).standard_normal((ROWS, 1024), dtype=np.float32)
    assert np.array_equal(made(x), plain(x))


def test_a_prefetch_past_the_end_is_a_hint_about_nothing():
    text = """
    func.func @main(%a: memref<4xf32>, %i: index) -> f32 {
      memref.prefetch %a[%i], read, locality<3>, data : memref<4xf32>
      %c0 = arith.constant 0 : index
      %r = memref.load %a[%c0] : memref<4xf32>
      return %r : f32
    }
    """
    run = irees.compile(text, target="reference")
    assert run(np.arange(4, dtype=np.float32), 1 << 40) == 0.0


@pytest.mark.parametrize(
    ("indices", "locality", "said"), [(2, 3, "one index"), (1, 4, "a locality")]
)
def test_a_prefetch_is_verified(indices: int, locality: int, said: str):
    module = import_mlir("func.func @f(%a: memref<4xf32>, %i: index) { return }")
    a, i = next(iter(module.ops)).body.block.args
    with pytest.raises(VerifyException, match=said):
        PrefetchOp(a, [i] * indices, locality=locality).verify()
