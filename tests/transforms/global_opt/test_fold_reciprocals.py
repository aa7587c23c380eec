"""A product by a reciprocal is the quotient, rounded once; by one that rows share, it is not."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import irees
from irees.testing import profiles

FACTOR = profiles.load()

PRODUCT = """
func.func @main(%x: tensor<4x40xf32>, %d: tensor<{divisor}xf32>) -> tensor<4x40xf32> {{
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x40xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> ({loops})>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x, %d : tensor<4x40xf32>, tensor<{divisor}xf32>) outs(%e : tensor<4x40xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %one, %b : f32
    %t = arith.mulf %a, %r : f32
    linalg.yield %t : f32
  }} -> tensor<4x40xf32>
  return %y : tensor<4x40xf32>
}}
"""
NUMBERS = arrays.arrays(np.float32, (4, 40), elements=st.floats(width=32))


@given(NUMBERS, NUMBERS)
@settings(max_examples=40 * FACTOR)
def test_the_quotient_is_rounded_once(x: np.ndarray, d: np.ndarray):
    program = irees.compile(PRODUCT.format(divisor="4x40", loops="i, j"))
    with np.errstate(all="ignore"):
        wanted = x / d
    np.testing.assert_array_equal(program(x, d), wanted)


@given(NUMBERS, NUMBERS)
@settings(max_examples=40 * FACTOR)
def test_rounded_twice_by_request_and_where_a_row_shares_it(x: np.ndarray, d: np.ndarray):
    strict = irees.compile(PRODUCT.format(divisor="4x40", loops="i, j"), fp="strict")
    shared = irees.compile(PRODUCT.format(divisor="4", loops="i"))
    with np.errstate(all="ignore"):
        twice = x * (np.float32(1) / d)
        of_rows = x * (np.float32(1) / d[:, :1])
    np.testing.assert_array_equal(strict(x, d), twice)
    np.testing.assert_array_equal(shared(x, d[:, 0].copy()), of_rows)
