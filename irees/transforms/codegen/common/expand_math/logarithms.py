"""Logarithms: the exponent, and a polynomial of the mantissa."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

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


def log(f: Formula, x: SSAValue) -> SSAValue:
    """log(x)  =>  log(1 + m) + e ln2 with x = (1 + m) 2^e, sqrt(1/2) <= 1 + m < sqrt(2)"""
    m, e = _mantissa(f, x)
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
    y = f.add(f.add(y, f.mul(e, 4.605038981195214e-06)), f.mul(e, 0.301025390625))
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


def _mantissa(f: Formula, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns m and e with x = (1 + m) 2^e and sqrt(1/2) <= 1 + m < sqrt(2), for x > 0."""
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


def _log_of_mantissa(f: Formula, m: SSAValue) -> SSAValue:
    """log(1 + m)  =>  m - m^2 / 2 + m^3 p(m)"""
    z = f.mul(m, m)
    return f.add(m, f.sub(f.mul(f.mul(f.horner(m, LOG), m), z), f.mul(z, 0.5)))


def _ends_of_log(f: Formula, x: SSAValue, y: SSAValue) -> SSAValue:
    """Returns y, the logarithm of a positive x, or that of another x."""
    y = f.select(f.less(x, f.number(float("inf"))), y, x)
    zero = f.number(0.0)
    y = f.select(f.less(zero, x), y, f.div(f.number(-1.0), zero))
    return f.select(f.less(x, zero), f.number(float("nan")), f.select(f.is_nan(x), x, y))
