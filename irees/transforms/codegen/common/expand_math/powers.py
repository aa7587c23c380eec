"""Powers: products for small whole exponents, else exp2(y log2(x)) in f64."""

from __future__ import annotations

from math import isfinite

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from irees.transforms.codegen.common.expand_math.exponentials import exp2
from irees.transforms.codegen.common.expand_math.logarithms import log2
from irees.transforms.utils.constants import constant_number
from irees.transforms.utils.formula import Formula
from irees.transforms.utils.lanes import SMALL_POWERS, lane_bytes


def small_power(op: Operation) -> SSAValue | None:
    """powf(x, 2), fpowi(x, 2)  =>  x * x; powf(x, 3), fpowi(x, 3)  =>  x * x * x"""
    power = constant_number(op.operands[1])
    if power not in SMALL_POWERS:
        return None
    f, x = Formula(op), op.operands[0]
    square = f.mul(x, x)
    return square if power == 2 else f.mul(square, x)


def power(op: Operation, vector_bytes: int) -> SSAValue | None:
    """
    powf(x, y) : f32  =>  s exp2(y log2(|x|)) in f64, s = -1 if x < 0 and y is odd, NaN if y is not
    whole

    The rounding error of an f64 is far below the last place of the result, as large as the product
    may be. None for vectors whose f64 take several registers, and for f64, where the product
    would lose as many bits as its exponent has.
    """
    x, y = op.operands
    f, exponent = Formula(op, element=f64), constant_number(y)
    if Formula(op).double or max(1, f.lanes) * lane_bytes(f64) > vector_bytes:
        return None
    if exponent is None or exponent == 0 or not isfinite(exponent):
        exponent = None
    x, y = (f.insert(arith.ExtFOp(v, f.kind(f64))) for v in (x, y))
    z = exp2(f, f.mul(y, log2(f, f.absolute(x))))
    z = _with_ones(f, x, y, z) if exponent is None else z
    result = _with_signs(f, x, y, z, exponent)
    return f.insert(arith.TruncFOp(result, op.results[0].type))


def _with_ones(f: Formula, x: SSAValue, y: SSAValue, z: SSAValue) -> SSAValue:
    """1 to any power that is a number is 1, and so is any number, or NaN, to the power 0."""
    one = f.number(1.0)
    z = f.select(f.equal(f.absolute(x), 1.0), f.select(f.is_nan(y), z, one), z)
    return f.select(f.equal(x, 1.0), one, f.select(f.equal(y, 0.0), one, z))


def _with_signs(
    f: Formula, x: SSAValue, y: SSAValue, z: SSAValue, exponent: float | None
) -> SSAValue:
    """z = |x|^y with the sign of x^y; NaN for a power of a negative number that is not whole."""
    signed = f.with_sign(z, x) if exponent is None or exponent % 2 == 1 else z
    if exponent is not None and exponent == round(exponent):
        return signed
    # An infinity and a zero have powers that are not whole.
    inside = f.select(f.equal(x, float("-inf")), z, f.number(float("nan")))
    fraction = f.select(f.less(x, 0.0), inside, z)
    if exponent is not None:
        return fraction
    half = f.mul(y, 0.5)
    even = f.equal(half, f.trunc(half))
    return f.select(f.equal(y, f.trunc(y)), f.select(even, z, signed), fraction)
