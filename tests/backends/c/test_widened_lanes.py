"""Lanes of integers become wider, and narrow lanes are shifted, as the interpreter does it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import irees

SHIFT = """
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<?xTYPE>, %y: tensor<?xTYPE>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xTYPE>
  %e = tensor.empty(%n) : tensor<?xi32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<?xTYPE>, tensor<?xTYPE>) outs(%e : tensor<?xi32>) {
  ^bb0(%a: TYPE, %b: TYPE, %o: i32):
    %s = arith.OP %a, %b : TYPE
    %t = arith.extsi %s : TYPE to i32
    linalg.yield %t : i32
  } -> tensor<?xi32>
  return %r : tensor<?xi32>
}
"""
CAST = """
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<?xFROM>) -> tensor<?xTO> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xFROM>
  %e = tensor.empty(%n) : tensor<?xTO>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xFROM>) outs(%e : tensor<?xTO>) {
  ^bb0(%a: FROM, %o: TO):
    %s = arith.OP %a : FROM to TO
    linalg.yield %s : TO
  } -> tensor<?xTO>
  return %r : tensor<?xTO>
}
"""


def edges(width: int) -> np.ndarray:
    """All numbers of eight bits; of more, those around powers of two and around 0."""
    dtype = np.dtype(f"i{width // 8}")
    if width == 8:
        return np.arange(-128, 128).astype(dtype)
    near = [sign * 2**k + d for k in range(width - 1) for d in (-1, 0, 1) for sign in (1, -1)]
    return np.array(sorted({*near, -(2 ** (width - 1)), 2 ** (width - 1) - 1}), dtype)


@pytest.mark.parametrize("op", ["shli", "shrsi", "shrui"])
@pytest.mark.parametrize("width", [8, 16])
def test_shifts_by_any_amount(width, op):
    pairs = np.array(list(itertools.product(edges(width), edges(width))))
    x, y = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    text = SHIFT.replace("TYPE", f"i{width}").replace("OP", op)
    wanted = irees.compile(text, target="reference")(x, y)
    program = irees.compile(text, target="cpu")
    np.testing.assert_array_equal(program(x, y), wanted)
    for size in range(20):
        np.testing.assert_array_equal(program(x[-size:], y[-size:]), wanted[-size:])


@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize(("source", "target"), [
    ("i8", "i16"), ("i8", "i32"), ("i8", "i64"), ("i16", "i32"), ("i16", "i64"), ("i32", "i64"),
    ("i8", "f32"), ("i16", "f32"), ("i32", "f32"), ("i8", "f64"), ("i16", "f64"), ("i32", "f64"),
])  # fmt: skip
def test_casts_to_wider_lanes(source, target, sign):
    op = f"ext{sign}i" if target.startswith("i") else f"{sign}itofp"
    text = CAST.replace("FROM", source).replace("TO", target).replace("OP", op)
    x = edges(int(source[1:]))
    wanted = irees.compile(text, target="reference")(x)
    program = irees.compile(text, target="cpu")
    np.testing.assert_array_equal(program(x), wanted)
    np.testing.assert_array_equal(program(x[:7]), wanted[:7])
