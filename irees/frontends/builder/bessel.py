"""Bessel and Airy functions of f64 Scalars, with the approximations of Cephes."""

from __future__ import annotations

import math
from typing import Any

from . import special_tables as tables
from .scalars import Scalar
from .special import INF, NAN, chebyshev, polynomial

_TWO_OVER_PI = 2 / math.pi
_J0_ROOTS = (5.78318596294678452118, 30.4712623436620863991)
_J1_ROOTS = (14.6819706421238932572, 49.2184563216946036703)
"""Squares of the first two roots."""


def _ratio(x: Scalar, top: Any, bottom: Any) -> Scalar:
    return polynomial(x, top) / polynomial(x, bottom)


def _waves(x: Scalar, order: int) -> tuple[Scalar, Scalar]:
    """Amplitudes (p, q) of the cosine and sine terms of j and y for x > 5; j = p cos - q sin."""
    name = f"J{order}"
    w = 5 / x
    square = w * w
    p = _ratio(square, getattr(tables, f"{name}_PP"), getattr(tables, f"{name}_PQ"))
    q = w * _ratio(square, getattr(tables, f"{name}_QP"), (1.0, *getattr(tables, f"{name}_QQ")))
    return p, q


def _large(x: Scalar, order: int, second: bool) -> Scalar:
    """Bessel function j, or y if `second`, of the given order for x > 5."""
    p, q = _waves(x, order)
    angle = x - (math.pi / 4 if order == 0 else 3 * math.pi / 4)
    cosine, sine = angle.cos(), angle.sin()
    value = p * sine + q * cosine if second else p * cosine - q * sine
    value = value * math.sqrt(_TWO_OVER_PI) / x.sqrt()
    return (x == INF).where(0.0, value)


def _small_j0(square: Scalar) -> Scalar:
    ratio = _ratio(square, tables.J0_RP, (1.0, *tables.J0_RQ))
    return (square - _J0_ROOTS[0]) * (square - _J0_ROOTS[1]) * ratio


def _small_j1(x: Scalar, square: Scalar) -> Scalar:
    ratio = _ratio(square, tables.J1_RP, (1.0, *tables.J1_RQ))
    return ratio * x * (square - _J1_ROOTS[0]) * (square - _J1_ROOTS[1])


def j0(x: Scalar) -> Scalar:
    """The Bessel function of the first kind of order 0."""
    x = x.abs()
    return (x <= 5).where(_small_j0(x * x), _large(x, 0, False))


def j1(x: Scalar) -> Scalar:
    """The Bessel function of the first kind of order 1."""
    size = x.abs()
    value = (size <= 5).where(_small_j1(size, size * size), _large(size, 1, False))
    return (x < 0).where(-value, value)


def y0(x: Scalar) -> Scalar:
    """The Bessel function of the second kind of order 0."""
    square = x * x
    small = _ratio(square, tables.Y0_YP, (1.0, *tables.Y0_YQ))
    small = small + _TWO_OVER_PI * x.log() * _small_j0(square)
    value = (x <= 5).where(small, _large(x, 0, True))
    return (x == 0).where(-INF, (x < 0).where(NAN, value))


def y1(x: Scalar) -> Scalar:
    """The Bessel function of the second kind of order 1."""
    square = x * x
    small = x * _ratio(square, tables.Y1_YP, (1.0, *tables.Y1_YQ))
    small = small + _TWO_OVER_PI * (_small_j1(x, square) * x.log() - 1 / x)
    value = (x <= 5).where(small, _large(x, 1, True))
    return (x == 0).where(-INF, (x < 0).where(NAN, value))


def spherical_j0(x: Scalar) -> Scalar:
    """sin(x) / x, with its power series for |x| < 1/2."""
    square = x * x
    terms = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(6, -1, -1)]
    value = (x.abs() < 0.5).where(polynomial(square, terms), x.sin() / x)
    return x.isinf().where(0.0, value)


