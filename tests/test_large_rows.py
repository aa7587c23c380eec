"""
Rows that no cache, stack or shared memory holds: what is fused over them compiles and is right.

A group norm over 1 MiB and a softmax over 2^24 elements ended in errors in IREE, because what lay
between the ops was put on the stack or into shared memory (iree-org/iree#20875).
"""

from __future__ import annotations

import numpy as np
import pytest

import irees

ROWS = "affine_map<(d0, d1) -> (d0)>"
WHOLE = "affine_map<(d0, d1) -> (d0, d1)>"
SOFTMAX = """
func.func @main(%x: tensor<1x16777216xf32>) -> tensor<1x16777216xf32> {
  %o = tensor.empty() : tensor<1x16777216xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<1x16777216xf32>) outs(%o : tensor<1x16777216xf32>)
      -> tensor<1x16777216xf32>
  return %r : tensor<1x16777216xf32>
}
"""


def group_norm(rows: int, columns: str, size: int) -> str:
    """(x - mean(x)) / sqrt(mean((x - mean(x))^2) + 1e-5), row by row."""
    x, row = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    empty = "(%n)" if columns == "?" else "()"

    def reduce(name: str, inputs: str, types: str, maps: str, body: str, names: str) -> str:
        return f"""
  {name} = linalg.generic {{indexing_maps = [{maps}, {ROWS}],
      iterator_types = ["parallel", "reduction"]}} ins({inputs} : {types}) outs(%zeros : {row}) {{
  ^bb0({names}, %acc: f32):
    {body}
    %scaled = arith.mulf %t, %scale : f32
    %sum = arith.addf %scaled, %acc : f32
    linalg.yield %sum : f32
  }} -> {row}"""

    square = "%d = arith.subf %a, %m : f32\n    %t = arith.mulf %d, %d : f32"
    return f"""
func.func @main(%x: {x}) -> {x} {{
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : {x}
  %zero = arith.constant 0.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %scale = arith.constant {1 / size:e} : f32
  %e = tensor.empty() : {row}
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {row}) -> {row}
  %o = tensor.empty{empty} : {x}
  {reduce("%mean", "%x", x, WHOLE, "%t = arith.addf %a, %zero : f32", "%a: f32")}
  {reduce("%var", "%x, %mean", f"{x}, {row}", f"{WHOLE}, {ROWS}", square, "%a: f32, %m: f32")}
  %r = linalg.generic {{indexing_maps = [{WHOLE}, {ROWS}, {ROWS}, {WHOLE}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x, %mean, %var : {x}, {row}, {row}) outs(%o : {x}) {{
  ^bb0(%a: f32, %m: f32, %v: f32, %out: f32):
    %d = arith.subf %a, %m : f32
    %w = arith.addf %v, %epsilon : f32
    %s = math.rsqrt %w : f32
    %y = arith.mulf %d, %s : f32
    linalg.yield %y : f32
  }} -> {x}
  return %r : {x}
}}
"""


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_softmax_over_a_row_of_64_mib(opt_level):
    x = np.random.default_rng(0).normal(0, 1, (1, 1 << 24)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max())
    result = irees.compile(SOFTMAX, opt_level=opt_level)(x)
    np.testing.assert_allclose(result, powers / powers.sum(), rtol=2e-5, atol=0)


@pytest.mark.parametrize("columns", ["262144", "?"])
@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_group_norm_over_rows_of_1_mib(opt_level, columns):
    x = np.random.default_rng(1).normal(3, 2, (32, 262144)).astype(np.float32)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    result = irees.compile(group_norm(32, columns, 262144), opt_level=opt_level)(x)
    # The mean of 2^18 numbers in f32, whatever the order.
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-4)
    assert np.abs(result.mean(1)).max() < 1e-4
