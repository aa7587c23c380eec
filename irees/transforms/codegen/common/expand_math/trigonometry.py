"""Functions of angles: polynomials on an eighth of a turn."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from irees.transforms.codegen.common.expand_math.exponentials import MAGIC
from irees.transforms.codegen.common.expand_math.ranges import where_all
from irees.transforms.utils.formula import Formula

Unary = Callable[[Formula, SSAValue], SSAValue]

QUARTERS = 1.5703125, 4.837512969970703e-4, 7.549533620476723e-08, 2.5633440682570896e-12
"""pi / 2 in parts of 11 bits, and the rest: a product with a number of 12 bits is exact."""

MOST_QUARTERS = 4096.0
"""The largest angle with so few quarters of a turn. Payne and Hanek reduce others, in libm."""

SIGN_SHIFT = 30
"""From bit 1, which says that half of a turn is to be added, to the sign of a float."""

TINY = 2.0**-12
"""Below it, sin(x), tan(x) and atan(x) are x."""

SIN = -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1
COS = 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2
TAN = (
    9.38540185543e-3, 3.11992232697e-3, 2.44301354525e-2, 5.34112807005e-2, 1.33387994085e-1,
    3.33331568548e-1,
)  # fmt: skip
ATAN = 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1
ASIN = 4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1
"""Polynomials of x^2 (Cephes), highest power first."""


def for_small(op: Operation, formula: Unary) -> SSAValue:
    """f(x)  =>  if all |x| <= MOST_QUARTERS { formula(x) } else { f(x) }"""
    f, x = Formula(op), op.operands[0]
    return where_all(op, f.less(f.absolute(x), MOST_QUARTERS), lambda inside: formula(inside, x))


def _reduced(f: Formula, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns the bits of a number that counts quarters of a turn, and the rest of the angle."""
    count = f.add(f.mul(x, 2 / pi), MAGIC)
    n, r = f.sub(count, MAGIC), x
    for part in QUARTERS:
        r = f.sub(r, f.mul(n, part))
    return f.bits(count), r


def _sin_cos(f: Formula, r: SSAValue) -> tuple[SSAValue, SSAValue]:
    """sin(r) and cos(r) for |r| <= pi / 4"""
    z = f.mul(r, r)
    sine = f.add(f.mul(f.mul(f.horner(z, SIN), z), r), r)
    cosine = f.mul(f.mul(f.horner(z, COS), z), z)
    return sine, f.add(f.sub(cosine, f.mul(z, 0.5)), 1.0)


def _is_odd(f: Formula, number: SSAValue) -> SSAValue:
    """Whether the lowest bit of an i32 is set."""
    return f.less(f.number(0.5), f.to_float(f.int_op(arith.AndIOp, number, f.integer(1))))


def _turned(f: Formula, quarters: SSAValue, r: SSAValue) -> SSAValue:
    """sin(r + quarters * pi / 2)"""
    sine, cosine = _sin_cos(f, r)
    y = f.select(_is_odd(f, quarters), cosine, sine)
    half = f.int_op(arith.AndIOp, quarters, f.integer(2))
    sign = f.int_op(arith.ShLIOp, half, f.integer(SIGN_SHIFT))
    return f.from_bits(f.int_op(arith.XOrIOp, f.bits(y), sign))


def sin(f: Formula, x: SSAValue) -> SSAValue:
    """sin(x)  =>  +-sin(r) or +-cos(r), x = n pi / 2 + r"""
    quarters, r = _reduced(f, x)
    return f.select(f.less(f.absolute(x), TINY), x, _turned(f, quarters, r))


def cos(f: Formula, x: SSAValue) -> SSAValue:
    """cos(x)  =>  sin(x + pi / 2)"""
    quarters, r = _reduced(f, x)
    return _turned(f, f.int_op(arith.AddiOp, quarters, f.integer(1)), r)


