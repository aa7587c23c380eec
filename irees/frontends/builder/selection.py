"""Median, mode, distinct elements and histograms, mostly from sorted rows."""

from __future__ import annotations

from collections.abc import Sequence

from . import indexing, ordering, reductions
from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, I64, INDEX, DType
from .scalars import Body, Scalar
from .shapes import flatten, reshape, select, transpose, unsqueeze


def pick(b: Builder, sorted_: Sequence[Tensor], place: Tensor, axis: int) -> list[Tensor]:
    """Reads each tensor at one index per row along an axis and removes the axis."""
    at = unsqueeze(b, place, axis)
    found = [indexing.take_along(b, t, at, axis) for t in sorted_]
    return [reshape(b, t, place.shape) for t in found]


def median(b: Builder, x: Tensor, axis: int, skip_nan: bool) -> tuple[Tensor, Tensor]:
    """
    Element (n - 1) // 2 of each sorted row and its original index in i64. With `skip_nan`, n
    excludes NaNs; otherwise a row with a NaN gives its first NaN.
    """
    found = ordering.sort(b, x, axis, False)
    size = x.shape[axis]
    shape = [s for i, s in enumerate(x.shape) if i != axis]
    if x.dtype.is_float:
        numbers = b.map(lambda v: ~v.isnan(), x, dtype=BOOL)
        count = reductions.sum_(b, numbers, [axis], I64)
    else:
        count = b.from_function(lambda s, *_: s.as_index(size).to(I64), shape, I64)

    def place(n: Scalar) -> Scalar:
        middle = (n - 1).maximum(0).truncdiv(2)
        if skip_nan:
            return middle
        return (n < n.body.as_index(size).to(I64)).where(n, middle)

    values, indices = pick(b, found, b.map(place, count), axis)
    return values, indices


def _last_changes(b: Builder, x: Tensor, axis: int) -> Tensor:
    """For each element along an axis, the last index so far where x changed."""

    def change(s: Body, *at: Scalar) -> Scalar:
        before = [v if i != axis else (v - 1).maximum(0) for i, v in enumerate(at)]
        differs = s.extract(x, before) != s.extract(x, at)
        return differs.where(at[axis].to(I64), 0)

    marks = b.from_function(change, x.shape, I64)
    return indexing.scan(b, marks, axis, Scalar.maximum)


def mode(b: Builder, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The most frequent element of each row (smallest in a tie) and its last index."""
    found = ordering.sort(b, x, axis, False)
    starts = _last_changes(b, found[0], axis)
    rank = x.rank
    whole = projection(rank, tuple(range(rank)))
    init = b.empty(I64, x.shape)
    (lengths,) = b.structured(
        [starts], [init], [whole] * 2, [False] * rank, lambda s, v, _: s.index(axis).to(I64) - v
    )
    _, place = reductions.arg_best(b, lengths, axis, largest=True)
    values, indices = pick(b, found, place, axis)
    return values, indices


# --- distinct elements ---


def rows_along(b: Builder, x: Tensor, axis: int) -> Tensor:
    """x as a matrix whose row i is x[..., i, ...] along an axis."""
    order = [axis, *(i for i in range(x.rank) if i != axis)]
    moved = transpose(b, x, order)
    return reshape(b, moved, [moved.shape[0], b.product(moved.shape[1:])])


def _order_of_rows(b: Builder, rows: Tensor) -> Tensor:
    """The permutation that sorts the rows of a matrix lexicographically; compares all pairs."""
    count, width = rows.shape
    maps = [projection(3, (0, 2)), projection(3, (1, 2)), projection(3, (0, 1))]
    last = b.value(b.sub(width, 1))
    init = b.splat(last, INDEX, [count, count])
    (differ,) = b.structured(
        [rows, rows], [init], maps, [False, False, True],
        lambda s, u, v, acc: (u != v).where(s.index(2), acc._other(2**62)).minimum(acc),
    )  # fmt: skip

    def before(s: Body, at: Scalar, acc: Scalar) -> Scalar:
        i, j = s.index(0), s.index(1)
        u, v = (s.extract(rows, [r, at]) for r in (i, j))
        return acc + ((v < u) | ((v == u) & (j < i))).to(I64)

    maps = [projection(2, (0, 1)), projection(2, (0,))]
    (ranks,) = b.structured([differ], [b.full(0, I64, [count])], maps, [False, True], before)
    places = b.from_function(lambda s, i: i.to(I64), [count], I64)
    column = reshape(b, ranks, [count, 1])
    return indexing.scatter(b, b.full(0, I64, [count]), column, places, None)


def _changes(b: Builder, rows: Tensor) -> Tensor:
    """Whether each row of a matrix differs from the previous one; true for the first."""

    def differs(s: Body, v: Scalar, acc: Scalar) -> Scalar:
        i = s.index(0)
        before = s.extract(rows, [(i - 1).maximum(0), s.index(1)])
        return acc | (before != v)

    init = b.from_function(lambda s, i: i == 0, [rows.shape[0]], BOOL)
    maps = [projection(2, (0, 1)), projection(2, (0,))]
    return b.structured([rows], [init], maps, [False, True], differs)[0]


def unique(
    b: Builder, x: Tensor, axis: int | None, in_order: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """
    The distinct elements of x (or slices along an axis) in sorted order, the index of the distinct
    element for each element of x, and the number of occurrences of each. Without `in_order` only
    adjacent elements are compared, without sorting. The number of distinct elements is computed
    first: that dim of the results is dynamic.
    """
    source = flatten(b, x) if axis is None else x
    along = axis or 0
    size = source.shape[along]
    where: Tensor | None = None
    if in_order and source.rank == 1:
        source, where = ordering.sort(b, source, 0, False)
    elif in_order:
        where = _order_of_rows(b, rows_along(b, source, along))
        source = indexing.take(b, source, where, along)
    first = _changes(b, rows_along(b, source, along))
    starts = select(b, indexing.nonzero(b, first), 1, 0)
    ranks = b.map(lambda r: r - 1, indexing.running_count(b, first))
    if where is not None:
        column = reshape(b, where, [size, 1])
        ranks = indexing.scatter(b, b.full(0, I64, [size]), column, ranks, None)
    values = indexing.take(b, source, starts, along)
    inverse = reshape(b, ranks, x.shape) if axis is None else ranks
    return values, inverse, _run_lengths(b, starts, size)


def _run_lengths(b: Builder, starts: Tensor, size: Size) -> Tensor:
    """The distance of each start to the next one, or to `size` for the last."""
    count = starts.shape[0]

    def length(s: Body, i: Scalar) -> Scalar:
        n = s.as_index(count)
        following = s.extract(starts, [(i + 1).minimum(n - 1)])
        end = (i + 1 < n).where(following, s.as_index(size).to(I64))
        return end - s.extract(starts, [i])

    return b.from_function(length, [count], I64)


# --- histograms ---


def histogram(
    b: Builder, places: Tensor, weights: Tensor | None, bins: Size, dtype: DType
) -> Tensor:
    """Counts (or sums the weights of) each value 0 ... bins - 1 in a vector of bin indices."""
    if weights is None:
        weights = b.full(1, dtype, places.shape)
    column = reshape(b, places, [places.shape[0], 1])
    return indexing.scatter(
        b, b.full(0, dtype, [bins]), column, b.cast(weights, dtype), lambda old, new: old + new
    )
