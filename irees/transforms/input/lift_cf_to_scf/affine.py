"""
Lowers affine loops and maps to scf and arith. Part of `irees-lift-cf-to-scf`.

It replaces xDSL's `lower-affine`, which lowers `mod` to the remainder of a truncating division
(MLIR's `mod` is never negative) and supports only loops with constant bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects import affine, arith, memref, scf, vector
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.upstream.affine import MaxOp
from irees.transforms.utils.shapes import IndexBuilder, Size


def evaluate(expr: AffineExpr, dims: Sequence[Size], symbols: Sequence[Size], b: IndexBuilder):
    """Returns the value of an affine expression; emits the ops that compute it."""
    match expr:
        case AffineDimExpr():
            return dims[expr.position]
        case AffineSymExpr():
            return symbols[expr.position]
        case AffineBinaryOpExpr():
            lhs = evaluate(expr.lhs, dims, symbols, b)
            rhs = evaluate(expr.rhs, dims, symbols, b)
            return _binary(expr.kind, lhs, rhs, b)
        case _:
            assert isinstance(expr, AffineConstantExpr)
            return expr.value


def _binary(kind: AffineBinaryOpKind, lhs: Size, rhs: Size, b: IndexBuilder) -> Size:
    if kind is AffineBinaryOpKind.Add:
        return b.add(lhs, rhs)
    if kind is AffineBinaryOpKind.Mul:
        return b.mul(lhs, rhs)
    ceil = kind is AffineBinaryOpKind.CeilDiv
    if isinstance(lhs, int) and isinstance(rhs, int) and rhs > 0:
        quotient: Size = -(-lhs // rhs) if ceil else lhs // rhs
    else:
        division = arith.CeilDivSIOp if ceil else arith.FloorDivSIOp
        quotient = b.insert(division(b.value(lhs), b.value(rhs))).results[0]
    if kind is AffineBinaryOpKind.Mod:
        return b.sub(lhs, b.mul(quotient, rhs))
    return quotient


def results_of(map: AffineMap, operands: Sequence[SSAValue], b: IndexBuilder) -> list[Size]:
    """Returns the results of an affine map applied to `operands`, dims first, then symbols."""
    dims, symbols = operands[: map.num_dims], operands[map.num_dims :]
    return [evaluate(expr, dims, symbols, b) for expr in map.results]


def lower(op: Operation) -> None:
    """affine.apply, min, max  =>  arith ; affine.for  =>  scf.for ; loads and stores  =>  memref"""
    if isinstance(op, affine.ForOp):
        lower_for(op)
    if isinstance(op, affine.LoadOp | affine.StoreOp | affine.VectorLoadOp | affine.VectorStoreOp):
        lower_access(op)
    if isinstance(op, affine.IfOp):
        lower_if(op)
    if not isinstance(op, affine.ApplyOp | affine.MinOp | MaxOp):
        return
    b = IndexBuilder(InsertPoint.before(op))
    pick = b.maximum if isinstance(op, MaxOp) else b.minimum
    value = reduce(pick, results_of(op.map.data, list(op.operands), b))
    Rewriter.replace_op(op, [], [b.value(value)])


def lower_for(op: affine.ForOp) -> None:
    """affine.for %i = max(lows) to min(highs)  =>  scf.for"""
    b = IndexBuilder(InsertPoint.before(op))
    low = reduce(b.maximum, results_of(op.lowerBoundMap.data, op.lowerBoundOperands, b))
    high = reduce(b.minimum, results_of(op.upperBoundMap.data, op.upperBoundOperands, b))
    step = b.value(op.step.value.data)
    yield_values(op.body.block)
    loop = scf.ForOp(b.value(low), b.value(high), step, op.inits, op.detach_region(op.body))
    loop.location = op.location
    Rewriter.replace_op(op, loop)


def lower_access(
    op: affine.LoadOp | affine.StoreOp | affine.VectorLoadOp | affine.VectorStoreOp,
) -> None:
    """affine.load %x[map(%i)]  =>  memref.load %x[%j] ; the same for stores and vectors"""
    b = IndexBuilder(InsertPoint.before(op))
    places = [b.value(each) for each in results_of(op.map.data, list(op.indices), b)]
    match op:
        case affine.LoadOp():
            new: Operation = memref.LoadOp.get(op.memref, places)
        case affine.StoreOp():
            new = memref.StoreOp.get(op.value, op.memref, places)
        case affine.VectorLoadOp():
            new = vector.LoadOp(op.memref, places, op.result.type)
        case _:
            new = vector.StoreOp(op.value, op.memref, places)
    new.location = op.location
    Rewriter.replace_op(op, new)


def lower_if(op: affine.IfOp) -> None:
    """affine.if (p >= 0 and q == 0)  =>  scf.if"""
    b, found = IndexBuilder(InsertPoint.before(op)), None
    domain, operands = op.condition.data, list(op.args)
    dims, symbols = operands[: domain.num_dims], operands[domain.num_dims :]
    for constraint in domain.constraints:
        sides = [b.value(evaluate(e, dims, symbols, b)) for e in (constraint.lhs, constraint.rhs)]
        kind = {"eq": "eq", "ge": "sge", "le": "sle"}[constraint.kind.name]
        holds = b.insert(arith.CmpiOp(*sides, kind)).results[0]
        found = holds if found is None else b.insert(arith.AndIOp(found, holds)).results[0]
    if found is None:
        found = b.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]
    regions = [op.detach_region(region) for region in list(op.regions)]
    for region in regions:
        if region.blocks:
            yield_values(region.block)
    new = scf.IfOp(found, [result.type for result in op.res], *regions)
    new.location = op.location
    Rewriter.replace_op(op, new)


def yield_values(block: Block) -> None:
    """affine.yield  =>  scf.yield, which is added where it is left out"""
    end = block.last_op
    if isinstance(end, affine.YieldOp):
        Rewriter.replace_op(end, scf.YieldOp(*end.arguments))
    elif not isinstance(end, scf.YieldOp):
        block.add_op(scf.YieldOp())
