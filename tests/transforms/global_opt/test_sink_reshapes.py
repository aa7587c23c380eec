"""Loops that a sunk reshape splits: what the body knows of the other loops' numbers."""

import numpy as np

import irees

COLLAPSED_THEN_INDEXED = """
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<6x5x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %a = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%x : tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %w = arith.addf %v, %v : f32
    linalg.yield %w : f32
  } -> tensor<2x3x4xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %f = tensor.empty() : tensor<6x5x4xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (i, j, k)>],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%c : tensor<6x4xf32>) outs(%f : tensor<6x5x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i32
    %s = arith.sitofp %n : i32 to f32
    %w = arith.mulf %v, %s : f32
    linalg.yield %w : f32
  } -> tensor<6x5x4xf32>
  return %r : tensor<6x5x4xf32>
}
"""


def test_indices_of_loops_behind_one_that_is_split():
    """`linalg.index 1` named a part of loop 0 after that was split in two."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    want = 2 * x.reshape(6, 1, 4) * np.arange(5, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(irees.compile(COLLAPSED_THEN_INDEXED)(x), want)
