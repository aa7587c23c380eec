"""
Gamma, zeta and error functions of Scalars to f64 accuracy, and functions on the bits of floats.

Functions take and return f64, except those on bits. Arguments outside of a function's domain give
NaN, poles give infinities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from . import special_tables as tables
from .dtypes import F32, I16, I32, I64
from .loops import scalar_while
from .scalars import Scalar

INF, NAN = math.inf, math.nan
EPSILON = 2.0**-52


def polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """c[0] x^n + ... + c[n] by Horner's rule."""
    first, second, *rest = coefficients
    result = (x if first == 1 else x * first) + second
    for c in rest:
        result = result * x + c
    return result


def chebyshev(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """c[n] / 2 + c[n - 1] T1(x / 2) + ... + c[0] Tn(x / 2) by Clenshaw's rule, as in Cephes."""
    first, *rest = coefficients
    before, last = x._other(0.0), x._other(first)
    older = before
    for c in rest:
        older, before, last = before, last, x * last - before + c
    return (last - older) * 0.5


def _select(default: Scalar, *cases: tuple[Scalar, float | Scalar]) -> Scalar:
    """The value of the first case whose condition is true, else the default."""
    for condition, value in reversed(cases):
        default = condition.where(value, default)
    return default


def _fraction_of_pi(x: Scalar) -> Scalar:
    """pi (x - round(x)): range reduction that keeps sine and tangent accurate."""
    return (x - x.round()) * math.pi


# --- gamma ---

_SHIFT = 10


def lgamma(x: Scalar) -> Scalar:
    """log|gamma(x)|, with Stirling's series at x + 10 and reflection for x < 1 / 2."""
    reflected = x < 0.5
    y = reflected.where(1 - x, x)
    product = y
    for i in range(1, _SHIFT):
        product = product * (y + float(i))
    near = y < float(_SHIFT)
    z = near.where(y + float(_SHIFT), y)
    w = 1 / z
    series = polynomial(w * w, tables.STIRLING) * w
    value = (z - 0.5) * z.log() - z + (0.5 * math.log(2 * math.pi)) + series
    value = near.where(value - product.log(), value)
    sine = _fraction_of_pi(x).sin().abs()
    value = reflected.where(math.log(math.pi) - sine.log() - value, value)
    pole = (x <= 0) & (x == x.floor())
    return _select(value, (x.isinf() | pole, INF))


def digamma(x: Scalar) -> Scalar:
    """gamma'(x) / gamma(x), with its asymptotic series at x + 10 and reflection for x < 0."""
    reflected = x < 0
    y = reflected.where(1 - x, x)
    near = y < float(_SHIFT)
    total = 1 / y
    for i in range(1, _SHIFT):
        total = total + 1 / (y + float(i))
    z = near.where(y + float(_SHIFT), y)
    w = 1 / (z * z)
    value = z.log() - 0.5 / z - polynomial(w, tables.DIGAMMA) * w
    value = near.where(value - total, value)
    value = reflected.where(value - math.pi / _fraction_of_pi(x).tan(), value)
    return _select(
        value,
        (x == 0, x._other(INF).copysign(-x)),
        (reflected & (x == x.floor()), NAN),
        (x == INF, INF),
    )


def zeta(s: Scalar, q: Scalar) -> Scalar:
    """
    sum over k >= 0 of (q + k)^-s, by Euler-Maclaurin after at least ten terms. NaN for q < 0 and a
    non-integer s, infinite at the poles q = 0, -1, ...
    """
    first = (q > -1e6).where(q, 1.0)  # below -1e6 the loop would take too many steps

    def more(a: Scalar, total: Scalar, term: Scalar, count: Scalar) -> Scalar:
        relevant = ~((term / total).abs() < EPSILON)
        return ((count < 9) | (a <= 9.0)) & relevant

    def step(a: Scalar, total: Scalar, term: Scalar, count: Scalar) -> tuple[Scalar, ...]:
        a = a + 1
        term = a.pow(exponent)
        return a, total + term, term, count + 1

    exponent = -s
    start = first.pow(exponent)
    zero = q.body.number(0, I64)
    a, total, term, _ = scalar_while(q.body, [first, start, start, zero], more, step)
    done = (term / total).abs() < EPSILON
    value = total + term * a / (s - 1) - term * 0.5
    factor, power, w = s, term / a, 1 / (a * a)
    for i, c in enumerate(tables.ZETA):
        value = value + factor * power * c
        factor = factor * (s + float(2 * i + 1)) * (s + float(2 * i + 2))
        power = power * w
    value = done.where(total, value)
    return _select(
        value,
        (s == 1, INF),
        ((s < 1) | s.isnan() | q.isnan(), NAN),
        ((q == INF) | (s == INF) & (q > 1), 0.0),
        ((q <= 0) & (q == q.floor()), INF),
        ((q <= 0) & (s != s.floor()), NAN),
        (q <= -1e6, NAN),
    )


def trigamma(x: Scalar) -> Scalar:
    """The derivative of digamma, with its asymptotic series and reflection for x < 1 / 2."""
    reflected = x < 0.5
    y = reflected.where(1 - x, x)
    total = 1 / (y * y)
    for i in range(1, _SHIFT):
        z = y + float(i)
        total = total + 1 / (z * z)
    z = y + float(_SHIFT)
    w = 1 / (z * z)
    bernoulli = [2 * (8 - i) * c for i, c in enumerate(tables.DIGAMMA)]
    total = total + 1 / z + w * 0.5 + polynomial(w, bernoulli) * w / z
    sine = _fraction_of_pi(x).sin()
    return reflected.where((math.pi * math.pi) / (sine * sine) - total, total)


def polygamma(n: int, x: Scalar) -> Scalar:
    """The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x)"""
    if n < 2:
        return digamma(x) if n == 0 else trigamma(x)
    sign = 1.0 if n % 2 else -1.0
    try:
        factor = sign * math.gamma(n + 1)
    except OverflowError:
        factor = sign * INF
    return zeta(x._other(float(n + 1)), x) * factor


# --- the incomplete gamma function ---

_MOST_TERMS = 20000


def _series(a: Scalar, x: Scalar) -> Scalar:
    """sum over k of x^k / ((a + 1) ... (a + k))"""

    def more(r: Scalar, c: Scalar, total: Scalar, *rest: Scalar) -> Scalar:
        return (c > total * EPSILON) & (rest[-1] < _MOST_TERMS)

    def step(r: Scalar, c: Scalar, total: Scalar, x: Scalar, count: Scalar) -> tuple[Scalar, ...]:
        r = r + 1
        c = c * (x / r)
        return r, c, total + c, x, count + 1

    one = x._other(1.0)
    values = [a, one, one, x, x.body.number(0, I64)]
    return scalar_while(x.body, values, more, step)[2]


def _continued_fraction(a: Scalar, x: Scalar) -> Scalar:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)) by Lentz's rule (Numerical Recipes, 6.2)."""
    tiny = 1e-300

    def away(v: Scalar) -> Scalar:
        return (v.abs() < tiny).where(tiny, v)

    def more(h: Scalar, delta: Scalar, *rest: Scalar) -> Scalar:
        return ((delta - 1).abs() > EPSILON) & (rest[-1] < float(_MOST_TERMS))

    def step(
        h: Scalar, _: Scalar, b: Scalar, c: Scalar, d: Scalar, i: Scalar
    ) -> tuple[Scalar, ...]:
        i = i + 1
        an = -i * (i - a)
        b = b + 2
        d = 1 / away(an * d + b)
        c = away(b + an / c)
        delta = c * d
        return h * delta, delta, b, c, d, i

    b = x + 1 - a
    d = 1 / away(b)
    values = [d, x._other(0.0), b, x._other(1 / tiny), d, x._other(0.0)]
    return scalar_while(x.body, values, more, step)[0]


