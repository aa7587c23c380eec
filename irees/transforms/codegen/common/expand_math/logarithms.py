"""Logarithms: the exponent, and a polynomial of the mantissa."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from irees.transforms.codegen.common.expand_math.exponentials import LN2_64
from irees.transforms.utils.formula import Formula

MANTISSA, MANTISSA_BITS = 0x007FFFFF, 23
"""The bits of the mantissa, and their number."""

HALF_BITS, HALF_EXPONENT = 0x3F000000, 126
"""The bits of 0.5, and its exponent as it is stored."""

NORMAL, SCALE = 1.17549435e-38, 8388608.0
"""The smallest normal float, and a power of two that makes others normal."""

LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
"""(log(1 + m) - m + m^2 / 2) / m^3 (Cephes), highest power first."""


LOG_64 = (
    1.3252751259317982e-01, 1.3249962571742763e-01, 1.5387097616913215e-01, 1.8181775509627096e-01,
    2.2222222648730738e-01, 2.8571428569073154e-01, 4.0000000000006286e-01, 6.666666666666666e-01,
)  # fmt: skip
"""(log((1 + s) / (1 - s)) - 2s) / s^3 as a polynomial of s^2 (minimax, 2e-20 of the logarithm)."""

NORMAL_64, SCALE_64, SCALE_BITS_64 = 2.0**-1022, 2.0**54, 54.0
"""The smallest normal f64, and a power of two that makes others normal."""

MANTISSA_64, MANTISSA_BITS_64 = (1 << 52) - 1, 52
"""The bits of the mantissa of f64, and their number."""

ROOT_BITS, ONE_BITS = 0x3FE6A09E00000000, 0x3FF0000000000000
"""The bits of a number just below sqrt(1/2), and of 1.0."""

EXPONENT_BIAS_64, WHOLE_64, WHOLE_BITS = 1023.0, 2.0**52, 0x4330000000000000
"""The exponent of 1.0 as it is stored; 2^52, which keeps an integer in its low bits; its bits."""

LOG10_2, LOG10_2_64 = (
    (0.301025390625, 4.605038981195214e-06),
    (0.30102999560767785, 5.630334806675098e-11),
)
"""log10(2) in two parts: the product of the first one with an exponent is exact."""

LARGE = 1e9
"""From here on 1 / (4 x^2) is less than the last place of 1."""


def log(f: Formula, x: SSAValue) -> SSAValue:
    """log(x)  =>  log(1 + m) + e ln2 with x = (1 + m) 2^e, sqrt(1/2) <= 1 + m < sqrt(2)"""
    m, e = _mantissa(f, x)
    if f.double:
        half, rest = _parts_of_log_64(f, m)
        high, low = LN2_64
        y = f.sub(f.sub(half, f.add(rest, f.mul(e, low))), m)
        return _ends_of_log(f, x, f.sub(f.mul(e, high), y))
    z = f.mul(m, m)
    y = f.mul(f.mul(f.horner(m, LOG), m), z)
    y = f.sub(f.add(y, f.mul(e, -2.12194440e-4)), f.mul(z, 0.5))
    y = f.add(f.add(m, y), f.mul(e, 0.693359375))
    return _ends_of_log(f, x, y)


def log2(f: Formula, x: SSAValue) -> SSAValue:
    """log2(x)  =>  log(1 + m) log2(e) + e"""
    m, e = _mantissa(f, x)
    # log2(e) - 1 apart, so that the product does not round what is near to m.
    y = _log_of_mantissa(f, m)
    return _ends_of_log(f, x, f.add(f.add(f.mul(y, 0.44269504088896340), y), e))


def log10(f: Formula, x: SSAValue) -> SSAValue:
    """log10(x)  =>  log(1 + m) log10(e) + e log10(2)"""
    m, e = _mantissa(f, x)
    y = f.mul(_log_of_mantissa(f, m), 0.43429448190325176)
    high, low = LOG10_2_64 if f.double else LOG10_2
    y = f.add(f.add(y, f.mul(e, low)), f.mul(e, high))
    return _ends_of_log(f, x, y)


def log1p(f: Formula, x: SSAValue) -> SSAValue:
    """log1p(x)  =>  log(u) + (x - (u - 1)) / u, u = 1 + x"""
    one, zero = f.number(1.0), f.number(0.0)
    u = f.add(x, one)
    lost = f.div(f.sub(x, f.sub(u, one)), u)
    # At -1 and at infinity the quotient is not a number.
    y = log(f, u)
    inner = f.select(f.less(u, float("inf")), f.add(y, lost), y)
    y = f.select(f.less(zero, u), inner, y)
    # The sign of a zero; log1p(x) has the sign of x.
    return f.with_sign(f.absolute(y), x)


def atanh(f: Formula, x: SSAValue) -> SSAValue:
    """atanh(x)  =>  sign(x) log1p(2 |x| / (1 - |x|)) / 2"""
    size = f.absolute(x)
    y = log1p(f, f.div(f.add(size, size), f.sub(f.number(1.0), size)))
    return f.select(f.less(size, 1e-17), x, f.with_sign(f.mul(y, 0.5), x))


def asinh(f: Formula, x: SSAValue) -> SSAValue:
    """asinh(x)  =>  sign(x) log1p(y + y^2 / (1 + sqrt(y^2 + 1))), y = |x|; log(2 y) if large"""
    size, one = f.absolute(x), f.number(1.0)
    square = f.mul(size, size)
    inner = f.add(size, f.div(square, f.add(f.sqrt(f.add(square, one)), one)))
    y = _log_of_twice(f, size, inner)
    return f.select(f.less(size, 1e-17), x, f.with_sign(y, x))


def acosh(f: Formula, x: SSAValue) -> SSAValue:
    """acosh(x)  =>  log1p(t + sqrt(t (t + 2))), t = x - 1; log(2 x) if large"""
    t = f.sub(x, 1.0)
    y = _log_of_twice(f, x, f.add(t, f.sqrt(f.mul(t, f.add(t, 2.0)))))
    return f.select(f.less(x, 1.0), f.number(float("nan")), y)


def _log_of_twice(f: Formula, x: SSAValue, inner: SSAValue) -> SSAValue:
    """log1p(inner), or log(x) + ln2 for a large x"""
    large = f.less(f.number(LARGE), x)
    y = log1p(f, f.select(large, f.sub(x, 1.0), inner))
    return f.select(large, f.add(y, 0.6931471805599453), y)


def _mantissa(f: Formula, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns m and e with x = (1 + m) 2^e and sqrt(1/2) <= 1 + m < sqrt(2), for x > 0."""
    if f.double:
        return _mantissa_64(f, x)
    tiny = f.less(x, NORMAL)
    scaled = f.select(tiny, f.mul(x, SCALE), x)
    bits = f.bits(scaled)
    exponent = f.int_op(
        arith.SubiOp,
        f.int_op(arith.ShRUIOp, bits, f.integer(MANTISSA_BITS)),
        f.integer(HALF_EXPONENT),
    )
    mantissa = f.int_op(
        arith.OrIOp, f.int_op(arith.AndIOp, bits, f.integer(MANTISSA)), f.integer(HALF_BITS)
    )
    m, e = f.from_bits(mantissa), f.to_float(exponent)
    e = f.select(tiny, f.sub(e, float(MANTISSA_BITS)), e)
    below = f.less(m, 0.707106781186547524)
    e = f.select(below, f.sub(e, 1.0), e)
    return f.sub(f.select(below, f.add(m, m), m), 1.0), e


