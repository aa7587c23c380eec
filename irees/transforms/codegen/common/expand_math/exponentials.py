"""exp and what is made of it, as polynomials and powers of two."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from irees.transforms.utils.formula import Formula

MAGIC = 12582912.0
"""1.5 * 2^23: adding and subtracting it rounds a small float to a whole number."""

SIXTEENTHS = 786432.0
"""1.5 * 2^19: adding and subtracting it rounds a small float to a multiple of 1/16."""

MAGIC_64 = 1.5 * 2.0**52
"""The same for f64."""

EXP_LIMITS, EXP_LIMITS_64 = (-104.0, 89.0), (-746.0, 710.0)
"""Beyond these exp(x) is 0 or infinite, and the exponent of its parts does not overflow."""

EXP2_LIMITS, EXP2_LIMITS_64 = (-151.0, 129.0), (-1076.0, 1025.0)
"""The same of exp2(x)."""

LN2, LN2_64 = (0.693359375, -2.12194440e-4), (0.6931471803691238, 1.9082149292705877e-10)
"""ln2 in two parts: the product of the first one with an exponent is exact."""

EXP_MINUS_1 = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip
"""(exp(r) - 1 - r) / r^2 on [-ln2/2, ln2/2] (Cephes), highest power first."""

EXP_MINUS_1_64 = (
    2.0826552896729305e-09, 2.5112084351160865e-08, 2.755758239824227e-07, 2.75572347283987e-06,
    2.4801586925546032e-05, 1.984126989651439e-04, 1.3888888889116479e-03, 8.333333333316983e-03,
    4.166666666666609e-02, 1.6666666666666682e-01, 5.0e-01,
)  # fmt: skip
"""The same for f64 (minimax, 4e-20 of exp)."""

LARGE = 10.0
"""From here on exp(-x) is less than the last place of exp(x), in f32."""

MOST_OF_TANH = 44.0
"""expm1 of it exceeds 2^63, so that tanh of half of it is 1."""

WITHOUT_1 = 40.0
"""exp(x) - 1 is exp(x) from here on, in f64."""

MOST_OF_SINH = 711.0
"""From here on sinh(x) and cosh(x) are infinite in f64."""

UPPER_HALF, UPPER_HALF_64 = ~0xFFF, ~0x7FFFFFF
"""Masks that leave a mantissa of 12 (26) bits, the square of which is exact."""

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


def _rounded(f: Formula, x: SSAValue) -> SSAValue:
    """The nearest whole number."""
    magic = MAGIC_64 if f.double else MAGIC
    return f.sub(f.add(x, magic), magic)


def _reduced(f: Formula, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns n = round(x / ln2) and x - n ln2, for x within the limits."""
    n = _rounded(f, f.mul(x, 1.4426950408889634))
    high, low = LN2_64 if f.double else LN2
    return n, f.sub(f.sub(x, f.mul(n, high)), f.mul(n, low))


def _limited(f: Formula, x: SSAValue) -> SSAValue:
    return f.clamp(x, *(EXP_LIMITS_64 if f.double else EXP_LIMITS))


def exp(f: Formula, x: SSAValue) -> SSAValue:
    """exp(x)  =>  p(x - n ln2) * 2^n, n = round(x / ln2)"""
    if f.lookups and not f.double:
        return exp_by_table(f, x)
    n, r = _reduced(f, _limited(f, x))
    if f.double:
        return f.ldexp(f.horner(r, (*EXP_MINUS_1_64, 1.0, 1.0)), n)
    p = f.horner(
        r,
        (1.381453825e-3, 8.368745446e-3, 4.166838899e-2, 1.666652113e-1, 4.999999404e-1, 1.0, 1.0),
    )
    return f.ldexp(p, n)


def exp2(f: Formula, x: SSAValue) -> SSAValue:
    """exp2(x)  =>  p((x - n) ln2) * 2^n, n = round(x)"""
    x = f.clamp(x, *(EXP2_LIMITS_64 if f.double else EXP2_LIMITS))
    n = _rounded(f, x)
    r = f.mul(f.sub(x, n), 0.6931471805599453)
    return f.ldexp(f.horner(r, (*(EXP_MINUS_1_64 if f.double else EXP_MINUS_1), 1.0, 1.0)), n)


def _minus_1(f: Formula, r: SSAValue) -> SSAValue:
    """exp(r) - 1 for |r| <= ln2 / 2"""
    p = f.horner(r, EXP_MINUS_1_64 if f.double else EXP_MINUS_1)
    return f.add(f.mul(p, f.mul(r, r)), r)


