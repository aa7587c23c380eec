"""
Matrix factorizations by loops over columns, and the solvers and functions based on them.

Matrices are [batch, rows, columns] here (`batched`); each loop step is one or a few maps over the
whole matrix, with the current column and row as operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import reductions, shapes
from .contractions import contract
from .core import Builder, Size, Tensor
from .dtypes import I32, I64, INDEX, DType
from .loops import for_
from .scalars import Body, Scalar


def batched(b: Builder, x: Tensor) -> Tensor:
    """x[..., i, j] with all leading dims collapsed into one."""
    return shapes.reshape(b, x, [b.product(x.shape[:-2]), *x.shape[-2:]])


def is_empty(*sizes: Size) -> bool:
    """Whether a size is statically 0, so that no loop over columns can be built."""
    return any(isinstance(s, int) and s == 0 for s in sizes)


def transposed(b: Builder, x: Tensor, conjugate: bool = False) -> Tensor:
    """x[..., j, i], conjugated if requested."""
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    x = shapes.transpose(b, x, order)
    return b.map(lambda v: v.conj(), x) if conjugate and x.dtype.is_complex else x


def identity(b: Builder, dtype: DType, shape: Sequence[Size]) -> Tensor:
    """The identity matrix: 1 where the last two indices are equal, else 0."""
    return b.from_function(lambda s, *at: (at[-2] == at[-1]).to(dtype), shape, dtype)


def diagonal(b: Builder, x: Tensor) -> Tensor:
    """x[..., i, i]"""
    size = b.minimum(*x.shape[-2:])
    return shapes.diagonal(b, x, 0, x.rank - 2, x.rank - 1, size)


def matmul(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """The product of two batches of matrices."""
    return contract(b, "bij,bjk->bik", x, y)


def over(v: Scalar, real: Scalar) -> Scalar:
    """v / real, where v may be complex."""
    if not v.dtype.is_complex:
        return v / real
    return (v.re() / real).with_imaginary(v.im() / real)


def square(v: Scalar) -> Scalar:
    """|v|^2"""
    return v.re() * v.re() + v.im() * v.im() if v.dtype.is_complex else v * v


def column(b: Builder, x: Tensor, k: Size) -> Tensor:
    """x[:, :, k] as [batch, rows, 1]."""
    return shapes.slice_axis(b, x, 2, k, 1)


def row(b: Builder, x: Tensor, k: Size) -> Tensor:
    """x[:, k, :] as [batch, 1, columns]."""
    return shapes.slice_axis(b, x, 1, k, 1)


# --- Cholesky ---


def cholesky(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """
    Returns the lower L with L L^H = x, reading only the lower triangle of x, and an i32 status per
    matrix: the first leading minor that is not positive (1-based; 0 for none).
    """
    batch, n, _ = x.shape
    info = b.full(0, I32, [batch, 1, 1])
    if is_empty(n):
        return x, shapes.reshape(b, info, [batch])

    def step(j: Any, a: Tensor, info: Tensor) -> tuple[Tensor, Tensor]:
        below = column(b, a, j)
        across, pivot = shapes.reshape(b, below, [batch, 1, n]), row(b, below, j)

        def update(v: Scalar, c: Scalar, r: Scalar, d: Scalar) -> Scalar:
            s = v.body
            i, k, at = s.index(1), s.index(2), s.scalar(j)
            scaled = over(c, d.re().sqrt())
            inner = v - over(c * r.conj(), d.re())
            return ((k == at) & (i >= at)).where(scaled, ((k > at) & (i > at)).where(inner, v))

        def count(t: Scalar, d: Scalar) -> Scalar:
            failed = (t == 0) & ~(d.re() > 0)
            return failed.where((t.body.scalar(j) + 1).to(I32), t)

        return b.map(update, a, below, across, pivot), b.map(count, info, pivot)

    a, info = for_(b, 0, n, [x, info], step)
    return shapes.triangle(b, a, 0, False), shapes.reshape(b, info, [batch])


# --- triangular systems ---


def solve_triangular(b: Builder, a: Tensor, x: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """Solves a y = x for y, for a triangular a of b x n x n; `unit` treats its diagonal as 1."""
    n = a.shape[1]
    if is_empty(n, x.shape[2]):
        return x

    def step(t: Any, x: Tensor) -> Tensor:
        k = b.sub(b.sub(n, 1), t) if upper else t
        solved, coefficients = row(b, x, k), column(b, a, k)

        def update(v: Scalar, top: Scalar, c: Scalar, d: Scalar) -> Scalar:
            i, at = v.body.index(1), v.body.scalar(k)
            quotient = top if unit else top / d
            rest = i < at if upper else i > at
            return (i == at).where(quotient, rest.where(v - c * quotient, v))

        return b.map(update, x, solved, coefficients, row(b, coefficients, k))

    return for_(b, 0, n, [x], step)[0]


# --- LU ---


def _pivot(b: Builder, a: Tensor, k: Any) -> Tensor:
    """The row >= k with the largest absolute element of column k, in i64 as [batch, 1, 1]."""
    batch, rows, _ = a.shape
    values = shapes.reshape(b, column(b, a, k), [batch, rows])

    def better(s: Body, v: Scalar, best: Scalar, at: Scalar) -> tuple[Scalar, Scalar]:
        size = v.re().abs() + v.im().abs() if v.dtype.is_complex else v.abs()
        taken = (s.index(1) >= s.scalar(k)) & (size > best)
        return taken.where(size, best), taken.where(s.index(1).to(I64), at)

    found = b.reduce(better, [values], [1], [(-1.0, a.dtype.part), (0, I64)])[1]
    found = b.map(lambda v: v.maximum(v.body.scalar(k).to(I64)), found)
    return shapes.reshape(b, found, [batch, 1, 1])


def _swap(b: Builder, values: Tensor, k: Any, p: Tensor) -> Tensor:
    """Exchanges the elements k and p[batch] of values[batch, i]."""

    def element(v: Scalar, chosen: Scalar) -> Scalar:
        s = v.body
        i, at, other = s.index(1), s.scalar(k), chosen.to(INDEX)
        place = (i == at).where(other, (i == other).where(at, i))
        return s.extract(values, [s.index(0), place])

    return b.map(element, values, shapes.reshape(b, p, [values.shape[0], 1]))


def _eliminate(b: Builder, a: Tensor, k: Any, p: Tensor) -> tuple[Tensor, Tensor]:
    """One step of LU: exchanges rows k and p and eliminates below row k; also returns the pivot."""
    batch, _, columns = a.shape

    def chosen_row(s: Body, n: Scalar, _: Scalar, j: Scalar) -> Scalar:
        return s.extract(a, [n, s.extract(p, [n, 0, 0]).to(INDEX), j])

    top = b.from_function(chosen_row, [batch, 1, columns], a.dtype)
    current, below, pivot = row(b, a, k), column(b, a, k), column(b, top, k)
    corner = row(b, below, k)

    def update(v: Scalar, *values: Scalar) -> Scalar:
        t, r, c, d, old, chosen = values
        s = v.body
        i, j, at, other = s.index(1), s.index(2), s.scalar(k), chosen.to(INDEX)
        v = (i == at).where(t, (i == other).where(r, v))
        factor = (i == other).where(old, c) / (d == 0).where(1, d)
        inner = (j == at).where(factor, (j > at).where(v - factor * t, v))
        return (i > at).where(inner, v)

    return b.map(update, a, top, current, below, pivot, corner, p), pivot


def lu(b: Builder, x: Tensor, pivoting: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """
    Returns L and U packed in one matrix, with x[perm] = L U; for each step the 1-based row that it
    exchanged with its own (i32); `perm` (i64); and the first zero pivot (1-based; 0 for none; i32).
    """
    batch, rows, columns = x.shape
    steps = b.minimum(rows, columns)
    pivots, info = b.full(0, I32, [batch, steps]), b.full(0, I32, [batch, 1, 1])
    perm = b.from_function(lambda s, _, i: i.to(I64), [batch, rows], I64)
    if is_empty(rows, columns):
        return x, pivots, perm, shapes.reshape(b, info, [batch])

    def step(k: Any, a: Tensor, pivots: Tensor, perm: Tensor, info: Tensor) -> list[Tensor]:
        if pivoting:
            p = _pivot(b, a, k)
        else:
            p = b.from_function(lambda s, *_: s.scalar(k).to(I64), [batch, 1, 1], I64)
        a, pivot = _eliminate(b, a, k, p)

        def note(old: Scalar, chosen: Scalar) -> Scalar:
            here = old.body.index(1) == old.body.scalar(k)
            return here.where((chosen + 1).to(I32), old)

        def count(t: Scalar, d: Scalar) -> Scalar:
            return ((t == 0) & (d == 0)).where((t.body.scalar(k) + 1).to(I32), t)

        chosen = shapes.reshape(b, p, [batch, 1])
        return [a, b.map(note, pivots, chosen), _swap(b, perm, k, p), b.map(count, info, pivot)]

    a, pivots, perm, info = for_(b, 0, steps, [x, pivots, perm, info], step)
    return a, pivots, perm, shapes.reshape(b, info, [batch])


def permutation(b: Builder, pivots: Tensor, rows: Size) -> Tensor:
    """The permutation that results from the row exchanges of `lu`, applied in order."""
    batch, steps = pivots.shape
    perm = b.from_function(lambda s, _, i: i.to(I64), [batch, rows], I64)
    if is_empty(rows, steps):
        return perm

    def step(k: Any, perm: Tensor) -> Tensor:
        last = b.value(b.sub(rows, 1))

        def inside(v: Scalar) -> Scalar:
            return (v.to(I64) - 1).clamp(0, v.body.scalar(last).to(I64))

        p = b.map(inside, shapes.slice_axis(b, pivots, 1, k, 1), dtype=I64)
        return _swap(b, perm, k, p)

    return for_(b, 0, steps, [perm], step)[0]


def permutation_matrix(b: Builder, perm: Tensor, dtype: DType) -> Tensor:
    """The permutation matrix P with P x[perm] = x."""
    batch, n = perm.shape
    at = shapes.reshape(b, perm, [batch, 1, n])
    return b.map(
        lambda v: (v.to(INDEX) == v.body.index(1)).to(dtype), at, dtype=dtype, shape=[batch, n, n]
    )


def factors(b: Builder, a: Tensor) -> tuple[Tensor, Tensor]:
    """Unpacks the matrix of `lu` into L, with unit diagonal, and U."""
    _, rows, columns = a.shape
    steps = b.minimum(rows, columns)

    def lower(v: Scalar) -> Scalar:
        i, j = v.body.index(1), v.body.index(2)
        return (i > j).where(v, (i == j).to(v.dtype))

    left = b.map(lower, shapes.slice_axis(b, a, 2, 0, steps))
    return left, shapes.triangle(b, shapes.slice_axis(b, a, 1, 0, steps), 0, True)


def _rows(b: Builder, x: Tensor, perm: Tensor) -> Tensor:
    """x[batch, perm[batch, i], j]"""
    batch, n = perm.shape
    at = shapes.reshape(b, perm, [batch, n, 1])

    def element(p: Scalar) -> Scalar:
        s = p.body
        return s.extract(x, [s.index(0), p.to(INDEX), s.index(2)])

    return b.map(element, at, dtype=x.dtype, shape=x.shape)


def _inverse(b: Builder, perm: Tensor) -> Tensor:
    """The inverse permutation: q with q[perm[i]] = i."""
    batch, n = perm.shape
    at = shapes.reshape(b, perm, [batch, 1, n])
    hits = b.map(
        lambda v: (v.to(INDEX) == v.body.index(1)).where(v.body.index(2).to(I64), 0),
        at, dtype=I64, shape=[batch, n, n],
    )  # fmt: skip
    return reductions.sum_(b, hits, [2], I64)


def lu_solve(b: Builder, a: Tensor, perm: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Solves m y = x, or m^H y = x if `adjoint`, for m[perm] = L U."""
    if is_empty(a.shape[1], x.shape[2]):
        return x
    if not adjoint:
        y = solve_triangular(b, a, _rows(b, x, perm), False, unit=True)
        return solve_triangular(b, a, y, True)
    flipped = transposed(b, a, conjugate=True)
    y = solve_triangular(b, flipped, x, False)
    y = solve_triangular(b, flipped, y, True, unit=True)
    return _rows(b, y, _inverse(b, perm))