def igamma(a: Scalar, x: Scalar, complement: bool = False) -> Scalar:
    """
    The regularized incomplete gamma function, or its complement: the integral of t^(a - 1) e^-t
    from 0 to x divided by gamma(a). A power series for x <= a or x <= 1, else a continued fraction.
    """
    valid = (a > 0) & (x > 0) & a.isfinite() & x.isfinite()
    u, v = valid.where(a, 1.0), valid.where(x, 1.0)
    small = (v <= 1) | (v <= u)
    scale = (u * v.log() - v - lgamma(u)).exp()
    # The unselected branch gets arguments for which its loop exits at once.
    lower = scale / u * _series(u, small.where(v, 0.0))
    upper = scale * _continued_fraction(small.where(1.0, u), small.where(1.0, v))
    value = small.where(1 - lower if complement else lower, upper if complement else 1 - upper)
    zero, one = (1.0, 0.0) if complement else (0.0, 1.0)
    return _select(
        value,
        ((a < 0) | (x < 0) | a.isnan() | x.isnan() | ((a == 0) & (x == 0)), NAN),
        (a == 0, one),
        (x == 0, zero),
        (a.isinf() & x.isinf(), NAN),
        (a.isinf(), zero),
        (x.isinf(), one),
    )


# --- error functions ---


