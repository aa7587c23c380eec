"""
QR with Householder reflections H = 1 - tau v v^H, v[k] = 1, in LAPACK's storage: v is below the
diagonal of R. Matrices are [batch, rows, columns].
"""

from __future__ import annotations

from typing import Any

from . import reductions, shapes
from .core import Builder, Size, Tensor
from .linear_algebra import column, identity, is_empty, row, square
from .loops import for_
from .scalars import Scalar


def _reflector(v: Scalar, k: Any) -> Scalar:
    """v[i] of step k, from the stored column element."""
    i, at = v.body.index(1), v.body.scalar(k)
    return (i == at).where(1, (i > at).where(v, 0))


def _tail(b: Builder, below: Tensor, k: Any) -> Tensor:
    """sum over i > k of |x[i]|^2, as [batch, 1, 1]."""
    part = below.dtype.part

    def element(v: Scalar) -> Scalar:
        return (v.body.index(1) > v.body.scalar(k)).where(square(v), 0.0)

    total = reductions.sum_(b, b.map(element, below, dtype=part), [1])
    return shapes.reshape(b, total, [below.shape[0], 1, 1])


def _still(alpha: Scalar, rest: Scalar) -> Scalar:
    """Whether a column is already reduced and needs no reflection."""
    return rest == 0 if not alpha.dtype.is_complex else (rest == 0) & (alpha.im() == 0)


def _beta(alpha: Scalar, rest: Scalar) -> Scalar:
    """The reflected column's diagonal element: its norm, with the opposite sign of alpha."""
    size = (square(alpha) + rest).sqrt()
    moved = (alpha.re() < 0).where(size, -size)
    return _still(alpha, rest).where(alpha.re(), moved)


def _tau(alpha: Scalar, rest: Scalar) -> Scalar:
    beta = _beta(alpha, rest)
    still = _still(alpha, rest)
    divisor = still.where(1.0, beta)
    real = still.where(0.0, (beta - alpha.re()) / divisor)
    if not alpha.dtype.is_complex:
        return real
    return real.with_imaginary(still.where(0.0, -alpha.im() / divisor))


def _scaled(v: Scalar, alpha: Scalar, rest: Scalar) -> Scalar:
    """v[i] = x[i] / (alpha - beta)"""
    beta = _beta(alpha, rest)
    if alpha.dtype.is_complex:
        beta = beta.to(alpha.dtype)
    still = _still(alpha, rest)
    return still.where(v, v / still.where(1, alpha - beta))


def _project(b: Builder, reflector: Tensor, x: Tensor) -> Tensor:
    """sum over i of conj(v[i]) x[i, j], as [batch, 1, columns]."""
    products = b.map(lambda v, w: v.conj() * w, reflector, x)
    total = reductions.sum_(b, products, [1])
    return shapes.reshape(b, total, [x.shape[0], 1, x.shape[2]])


def geqrf(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns R on and above the diagonal with the vectors v below it, and tau."""
    batch, rows, columns = x.shape
    steps = b.minimum(rows, columns)
    taus = b.full(0, x.dtype, [batch, steps])
    if is_empty(rows, columns):
        return x, taus

    def step(k: Any, a: Tensor, taus: Tensor) -> tuple[Tensor, Tensor]:
        below = column(b, a, k)
        alpha, rest = row(b, below, k), _tail(b, below, k)
        tau = b.map(_tau, alpha, rest)

        def vector(v: Scalar, alpha: Scalar, rest: Scalar) -> Scalar:
            return _reflector(_scaled(v, alpha, rest), k)

        reflector = b.map(vector, below, alpha, rest)
        projected = _project(b, reflector, a)

        def update(x: Scalar, v: Scalar, w: Scalar, t: Scalar, *of: Scalar) -> Scalar:
            s = x.body
            i, j, at = s.index(1), s.index(2), s.scalar(k)
            corner = (i == at).where(_beta(*of).to(x.dtype), (i > at).where(v, x))
            inner = x - t.conj() * v * w
            return (j == at).where(corner, (j > at).where(inner, x))

        def note(old: Scalar, t: Scalar) -> Scalar:
            return (old.body.index(1) == old.body.scalar(k)).where(t, old)

        a = b.map(update, a, reflector, projected, tau, alpha, rest)
        return a, b.map(note, taus, shapes.reshape(b, tau, [batch, 1]))

    a, taus = for_(b, 0, steps, [x, taus], step)
    return a, taus


def apply_q(b: Builder, a: Tensor, taus: Tensor, x: Tensor, adjoint: bool) -> Tensor:
    """Q x, or Q^H x, for Q = H[0] H[1] ..., with the vectors v below the diagonal of `a`."""
    batch, steps = taus.shape
    if is_empty(*x.shape[1:], steps):
        return x

    def step(t: Any, x: Tensor) -> Tensor:
        k: Size = t if adjoint else b.sub(b.sub(steps, 1), t)
        at = b.value(k)
        reflector = b.map(lambda v: _reflector(v, at), column(b, a, at))
        tau = shapes.reshape(b, shapes.slice_axis(b, taus, 1, at, 1), [batch, 1, 1])

        def update(x: Scalar, v: Scalar, w: Scalar, t: Scalar) -> Scalar:
            return x - (t.conj() if adjoint else t) * v * w

        return b.map(update, x, reflector, _project(b, reflector, x), tau)

    return for_(b, 0, steps, [x], step)[0]


def q_of(b: Builder, a: Tensor, taus: Tensor, columns: Size) -> Tensor:
    """The leading `columns` columns of Q."""
    unit = identity(b, a.dtype, [a.shape[0], a.shape[1], columns])
    return apply_q(b, a, taus, unit, adjoint=False)
