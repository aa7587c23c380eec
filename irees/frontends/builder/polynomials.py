"""
Orthogonal polynomials of Scalars, by recurrence or by a closed form if that is shorter.

`x` is f64 and the degree `n` i64; a negative degree gives 0. The loop exits at the first NaN, which
follows an overflow.
"""

from __future__ import annotations

from collections.abc import Callable

from .dtypes import F64
from .loops import scalar_while
from .scalars import Scalar


def _recurrence(x: Scalar, n: Scalar, first: Scalar, step: Callable[..., Scalar]) -> Scalar:
    """p(n) with p(0) = 1, p(1) = first, p(k + 1) = step(k, x, p(k), p(k - 1))."""

    def more(k: Scalar, n: Scalar, x: Scalar, p: Scalar, before: Scalar) -> Scalar:
        return (k < n) & (p == p)

    def advance(k: Scalar, n: Scalar, x: Scalar, p: Scalar, before: Scalar) -> tuple[Scalar, ...]:
        return k + 1, n, x, step(k.to(F64), x, p, before), p

    values = [n._other(1), n, x, first, x._other(1.0)]
    found = scalar_while(x.body, values, more, advance)[3]
    return (n < 0).where(0.0, (n == 0).where(1.0, found))


_CLOSED_FROM = 8
"""Degree above which the closed form is used for |x| < 1."""


def _chebyshev(
    x: Scalar, n: Scalar, first: Scalar, closed: Callable[[Scalar, Scalar], Scalar]
) -> Scalar:
    """p(k + 1) = 2 x p(k) - p(k - 1), or closed(n, acos(x))."""
    short = (n > _CLOSED_FROM) & (x.abs() < 1)
    value = _recurrence(x, short.where(1, n), first, lambda k, x, p, before: (x + x) * p - before)
    angle = short.where(x, 0.5).acos()
    return short.where(closed(n.to(F64), angle), value)


def chebyshev_t(x: Scalar, n: Scalar) -> Scalar:
    """cos(n acos(x))"""
    return _chebyshev(x, n, x, lambda n, a: (n * a).cos())


def chebyshev_u(x: Scalar, n: Scalar) -> Scalar:
    """sin((n + 1) acos(x)) / sin(acos(x))"""
    return _chebyshev(x, n, x + x, lambda n, a: ((n + 1) * a).sin() / a.sin())


def chebyshev_v(x: Scalar, n: Scalar) -> Scalar:
    """cos((n + 1/2) acos(x)) / cos(acos(x) / 2)"""
    return _chebyshev(x, n, x + x - 1, lambda n, a: ((n + 0.5) * a).cos() / (a * 0.5).cos())


def chebyshev_w(x: Scalar, n: Scalar) -> Scalar:
    """sin((n + 1/2) acos(x)) / sin(acos(x) / 2)"""
    return _chebyshev(x, n, x + x + 1, lambda n, a: ((n + 0.5) * a).sin() / (a * 0.5).sin())


def hermite_h(x: Scalar, n: Scalar) -> Scalar:
    """Physicists' Hermite polynomials: p(k + 1) = 2 x p(k) - 2 k p(k - 1)"""
    return _recurrence(x, n, x + x, lambda k, x, p, q: (x + x) * p - (k + k) * q)


def hermite_he(x: Scalar, n: Scalar) -> Scalar:
    """Probabilists' Hermite polynomials: p(k + 1) = x p(k) - k p(k - 1)"""
    return _recurrence(x, n, x, lambda k, x, p, q: x * p - k * q)


def laguerre_l(x: Scalar, n: Scalar) -> Scalar:
    """p(k + 1) = ((2 k + 1 - x) p(k) - k p(k - 1)) / (k + 1)"""
    value = _recurrence(x, n, 1 - x, lambda k, x, p, q: ((k + k + 1 - x) * p - k * q) / (k + 1))
    return ((x == 0) & (n >= 0)).where(1.0, value)


def legendre_p(x: Scalar, n: Scalar) -> Scalar:
    """p(k + 1) = ((2 k + 1) x p(k) - k p(k - 1)) / (k + 1)"""
    return _recurrence(x, n, x, lambda k, x, p, q: ((k + k + 1) * x * p - k * q) / (k + 1))


def shifted(fn: Callable[[Scalar, Scalar], Scalar]) -> Callable[[Scalar, Scalar], Scalar]:
    """fn(2 x - 1, n): the polynomials shifted to the interval [0, 1]."""
    return lambda x, n: fn(x + x - 1, n)
