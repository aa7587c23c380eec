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


OF_MANTISSAS = frozenset(
    "arith.subi arith.addi arith.shli arith.select arith.trunci arith.extsi".split()
)
"""Ops by which `irees-expand-math` makes integers of the low bits of floats."""


def is_rounded(value: SSAValue) -> bool:
    """Whether a value is a float rounded to a whole number."""
    op = value.owner
    if not isinstance(op, Operation):
        return False
    return op.name in ROUNDINGS or (op.name in INT_TO_FLOAT and _of_float(op.operands[0]))


def _of_float(value: SSAValue, depth: int = 6) -> bool:
    """Whether an integer is a cast float, or made of the low bits of one."""
    op = value.owner
    if not isinstance(op, Operation) or depth == 0:
        return False
    if op.name in OF_MANTISSAS:
        return any(_of_float(x, depth - 1) for x in op.operands)
    return op.name in (*FLOAT_TO_INT, "arith.bitcast")


def is_multiple(op: Operation) -> bool:
    """
    Whether an op multiplies by a rounded number, as in `a - trunc(a / b) * b`.

    The product must be rounded before the subtraction. Contracted to a multiply-add, the
    remainder of 3.4e38 and 1.7 becomes -3.45e30 instead of 0.
    """
    if op.name != "arith.mulf" or not is_native(op.results[0].type):
        return False
    return any(is_rounded(value) for value in op.operands)
