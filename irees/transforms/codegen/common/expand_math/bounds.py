"""What is known of a float from the ops that compute it: bounds, and whether it is whole."""

from __future__ import annotations

import math as python_math

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import SSAValue

DEEPEST = 8
"""Maximum length of a chain of ops that is followed."""

ROUNDING = (math.RoundEvenOp, math.RoundOp, math.FloorOp, math.CeilOp, math.TruncOp)
CLAMPING = (arith.MaximumfOp, arith.MinimumfOp)
"""The result is NaN if an operand is."""
EVERYTHING = -python_math.inf, python_math.inf


def constant_number(value: SSAValue) -> float | int | None:
    """Returns a constant, or the constant that is broadcast to all lanes; None if there is none."""
    owner = value.owner
    if isinstance(owner, vector.BroadcastOp):
        owner = owner.operands[0].owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    constant = owner.value
    if isinstance(constant, DenseIntOrFPElementsAttr):
        return constant.get_values()[0] if constant.is_splat() else None
    return constant.value.data if isinstance(constant, IntegerAttr | FloatAttr) else None


def bounds(value: SSAValue, depth: int = DEEPEST) -> tuple[float, float]:
    """Returns the least and the largest number that a float may be, where it is not NaN."""
    known, owner = constant_number(value), value.owner
    if known is not None:
        return EVERYTHING if known != known else (known, known)
    if depth == 0:
        return EVERYTHING
    if isinstance(owner, CLAMPING):
        choose = max if isinstance(owner, arith.MaximumfOp) else min
        (a, b), (c, d) = (bounds(x, depth - 1) for x in owner.operands)
        return choose(a, c), choose(b, d)
    if isinstance(owner, ROUNDING):
        low, high = bounds(owner.operands[0], depth - 1)
        whole = -python_math.inf < low and high < python_math.inf
        return (python_math.floor(low), python_math.ceil(high)) if whole else (low, high)
    return EVERYTHING


def is_whole(value: SSAValue, depth: int = DEEPEST) -> bool:
    """Whether a float is known to be a whole number, infinite or NaN."""
    known, owner = constant_number(value), value.owner
    if known is not None:
        return known != known or float(known).is_integer()
    if isinstance(owner, CLAMPING):
        return depth > 0 and all(is_whole(x, depth - 1) for x in owner.operands)
    return isinstance(owner, ROUNDING)