def signed_diagonal(b: Builder, a: Tensor, pivots: Tensor) -> Tensor:
    """The diagonal of U, negated where a step exchanged rows; its product is the determinant."""

    def element(d: Scalar, p: Scalar) -> Scalar:
        stays = p == (d.body.index(1) + 1).to(I32)
        return stays.where(d, -d)

    return b.map(element, diagonal(b, a), pivots)


# --- powers ---

_DEGREE = 16
_LARGEST = {32: 1.5, 64: 0.75}
"""
The largest 1-norm for which 16 terms suffice: x^17 / 17! is below half an ulp of 1 in f64, and
below 3e-12 in f32.
"""


def matrix_exp(b: Builder, x: Tensor) -> Tensor:
    """
    sum over k <= 16 of (x / 2^s)^k / k!, squared s times: scaling and squaring, with the polynomial
    evaluated in the fourth power of the matrix (Paterson and Stockmeyer).
    """
    batch, n, _ = x.shape
    if is_empty(n):
        return x
    part = x.dtype.part
    sizes = reductions.sum_(b, b.map(lambda v: v.abs(), x, dtype=part), [1])
    norm = reductions.max_(b, sizes, [1])
    limit = _LARGEST[part.bits]
    steps = b.map(
        lambda v: (v / limit).isfinite().where((v / limit).maximum(1.0).log2().ceil(), 0.0).to(I64),
        norm, dtype=I64,
    )  # fmt: skip
    doublings = shapes.reshape(b, steps, [batch, 1, 1])
    x = b.map(lambda v, d: over(v, (d.to(part)).exp2()), x, doublings)
    result = _taylor(b, x)
    most = b.item(reductions.max_(b, steps, [0]))
    count = b.compute(lambda v: v.maximum(0).to(INDEX), (most, I64)).value

    def step(t: Any, y: Tensor) -> Tensor:
        return b.map(
            lambda v, w, d: (v.body.scalar(t).to(I64) < d).where(w, v),
            y,
            matmul(b, y, y),
            doublings,
        )

    return for_(b, 0, count, [result], step)[0]


def _taylor(b: Builder, x: Tensor) -> Tensor:
    """sum over k <= 16 of x^k / k!, with six matrix products."""
    second = matmul(b, x, x)
    third, fourth = matmul(b, second, x), matmul(b, second, second)
    inverse = [1.0]
    for k in range(1, _DEGREE + 1):
        inverse.append(inverse[-1] / k)
    total = b.map(lambda v: v * inverse[_DEGREE], fourth)
    for base in range(_DEGREE - 4, -1, -4):
        c = inverse[base : base + 4]

        def add(t: Scalar, p: Scalar, q: Scalar, r: Scalar, c: list[float] = c) -> Scalar:
            same = t.body.index(1) == t.body.index(2)
            unit = same.where(c[0], t._other(0.0))
            return t + p * c[1] + q * c[2] + r * c[3] + unit

        total = b.map(add, total, x, second, third)
        if base:
            total = matmul(b, total, fourth)
    return total
