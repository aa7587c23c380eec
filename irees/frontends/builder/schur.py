"""
Eigenvalues and eigenvectors of general matrices, by the QR algorithm with complex shifts.

A complex matrix is reduced to Hessenberg form, one nonzero diagonal below the main one. Each step
of the iteration chases a bulge through the last block that is not triangular yet:

    H = G H G^H    for rotations G of the rows k and k + 1, k = low, ..., high - 1

and sets elements below the diagonal to 0 that are small against their neighbours. What is left is
Schur's form, a triangular T with x = Q T Q^H; its diagonal has the eigenvalues. All matrices of a
batch take their steps together, with a block and a shift each.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from . import reductions, shapes
from .core import Builder, Tensor, projection
from .dtypes import BOOL, I64, INDEX, DType
from .linear_algebra import column, diagonal, identity, matmul, over, row, square, transposed
from .loops import for_, scalar_for, while_
from .scalars import Body, Scalar

_STEPS = 30
"""Steps per row of a matrix, at most: three suffice for nearly all, as in LAPACK's `hqr`."""

_EXCEPTIONAL = 10
"""Each step of this number takes a shift that is not an eigenvalue, which ends a cycle."""


def _epsilon(dtype: DType) -> float:
    return 2.0**-52 if dtype.part.bits == 64 else 2.0**-23


def _times(v: Scalar, real: Scalar) -> Scalar:
    return (v.re() * real).with_imaginary(v.im() * real)


# --- Hessenberg form ---


