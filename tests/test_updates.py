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


LOOP = """
func.func @main(%x: tensor<DIMx8xf32>, %y: tensor<DIMx8xf32>, %n: index) -> (tensor<DIMx8xf32>, tensor<DIMx8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %y) -> (tensor<DIMx8xf32>, tensor<DIMx8xf32>) {
    %row = tensor.extract_slice %b[%i, 0] [1, 8] [1, 1] : tensor<DIMx8xf32> to tensor<1x8xf32>
    %e = tensor.empty() : tensor<1x8xf32>
    %d = linalg.add ins(%row, %row : tensor<1x8xf32>, tensor<1x8xf32>) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
    %c = tensor.insert_slice %d into %a[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<DIMx8xf32>
    %f = tensor.insert_slice %d into %b[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<DIMx8xf32>
    scf.yield YIELD : tensor<DIMx8xf32>, tensor<DIMx8xf32>
  }
  return %r#0, %r#1 : tensor<DIMx8xf32>, tensor<DIMx8xf32>
}
"""
YIELDS = {
    "in place": ("%c, %b", lambda a, b, c, f: (c, b)),
    "both in place": ("%c, %f", lambda a, b, c, f: (c, f)),
    "exchanged": ("%f, %c", lambda a, b, c, f: (f, c)),
    "one moved": ("%b, %c", lambda a, b, c, f: (b, c)),
    "twice": ("%c, %c", lambda a, b, c, f: (c, c)),
    "read as it was": ("%a, %f", lambda a, b, c, f: (a, f)),
}


@pytest.mark.parametrize("dim", ["16", "?"])
@pytest.mark.parametrize("name", YIELDS)
def test_a_loop_updates_what_it_carries(name, dim):
    text, step = YIELDS[name]
    program = irees.compile(LOOP.replace("DIM", dim).replace("YIELD", text))
    x, y = np.arange(128, dtype="f").reshape(16, 8), np.arange(128, 256, dtype="f").reshape(16, 8)
    first, second = x.copy(), y.copy()
    a, b = x, y
    for i in range(5):
        c, f = a.copy(), b.copy()
        c[i] = f[i] = b[i] + b[i]
        a, b = step(a, b, c, f)
    got = program(x, y, 5)
    np.testing.assert_array_equal(got[0], a)
    np.testing.assert_array_equal(got[1], b)
    np.testing.assert_array_equal((x, y), (first, second))


@pytest.mark.parametrize("dim", ["16", "?"])
def test_a_loop_that_writes_a_row_copies_nothing_else(dim):
    """Copies of what is carried stand before and after the loop, none in it."""
    text = LOOP.replace("DIM", dim).replace("YIELD", "%c, %b")
    module = str(irees.compile(text, to="stream"))
    start = module.index("scf.for")
    loop = module[start : module.index("\n    }\n", start)]
    assert "stream.cmd.dispatch" in loop
    assert "memref.copy" not in loop
    assert f"memref<{dim}x8xf32>" not in [
        line.split(" : ")[-1] for line in loop.splitlines() if "memref.alloc" in line
    ]


NESTED = """
func.func @main(%x: tensor<DIMx8xf32>, %n: index) -> (tensor<DIMx8xf32>, tensor<DIMx8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %x) -> (tensor<DIMx8xf32>, tensor<DIMx8xf32>) {
    %s:2 = scf.for %j = %zero to %n step %one iter_args(%c = %a, %d = %b) -> (tensor<DIMx8xf32>, tensor<DIMx8xf32>) {
      %row = tensor.extract_slice %d[%j, 0] [1, 8] [1, 1] : tensor<DIMx8xf32> to tensor<1x8xf32>
      %e = tensor.empty() : tensor<1x8xf32>
      %t = linalg.add ins(%row, %row : tensor<1x8xf32>, tensor<1x8xf32>) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
      %u = tensor.insert_slice %t into %c[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<DIMx8xf32>
      %p = arith.cmpi slt, %i, %j : index
      %w = scf.if %p -> (tensor<DIMx8xf32>) {
        scf.yield %u : tensor<DIMx8xf32>
      } else {
        %v = tensor.insert_slice %t into %d[%j, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<DIMx8xf32>
        scf.yield %v : tensor<DIMx8xf32>
      }
      scf.yield %w, %d : tensor<DIMx8xf32>, tensor<DIMx8xf32>
    }
    scf.yield %s#1, %s#0 : tensor<DIMx8xf32>, tensor<DIMx8xf32>
  }
  return %r#0, %r#1 : tensor<DIMx8xf32>, tensor<DIMx8xf32>
}
"""


@pytest.mark.parametrize("dim", ["5", "?"])
def test_loops_and_branches_in_loops_keep_what_they_still_need(dim):
    text = NESTED.replace("DIM", dim)
    x = np.arange(40, dtype="f").reshape(5, 8)
    for got, wanted in zip(
        irees.compile(text)(x, 5), irees.compile(text, target="reference")(x, 5), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
