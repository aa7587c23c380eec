"""
Computes the exponentials of an attention as `exp2`, which is a GPU instruction. Part of
`irees-gpu-lower-attention`.

exp(x - m) is exp2(x * log2(e) - m * log2(e)), so scores are multiplied by log2(e) once, maxima are
computed on the products, and each exponential is one subtraction and one `exp2`. A score in f32
has a relative error of 2^-24 already; the product with log2(e) adds as much.
"""

from __future__ import annotations

from math import e, log2

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, FloatAttr
from xdsl.ir import SSAValue

from irees.transforms.utils.tensors import ScalarBuilder

LOG2_E = log2(e)

APPROXIMATE = arith.FastMathFlagsAttr([arith.FastMathFlag.APPROX_FUNC])
"""`afn`: an error of 2 ulp, and 0 for results below 2^-126."""


def maximum(a: SSAValue, b: SSAValue) -> arith.MaxnumfOp:
    """Returns the maximum of scores; signed zeros do not matter (`nsz`)."""
    flags = arith.FastMathFlagsAttr([arith.FastMathFlag.NO_SIGNED_ZEROS])
    return arith.MaxnumfOp(a, b, flags=flags)


def score_for_powers(score: SSAValue, s: ScalarBuilder) -> SSAValue:
    """Converts a score to the input of `power`: f32 times log2(e), f64 unchanged."""
    if not isinstance(score.type, Float32Type):
        return score
    return s.op(arith.MulfOp, score, s.number(LOG2_E, score.type))


def power(difference: SSAValue, s: ScalarBuilder) -> SSAValue:
    """Returns exp of a difference of scores from `score_for_powers`."""
    if not isinstance(difference.type, Float32Type):
        return s.op(math.ExpOp, difference)
    return s.op(math.Exp2Op, difference, fastmath=APPROXIMATE)


def divisor(total: SSAValue, s: ScalarBuilder) -> SSAValue:
    """total == 0 ? 1 : total, for rows whose exponentials are all 0"""
    zero, one = s.number(0.0, total.type), s.number(1.0, total.type)
    return s.select(s.op(arith.CmpfOp, total, zero, arg="oeq"), one, total)


def is_positive(value: SSAValue) -> bool:
    """Whether a float is a finite constant above 0."""
    op = value.owner
    return (
        isinstance(op, arith.ConstantOp)
        and isinstance(op.value, FloatAttr)
        and 0 < op.value.value.data < float("inf")
    )
