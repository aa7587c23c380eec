"""exp and what is made of it, as polynomials and powers of two."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from irees.transforms.utils.formula import Formula

MAGIC = 12582912.0
"""1.5 * 2^23: adding and subtracting it rounds a small float to a whole number."""

SIXTEENTHS = 786432.0
"""1.5 * 2^19: adding and subtracting it rounds a small float to a multiple of 1/16."""

EXP_LIMITS = -104.0, 89.0
"""Beyond these exp(x) is 0 or infinite, and the exponent of its parts does not overflow."""

EXP2_LIMITS = -151.0, 129.0
"""The same of exp2(x)."""

EXP_MINUS_1 = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip
"""(exp(r) - 1 - r) / r^2 on [-ln2/2, ln2/2] (Cephes), highest power first."""

LARGE = 10.0
"""From here on exp(-x) is less than the last place of exp(x)."""

TOP_EXPONENT_BIT = 1 << 30
"""The top bit of the exponent: without it a float is below 2."""

POWERS = tuple(2.0 ** (i / 16) for i in range(16))


def exp_by_table(f: Formula, x: SSAValue) -> SSAValue:
    """
    exp(x)  =>  2^(n mod 1) 2^(x log2(e) - n) * 2^floor(n), n = round(16 x log2(e)) / 16

    A negation of x is folded into the constants.
    """
    sign = 1.0
    if isinstance(x.owner, arith.NegfOp):
        x, sign = x.owner.operand, -1.0
    m = f.fma(x, sign * 1.4426950216293335, f.number(SIXTEENTHS))
    n = f.sub(m, SIXTEENTHS)
    # n - x log2(e) in this form, because C has no fma that negates.
    rest = f.fma(x, sign * -1.4426950216293335, n)
    rest = f.fma(x, sign * -1.925963033500011e-08, rest)
    rest = f.from_bits(f.int_op(arith.AndIOp, f.bits(rest), f.integer(~TOP_EXPONENT_BIT)))
    p = f.fma(rest, -5.550595000386238e-2, f.number(0.24023428559303284))
    p = f.mul(f.fma(p, rest, f.number(-0.6931471824645996)), rest)
    power = f.lookup(POWERS, f.bits(m))
    return f.scalef(f.fma(power, p, power), n)


def exp(f: Formula, x: SSAValue) -> SSAValue:
    """exp(x)  =>  p(x - n ln2) * 2^n, n = round(x / ln2)"""
    if f.lookups:
        return exp_by_table(f, x)
    x = f.clamp(x, *EXP_LIMITS)
    n = f.sub(f.add(f.mul(x, 1.4426950408889634), MAGIC), MAGIC)
    r = f.sub(f.sub(x, f.mul(n, 0.693359375)), f.mul(n, -2.12194440e-4))
    p = f.horner(
        r,
        (1.381453825e-3, 8.368745446e-3, 4.166838899e-2, 1.666652113e-1, 4.999999404e-1, 1.0, 1.0),
    )
    return f.ldexp(p, n)


def exp2(f: Formula, x: SSAValue) -> SSAValue:
    """exp2(x)  =>  p((x - n) ln2) * 2^n, n = round(x)"""
    x = f.clamp(x, *EXP2_LIMITS)
    n = f.sub(f.add(x, MAGIC), MAGIC)
    r = f.mul(f.sub(x, n), 0.6931471805599453)
    return f.ldexp(f.horner(r, (*EXP_MINUS_1, 1.0, 1.0)), n)


def expm1(f: Formula, x: SSAValue) -> SSAValue:
    """
    expm1(x)  =>  2 (t q(r) + (t - 1/2)), t = 2^(n - 1), with n and r of exp

    Half of 2^n, because 2^128 is infinite although the result need not be.
    """
    bounded = f.clamp(x, *EXP_LIMITS)
    n = f.sub(f.add(f.mul(bounded, 1.4426950408889634), MAGIC), MAGIC)
    r = f.sub(f.sub(bounded, f.mul(n, 0.693359375)), f.mul(n, -2.12194440e-4))
    q = f.add(f.mul(f.horner(r, EXP_MINUS_1), f.mul(r, r)), r)
    t = f.ldexp(f.number(1.0), f.sub(n, 1.0))
    y = f.mul(f.add(f.mul(t, q), f.sub(t, 0.5)), 2.0)
    # Half of a subnormal number is rounded, and a zero has the sign of x.
    return f.select(f.less(f.absolute(x), 1e-8), x, y)


def tanh(f: Formula, x: SSAValue) -> SSAValue:
    """tanh(x)  =>  sign(x) t(|x|), t(y) = y + y^3 p(y^2) when small, else 1 - 2 / (exp(2y) + 1)"""
    size = f.absolute(x)
    z = f.mul(x, x)
    p = f.horner(
        z,
        (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
         -3.33332819422e-1),
    )  # fmt: skip
    small = f.add(f.mul(f.mul(p, z), size), size)
    grown = f.add(exp(f, f.mul(size, 2.0)), 1.0)
    large = f.sub(f.number(1.0), f.div(f.number(2.0), grown))
    return f.with_sign(f.select(f.less(f.number(0.625), size), large, small), x)


def sinh(f: Formula, x: SSAValue) -> SSAValue:
    """sinh(x)  =>  sign(x) (e + e / (e + 1)) / 2, e = expm1(|x|); exp(|x| / 2)^2 / 2 if large"""
    size = f.absolute(x)
    e = expm1(f, size)
    small = f.mul(f.add(e, f.div(e, f.add(e, f.number(1.0)))), 0.5)
    return f.with_sign(f.select(f.less(f.number(LARGE), size), _half_exp(f, size), small), x)


def cosh(f: Formula, x: SSAValue) -> SSAValue:
    """cosh(x)  =>  (e + 1 / e) / 2, e = exp(|x|); exp(|x| / 2)^2 / 2 if large"""
    size = f.absolute(x)
    e = exp(f, size)
    small = f.mul(f.add(e, f.div(f.number(1.0), e)), 0.5)
    return f.select(f.less(f.number(LARGE), size), _half_exp(f, size), small)


def _half_exp(f: Formula, x: SSAValue) -> SSAValue:
    """exp(x) / 2  =>  (t / 2) t, t = exp(x / 2), which overflows only where the result does"""
    t = exp(f, f.mul(x, 0.5))
    return f.mul(f.mul(t, 0.5), t)
