"""Functions of angles: polynomials on an eighth of a turn."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from irees.transforms.codegen.common.expand_math.exponentials import MAGIC, MAGIC_64
from irees.transforms.codegen.common.expand_math.ranges import where_all
from irees.transforms.utils.formula import Formula

Unary = Callable[[Formula, SSAValue], SSAValue]

QUARTERS = 1.5703125, 4.837512969970703e-4, 7.549533620476723e-08, 2.5633440682570896e-12
"""pi / 2 in parts of 11 bits, and the rest: a product with a number of 12 bits is exact."""

QUARTERS_64 = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32
"""pi / 2 in parts of 33 bits, and the rest: a product with a number of 20 bits is exact."""

MOST_QUARTERS, MOST_QUARTERS_64 = 4096.0, 2.0**20
"""The largest angle with so few quarters of a turn. Payne and Hanek reduce others, in libm."""

SIGN_SHIFT, SIGN_SHIFT_64 = 30, 62
"""From bit 1, which says that half of a turn is to be added, to the sign of a float."""

TINY, TINY_64 = 2.0**-12, 2.0**-27
"""Below it, sin(x), tan(x) and atan(x) are x."""

PI_LOW = 1.2246467991473532e-16
"""What pi has beyond its f64."""

SIN = -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1
COS = 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2
TAN = (
    9.38540185543e-3, 3.11992232697e-3, 2.44301354525e-2, 5.34112807005e-2, 1.33387994085e-1,
    3.33331568548e-1,
)  # fmt: skip
ATAN = 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1
ASIN = 4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1
"""Polynomials of x^2 (Cephes), highest power first."""

SIN_64 = (
    1.5896666698863484e-10, -2.505075596607114e-08, 2.75573136787141e-06, -1.984126982977142e-04,
    8.33333333332237e-03, -1.6666666666666632e-01,
)  # fmt: skip
COS_64 = (
    -1.1367900016364881e-11, 2.0875896367140662e-09, -2.755731573025875e-07, 2.4801587294605744e-05,
    -1.3888888888882816e-03, 4.166666666666665e-02,
)  # fmt: skip
ATAN_64 = (
    1.5195551922319549e-02, -3.347487585186611e-02, 4.503568557401353e-02, -5.218409374163099e-02,
    5.877022616665118e-02, -6.666226845628508e-02, 7.692282764974333e-02, -9.090908144824406e-02,
    1.1111111088186547e-01, -1.428571428538816e-01, 1.999999999999767e-01, -3.3333333333333326e-01,
)  # fmt: skip
ASIN_64 = (
    3.272783454290842e-02, -2.115685401939254e-02, 2.1818348851752843e-02, 3.661075585645665e-03,
    1.0792187707635714e-02, 1.1396795268310549e-02, 1.398107765224618e-02, 1.7351590717929362e-02,
    2.2372216163439047e-02, 3.038194266646274e-02, 4.464285717546278e-02, 7.499999999969921e-02,
    1.6666666666666763e-01,
)  # fmt: skip
"""The same for f64 (minimax; sin 4e-18, cos 2e-19, atan 5e-20, asin 1e-18 of the result)."""


def for_small(op: Operation, formula: Unary) -> SSAValue:
    """f(x)  =>  if all |x| <= MOST_QUARTERS { formula(x) } else { f(x) }"""
    f, x = Formula(op), op.operands[0]
    small = f.less(f.absolute(x), MOST_QUARTERS_64 if f.double else MOST_QUARTERS)
    return where_all(op, small, lambda inside: formula(inside, x))


def _reduced(f: Formula, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue | None]:
    """
    Returns the bits of a number that counts quarters of a turn, the rest of the angle, and in f64
    what is lost by rounding it.
    """
    magic = MAGIC_64 if f.double else MAGIC
    count = f.add(f.mul(x, 2 / pi), magic)
    n, r = f.sub(count, magic), x
    if not f.double:
        for part in QUARTERS:
            r = f.sub(r, f.mul(n, part))
        return f.bits(count), r, None
    r, lost = f.sub(r, f.mul(n, QUARTERS_64[0])), None
    for part in QUARTERS_64[1:3]:
        product = f.mul(n, part)
        rest = f.sub(r, product)
        error = f.sub(f.sub(r, rest), product)
        r, lost = rest, error if lost is None else f.add(lost, error)
    assert lost is not None
    lost = f.sub(lost, f.mul(n, QUARTERS_64[3]))
    total = f.add(r, lost)
    return f.bits(count), total, f.add(f.sub(r, total), lost)


def _sin_cos(f: Formula, r: SSAValue, lost: SSAValue | None) -> tuple[SSAValue, SSAValue]:
    """sin(r + lost) and cos(r + lost) for |r| <= pi / 4"""
    z = f.mul(r, r)
    if lost is None:
        sine = f.add(f.mul(f.mul(f.horner(z, SIN), z), r), r)
        cosine = f.mul(f.mul(f.horner(z, COS), z), z)
        return sine, f.add(f.sub(cosine, f.mul(z, 0.5)), 1.0)
    # lost * cos(r) is added to the sine, and lost * sin(r) taken from the cosine.
    half = f.mul(z, 0.5)
    tail = f.sub(lost, f.mul(half, lost))
    sine = f.add(r, f.add(f.mul(f.mul(f.horner(z, SIN_64), z), r), tail))
    cosine = f.sub(f.mul(f.mul(f.horner(z, COS_64), z), z), f.mul(r, lost))
    main = f.sub(f.number(1.0), half)
    rounding = f.sub(f.sub(f.number(1.0), main), half)
    return sine, f.add(main, f.add(rounding, cosine))


def _is_odd(f: Formula, number: SSAValue) -> SSAValue:
    """Whether the lowest bit of an integer is set."""
    bit = f.int_op(arith.AndIOp, number, f.integer(1))
    if f.double:
        # At this place the bit is 2.0; AVX2 has no cast of 64-bit integers.
        shifted = f.int_op(arith.ShLIOp, bit, f.integer(SIGN_SHIFT_64))
        return f.less(f.number(1.0), f.from_bits(shifted))
    return f.less(f.number(0.5), f.to_float(bit))


def _turned(f: Formula, quarters: SSAValue, r: SSAValue, lost: SSAValue | None) -> SSAValue:
    """sin(r + lost + quarters * pi / 2)"""
    sine, cosine = _sin_cos(f, r, lost)
    y = f.select(_is_odd(f, quarters), cosine, sine)
    half = f.int_op(arith.AndIOp, quarters, f.integer(2))
    sign = f.int_op(arith.ShLIOp, half, f.integer(SIGN_SHIFT_64 if f.double else SIGN_SHIFT))
    return f.from_bits(f.int_op(arith.XOrIOp, f.bits(y), sign))


def _or_tiny(f: Formula, x: SSAValue, y: SSAValue) -> SSAValue:
    """y, or a tiny x"""
    return f.select(f.less(f.absolute(x), TINY_64 if f.double else TINY), x, y)


def sin(f: Formula, x: SSAValue) -> SSAValue:
    """sin(x)  =>  +-sin(r) or +-cos(r), x = n pi / 2 + r"""
    quarters, r, lost = _reduced(f, x)
    tiny = f.less(f.absolute(x), TINY_64 if f.double else TINY)
    return f.select(tiny, x, _turned(f, quarters, r, lost))


def cos(f: Formula, x: SSAValue) -> SSAValue:
    """cos(x)  =>  sin(x + pi / 2)"""
    quarters, r, lost = _reduced(f, x)
    return _turned(f, f.int_op(arith.AddiOp, quarters, f.integer(1)), r, lost)


def tan(f: Formula, x: SSAValue) -> SSAValue:
    """tan(x)  =>  t(r) or -1 / t(r), x = n pi / 2 + r; in f64 sin(r) / cos(r), -cos(r) / sin(r)"""
    quarters, r, lost = _reduced(f, x)
    odd = _is_odd(f, quarters)
    if lost is not None:
        sine, cosine = _sin_cos(f, r, lost)
        y = f.div(f.select(odd, cosine, sine), f.select(odd, f.sub(f.number(0.0), sine), cosine))
        return _or_tiny(f, x, y)
    z = f.mul(r, r)
    t = f.add(f.mul(f.mul(f.horner(z, TAN), z), r), r)
    y = f.select(odd, f.div(f.number(-1.0), t), t)
    return _or_tiny(f, x, y)


def _plus(f: Formula, a: SSAValue, turn: float) -> SSAValue:
    """a + turn pi, with both parts of pi in f64"""
    a = f.add(a, turn * PI_LOW) if f.double else a
    return f.add(a, turn * pi)


def _less(f: Formula, turn: float, a: SSAValue) -> SSAValue:
    """turn pi - a, with both parts of pi in f64"""
    a = f.sub(a, turn * PI_LOW) if f.double else a
    return f.sub(f.number(turn * pi), a)


def _atan_of_small(f: Formula, x: SSAValue) -> SSAValue:
    """atan(x) for 0 <= x <= 1, by atan(x) = pi / 4 + atan((x - 1) / (x + 1)) above tan(pi / 8)"""
    large = f.less(f.number(0.4142135623730950), x)
    one = f.number(1.0)
    r = f.select(large, f.div(f.sub(x, one), f.add(x, one)), x)
    z = f.mul(r, r)
    y = f.add(f.mul(f.mul(f.horner(z, ATAN_64 if f.double else ATAN), z), r), r)
    return f.select(large, _plus(f, y, 0.25), y)


def atan(f: Formula, x: SSAValue) -> SSAValue:
    """atan(x)  =>  sign(x) a(|x|), with pi / 2 - a(1 / |x|) above 1"""
    size = f.absolute(x)
    large = f.less(f.number(1.0), size)
    a = _atan_of_small(f, f.select(large, f.div(f.number(1.0), size), size))
    return f.with_sign(f.select(large, _less(f, 0.5, a), a), x)


def asin(f: Formula, x: SSAValue) -> SSAValue:
    """asin(x)  =>  sign(x) (pi / 2 - 2 a(sqrt((1 - |x|) / 2))) above 1/2, else a(x)"""
    size = f.absolute(x)
    large = f.less(f.number(0.5), size)
    a = _asin_of_small(f, size, large)
    y = f.select(large, _less(f, 0.5, f.add(a, a)), a)
    return f.select(f.less(size, TINY_64 if f.double else TINY), x, f.with_sign(y, x))


def acos(f: Formula, x: SSAValue) -> SSAValue:
    """acos(x)  =>  2 a(sqrt((1 - x) / 2)) or pi minus it beyond +-1/2, else pi / 2 - a(x)"""
    size = f.absolute(x)
    large = f.less(f.number(0.5), size)
    a = _asin_of_small(f, size, large)
    double = f.add(a, a)
    below = f.less(x, 0.0)
    outer = f.select(below, _less(f, 1.0, double), double)
    inner = _less(f, 0.5, f.with_sign(a, x))
    return f.select(large, outer, f.select(f.is_nan(x), x, inner))


def _asin_of_small(f: Formula, size: SSAValue, large: SSAValue) -> SSAValue:
    """asin(r) for r = size, or r = sqrt((1 - size) / 2) where `large`"""
    z = f.select(large, f.mul(f.sub(f.number(1.0), size), 0.5), f.mul(size, size))
    r = f.select(large, f.sqrt(z), size)
    return f.add(f.mul(f.mul(f.horner(z, ASIN_64 if f.double else ASIN), z), r), r)


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
    a = f.select(steep, _less(f, 0.5, a), a)
    # The sign bit of x, also that of -0.
    left = f.less(f.with_sign(f.number(1.0), x), 0.0)
    a = f.with_sign(f.select(left, _less(f, 1.0, a), a), y)
    return f.select(f.is_nan(x), x, f.select(f.is_nan(y), y, a))
