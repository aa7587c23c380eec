"""What `irees.analysis.contractions` takes for a contraction, and the roles of its loops."""

from __future__ import annotations

import pytest
from xdsl.dialects.linalg import ops as linalg

from irees.analysis.contractions import element_kinds, is_contraction, multiply_add, roles
from irees.frontends.mlir import import_mlir


def generic(
    loops: str, lhs: str, rhs: str, out: str, reduced: str, body: str = "", element: str = "f32"
) -> linalg.GenericOp:
    """A multiply-add over memrefs, or the `body` given (%a, %b, %c to %r)."""
    suffix = "i" if element.startswith("i") else "f"
    body = (
        body
        or f"%p = arith.mul{suffix} %a, %b : {element}\n%r = arith.add{suffix} %c, %p : {element}"
    )
    maps = ", ".join(f"affine_map<({loops}) -> ({e})>" for e in (lhs, rhs, out))
    kinds = ", ".join(
        '"reduction"' if loop.strip() in reduced.split() else '"parallel"'
        for loop in loops.split(",")
    )
    types = [
        f"memref<{'?x' * len([e for e in exprs.split(',') if e.strip()])}{element}>"
        for exprs in (lhs, rhs, out)
    ]
    module = import_mlir(
        f"""
func.func @f(%x: {types[0]}, %y: {types[1]}, %z: {types[2]}) {{
  linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%x, %y : {types[0]}, {types[1]}) outs(%z : {types[2]}) {{
  ^bb0(%a: {element}, %b: {element}, %c: {element}):
    {body}
    linalg.yield %r : {element}
  }}
  return
}}
"""
    )
    return next(op for op in module.walk() if isinstance(op, linalg.GenericOp))


# loops, lhs, rhs, out, reduced => batch, m, n, k
ROLES = {
    "matmul": (("m, n, k", "m, k", "k, n", "m, n", "k"), ((), (0,), (1,), (2,))),
    "transposed": (("m, n, k", "m, k", "n, k", "m, n", "k"), ((), (0,), (1,), (2,))),
    "swapped": (("m, n, k", "k, n", "m, k", "m, n", "k"), ((), (1,), (0,), (2,))),
    "batch": (("b, m, n, k", "b, m, k", "b, k, n", "b, m, n", "k"), ((0,), (1,), (2,), (3,))),
    "matvec": (("m, k", "m, k", "k", "m", "k"), ((), (0,), (), (1,))),
    "vecmat": (("n, k", "k", "k, n", "n", "k"), ((), (), (0,), (1,))),
    "two k": (("m, n, k, l", "m, k, l", "k, l, n", "m, n", "k l"), ((), (0,), (1,), (2, 3))),
    "convolution": (
        ("n, f, h, w, c, i, j", "n, c, h + i, w + j", "f, c, i, j", "n, f, h, w", "c i j"),
        ((), (0, 2, 3), (1,), (4, 5, 6)),
    ),
    "strided": (("f, w, j", "w * 2 + j", "f, j", "f, w", "j"), ((), (1,), (0,), (2,))),
    "grouped": (
        ("g, f, w, c, j", "g, c, w + j", "g, f, c, j", "g, f, w", "c j"),
        ((0,), (2,), (1,), (3, 4)),
    ),
}


@pytest.mark.parametrize("name", ROLES)
def test_roles(name):
    arguments, want = ROLES[name]
    op = generic(*arguments)
    parts = multiply_add(op)
    assert parts is not None
    found = roles(op, parts)
    assert (found.batch, found.m, found.n, found.k) == want
    assert is_contraction(op)


@pytest.mark.parametrize(
    "arguments", [("k", "k", "k", "", "k"), ("m, n", "m", "n", "m, n", "")], ids=["dot", "outer"]
)
def test_what_reads_its_operands_once_is_none(arguments):
    op = generic(*arguments)
    assert multiply_add(op) is not None
    assert not is_contraction(op)


def test_the_channels_of_a_depthwise_convolution_are_a_batch():
    op = generic("w, c, j", "w + j, c", "j, c", "w, c", "j")
    parts = multiply_add(op)
    assert parts is not None
    found = roles(op, parts)
    assert (found.batch, found.m, found.n, found.k) == ((1,), (0,), (), (2,))


MATMUL = ("m, n, k", "m, k", "k, n", "m, n", "k")


@pytest.mark.parametrize(
    "body",
    [
        "%p = arith.addf %a, %b : f32\n%r = arith.addf %c, %p : f32",
        "%p = arith.mulf %a, %b : f32\n%r = arith.mulf %c, %p : f32",
        "%p = arith.mulf %a, %b : f32\n%r = arith.subf %c, %p : f32",
        "%p = arith.mulf %a, %c : f32\n%r = arith.addf %c, %p : f32",
        "%q = math.exp %a : f32\n%p = arith.mulf %q, %b : f32\n%r = arith.addf %c, %p : f32",
        "%p = arith.mulf %a, %b : f32\n%q = arith.addf %c, %p : f32\n%r = arith.addf %q, %p : f32",
        "%r = arith.maximumf %a, %c : f32",
    ],
    ids=["adds", "multiplies", "subtracts", "reads c twice", "exp", "adds twice", "maximum"],
)
def test_other_bodies_are_none(body):
    op = generic(*MATMUL, body=body)
    assert multiply_add(op) is None
    assert not is_contraction(op)


@pytest.mark.parametrize("order", ["%c, %p", "%p, %c"])
def test_addition_may_be_either_way(order):
    body = f"%p = arith.mulf %b, %a : f32\n%r = arith.addf {order} : f32"
    parts = multiply_add(generic(*MATMUL, body=body))
    assert parts is not None
    assert (parts.lhs, parts.rhs) == (1, 0)


def test_a_square_is_none():
    body = "%p = arith.mulf %a, %a : f32\n%r = arith.addf %c, %p : f32"
    op = generic(*MATMUL, body=body)
    assert multiply_add(op) is not None
    assert not is_contraction(op)


def test_widening_belongs_to_the_operands():
    module = import_mlir(
        """
func.func @f(%x: memref<4x8xi8>, %y: memref<8x4xi8>, %z: memref<4x4xi32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<4x8xi8>, memref<8x4xi8>) outs(%z : memref<4x4xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %wa = arith.extsi %a : i8 to i32
    %wb = arith.extui %b : i8 to i32
    %p = arith.muli %wa, %wb : i32
    %r = arith.addi %p, %c : i32
    linalg.yield %r : i32
  }
  return
}
"""
    )
    op = next(op for op in module.walk() if isinstance(op, linalg.GenericOp))
    parts = multiply_add(op)
    assert parts is not None
    assert [o.name for o in (*parts.widen_lhs, *parts.widen_rhs)] == ["arith.extsi", "arith.extui"]
    assert [str(k) for k in element_kinds(op, parts)] == ["i8", "i8", "i32"]