def expm1(f: Formula, x: SSAValue) -> SSAValue:
    """
    expm1(x)  =>  2 (t q(r) + (t - 1/2)), t = 2^(n - 1), with n and r of exp

    Half of 2^n, because 2^128 is infinite although the result need not be.
    """
    n, r = _reduced(f, _limited(f, x))
    q = _minus_1(f, r)
    t = f.ldexp(f.number(1.0), f.sub(n, 1.0))
    y = f.mul(f.add(f.mul(t, q), f.sub(t, 0.5)), 2.0)
    # Half of a subnormal number is rounded, and a zero has the sign of x.
    return f.select(f.less(f.absolute(x), 1e-17 if f.double else 1e-8), x, y)


def tanh(f: Formula, x: SSAValue) -> SSAValue:
    """
    tanh(x)  =>  sign(x) t(|x|), t(y) = y + y^3 p(y^2) when small, else 1 - 2 / (exp(2y) + 1); in
    f64 e / (e + 2), e = expm1(2 |x|)
    """
    size = f.absolute(x)
    if f.double:
        e = expm1(f, f.clamp(f.add(size, size), 0.0, MOST_OF_TANH))
        return f.with_sign(f.div(e, f.add(e, 2.0)), x)
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
    if f.double:
        return f.with_sign(_sinh_64(f, size), x)
    e = expm1(f, size)
    small = f.mul(f.add(e, f.div(e, f.add(e, f.number(1.0)))), 0.5)
    return f.with_sign(f.select(f.less(f.number(LARGE), size), _half_exp(f, size), small), x)


def _sinh_64(f: Formula, size: SSAValue) -> SSAValue:
    """sinh(x)  =>  e + e / (2e + 1), e = expm1(x) / 2, which overflows where the result does"""
    n, r = _reduced(f, f.clamp(size, 0.0, MOST_OF_SINH))
    half, q = f.sub(n, 1.0), _minus_1(f, r)
    t = f.ldexp(f.number(1.0), half)
    e = f.add(f.mul(t, q), f.sub(t, 0.5))
    large = f.ldexp(f.add(q, 1.0), half)
    e = f.select(f.less(size, WITHOUT_1), e, large)
    y = f.add(e, f.div(e, f.add(f.add(e, e), 1.0)))
    # Half of a subnormal number is rounded; infinity over infinity is not a number.
    y = f.select(f.less(size, WITHOUT_1), y, large)
    return f.select(f.less(size, 1e-9), size, y)


def cosh(f: Formula, x: SSAValue) -> SSAValue:
    """
    cosh(x)  =>  (e + 1 / e) / 2, e = exp(|x|); exp(|x| / 2)^2 / 2 if large; in f64
    h + 1 / (4 h), h = exp(|x|) / 2
    """
    size = f.absolute(x)
    if f.double:
        n, r = _reduced(f, f.clamp(size, 0.0, MOST_OF_SINH))
        half = f.ldexp(f.horner(r, (*EXP_MINUS_1_64, 1.0, 1.0)), f.sub(n, 1.0))
        return f.add(half, f.div(f.number(0.25), half))
    e = exp(f, size)
    small = f.mul(f.add(e, f.div(f.number(1.0), e)), 0.5)
    return f.select(f.less(f.number(LARGE), size), _half_exp(f, size), small)


def exp_of_minus_square(f: Formula, x: SSAValue, factor: SSAValue) -> SSAValue:
    """
    factor * exp(-x^2) for 0 <= x  =>  x = h + l, exp(-h^2) exp(-l (x + h)) * factor

    The square of h is exact, and only the last scaling can underflow.
    """
    upper = f.integer(UPPER_HALF_64 if f.double else UPPER_HALF)
    h = f.from_bits(f.int_op(arith.AndIOp, f.bits(x), upper))
    rest = f.mul(f.sub(x, h), f.add(x, h))
    n, r = _reduced(f, f.sub(f.number(0.0), f.mul(h, h)))
    r = f.sub(r, rest)
    p = f.horner(r, (*(EXP_MINUS_1_64 if f.double else EXP_MINUS_1), 1.0, 1.0))
    return f.ldexp(f.mul(p, factor), n)


def _half_exp(f: Formula, x: SSAValue) -> SSAValue:
    """exp(x) / 2  =>  (t / 2) t, t = exp(x / 2), which overflows only where the result does"""
    t = exp(f, f.mul(x, 0.5))
    return f.mul(f.mul(t, 0.5), t)
