"""Results marked `irees.updates` are written into the arguments that they are new values of."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import ArgumentError

EXCHANGE = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>)
    -> (tensor<4xf32> {irees.updates = 0 : index}, tensor<4xf32> {irees.updates = 1 : index}) {
  return %b, %a : tensor<4xf32>, tensor<4xf32>
}
"""
ROW = """
func.func @main(%cache: tensor<64x8xf32>, %row: tensor<1x8xf32>, %i: index)
    -> (tensor<64x8xf32> {irees.updates = 0 : index}, tensor<8xf32>) {
  %0 = tensor.insert_slice %row into %cache[%i, 0] [1, 8] [1, 1]
      : tensor<1x8xf32> into tensor<64x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sums = linalg.reduce ins(%READ : tensor<64x8xf32>) outs(%init : tensor<8xf32>) dimensions = [0]
    (%in: f32, %acc: f32) { %s = arith.addf %in, %acc : f32 linalg.yield %s : f32 }
  return %0, %sums : tensor<64x8xf32>, tensor<8xf32>
}
"""


@pytest.mark.parametrize(
    "options", [{}, {"fp": "strict"}, {"disable_pass": ["irees-tie-dispatch-operands"]}]
)
def test_two_arguments_are_exchanged(options):
    program = irees.compile(EXCHANGE, **options)
    a, b = np.arange(4, dtype="f"), -np.ones(4, "f")
    assert program(a, b) == (None, None)
    assert a.tolist() == [-1.0] * 4
    assert b.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("read", ["0", "cache"])
def test_the_old_value_is_read_where_the_program_says_so(read):
    program = irees.compile(ROW.replace("%READ", f"%{read}"))
    cache = np.ones((64, 8), "f")
    _, sums = program(cache, np.full((1, 8), 3, "f"), 5)
    assert sums.tolist() == [66.0 if read == "0" else 64.0] * 8
    assert cache.sum() == 8 * 66
    temporaries = program.memory_analysis()["arena_bytes"]["main"]
    assert (temporaries < 64 * 8 * 4) == (read == "0")


def test_arguments_that_cannot_be_written_are_refused():
    program = irees.compile(EXCHANGE)
    fixed = np.ones(4, "f")
    fixed.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        program(fixed, np.ones(4, "f"))
    with pytest.raises(ArgumentError, match="but is a list"):
        program([1.0, 2.0, 3.0, 4.0], np.ones(4, "f"))
    same = np.ones(6, "f")
    with pytest.raises(ArgumentError, match="shares memory with argument 1"):
        program(same[:4], same[2:])