# --- modified ---


def _scaled_i(x: Scalar, near: Any, far: Any) -> tuple[Scalar, Scalar]:
    """exp(-x) i(x) for x >= 0: the Chebyshev series for x <= 8 and the one for x > 8."""
    return chebyshev(x * 0.5 - 2, near), chebyshev(32 / x - 2, far) / x.sqrt()


def i0e(x: Scalar) -> Scalar:
    """exp(-|x|) i0(x)"""
    x = x.abs()
    small, large = _scaled_i(x, tables.I0_A, tables.I0_B)
    return (x <= 8).where(small, large)


def i0(x: Scalar) -> Scalar:
    """The modified Bessel function of the first kind of order 0."""
    return x.abs().exp() * i0e(x)


def i1e(x: Scalar) -> Scalar:
    """exp(-|x|) i1(x)"""
    size = x.abs()
    small, large = _scaled_i(size, tables.I1_A, tables.I1_B)
    value = (size <= 8).where(small * size, large)
    return (x < 0).where(-value, value)


def i1(x: Scalar) -> Scalar:
    """The modified Bessel function of the first kind of order 1."""
    return x.abs().exp() * i1e(x)


def k0(x: Scalar, scaled: bool = False) -> Scalar:
    """The modified Bessel function of the second kind of order 0, times exp(x) if `scaled`."""
    small = chebyshev(x * x - 2, tables.K0_A) - (x * 0.5).log() * i0(x)
    return _of_second_kind(x, small, tables.K0_B, scaled)


def k1(x: Scalar, scaled: bool = False) -> Scalar:
    """The modified Bessel function of the second kind of order 1, times exp(x) if `scaled`."""
    small = (x * 0.5).log() * i1(x) + chebyshev(x * x - 2, tables.K1_A) / x
    return _of_second_kind(x, small, tables.K1_B, scaled)


def _of_second_kind(x: Scalar, small: Scalar, far: Any, scaled: bool) -> Scalar:
    large = chebyshev(8 / x - 2, far) / x.sqrt()
    if scaled:
        small = small * x.exp()
    else:
        large = large * (-x).exp()
    value = (x <= 2).where(small, large)
    return (x == 0).where(INF, (x < 0).where(NAN, value))


# --- Airy ---

_AI_0, _AI_1 = 0.355028053887817239260, 0.258819403792806798405
"""Ai(0) and -Ai'(0)."""


def _airy_series(first: int) -> list[float]:
    """1 / ((first)(first + 1) (first + 3)(first + 4) ...), highest power of x^3 first."""
    terms = [1.0]
    for k in range(1, 18):
        base = 3 * (k - 1) + first
        terms.append(terms[-1] / (base * (base + 1)))
    return terms[::-1]


def airy_ai(x: Scalar) -> Scalar:
    """The Airy function Ai: a power series near 0, asymptotic expansions elsewhere."""
    cube = x * x * x
    f, g = polynomial(cube, _airy_series(2)), x * polynomial(cube, _airy_series(3))
    centre = f * _AI_0 - g * _AI_1
    size = x.abs()
    root = size.sqrt()
    phase = size * root * (2 / 3)
    z = 1 / phase
    quarter = root.sqrt()
    norm = 1 / math.sqrt(math.pi)
    right = _ratio(z, tables.AIRY_AN, tables.AIRY_AD) * norm / (2 * quarter * phase.exp())
    square = z * z
    even = 1 + square * _ratio(square, tables.AIRY_AFN, (1.0, *tables.AIRY_AFD))
    odd = z * _ratio(square, tables.AIRY_AGN, (1.0, *tables.AIRY_AGD))
    angle = phase + math.pi / 4
    left = norm / quarter * (angle.sin() * even - angle.cos() * odd)
    value = (x < -2.09).where(left, (x >= 2.09).where(right, centre))
    return x.isinf().where(NAN, (x > 103.892).where(0.0, value))
