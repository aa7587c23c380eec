"""
Floats of one byte, as integer arithmetic on their codes.

A code is a sign bit over a magnitude, whose upper bits are the exponent. Shifted to the place of
f32's mantissa, the magnitude is an f32 whose exponent has the wrong bias; a product with a power of
two mends that, exactly, for subnormal numbers too.
"""

from __future__ import annotations

from .dtypes import F32, I8, I32, Float8
from .scalars import Scalar

_F32_DIGITS, _F32_BIAS = 23, 127


def widened(x: Scalar) -> Scalar:
    """The number of a code in f32, exactly."""
    dtype = x.dtype
    assert isinstance(dtype, Float8)
    s = x.body
    code = s.scalar(x.value, I8).to(I32) & 0xFF
    size, sign = code & 0x7F, code & 0x80
    scale = 2.0 ** (_F32_BIAS - dtype.bias)
    number = size.shift_left(s.number(_F32_DIGITS - dtype.digits, I32)).bitcast(F32) * scale
    nan, infinity = s.number(float("nan"), F32), s.number(float("inf"), F32)
    if not dtype.signed_zero:
        number = (code == 0x80).where(nan, number)
    elif dtype.infinite:
        largest = _codes(dtype)[0]
        number = (size == largest).where(infinity, (size > largest).where(nan, number))
    else:
        number = (size == 0x7F).where(nan, number)
    bits = number.bitcast(I32) | sign.shift_left(s.number(24, I32))
    return bits.bitcast(F32)


def rounded(x: Scalar, dtype: Float8) -> Scalar:
    """
    The code nearest to an f32, ties to even. What is too large becomes infinity in `f8E5M2`, the
    largest number in `f8E4M3FN`, and NaN in the others, as PyTorch's conversions on a CPU do it.
    """
    s = x.body
    bits = x.bitcast(I32)
    size, sign = bits & 0x7FFFFFFF, bits.logical_shift_right(24) & 0x80
    dropped = _F32_DIGITS - dtype.digits
    # Subnormal codes: a sum with a power of two leaves the code in the lowest bits of the mantissa.
    aligned = ((_F32_BIAS - dtype.bias) + dropped + 1) << _F32_DIGITS
    small = (size.bitcast(F32) + s.number(aligned, I32).bitcast(F32)).bitcast(I32) - aligned
    odd = size.logical_shift_right(dropped) & 1
    moved = ((dtype.bias - _F32_BIAS) << _F32_DIGITS) + (1 << (dropped - 1)) - 1
    normal = (size + moved + odd).logical_shift_right(dropped)
    first_normal = (_F32_BIAS - dtype.bias + 1) << _F32_DIGITS
    code = (size < first_normal).where(small, normal)
    overflow, nan, too_large = *_codes(dtype), _too_large(dtype)
    beyond = (size > 0x7F800000).where(s.number(nan, I32), overflow)
    code = (size >= too_large).where(beyond, code)
    if dtype.signed_zero and not dtype.infinite:
        # The code that follows the largest number is NaN.
        code = (size > 0x7F800000).where(s.number(nan, I32), code.minimum(overflow))
    # Without -0 a negative number that becomes 0 is 0.
    signed = code | sign if dtype.signed_zero else (code == 0).where(code, code | sign)
    return Scalar(s, signed.to(I8).value, dtype)


def _codes(dtype: Float8) -> tuple[int, int]:
    """The magnitudes of what is too large, and of NaN."""
    if not dtype.signed_zero:
        return 0x80, 0x80
    return (0x7C if dtype.infinite else 0x7E), 0x7F


def _too_large(dtype: Float8) -> int:
    """The bits of the least f32 that no code is near to."""
    exponent = (1 << (7 - dtype.digits)) - dtype.bias
    power = (exponent + _F32_BIAS) << _F32_DIGITS
    if dtype.infinite:
        return power - (1 << _F32_DIGITS)
    # The last code of the highest exponent is NaN where -0 is not.
    return power - (1 << (_F32_DIGITS - dtype.digits)) if dtype.signed_zero else power
