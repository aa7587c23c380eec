"""Medians, modes, distinct elements and histograms."""

from __future__ import annotations

import math
from typing import Any

from ...builder import (
    Body,
    Builder,
    Scalar,
    Size,
    Tensor,
    indexing,
    ordering,
    reductions,
    selection,
    shapes,
)
from ...builder.dtypes import I64, INDEX
from ..calls import Call, lowers
from ..operators import aten

# --- medians and modes ---


@lowers(aten.median.default, aten.nanmedian.default)
def median(call: Call, x: Tensor) -> Tensor:
    """The lower median of all elements, NaN if any is NaN (nanmedian: ignoring NaNs)"""
    b, flat = call.b, shapes.flatten(call.b, x)
    # An empty tensor is given the element that is its median.
    missing = b.maximum(b.sub(1, flat.shape[0]), 0)
    if not isinstance(missing, int) or missing:
        lone = float("nan") if x.dtype.is_float else x.dtype.lowest
        flat = shapes.pad(b, flat, [0], [missing], lone)
    return selection.median(call.b, flat, 0, call.target is aten.nanmedian.default)[0]


@lowers(aten.median.dim, aten.nanmedian.dim)
def median_dim(call: Call, x: Tensor, dim: int, keep: bool) -> tuple[Tensor, Tensor]:
    """The lower median along a dim, and its index"""
    skip = call.target is aten.nanmedian.dim
    return _per_row(call, x, dim, lambda axis: selection.median(call.b, x, axis, skip))


@lowers(aten.mode.default)
def mode(call: Call, x: Tensor, dim: int, keep: bool) -> tuple[Tensor, Tensor]:
    """The most frequent element along a dim, and its index"""
    return _per_row(call, x, dim, lambda axis: selection.mode(call.b, x, axis))


def _per_row(call: Call, x: Tensor, dim: int, fn: Any) -> tuple[Tensor, Tensor]:
    if not x.rank:
        return x, call.b.full(0, I64, ())
    call.require_elements([x.shape[dim % x.rank]])
    values, indices = (shapes.reshape(call.b, t, call.shape()) for t in fn(dim % x.rank))
    return values, indices


# --- distinct elements ---


def _results(call: Call, found: tuple[Tensor, ...], wanted: list[bool]) -> tuple[Tensor, ...]:
    """Replaces results that are not wanted by empty tensors."""
    rest = [
        t if want or not call.has_symbols(i) else call.b.empty(I64, call.shape(i))
        for i, (t, want) in enumerate(zip(found[1:], wanted), 1)
    ]
    return found[0], *rest


@lowers(aten._unique2.default)
def unique2(
    call: Call, x: Tensor, _: bool, inverse: bool, counts: bool = False
) -> tuple[Tensor, ...]:
    """The sorted distinct elements, the index of each element among them, and the counts"""
    return _results(call, selection.unique(call.b, x, None, True), [inverse, counts])


@lowers(aten._unique.default)
def unique(call: Call, x: Tensor, _: bool, inverse: bool) -> tuple[Tensor, ...]:
    """The sorted distinct elements, and the index of each element among them"""
    return _results(call, selection.unique(call.b, x, None, True)[:2], [inverse])


@lowers(aten.unique_consecutive.default)
def unique_consecutive(
    call: Call, x: Tensor, inverse: bool, counts: bool, dim: int | None
) -> tuple[Tensor, ...]:
    """One element of each run of equal elements, the run of each element, and the run lengths"""
    axis = None if dim is None else dim % x.rank
    return _results(call, selection.unique(call.b, x, axis, False), [inverse, counts])


@lowers(aten.unique_dim.default, aten.unique_dim_consecutive.default)
def unique_dim(call: Call, x: Tensor, dim: int, *given: bool) -> tuple[Tensor, ...]:
    """The sorted distinct slices along a dim, the index of each slice among them, and the counts"""
    in_order = call.target is aten.unique_dim.default
    inverse, counts = given[1:] if in_order else given
    found = selection.unique(call.b, x, dim % x.rank, in_order)
    return _results(call, found, [inverse, counts])


@lowers(aten.nonzero_static.default)
def nonzero_static(call: Call, x: Tensor, *, size: int, fill_value: int) -> Tensor:
    """The indices of the first `size` nonzero elements, padded with rows of `fill_value`"""
    b = call.b
    places = indexing.nonzero(b, b.is_true(x))
    count = places.shape[0]

    def element(s: Body, i: Scalar, j: Scalar) -> Scalar:
        n = s.as_index(count)
        found = s.extract(places, [i.minimum(n - 1).maximum(0), j])
        return (i < n).where(found, fill_value)

    if isinstance(count, int) and count == 0:
        return b.full(fill_value, I64, call.shape())
    # Appends a row, because an empty tensor has none to read.
    places = shapes.pad(b, places, [0, 0], [1, 0])
    return b.from_function(element, call.shape(), I64)