def _quantile(q: Scalar, tail: Scalar) -> Scalar:
    """x with (1 + erf(x / sqrt(2))) / 2 = q + 1/2; `tail` is the smaller of q + 1/2 and 1/2 - q."""

    def ratio(v: Scalar, top: Sequence[float], bottom: Sequence[float]) -> Scalar:
        return polynomial(v, top) / polynomial(v, bottom)

    centre = q * ratio(0.180625 - q * q, tables.PPND_A, tables.PPND_B)
    r = (-tail.log()).sqrt()
    middle = ratio(r - 1.6, tables.PPND_C, tables.PPND_D)
    far = ratio(r - 5, tables.PPND_E, tables.PPND_F)
    return (q.abs() <= 0.425).where(centre, (r <= 5).where(middle, far).copysign(q))


def erfinv(y: Scalar) -> Scalar:
    """x with erf(x) = y"""
    size = y.abs()
    x = _quantile(y * 0.5, (1 - size) * 0.5) * math.sqrt(0.5)
    return _select(x, (size == 1, y._other(INF).copysign(y)), (~(size <= 1), NAN))


def erfcx(x: Scalar) -> Scalar:
    """exp(x^2) erfc(x), with Cody's rational approximations on three intervals."""
    y = x.abs()
    square = y * y
    near = square.exp() * (
        1 - y * polynomial(square, tables.CODY_A) / polynomial(square, tables.CODY_B)
    )
    middle = polynomial(y, tables.CODY_C) / polynomial(y, tables.CODY_D)
    w = 1 / square
    far = w * polynomial(w, tables.CODY_P) / polynomial(w, tables.CODY_Q)
    far = (1 / math.sqrt(math.pi) - far) / y
    value = (y <= 0.46875).where(near, (y <= 4).where(middle, far))
    value = (x < 0).where(2 * square.exp() - value, value)
    return _select(value, (x == INF, 0.0))


def ndtri(y: Scalar) -> Scalar:
    """x with (1 + erf(x / sqrt(2))) / 2 = y"""
    value = _quantile(y - 0.5, y.minimum(1 - y))
    return _select(value, (y == 0, -INF), (y == 1, INF), (~((y >= 0) & (y <= 1)), NAN))


def log_ndtr(x: Scalar) -> Scalar:
    """log((1 + erf(x / sqrt(2))) / 2)"""
    t = x * math.sqrt(0.5)
    low = (erfcx(-t) * 0.5).log() - t * t
    return (x < -1).where(low, (t.erfc() * -0.5).log1p())


# --- bits of floats ---


def nextafter(x: Scalar, y: Scalar) -> Scalar:
    """The next representable number of this dtype after x in the direction of y."""
    dtype = x.dtype
    kind = {16: I16, 32: I32, 64: I64}[dtype.bits]
    wide_x, wide_y = x.to(dtype.computed), y.to(dtype.computed)
    bits = x.bitcast(kind)
    away = (wide_y > wide_x) == (wide_x > 0)
    moved = away.where(bits + 1, bits - 1)
    smallest = (wide_y > 0).where(1, bits._other(1 - (1 << (dtype.bits - 1))))
    moved = (wide_x == 0).where(smallest, moved)
    result = moved.bitcast(dtype)
    result = (wide_x == wide_y).where(y, result)
    return wide_x.isnan().where(x, wide_y.isnan().where(y, result))


def frexp(x: Scalar) -> tuple[Scalar, Scalar]:
    """m and e (i32) with x = m 2^e and 1/2 <= |m| < 1; 0, infinities and NaN are unchanged."""
    kind, digits, bias = (I32, 23, 126) if x.dtype is F32 else (I64, 52, 1022)
    tiny = x.abs() < 2.0**-bias
    scaled = tiny.where(x * 2.0 ** (digits + 2), x)
    bits = scaled.bitcast(kind)
    mask = (1 << (x.dtype.bits - 1 - digits)) - 1
    exponent = (bits.logical_shift_right(digits) & mask) - bias
    exponent = tiny.where(exponent - (digits + 2), exponent).to(I32)
    mantissa = ((bits & ~(mask << digits)) | (bias << digits)).bitcast(x.dtype)
    plain = (x == 0) | ~x.isfinite()
    return plain.where(x, mantissa), plain.where(0, exponent)
