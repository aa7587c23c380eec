"""Ops whose C form depends on the ops that produce their operands."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, VectorType
from xdsl.ir import Attribute, Operation, SSAValue


def is_native(kind: Attribute) -> bool:
    """Whether a scalar type or a vector's lane type is one that C computes in: f32 or f64."""
    lane = kind.element_type if isinstance(kind, VectorType) else kind
    return isinstance(lane, Float32Type | Float64Type)


GREATER, LESS = 2, 4
"""The ordered predicates of `arith.cmpf`."""


def extreme_of(op: Operation) -> str | None:
    """
    `max` for select(a > b, a, b) and select(b < a, a, b), `min` for the opposite, else None.

    If a and b are unordered the result is b, as with the x86 instructions.
    """
    condition, a, b = op.operands
    compare = condition.owner
    if not isinstance(compare, arith.CmpfOp) or not is_native(a.type):
        return None
    order = compare.predicate.value.data
    if order not in (GREATER, LESS) or {compare.lhs, compare.rhs} != {a, b}:
        return None
    return "max" if (order == GREATER) == (compare.lhs is a) else "min"


ROUNDINGS = frozenset("math.trunc math.floor math.ceil math.round math.roundeven".split())
INT_TO_FLOAT, FLOAT_TO_INT = ("arith.sitofp", "arith.uitofp"), ("arith.fptosi", "arith.fptoui")


def is_rounded(value: SSAValue) -> bool:
    """Whether a value is a float rounded to a whole number."""
    op = value.owner
    if not isinstance(op, Operation):
        return False
    if op.name not in INT_TO_FLOAT:
        return op.name in ROUNDINGS
    source = op.operands[0].owner
    return isinstance(source, Operation) and source.name in FLOAT_TO_INT


def is_multiple(op: Operation) -> bool:
    """
    Whether an op multiplies by a rounded number, as in `a - trunc(a / b) * b`.

    The product must be rounded before the subtraction. Contracted to a multiply-add, the
    remainder of 3.4e38 and 1.7 becomes -3.45e30 instead of 0.
    """
    if op.name != "arith.mulf" or not is_native(op.results[0].type):
        return False
    return any(is_rounded(value) for value in op.operands)