def _mantissa_64(f: Formula, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """
    Returns m and e for f64: the bits of x, moved so that the exponent changes at sqrt(1/2).

    There are neither shifts with a sign nor casts of 64-bit integers on AVX2: the exponent is
    positive as it is stored, and becomes the low bits of 2^52.
    """
    tiny = f.less(x, NORMAL_64)
    bits = f.bits(f.select(tiny, f.mul(x, SCALE_64), x))
    moved = f.int_op(arith.AddiOp, bits, f.integer(ONE_BITS - ROOT_BITS))
    exponent = f.int_op(arith.ShRUIOp, moved, f.integer(MANTISSA_BITS_64))
    whole = f.from_bits(f.int_op(arith.OrIOp, exponent, f.integer(WHOLE_BITS)))
    e = f.sub(whole, WHOLE_64 + EXPONENT_BIAS_64)
    e = f.select(tiny, f.sub(e, SCALE_BITS_64), e)
    mantissa = f.int_op(arith.AndIOp, moved, f.integer(MANTISSA_64))
    m = f.from_bits(f.int_op(arith.AddiOp, mantissa, f.integer(ROOT_BITS)))
    return f.sub(m, 1.0), e


def _parts_of_log_64(f: Formula, m: SSAValue) -> tuple[SSAValue, SSAValue]:
    """
    Returns h = m^2 / 2 and s (h + z p(z)), of which log(1 + m) is m - (h - rest).

    With s = m / (2 + m) and z = s^2, log(1 + m) = 2s + s z p(z) and 2s = m - h + s h (fdlibm).
    """
    half = f.mul(f.mul(m, m), 0.5)
    s = f.div(m, f.add(m, 2.0))
    z = f.mul(s, s)
    return half, f.mul(s, f.add(half, f.mul(z, f.horner(z, LOG_64))))


def _log_of_mantissa(f: Formula, m: SSAValue) -> SSAValue:
    """log(1 + m)  =>  m - m^2 / 2 + m^3 p(m); in f64 m - (m^2 / 2 - rest)"""
    if f.double:
        half, rest = _parts_of_log_64(f, m)
        return f.sub(m, f.sub(half, rest))
    z = f.mul(m, m)
    return f.add(m, f.sub(f.mul(f.mul(f.horner(m, LOG), m), z), f.mul(z, 0.5)))


def _ends_of_log(f: Formula, x: SSAValue, y: SSAValue) -> SSAValue:
    """Returns y, the logarithm of a positive x, or that of another x."""
    y = f.select(f.less(x, f.number(float("inf"))), y, x)
    zero = f.number(0.0)
    y = f.select(f.less(zero, x), y, f.div(f.number(-1.0), zero))
    return f.select(f.less(x, zero), f.number(float("nan")), f.select(f.is_nan(x), x, y))
