"""Arguments whose bytes are not those that irees would store: truth values, numbers of few bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.testing.guarded import against, guarded, placed

TARGETS = ("reference", "cpu", "cuda-emulated")

TRUTHS = """
func.func @main(%x: tensor<?xi1>, %y: tensor<?xi1>)
    -> (tensor<?xi8>, tensor<?xi1>, tensor<?xf32>, tensor<?xi1>, i8) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %a = arith.extui %x : tensor<?xi1> to tensor<?xi8>
  %b = arith.xori %x, %y : tensor<?xi1>
  %c = arith.uitofp %x : tensor<?xi1> to tensor<?xf32>
  %d = arith.cmpi eq, %x, %y : tensor<?xi1>
  %e = tensor.extract %x[%c2] : tensor<?xi1>
  %f = arith.extui %e : i1 to i8
  return %a, %b, %c, %d, %f : tensor<?xi8>, tensor<?xi1>, tensor<?xf32>, tensor<?xi1>, i8
}"""
BYTES = np.array([0, 1, 2, 255, 4, 3, 128, 1, 0, 0] * 7, np.uint8)


@pytest.mark.parametrize("target", TARGETS)
def test_any_byte_that_is_not_zero_is_true(target):
    """numpy has such bytes in views of other arrays, and in files."""
    x, y = BYTES.view(np.bool_), BYTES[::-1].copy().view(np.bool_)
    p, q = BYTES != 0, BYTES[::-1] != 0
    results = irees.compile(TRUTHS, target=target)(x, y)
    for got, want in zip(results, (p, p ^ q, p, p == q, 1), strict=True):
        np.testing.assert_array_equal(got, want)
        # The bytes, too: a truth value is stored as 0 or 1.
        assert np.asarray(got).tobytes() == np.asarray(want).astype(np.asarray(got).dtype).tobytes()


LOOKED_UP = """
func.func @main(%x: tensor<?x{kind}>, %t: tensor<{size}xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {{
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<?x{kind}>) outs(%o : tensor<?xf32>) {{
  ^bb0(%a: {kind}, %b: f32):
    %k = arith.extui %a : {kind} to i64
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %t[%i] : tensor<{size}xf32>
    linalg.yield %v : f32
  }} -> tensor<?xf32>
  return %r : tensor<?xf32>
}}"""


@pytest.mark.parametrize(("kind", "dtype"), [("i1", np.bool_), ("i4", ml_dtypes.int4)])
@pytest.mark.parametrize("side", ["front", "back"])
def test_a_byte_does_not_reach_beyond_a_table_of_all_values(kind, dtype, side):
    """An index that is an i1 is proved to be 0 or 1."""
    size = 2 if kind == "i1" else 16
    table = np.arange(size, dtype="f")
    program = guarded(irees.compile(LOOKED_UP.format(kind=kind, size=size)))
    with against(side):
        (given, table, out) = map(placed, (BYTES.view(dtype), table, np.zeros(BYTES.size, "f")))
        got = program(given, table, out)
    np.testing.assert_array_equal(got, (BYTES != 0) if kind == "i1" else BYTES % 16)


NUMBERS = """
func.func @main(%x: tensor<?x{kind}>, %s: {kind}) -> (tensor<?xi8>, tensor<?xi8>, tensor<?x{kind}>, i8) {{
  %a = arith.extsi %x : tensor<?x{kind}> to tensor<?xi8>
  %b = arith.extui %x : tensor<?x{kind}> to tensor<?xi8>
  %c = arith.addi %x, %x : tensor<?x{kind}>
  %d = arith.extsi %s : {kind} to i8
  return %a, %b, %c, %d : tensor<?xi8>, tensor<?xi8>, tensor<?x{kind}>, i8
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "dtype"), [("i4", ml_dtypes.int4), ("i2", ml_dtypes.int2)])
def test_negative_numbers_of_few_bits(target, kind, dtype):
    """ml_dtypes stores -6 of int4 as 0x0A, and the result of some of its own ops as 0xFA."""
    half = 1 << (int(kind[1:]) - 1)
    numbers = np.arange(-half, half, dtype=np.int8)
    program = irees.compile(NUMBERS.format(kind=kind), target=target)
    for x in (numbers.astype(dtype), numbers.view(dtype)):
        signed, unsigned, twice, scalar = program(x, x[0])
        np.testing.assert_array_equal(signed, numbers)
        np.testing.assert_array_equal(unsigned, numbers % (2 * half))
        np.testing.assert_array_equal(
            twice.astype(np.int8), (2 * numbers + half) % (2 * half) - half
        )
        assert scalar == -half


def test_negative_numbers_of_few_bits_in_place():
    program = irees.compile("""
    func.func @main(%x: memref<?xi4>) {
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          outs(%x : memref<?xi4>) {
      ^bb0(%a: i4):
        %two = arith.constant 2 : i4
        %r = arith.divsi %a, %two : i4
        linalg.yield %r : i4
      }
      return
    }""")
    x = np.arange(-8, 8, dtype=np.int8).astype(ml_dtypes.int4)
    program(x)
    np.testing.assert_array_equal(
        x.astype(int), [-4, -3, -3, -2, -2, -1, -1, *[0] * 3, 1, 1, 2, 2, 3, 3]
    )
