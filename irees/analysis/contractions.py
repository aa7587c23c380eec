"""
Matches contractions and classifies their loops.

    C[batch, m, n] += A[batch, m, k] * B[batch, n, k]

A structured op is a contraction if its body is one multiply-add into its only output, possibly of
widened operands. Convolutions are contractions whose operands are indexed by sums of loops. MLIR:
`linalg::inferContractionDims`, `inferConvolutionDims`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineMap,
)

WIDENING = frozenset(("arith.extf", "arith.extsi", "arith.extui"))
MULTIPLY = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}


@dataclass(frozen=True)
class MultiplyAdd:
    """out + widen(in[lhs]) * widen(in[rhs])"""

    lhs: int
    rhs: int
    widen_lhs: tuple[Operation, ...]
    widen_rhs: tuple[Operation, ...]
    add: Operation
    multiply: Operation


@dataclass(frozen=True)
class Roles:
    """The loops of a contraction by role, in loop order."""

    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]


def multiply_add(op: linalg.GenericOp) -> MultiplyAdd | None:
    """Matches a multiply-add body; None for any other body."""
    block, add = op.body.block, _accumulation(op)
    if add is None:
        return None
    multiply = next(o for o in add.operands if o is not block.args[len(op.inputs)]).owner
    if not isinstance(multiply, Operation) or multiply.name != MULTIPLY[add.name]:
        return None
    (lhs, widen_lhs), (rhs, widen_rhs) = (_source(op, o) for o in multiply.operands)
    if lhs is None or rhs is None:
        return None
    inside = {add, multiply, block.last_op, *widen_lhs, *widen_rhs}
    if any(o not in inside for o in block.ops):
        return None
    return MultiplyAdd(lhs.index, rhs.index, widen_lhs, widen_rhs, add, multiply)


def _accumulation(op: linalg.GenericOp) -> Operation | None:
    """Returns the op of a body that adds to the only output, or None."""
    terminator = op.body.block.last_op
    if len(op.outputs) != 1 or terminator is None or len(terminator.operands) != 1:
        return None
    add, out = terminator.operands[0].owner, op.body.block.args[len(op.inputs)]
    if not isinstance(add, Operation) or add.name not in MULTIPLY:
        return None
    return add if out in add.operands and out.has_one_use() else None


def _source(
    op: linalg.GenericOp, value: SSAValue
) -> tuple[BlockArgument | None, tuple[Operation, ...]]:
    """Returns the input that a value of the body widens and the ops that widen it, or None."""
    widening: list[Operation] = []
    while isinstance(value.owner, Operation) and value.owner.name in WIDENING:
        widening.append(value.owner)
        value = value.owner.operands[0]
    if value not in op.body.block.args[: len(op.inputs)]:
        return None, ()
    assert isinstance(value, BlockArgument)
    return value, tuple(widening)


def roles(op: linalg.GenericOp, parts: MultiplyAdd) -> Roles:
    """Classifies loops: batch in both operands and the output, m or n in one operand, k reduced."""
    indexing: list[AffineMap] = [m.data for m in op.indexing_maps]
    lhs, rhs = indexing[parts.lhs].used_dims(), indexing[parts.rhs].used_dims()
    found: dict[str, list[int]] = {"batch": [], "m": [], "n": [], "k": []}
    for loop, kind in enumerate(op.iterator_types):
        if kind.data is not IteratorType.PARALLEL:
            found["k"].append(loop)
        elif loop in lhs and loop in rhs:
            found["batch"].append(loop)
        elif loop in lhs:
            found["m"].append(loop)
        else:
            found["n"].append(loop)
    return Roles(*(tuple(found[r]) for r in ("batch", "m", "n", "k")))


def packed_columns(indexing: AffineMap) -> int | None:
    """Returns NR of an operand packed into panels by `irees-pack-constant-operands`, or None."""
    return next(iter(_divisors(indexing)), None)


def packed_depth(indexing: AffineMap) -> int | None:
    """Returns the elements along K that a panel interleaves, 4 in [N/NR, K/4, NR, 4], or None."""
    if packed_columns(indexing) is None:
        return None
    return next(iter(_divisors(indexing)[1:]), 1)


def _divisors(indexing: AffineMap) -> list[int]:
    """Returns the divisors of the `x mod y` results of a map, in order."""
    return [
        expr.rhs.value
        for expr in indexing.results
        if isinstance(expr, AffineBinaryOpExpr)
        and expr.kind is AffineBinaryOpKind.Mod
        and isinstance(expr.rhs, AffineConstantExpr)
    ]


def in_blocks(op: linalg.GenericOp, parts: MultiplyAdd, side: int) -> bool:
    """
    Whether an operand is blocked along the output's last dim, [N/NR, K.., NR], with separate loops
    for the outer and inner part of N, as `irees-propagate-blocked-layouts` does to filters.
    """
    found, output = roles(op, parts), op.indexing_maps.data[-1].data.results
    own = found.n if side == parts.rhs else found.m
    exprs = op.indexing_maps.data[side].data.results
    if len(own) < 2 or len(exprs) < 2 or not output or exprs[-1] != output[-1]:
        return False
    return exprs[-1].used_dims() <= set(own) and exprs[-2].used_dims() <= set(found.k)


def vector_side(op: linalg.GenericOp, parts: MultiplyAdd) -> int | None:
    """
    Returns the operand to read by vectors; the other one is broadcast.

    Prefers an operand packed into panels, else the operand indexed by the output's last dim; None
    if neither is.
    """
    indexing = [m.data for m in op.indexing_maps]
    for position in (parts.lhs, parts.rhs):
        if packed_columns(indexing[position]) is not None:
            return position
    found = roles(op, parts)
    output = indexing[-1].results
    last = output[-1].used_dims() if output else set[int]()
    if last & set(found.n):
        return parts.rhs
    return parts.lhs if last & set(found.m) else None


def is_contraction(op: linalg.GenericOp) -> bool:
    """
    Whether an op is a multiply-add of two operands with K and with M or N loops.

    A loop of the output is not a loop of K, but may be called a reduction: then the op is none.
    """
    parts = multiply_add(op)
    if parts is None or parts.lhs == parts.rhs:
        return False
    found = roles(op, parts)
    if op.indexing_maps.data[-1].data.used_dims() & set(found.k):
        return False
    return bool(found.k) and bool(found.m or found.n)


def element_kinds(
    op: linalg.GenericOp, parts: MultiplyAdd
) -> tuple[Attribute, Attribute, Attribute]:
    """Returns the element types of lhs, rhs and output."""
    args = op.body.block.args
    return args[parts.lhs].type, args[parts.rhs].type, args[len(op.inputs)].type