@lowers(aten.bincount.default)
def bincount(call: Call, x: Tensor, weights: Tensor | None, least: Any) -> Tensor:
    """Counts, or summed weights, of 0, 1, ..., max(x); at least `least` of them"""
    b = call.b
    x = call.require(x, lambda v: v >= 0, "the elements must not be negative")
    count: Size = least
    if not (isinstance(x.shape[0], int) and x.shape[0] == 0):
        top = b.item(reductions.max_(b, x, [0]))
        largest = b.compute(lambda v: v.to(INDEX) + 1, (top, x.dtype)).value
        count = b.maximum(b.maximum(largest, 0), least)
    return selection.histogram(b, b.cast(x, I64), weights, count, call.dtype())


# --- histograms ---


def _bounds(b: Builder, x: Tensor) -> list[Tensor]:
    """The smallest and the largest element of a vector; 0 and 1 if it is empty."""
    (count,) = x.shape
    if isinstance(count, int) and count == 0:
        return [b.full(v, x.dtype, ()) for v in (0, 1)]
    ends = [f(b, x, [0]) for f in (reductions.min_, reductions.max_)]
    if isinstance(count, int):
        return ends
    return [
        b.map(lambda v, d=d: (v.body.as_index(count) == 0).where(v._other(d), v), end)
        for d, end in enumerate(ends)
    ]


def _range(call: Call, x: Tensor, low: Any, high: Any, apart: float) -> tuple[Tensor, Tensor]:
    """The given bounds, or the bounds of x; equal bounds are moved `apart`."""
    b = call.b
    if low is not None:
        ends = [call.tensor(v, x.dtype) for v in (low, high)]
    else:
        ends = _bounds(b, shapes.flatten(b, x))
    if not x.dtype.is_integer:
        message = "the range of a histogram must be finite"
        ends = [call.require(v, lambda end: end.abs() < math.inf, message) for v in ends]
    widened = [
        b.map(lambda u, v, d=d: (u == v).where((u if d < 0 else v) + d, u if d < 0 else v), *ends)
        for d in (-apart, apart)
    ]
    return widened[0], widened[1]


@lowers(aten.histc.default)
def histc(call: Call, x: Tensor, bins: int, low: Any, high: Any) -> Tensor:
    """Counts of elements in `bins` equal bins from low to high, both inclusive"""
    b, wide = call.b, x.dtype.computed
    given = None if low == high == 0 else low
    values = shapes.flatten(b, b.cast(x, wide))
    first, last = _range(call, values, given, high, 1.0)

    def place(v: Scalar, u: Scalar, w: Scalar) -> Scalar:
        inside = (v >= u) & (v <= w)
        if wide.is_integer:
            at = ((v - u) * bins).truncdiv((w - u).maximum(1)).to(I64)
        else:
            at = ((v - u) * float(bins) / (w - u)).to(I64)
        return inside.where(at.minimum(bins - 1), -1)

    places = b.map(place, values, first, last, dtype=I64)
    return b.cast(selection.histogram(b, places, None, bins, I64), call.dtype())