def tan(f: Formula, x: SSAValue) -> SSAValue:
    """tan(x)  =>  t(r) or -1 / t(r), x = n pi / 2 + r"""
    quarters, r = _reduced(f, x)
    z = f.mul(r, r)
    t = f.add(f.mul(f.mul(f.horner(z, TAN), z), r), r)
    y = f.select(_is_odd(f, quarters), f.div(f.number(-1.0), t), t)
    return f.select(f.less(f.absolute(x), TINY), x, y)


def _atan_of_small(f: Formula, x: SSAValue) -> SSAValue:
    """atan(x) for 0 <= x <= 1, by atan(x) = pi / 4 + atan((x - 1) / (x + 1)) above tan(pi / 8)"""
    large = f.less(f.number(0.4142135623730950), x)
    one = f.number(1.0)
    r = f.select(large, f.div(f.sub(x, one), f.add(x, one)), x)
    z = f.mul(r, r)
    y = f.add(f.mul(f.mul(f.horner(z, ATAN), z), r), r)
    return f.select(large, f.add(y, pi / 4), y)


def atan(f: Formula, x: SSAValue) -> SSAValue:
    """atan(x)  =>  sign(x) a(|x|), with pi / 2 - a(1 / |x|) above 1"""
    size = f.absolute(x)
    large = f.less(f.number(1.0), size)
    a = _atan_of_small(f, f.select(large, f.div(f.number(1.0), size), size))
    return f.with_sign(f.select(large, f.sub(f.number(pi / 2), a), a), x)


def asin(f: Formula, x: SSAValue) -> SSAValue:
    """asin(x)  =>  sign(x) (pi / 2 - 2 a(sqrt((1 - |x|) / 2))) above 1/2, else a(x)"""
    size = f.absolute(x)
    large = f.less(f.number(0.5), size)
    a = _asin_of_small(f, size, large)
    y = f.select(large, f.sub(f.number(pi / 2), f.add(a, a)), a)
    return f.select(f.less(size, TINY), x, f.with_sign(y, x))


def acos(f: Formula, x: SSAValue) -> SSAValue:
    """acos(x)  =>  2 a(sqrt((1 - x) / 2)) or pi minus it beyond +-1/2, else pi / 2 - a(x)"""
    size = f.absolute(x)
    large = f.less(f.number(0.5), size)
    a = _asin_of_small(f, size, large)
    double = f.add(a, a)
    below = f.less(x, 0.0)
    outer = f.select(below, f.sub(f.number(pi), double), double)
    inner = f.sub(f.number(pi / 2), f.with_sign(a, x))
    return f.select(large, outer, f.select(f.is_nan(x), x, inner))


def _asin_of_small(f: Formula, size: SSAValue, large: SSAValue) -> SSAValue:
    """asin(r) for r = size, or r = sqrt((1 - size) / 2) where `large`"""
    z = f.select(large, f.mul(f.sub(f.number(1.0), size), 0.5), f.mul(size, size))
    r = f.select(large, f.sqrt(z), size)
    return f.add(f.mul(f.mul(f.horner(z, ASIN), z), r), r)


def atan2(f: Formula, y: SSAValue, x: SSAValue) -> SSAValue:
    """atan2(y, x)  =>  the angle of atan(lower / larger of |x|, |y|), moved to its eighth"""
    width, height = f.absolute(x), f.absolute(y)
    steep = f.less(width, height)
    lower, larger = f.select(steep, width, height), f.select(steep, height, width)
    zero = f.number(0.0)
    ratio = f.div(lower, larger)
    # 0 / 0 is 0, infinity over infinity 1.
    ratio = f.select(f.less(zero, larger), ratio, zero)
    ratio = f.select(f.less(lower, f.number(float("inf"))), ratio, f.number(1.0))
    a = _atan_of_small(f, ratio)
    a = f.select(steep, f.sub(f.number(pi / 2), a), a)
    # The sign bit of x, also that of -0.
    left = f.less(f.with_sign(f.number(1.0), x), 0.0)
    a = f.with_sign(f.select(left, f.sub(f.number(pi), a), a), y)
    return f.select(f.is_nan(x), x, f.select(f.is_nan(y), y, a))
