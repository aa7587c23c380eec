"""
Eigenvalues of Hermitian matrices and singular values, with Jacobi rotations.

A sweep rotates each pair of columns once, in rounds of disjoint pairs (a round-robin tournament),
so a round is one map over the whole matrix. Sweeps repeat until convergence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from . import ordering, reductions, shapes
from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, I64, INDEX, DType
from .householder import apply_q, geqrf
from .linear_algebra import diagonal, identity, is_empty, matmul, square, transposed
from .loops import for_, while_
from .scalars import Body, Scalar

_MOST_SWEEPS = 40
"""Sweep limit. Convergence is quadratic; more than 15 sweeps have not been observed."""


def _epsilon(dtype: DType) -> float:
    return 2.0**-52 if dtype.part.bits == 64 else 2.0**-23


def _partner(b: Builder, n: Size) -> Any:
    """
    Returns a function (body, i, round) -> the column paired with i, or i itself if it is idle.
    Column i is paired with (round - i) mod m, m odd; the column that would be paired with itself is
    paired with the last one.
    """
    last = b.value(b.sub(b.add(n, b.rem(n, 2)), 1))
    half, size = b.value(b.floordiv(b.add(last, 1), 2)), b.value(n)

    def partner(s: Body, i: Scalar, turn: SSAValue) -> Scalar:
        m, r = s.scalar(last), s.scalar(turn)
        # (round - i) mod m without negative numbers; m - i is 0 for the last column.
        met = (r + m - i).rem(m)
        met = (i == m).where((r * s.scalar(half)).rem(m), (met == i).where(m, met))
        return (met < s.scalar(size)).where(met, i)

    return partner


def _rounds(b: Builder, n: Size) -> Size:
    return b.sub(b.add(n, b.rem(n, 2)), 1)


def _rotation(p: Scalar, q: Scalar, pq: Scalar, first: Scalar) -> tuple[Scalar, Scalar]:
    """
    c and sigma of the rotation x' = c x + sigma y that zeroes the off-diagonal element pq of a
    Hermitian 2 by 2 matrix with diagonal p, q; `first` says whether x is the first column.
    """
    size = pq.abs()
    still = size == 0
    divisor = still.where(1.0, size)
    tau = (q - p) / (divisor * 2.0)
    t = 1 / (tau.abs() + (tau * tau + 1).sqrt())
    t = still.where(0.0, (tau < 0).where(-t, t))
    c = 1 / (t * t + 1).sqrt()
    s = first.where(-(t * c), t * c)
    if not pq.dtype.is_complex:
        return c, (pq < 0).where(-s, s)
    real, imaginary = pq.re() / divisor, pq.im() / divisor
    return c, (s * real).with_imaginary(s * first.where(-imaginary, imaginary))


def _scaled(v: Scalar, real: Scalar) -> Scalar:
    if not v.dtype.is_complex:
        return v * real
    return (v.re() * real).with_imaginary(v.im() * real)


def _rotated(b: Builder, x: Tensor, c: Tensor, sigma: Tensor, turn: SSAValue, meets: Any) -> Tensor:
    """Rotates each column of x with its partner."""
    init = b.empty(x.dtype, x.shape)
    across = projection(3, (0, 2))
    whole = projection(3, (0, 1, 2))

    def body(s: Body, v: Scalar, c: Scalar, sigma: Scalar, _: Scalar) -> Scalar:
        other = s.extract(x, [s.index(0), s.index(1), meets(s, s.index(2), turn)])
        return _scaled(v, c) + sigma * other

    return b.structured([x, c, sigma], [init], [whole, across, across, whole], [False] * 3, body)[0]


def _rotations(
    b: Builder, dtype: DType, shape: Sequence[Size], turn: SSAValue, meets: Any, matrix: Any
) -> tuple[Tensor, Tensor]:
    """
    c and sigma for each column; matrix(s, batch, low, high, i) is the 2 by 2 matrix of a pair.
    """
    inits = [b.empty(dtype.part, shape), b.empty(dtype, shape)]

    def body(s: Body, *_: Scalar) -> tuple[Scalar, Scalar]:
        i = s.index(1)
        j = meets(s, i, turn)
        p, q, pq = matrix(s, s.index(0), i.minimum(j), i.maximum(j), i)
        c, sigma = _rotation(p, q, pq, i < j)
        pauses = i == j
        return pauses.where(1.0, c), pauses.where(0, sigma)

    maps = [projection(2, (0, 1))] * 2
    c, sigma = b.structured([], inits, maps, [False] * 2, body)
    return c, sigma


def _until(b: Builder, done: Any, sweep: Any, *carried: Tensor) -> list[Tensor]:
    """Sweeps until `done(values)`, a rank-0 bool tensor, is true; at most 40 sweeps."""
    count = b.full(0, I64, ())

    def more(count: Tensor, *values: Tensor) -> SSAValue:
        rest = b.map(lambda n, d: (n < _MOST_SWEEPS) & ~d, count, done(*values), dtype=BOOL)
        return b.item(rest)

    def step(count: Tensor, *values: Tensor) -> list[Tensor]:
        return [b.map(lambda n: n + 1, count), *sweep(*values)]

    return while_(b, [count, *carried], more, step)[1:]


# --- Hermitian matrices ---


def _hermitian(b: Builder, x: Tensor, lower: bool) -> Tensor:
    """Completes a Hermitian matrix from one triangle."""

    def element(v: Scalar) -> Scalar:
        s = v.body
        n, i, j = (s.index(k) for k in range(3))
        mirrored = s.extract(x, [n, j, i]).conj()
        given = i > j if lower else i < j
        real = v.re().to(v.dtype) if v.dtype.is_complex else v
        return (i == j).where(real, given.where(v, mirrored))

    return b.map(element, x)


def _both_sides(
    b: Builder, a: Tensor, c: Tensor, sigma: Tensor, turn: SSAValue, meets: Any
) -> Tensor:
    """J^H a J, with exact zeros at the eliminated elements."""
    init = b.empty(a.dtype, a.shape)
    rows, columns = projection(3, (0, 1)), projection(3, (0, 2))
    whole = projection(3, (0, 1, 2))

    def body(s: Body, v: Scalar, *values: Scalar) -> Scalar:
        ci, si, cj, sj, _ = values
        n, i, j = (s.index(k) for k in range(3))
        k, m = meets(s, i, turn), meets(s, j, turn)
        right = _scaled(v, cj) + sj * s.extract(a, [n, i, m])
        below = _scaled(s.extract(a, [n, k, j]), cj) + sj * s.extract(a, [n, k, m])
        value = _scaled(right, ci) + si.conj() * below
        return ((k == j) & (i != j)).where(0, value)

    maps = [whole, rows, rows, columns, columns, whole]
    return b.structured([a, c, sigma, c, sigma], [init], maps, [False] * 3, body)[0]


def eigh(b: Builder, x: Tensor, lower: bool) -> tuple[Tensor, Tensor]:
    """
    Eigenvalues in ascending order and eigenvectors (columns) of Hermitian matrices; reads only one
    triangle.
    """
    batch, n, _ = x.shape
    a = _hermitian(b, x, lower)
    vectors = identity(b, x.dtype, x.shape)
    if is_empty(n):
        return b.empty(x.dtype.part, [batch, n]), vectors
    meets, part = _partner(b, n), x.dtype.part
    limit = _epsilon(x.dtype) ** 2

    def matrix(s: Body, at: Scalar, low: Scalar, high: Scalar, a: Tensor) -> tuple[Scalar, ...]:
        p, q = (s.extract(a, [at, k, k]).re() for k in (low, high))
        return p, q, s.extract(a, [at, low, high])

    def turn(r: Any, a: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        c, sigma = _rotations(
            b, a.dtype, [batch, n], r, meets, lambda s, at, p, q, _: matrix(s, at, p, q, a)
        )
        return _both_sides(b, a, c, sigma, r, meets), _rotated(b, v, c, sigma, r, meets)

    def done(a: Tensor, _: Tensor) -> Tensor:
        def measure(s: Body, v: Scalar, off: Scalar, all_: Scalar) -> tuple[Scalar, Scalar]:
            size = square(v)
            return off + (s.index(1) == s.index(2)).where(0.0, size), all_ + size

        off, total = b.reduce(measure, [a], [1, 2], [(0.0, part), (0.0, part)])
        fine = b.map(lambda u, t: ~(u > t * limit), off, total, dtype=BOOL)
        return reductions.all_(b, fine, [0])

    def sweep(a: Tensor, v: Tensor) -> list[Tensor]:
        return for_(b, 0, _rounds(b, n), [a, v], turn)

    a, vectors = _until(b, done, sweep, a, vectors)
    values = b.map(lambda v: v.re(), diagonal(b, a), dtype=part)
    values, order = ordering.sort(b, values, 1, False)
    return values, _columns(b, vectors, order)


def _columns(b: Builder, x: Tensor, order: Tensor) -> Tensor:
    """x[batch, i, order[batch, j]]"""

    def element(s: Body, n: Scalar, i: Scalar, j: Scalar) -> Scalar:
        return s.extract(x, [n, i, s.extract(order, [n, j])])

    return b.from_function(element, x.shape, x.dtype)


# --- singular values ---


def _dots(b: Builder, x: Tensor, turn: SSAValue, meets: Any) -> tuple[Tensor, Tensor]:
    """|x_j|^2 for each column j, and x_low^H x_high for the pair of j."""
    batch, _, columns = x.shape
    out = projection(3, (0, 2))
    inits = [b.full(0.0, x.dtype.part, [batch, columns]), b.full(0, x.dtype, [batch, columns])]

    def body(s: Body, v: Scalar, norm: Scalar, dot: Scalar) -> tuple[Scalar, Scalar]:
        j = s.index(2)
        k = meets(s, j, turn)
        other = s.extract(x, [s.index(0), s.index(1), k])
        low, high = (j < k).where(v, other), (j < k).where(other, v)
        return norm + square(v), dot + low.conj() * high

    maps = [projection(3, (0, 1, 2)), out, out]
    norms, dots = b.structured([x], inits, maps, [False, True, False], body)
    return norms, dots


def _orthogonalized(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns x V with orthogonal columns, and V; matrices must not have more columns than rows."""
    batch, rows, n = x.shape
    meets, dtype = _partner(b, n), x.dtype
    tolerance = _epsilon(dtype) * max(10.0, math.sqrt(rows) if isinstance(rows, int) else 10.0)
    limit = tolerance * tolerance

    def turn(r: Any, x: Tensor, v: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        norms, dots = _dots(b, x, r, meets)

        def matrix(s: Body, at: Scalar, p: Scalar, q: Scalar, i: Scalar) -> tuple[Scalar, ...]:
            low, high = (s.extract(norms, [at, k]) for k in (p, q))
            dot = s.extract(dots, [at, i])
            small = ~(square(dot) > low * high * limit)
            return low, high, small.where(0, dot)

        c, sigma = _rotations(b, dtype, [batch, n], r, meets, matrix)
        any_ = reductions.any_(b, b.is_true(sigma), [0, 1])
        moved = b.map(lambda m, t: m | t, moved, any_)
        return _rotated(b, x, c, sigma, r, meets), _rotated(b, v, c, sigma, r, meets), moved

    def sweep(x: Tensor, v: Tensor, _: Tensor) -> list[Tensor]:
        return for_(b, 0, _rounds(b, n), [x, v, b.full(0, BOOL, ())], turn)

    def done(_: Tensor, __: Tensor, moved: Tensor) -> Tensor:
        return b.map(lambda m: ~m, moved)

    unit = identity(b, dtype, [batch, n, n])
    x, v, _ = _until(b, done, sweep, x, unit, b.full(1, BOOL, ()))
    return x, v


def svd(b: Builder, x: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """
    U, s in descending order and V^H with U diag(s) V^H = x; `full` makes U and V^H square. U is the
    Q factor of Jacobi's orthogonal columns, so it is orthonormal for any rank.
    """
    rows, columns = x.shape[1:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        return _svd_of_any_shape(b, x, full)
    if rows < columns:
        u, s, vh = _svd(b, transposed(b, x, conjugate=True), full)
        return transposed(b, vh, conjugate=True), s, transposed(b, u, conjugate=True)
    return _svd(b, x, full)


def _svd_of_any_shape(b: Builder, x: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The SVD of matrices of dynamic sizes: that of x^H if x has more columns than rows."""
    batch, rows, columns = x.shape
    pair = ((b.value(n), INDEX) for n in (rows, columns))
    tall = b.compute(lambda n, m: n >= m, *pair).value

    def chosen(yes: Tensor, no: Tensor, n: Size, m: Size) -> Tensor:
        def element(s: Body, a: Scalar, i: Scalar, j: Scalar) -> Scalar:
            is_tall, at = s.scalar(tall, BOOL), []
            for t, wanted in ((yes, is_tall), (no, ~is_tall)):
                at.append(s.extract(t, [a, wanted.where(i, 0), wanted.where(j, 0)]))
            return is_tall.where(*at)

        return b.from_function(element, [batch, n, m], x.dtype)

    long, short = b.maximum(rows, columns), b.minimum(rows, columns)
    u, sizes, vh = _svd(b, chosen(x, transposed(b, x, conjugate=True), long, short), full)
    left, right = (transposed(b, t, conjugate=True) for t in (vh, u))
    kept = (rows, columns) if full else (short, short)
    return chosen(u, left, rows, kept[0]), sizes, chosen(vh, right, kept[1], columns)


def _svd(b: Builder, x: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The SVD of matrices with at least as many rows as columns."""
    batch, rows, columns = x.shape
    part, kept = x.dtype.part, rows if full else columns
    if is_empty(rows, columns):
        units = [identity(b, x.dtype, [batch, n, m]) for n, m in ((rows, kept), (columns, columns))]
        return units[0], b.empty(part, [batch, columns]), units[1]
    x, v = _orthogonalized(b, x)
    norms = reductions.sum_(b, b.map(square, x, dtype=part), [1])
    sizes, order = ordering.sort(b, b.map(lambda t: t.sqrt(), norms), 1, True)
    x, v = _columns(b, x, order), _columns(b, v, order)
    a, taus = geqrf(b, x)
    signs = b.map(
        lambda d: (d.re() < 0).where(-1.0, d.re()._other(1.0)), diagonal(b, a), dtype=part
    )

    def start(s: Body, n: Scalar, i: Scalar, j: Scalar) -> Scalar:
        inside = j < s.as_index(b.value(columns))
        sign = inside.where(s.extract(signs, [n, inside.where(j, 0)]), 1.0)
        return (i == j).where(sign, 0.0).to(x.dtype)

    unit = b.from_function(start, [batch, rows, kept], x.dtype)
    return apply_q(b, a, taus, unit, False), sizes, transposed(b, v, conjugate=True)


def pseudo_inverse(b: Builder, x: Tensor, bound: Any, hermitian: bool = False) -> Tensor:
    """
    V diag(1 / s) U^H over the s with |s| > bound(body, largest |s|, matrix index). Hermitian
    matrices use eigenvalues and eigenvectors, and only the lower triangle is read.
    """
    if hermitian:
        sizes, right = eigh(b, x, True)
        left = transposed(b, right, conjugate=True)
    else:
        u, sizes, vh = svd(b, x, False)
        left, right = (transposed(b, t, conjugate=True) for t in (u, vh))
    batch, count = sizes.shape
    largest = reductions.max_(b, b.map(lambda v: v.abs(), sizes), [1])

    def invert(v: Scalar, top: Scalar) -> Scalar:
        keep = v.abs() > bound(v.body, top, v.body.index(0))
        return keep.where(1 / keep.where(v, 1.0), 0.0)

    inverse = b.map(invert, sizes, shapes.reshape(b, largest, [batch, 1]))
    return matmul(b, b.map(_scaled, right, shapes.reshape(b, inverse, [batch, 1, count])), left)


def least_squares(b: Builder, x: Tensor, y: Tensor, bound: Any) -> tuple[Tensor, Tensor, Tensor]:
    """
    The z of least norm that minimizes |x z - y|: V diag(1 / s) U^H y over the s > bound(body,
    largest s). Also returns the number of these s (i64) and s in descending order, per matrix.
    """
    u, sizes, vh = svd(b, x, False)
    batch, count = sizes.shape
    largest = shapes.slice_axis(b, sizes, 1, 0, 1)

    def is_kept(v: Scalar, top: Scalar) -> Scalar:
        return v > bound(v.body, top)

    def invert(v: Scalar, top: Scalar) -> Scalar:
        keep = is_kept(v, top)
        return keep.where(1 / keep.where(v, 1.0), 0.0)

    kept = b.map(lambda v, top: is_kept(v, top).to(I64), sizes, largest, dtype=I64)
    inverse = shapes.reshape(b, b.map(invert, sizes, largest), [batch, count, 1])
    left, right = (transposed(b, t, conjugate=True) for t in (u, vh))

    def solved(y: Tensor) -> Tensor:
        return matmul(b, right, b.map(_scaled, matmul(b, left, y), inverse))

    solution = solved(y)
    # Solving for the residual, too, corrects what U and V are off from orthogonal.
    rest = b.map(lambda v, w: v - w, y, matmul(b, x, solution))
    solution = b.map(lambda v, w: v + w, solution, solved(rest))
    return solution, reductions.sum_(b, kept, [1], I64), sizes
