"""Arithmetic on f16 and bf16, widened to f32: scalars, or vectors lane by lane."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.transforms.utils.copies import same_op

HALVES = BFloat16Type | Float16Type
MOVES = (arith.ConstantOp, arith.ExtFOp, arith.TruncFOp, arith.BitcastOp)
"""Ops of arith that need no widening: constants, casts to and from halves, and bitcasts."""


def is_half(kind: Attribute) -> bool:
    """Whether a type is f16 or bf16, or a vector of those."""
    return isinstance(kind.element_type if isinstance(kind, VectorType) else kind, HALVES)


def computes_halves(op: Operation) -> bool:
    """Whether an op of a body does arithmetic on f16 or bf16."""
    if op.name.split(".")[0] not in ("arith", "math") or isinstance(op, MOVES) or op.regions:
        return False
    return any(is_half(v.type) for v in (*op.operands, *op.results))


def _wide(kind: Attribute) -> Attribute:
    """f16  =>  f32 ; vector<8xf16>  =>  vector<8xf32> ; other types stay"""
    if not is_half(kind):
        return kind
    return VectorType(f32, kind.get_shape()) if isinstance(kind, VectorType) else f32


def widen(op: Operation) -> None:
    """op(a, b) : bf16  =>  truncf(op(extf a, extf b) : f32)"""
    operands: list[SSAValue] = []
    for value in op.operands:
        if is_half(value.type):
            widened = arith.ExtFOp(value, _wide(value.type))
            Rewriter.insert_op(widened, InsertPoint.before(op))
            value = widened.result
        operands.append(value)
    new = same_op(op, operands, [_wide(r.type) for r in op.results])
    Rewriter.insert_op(new, InsertPoint.before(op))
    results: list[SSAValue] = []
    for old, wide in zip(op.results, new.results, strict=True):
        if old.type != wide.type:
            rounded = arith.TruncFOp(wide, old.type)
            Rewriter.insert_op(rounded, InsertPoint.before(op))
            wide = rounded.result
        results.append(wide)
    Rewriter.replace_op(op, [], results)