def hessenberg(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """H with zeros below its second diagonal, and a unitary Q, with x = Q H Q^H."""
    batch, n, _ = x.shape
    unit = identity(b, x.dtype, [batch, n, n])

    def step(k: SSAValue, h: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        def below(v: Scalar) -> Scalar:
            return (v.body.index(1) > v.body.scalar(k)).where(v, 0)

        # A reflection of the rows below k: that of a matrix of one column, moved up by k + 1 rows.
        vector = _reflector(b, b.map(below, column(b, h, k)), k)
        left = b.map(lambda v, w: v.conj() * w, vector, h)
        left = shapes.reshape(b, reductions.sum_(b, left, [1]), [batch, 1, n])

        def reflected(a: Scalar, v: Scalar, w: Scalar) -> Scalar:
            i, j, at = a.body.index(1), a.body.index(2), a.body.scalar(k)
            return ((j == at) & (i > at + 1)).where(0, a - v * w * 2.0)

        h = b.map(reflected, h, vector, left)
        return _from_right(b, h, vector), _from_right(b, q, vector)

    h, q = for_(b, 0, b.maximum(b.sub(n, 2), 0), [x, unit], step)
    return h, q


def _reflector(b: Builder, x: Tensor, k: SSAValue) -> Tensor:
    """The unit vector v for which x - 2 v v^H x is 0 below row k + 1; 0 if x is about 0."""
    batch, at = x.shape[0], b.add(k, 1)
    first = row(b, x, at)
    total = reductions.sum_(b, b.map(square, x, dtype=x.dtype.part), [1])
    total = shapes.reshape(b, total, [batch, 1, 1])

    def moved(v: Scalar, first: Scalar, total: Scalar) -> Scalar:
        size = first.abs()
        phase = (size == 0).where(1, over(first, (size == 0).where(1.0, size)))
        target = _times(phase, total.sqrt())
        is_first = v.body.index(1) == v.body.scalar(b.value(at))
        return is_first.where(v + target, v)

    vector = b.map(moved, x, first, total)
    norm = reductions.sum_(b, b.map(square, vector, dtype=x.dtype.part), [1])
    norm = shapes.reshape(b, norm, [batch, 1, 1])
    # Squares of elements that are tiny beside the matrix, whose largest is 1, lose their digits.
    tiny = _epsilon(x.dtype) ** 4

    def unit(v: Scalar, total: Scalar) -> Scalar:
        is_tiny = total < tiny
        return is_tiny.where(0, over(v, is_tiny.where(1.0, total.sqrt())))

    return b.map(unit, vector, norm)


def _from_right(b: Builder, x: Tensor, vector: Tensor) -> Tensor:
    """x - 2 x v v^H"""
    batch, n, _ = x.shape
    across = transposed(b, vector)
    products = reductions.sum_(b, b.map(lambda a, v: a * v, x, across), [2])
    products = shapes.reshape(b, products, [batch, n, 1])
    return b.map(lambda a, w, v: a - w * v.conj() * 2.0, x, products, across)


# --- the iteration ---


def _deflated(b: Builder, h: Tensor) -> Tensor:
    """H with zeros for the elements below the diagonal that are small."""
    limit = _epsilon(h.dtype)

    def element(v: Scalar) -> Scalar:
        s = v.body
        at, i, j = (s.index(k) for k in range(3))
        near = s.extract(h, [at, j, j]).abs() + s.extract(h, [at, i, i]).abs()
        is_small = ~(v.abs() > near.maximum(limit) * limit)
        return ((i == j + 1) & is_small).where(0, v)

    return b.map(element, h)


def _blocks(b: Builder, h: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the last row of the last block with a nonzero below each diagonal element."""
    batch, n, _ = h.shape

    def found(s: Body, at: Scalar) -> list[Scalar]:
        zero = s.as_index(0)

        def step(i: Scalar, start: Scalar, low: Scalar, high: Scalar) -> list[Scalar]:
            of = i.body
            below = of.extract(h, [of.scalar(at.value), i, i - 1])
            is_zero = (below.re() == 0) & (below.im() == 0)
            start = is_zero.where(i, start)
            return [start, is_zero.where(low, start), is_zero.where(high, i)]

        return scalar_for(s, 1, n, [zero, zero, zero], step)[1:]

    inits, maps = [b.empty(I64, [batch])] * 2, [projection(1, (0,))] * 2

    def body(s: Body, *_: Scalar) -> tuple[Scalar, ...]:
        return tuple(v.to(I64) for v in found(s, s.index(0)))

    low, high = b.structured([], inits, maps, [False], body)
    return low, high


def _shifts(b: Builder, h: Tensor, high: Tensor, count: Tensor) -> Tensor:
    """The eigenvalue of the last two rows of each block that is nearer to its last element."""

    def shift(s: Body, at: Scalar) -> Scalar:
        j = s.extract(high, [at]).to(INDEX)
        i = (j - 1).maximum(0)
        p, q, r, t = (s.extract(h, [at, *place]) for place in ((i, i), (i, j), (j, i), (j, j)))
        half, product = (p - t) * 0.5, q * r
        root = (half * half + product).sqrt()
        # The root with the sign that does not cancel.
        alike = half.re() * root.re() + half.im() * root.im()
        divisor = half + (alike < 0).where(-root, root)
        is_zero = (divisor.re() == 0) & (divisor.im() == 0)
        found = t - is_zero.where(0, product / is_zero.where(1, divisor))
        is_exceptional = s.extract(count, []).rem(_EXCEPTIONAL) == _EXCEPTIONAL - 1
        return is_exceptional.where(t + (r.abs() * 0.75).to(h.dtype), found)

    return b.from_function(shift, h.shape[:1], h.dtype)


def _rotations(b: Builder, h: Tensor, k: SSAValue, block: Any) -> tuple[Tensor, Tensor]:
    """
    c and s of each batch, with [c, s; -conj(s), c] [x; y] = [r; 0]: x and y are the first column of
    H - shift in the first row of a block, then the element above the bulge and the bulge.
    """
    low, high, shift = block
    batch = h.shape[0]

    def body(s: Body, *_: Scalar) -> tuple[Scalar, Scalar]:
        at, i = s.index(0), s.scalar(k)
        first, last = (s.extract(t, [at]).to(INDEX) for t in (low, high))
        is_first = i == first
        before = is_first.where(i, (i - 1).maximum(0))
        x, y = (s.extract(h, [at, place, before]) for place in (i, i + 1))
        x = is_first.where(x - s.extract(shift, [at]), x)
        size = (square(x) + square(y)).sqrt()
        idle = (i < first) | (i >= last) | (size == 0)
        divisor, length = idle.where(1.0, size), x.abs()
        flat = length == 0
        phase = flat.where(1, over(x, flat.where(1.0, length)))
        c = idle.where(1.0, length / divisor)
        return c, idle.where(0, over(phase * y.conj(), divisor))

    maps = [projection(1, (0,))] * 2
    inits = [b.empty(h.dtype.part, [batch]), b.empty(h.dtype, [batch])]
    c, s = b.structured([], inits, maps, [False], body)
    return c, s


def _rotated(b: Builder, x: Tensor, c: Tensor, s: Tensor, k: SSAValue, axis: int) -> Tensor:
    """G x, for the rotation G of the rows k and k + 1 (axis 1), or x G^H (axis 2)."""

    def element(v: Scalar) -> Scalar:
        of = v.body
        place = [of.index(n) for n in range(3)]
        here, first, second = place[axis], of.scalar(k), of.scalar(k) + 1
        turn, side = of.extract(c, [place[0]]), of.extract(s, [place[0]])
        side = side if axis == 1 else side.conj()
        place[axis] = (here == first).where(second, (here == second).where(first, here))
        other, kept = of.extract(x, place), _times(v, turn)
        below = (here == second).where(kept - side.conj() * other, v)
        return (here == first).where(kept + side * other, below)

    return b.map(element, x)


def _swept(b: Builder, h: Tensor, q: Tensor, block: Any) -> list[Tensor]:
    """One step of the iteration for all batches."""

    def turn(k: SSAValue, h: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        c, s = _rotations(b, h, k, block)
        h = _rotated(b, h, c, s, k, 1)

        def cleared(v: Scalar) -> Scalar:
            of = v.body
            i, j, at = of.index(1), of.index(2), of.scalar(k)
            return ((i == at + 1) & (j + 1 == at)).where(0, v)

        h = _rotated(b, b.map(cleared, h), c, s, k, 2)
        return h, _rotated(b, q, c, s, k, 2)

    return for_(b, 0, b.sub(h.shape[1], 1), [h, q], turn)


def schur(b: Builder, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """
    The eigenvalues of complex matrices [batch, n, n], and a triangular T with elements of at most
    about 1 and a unitary Q, with x = size Q T Q^H for a number `size` of each matrix.
    """
    sizes = reductions.max_(b, b.map(lambda v: v.abs(), x, dtype=x.dtype.part), [1, 2])
    sizes = b.map(lambda v: (v == 0).where(1.0, v), shapes.reshape(b, sizes, [x.shape[0], 1, 1]))
    h, q = hessenberg(b, b.map(over, x, sizes))
    most = b.mul(h.shape[1], _STEPS)

    def more(count: Tensor, h: Tensor, _: Tensor) -> SSAValue:
        high = _blocks(b, h)[1]
        done = reductions.all_(b, b.map(lambda n: n == 0, high, dtype=BOOL), [0])
        return b.item(
            b.map(lambda n, d: (n < n.body.as_index(most).to(I64)) & ~d, count, done, dtype=BOOL)
        )

    def step(count: Tensor, h: Tensor, q: Tensor) -> list[Tensor]:
        low, high = _blocks(b, h)
        h, q = _swept(b, h, q, (low, high, _shifts(b, h, high, count)))
        return [b.map(lambda n: n + 1, count), _deflated(b, h), q]

    _, h, q = while_(b, [b.full(0, I64, ()), _deflated(b, h), q], more, step)
    values = b.map(_times, diagonal(b, h), shapes.reshape(b, sizes, [x.shape[0], 1]))
    return values, h, q


# --- eigenvectors ---


def _triangular_vectors(b: Builder, t: Tensor) -> Tensor:
    """Columns x_j with T x_j = t_jj x_j and x_j[j] = 1, by back substitution of all columns."""
    n, limit = t.shape[1], _epsilon(t.dtype)

    def step(k: SSAValue, x: Tensor) -> Tensor:
        at = b.value(b.sub(b.sub(n, 1), k))
        product = matmul(b, row(b, t, at), x)

        def solved(w: Scalar) -> Scalar:
            s = w.body
            of, j, here = s.index(0), s.index(2), s.scalar(at)
            gap = s.extract(t, [of, here, here]) - s.extract(t, [of, j, j])
            # Equal eigenvalues: a small gap instead of none, as in LAPACK's `trevc`.
            gap = (gap.abs() < limit).where(limit, gap)
            return (j > here).where(-w / gap, 0)

        def element(v: Scalar, new: Scalar) -> Scalar:
            s = v.body
            i, j, here = s.index(1), s.index(2), s.scalar(at)
            # Elements are at most 1, since quotients by small gaps would overflow.
            return over(((i == here) & (j > here)).where(new, v), new.abs().maximum(1.0))

        return b.map(element, x, b.map(solved, product))

    return for_(b, 0, n, [identity(b, t.dtype, t.shape)], step)[0]


def eig(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """
    Eigenvalues, in the order of Schur's form, and eigenvectors (columns) of complex matrices.
    Vectors have the norm 1, and their largest element is real.
    """
    values, t, q = schur(b, x)
    vectors = matmul(b, q, _triangular_vectors(b, t))

    def larger(s: Body, v: Scalar, total: Scalar, most: Scalar, at: Scalar) -> tuple[Scalar, ...]:
        size = square(v)
        is_more = size > most
        return total + size, is_more.where(size, most), is_more.where(s.index(1).to(I64), at)

    part = x.dtype.part
    starts = [(0.0, part), (-1.0, part), (0, I64)]
    norms, _, places = b.reduce(larger, [vectors], [1], starts)

    def normal(v: Scalar) -> Scalar:
        s = v.body
        of, j = s.index(0), s.index(2)
        top = s.extract(vectors, [of, s.extract(places, [of, j]).to(INDEX), j])
        size = top.abs()
        return over(v * over(top.conj(), size), s.extract(norms, [of, j]).sqrt())

    return values, b.map(normal, vectors)