def _edges(call: Call, first: Tensor, last: Tensor, bins: int) -> Tensor:
    """bins + 1 equidistant numbers from first to last, computed from the nearer end."""
    dtype = first.dtype

    def edge(s: Body, i: Scalar) -> Scalar:
        u, v = s.extract(first, []), s.extract(last, [])
        step = (v - u) / float(bins)
        near = u + step * i.to(dtype)
        far = v - step * (bins - i).to(dtype)
        return (i < (bins + 1) // 2).where(near, far)

    return call.b.from_function(edge, [bins + 1], dtype)


def _bin(call: Call, values: Tensor, edges: Tensor) -> Tensor:
    """The bin of each element, -1 for none; the last edge is inclusive."""
    b, count = call.b, edges.shape[0]
    found = ordering.search(b, edges, values, right=True)

    def place(v: Scalar, n: Scalar) -> Scalar:
        s = v.body
        first, last = s.extract(edges, [0]), s.extract(edges, [s.as_index(count) - 1])
        bins = s.as_index(count).to(I64) - 1
        return ((v >= first) & (v <= last)).where((n > bins).where(bins - 1, n - 1), -1)

    return b.map(place, values, found, dtype=I64)


def _density(call: Call, counts: Tensor, edges: list[Tensor]) -> Tensor:
    """Divides counts by their sum and by the bin sizes."""
    b, rank = call.b, counts.rank
    total = reductions.sum_(b, counts, list(range(rank)))
    identity = b.broadcast_map(counts.shape, counts.shape)

    def scaled(s: Body, v: Scalar, _: Scalar) -> Scalar:
        v = v / s.extract(total, [])
        for i, e in enumerate(edges):
            at = s.index(i)
            v = v / (s.extract(e, [at + 1]) - s.extract(e, [at]))
        return v

    init = b.empty(counts.dtype, counts.shape)
    return b.structured([counts], [init], [identity] * 2, [False] * rank, scaled)[0]


@lowers(aten.histogram.bin_ct)
def histogram(
    call: Call, x: Tensor, bins: int, *, range: Any, weight: Tensor | None, density: bool
) -> tuple[Tensor, Tensor]:
    """Counts of elements between bins + 1 equidistant edges, and the edges"""
    low, high = range or (None, None)
    first, last = _range(call, x, low, high, 0.5)
    return _histogram(call, x, _edges(call, first, last, bins), weight, density)


@lowers(aten.histogram.bins_tensor)
def histogram_tensor(
    call: Call, x: Tensor, edges: Tensor, *, weight: Tensor | None, density: bool
) -> tuple[Tensor, Tensor]:
    """Counts of elements between the edges, and the edges"""
    return _histogram(call, x, edges, weight, density)


def _histogram(
    call: Call, x: Tensor, edges: Tensor, weight: Tensor | None, density: bool
) -> tuple[Tensor, Tensor]:
    b = call.b
    places = _bin(call, shapes.flatten(b, x), edges)
    weights = None if weight is None else shapes.flatten(b, weight)
    counts = selection.histogram(b, places, weights, b.sub(edges.shape[0], 1), x.dtype)
    return (_density(call, counts, [edges]) if density else counts), edges


def _columns(call: Call, x: Tensor) -> list[Tensor]:
    """The coordinates along each dim of the points, as vectors."""
    b, (width,) = call.b, call.static(x.shape[-1:], "last dim")
    points = shapes.reshape(b, x, [b.product(x.shape[:-1]), width])
    return [shapes.select(b, points, 1, i) for i in range(width)]


def _edges_of_columns(call: Call, x: Tensor, bins: list[int], bounds: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for i, column in enumerate(_columns(call, x)):
        low, high = bounds[2 * i : 2 * i + 2] if bounds else (None, None)
        first, last = _range(call, column, low, high, 0.5)
        found.append(_edges(call, first, last, bins[i]))
    return found


@lowers(aten._histogramdd_bin_edges.default)
def histogramdd_bin_edges(
    call: Call, x: Tensor, bins: list[int], *, range: Any
) -> tuple[Tensor, ...]:
    """The equidistant edges along each dim of the points"""
    return tuple(_edges_of_columns(call, x, bins, range))


@lowers(aten._histogramdd_from_bin_cts.default)
def histogramdd_from_bin_cts(
    call: Call, x: Tensor, bins: list[int], *, range: Any, weight: Tensor | None, density: bool
) -> Tensor:
    """Counts of points in each cell of a grid with equidistant edges"""
    return _histogramdd(call, x, _edges_of_columns(call, x, bins, range), weight, density)


@lowers(aten._histogramdd_from_bin_tensors.default)
def histogramdd_from_bin_tensors(
    call: Call, x: Tensor, edges: list[Tensor], *, weight: Tensor | None, density: bool
) -> Tensor:
    """Counts of points in each cell of a grid with given edges"""
    return _histogramdd(call, x, edges, weight, density)


def _histogramdd(
    call: Call, x: Tensor, edges: list[Tensor], weight: Tensor | None, density: bool
) -> Tensor:
    b = call.b
    bins = [b.sub(e.shape[0], 1) for e in edges]
    places = [_bin(call, column, e) for column, e in zip(_columns(call, x), edges, strict=True)]

    def linear(*at: Scalar) -> Scalar:
        total, outside = at[0] * 0, at[0] < 0
        for v, size in zip(at, bins):
            total, outside = total * v.body.as_index(size).to(I64) + v, outside | (v < 0)
        return outside.where(-1, total)

    weights = None if weight is None else shapes.flatten(b, weight)
    flat = b.map(linear, *places)
    counts = selection.histogram(b, flat, weights, b.product(bins), x.dtype)
    counts = shapes.reshape(b, counts, call.shape())
    return _density(call, counts, edges) if density else counts
