"""Reductions over bags and segments of rows."""

from __future__ import annotations

from typing import Any

from ...builder import Body, Scalar, Size, Tensor, indexing, ordering, reductions, same, shapes
from ...builder.dtypes import I64, INDEX
from ..calls import Call, lowers
from ..operators import aten


def _by_row(call: Call, values: Tensor, factors: Tensor, fn: Any) -> Tensor:
    """Applies fn to each row and that row's factor."""
    column = shapes.reshape(call.b, factors, [factors.shape[0], *[1] * (values.rank - 1)])
    return call.b.map(fn, values, column, dtype=values.dtype)


def _reduced(call: Call, rows: Tensor, bags: Tensor, count: Size, mode: str) -> Tensor:
    """Reduces the rows of each bag by "sum", "prod", "max" or "min"; ignores bags out of range."""
    b, dtype = call.b, rows.dtype
    start = {"sum": 0, "prod": 1, "max": dtype.lowest, "min": dtype.highest}[mode]
    fn = {
        "sum": lambda old, new: old + new, "prod": lambda old, new: old * new,
        "max": Scalar.maximum, "min": Scalar.minimum,
    }[mode]  # fmt: skip
    init = b.full(start, dtype, [count, *rows.shape[1:]])
    return indexing.scatter(b, init, shapes.unsqueeze(b, bags, 1), rows, fn)


def _counts(call: Call, bags: Tensor, count: Size) -> Tensor:
    """The number of rows in each bag."""
    ones = call.b.full(1, I64, bags.shape)
    return _reduced(call, ones, bags, count, "sum")


def _checked_offsets(call: Call, offsets: Tensor, count: Size) -> Tensor:
    """The offsets; aborts the program unless the first is 0 and none is beyond `count` indices."""
    if shapes.step_of(offsets) is not None:
        return offsets

    def fine(s: Body, at: Scalar, _: Scalar) -> Scalar:
        s.check((s.index(0) != 0) | (at == 0), "the first bag must begin at index 0")
        s.check(at.to(INDEX) <= s.as_index(count), "a bag begins after the last index")
        return at

    b, maps = call.b, [call.b.broadcast_map(offsets.shape, offsets.shape)] * 2
    return b.structured([offsets], [b.empty(offsets.dtype, offsets.shape)], maps, [False], fine)[0]


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(
    call: Call, table: Tensor, indices: Tensor, offsets: Tensor, _: bool, mode: int,
    sparse: bool, weights: Tensor | None, last: bool, padding: int,
) -> tuple[Tensor, ...]:  # fmt: skip
    """
    The sum, mean (1) or maximum (2) of table rows by bag, where bags begin at offsets. Also returns
    the bag of each index, the bag sizes (0 for sums), and the table row of each maximum.
    """
    b = call.b
    count: Size = b.sub(offsets.shape[0], 1) if last else offsets.shape[0]
    offsets = _checked_offsets(call, offsets, indices.shape[0])
    bags = _bags(call, offsets, indices.shape[0])
    kept = bags
    if padding >= 0:
        kept = b.map(lambda bag, i: (i == padding).where(-1, bag), bags, indices)
    wide = table.dtype.computed
    even = None if last or padding >= 0 else _even_bags(call, indices, offsets)
    if even is not None:
        sizes = b.full(shapes.step_of(offsets), I64, [count])
        result = _reduced_evenly(call, table, even, weights, mode)
    else:
        sizes = _counts(call, kept, count)
        rows = b.cast(indexing.take(b, table, indices, 0, indexing.checked), wide)
        if weights is not None:
            rows = _by_row(call, rows, weights, lambda v, w: v * w.to(wide))
        result = _reduced(call, rows, kept, count, "max" if mode == 2 else "sum")
    if mode == 1:
        result = _by_row(call, result, sizes, lambda v, n: v / n.maximum(1).to(wide))
    if mode == 2:
        result = _by_row(call, result, sizes, lambda v, n: (n == 0).where(0.0, v))
    if mode == 0:  # PyTorch counts only if the gradient needs it
        sizes = b.full(0, sizes.dtype, sizes.shape)
    largest = None
    if mode == 2 and 3 not in call.unused:
        found = _largest(call, (table, indices), kept, result)
        largest = _by_row(call, found, sizes, lambda row, n: (n == 0).where(0, row))
    rest = (bags, sizes, largest)
    return b.cast(result, call.dtype()), *(_shaped(call, t, i) for i, t in enumerate(rest, 1))


def _largest(call: Call, rows: tuple[Tensor, Tensor], bags: Tensor, maxima: Tensor) -> Tensor:
    """The index of the first row of each bag that has the maximum, by column; rows are a take."""
    b, (table, indices) = call.b, rows
    taken = b.cast(indexing.take(b, table, indices, 0, indexing.checked), maxima.dtype)
    best = indexing.take(b, maxima, b.cast(bags, I64), 0)
    places = b.from_function(lambda s, i: i.to(I64), indices.shape, I64)
    places = b.map(
        lambda v, m, i: (v == m).where(i, I64.highest),
        taken, best, shapes.unsqueeze(b, places, 1), dtype=I64,
    )  # fmt: skip
    first = _reduced(call, places, bags, maxima.shape[0], "min")
    return indexing.take(b, b.cast(indices, I64), first, 0)


def _bags(call: Call, offsets: Tensor, count: Size) -> Tensor:
    """The bag of each of `count` indices: how many bags begin up to its place, less one."""
    b = call.b
    starts = _counts(call, b.cast(offsets, I64), count)
    return b.map(lambda n: n - 1, indexing.scan(b, starts, 0, lambda acc, n: acc + n))


def _even_bags(call: Call, indices: Tensor, offsets: Tensor) -> Tensor | None:
    """The indices with one row for each bag, if all bags are known to have the same length."""
    step, count = shapes.step_of(offsets), offsets.shape[0]
    if step is None or step < 1:
        return None
    if same(call.b.mul(count, step), indices.shape[0]):
        return shapes.reshape(call.b, indices, [count, step])
    return None


def _reduced_evenly(
    call: Call, table: Tensor, indices: Tensor, weights: Tensor | None, mode: int
) -> Tensor:
    """The sums, or maxima (mode 2), of table[indices[i, j]] over j."""
    b, wide = call.b, table.dtype.computed
    rows = b.cast(indexing.take(b, table, indices, 0, indexing.checked), wide)
    if weights is not None:
        factors = shapes.reshape(b, weights, [*indices.shape, 1])
        rows = b.map(lambda v, w: v * w.to(wide), rows, factors, dtype=wide)
    return reductions.max_(b, rows, [1]) if mode == 2 else reductions.sum_(b, rows, [1], wide)


def _shaped(call: Call, x: Tensor | None, i: int) -> Tensor:
    """A result used only by the backward pass, in PyTorch's shape; 0 if it is not computed."""
    b, shape = call.b, call.shape(i)
    if x is not None and len(shape) == x.rank and all(
        not isinstance(m, int) or m == n for m, n in zip(shape, x.shape)
    ):  # fmt: skip
        return b.cast(x, call.dtype(i))
    return b.full(0, call.dtype(i), shape)


@lowers(aten.embedding_renorm.default)
def embedding_renorm(
    call: Call, table: Tensor, indices: Tensor, limit: float, order: float
) -> Tensor:
    """The table with each row in `indices` whose norm exceeds the limit scaled down to the limit"""
    b, wide = call.b, table.dtype.computed
    flat = shapes.flatten(b, indices)
    hits = _counts(call, b.cast(flat, I64), table.shape[0])
    norms = reductions.norm(b, table, float(order), [1])

    def factor(n: Scalar, norm: Scalar) -> Scalar:
        return ((n > 0) & (norm > limit)).where(limit / (norm + 1e-7), norm._other(1.0))

    factors = b.map(factor, hits, b.cast(norms, wide), dtype=wide)
    return _by_row(call, table, factors, lambda v, f: v.to(wide) * f)


@lowers(aten.repeat_interleave.Tensor)
def repeat_interleave(call: Call, repeats: Tensor, _: Any = None) -> Tensor:
    """Each index i repeated repeats[i] times"""
    b = call.b
    if isinstance(repeats.shape[0], int) and repeats.shape[0] == 0:
        return b.empty(call.dtype(), [0])
    counts = call.require(b.cast(repeats, I64), lambda n: n >= 0, "repeats must not be negative")
    ends = indexing.scan(b, counts, 0, lambda acc, v: acc + v)
    total: Size = call.shape()[0] if call.has_symbols() else None  # type: ignore[assignment]
    if total is None:
        last = b.item(ends, [b.sub(repeats.shape[0], 1)])
        total = b.compute(lambda n: n.to(INDEX), (last, I64)).value
    places = shapes.iota(b, total)
    return b.cast(ordering.search(b, ends, places, right=True), call.dtype())


# --- segments ---

_PARTIAL = "the lengths of segments must add up to the size of the axis"


def _segments(call: Call, data: Tensor, lengths: Tensor | None, offsets: Tensor | None) -> Tensor:
    """The end offsets of segments along the last dim."""
    b = call.b
    if lengths is not None:
        axis = lengths.rank - 1
        wide = call.require(b.cast(lengths, I64), lambda n: n >= 0, "a length must not be negative")
        ends = indexing.scan(b, wide, axis, lambda acc, v: acc + v)
        size, last = data.shape[axis], b.sub(lengths.shape[axis], 1)

        def whole(s: Any, end: Scalar, _: Scalar) -> Scalar:
            is_last = s.index(axis) == s.as_index(last)
            s.check(~is_last | (end.to(INDEX) == s.as_index(size)), _PARTIAL)
            return end

        maps = [b.broadcast_map(ends.shape, ends.shape)] * 2
        return b.structured([ends], [b.empty(I64, ends.shape)], maps, [False] * ends.rank, whole)[0]
    assert offsets is not None
    last = offsets.rank - 1
    return b.cast(shapes.slice_axis(b, offsets, last, 1, b.sub(offsets.shape[last], 1)), I64)


@lowers(aten.segment_reduce.default)
def segment_reduce(
    call: Call, data: Tensor, reduce: str, *, lengths: Tensor | None, offsets: Tensor | None,
    axis: int, initial: Any,
) -> Tensor:  # fmt: skip
    """Reduces consecutive segments along an axis, given by lengths or offsets"""
    b = call.b
    ends = _segments(call, data, lengths, offsets)
    axis = ends.rank - 1
    batch, count = b.product(data.shape[:axis]), ends.shape[axis]
    size = data.shape[axis]
    rows = shapes.reshape(b, data, [b.product([batch, size]), *data.shape[axis + 1 :]])
    lead = [batch, size]
    places = b.from_function(lambda s, i, j: j.to(I64), lead, I64)
    segments = ordering.search(b, shapes.reshape(b, ends, [batch, count]), places, right=True)
    # Numbers the segments of all batches consecutively; rows after the last segment get -1.
    bags = b.structured(
        [segments], [b.empty(I64, lead)], [b.broadcast_map(lead, lead)] * 2, [False, False],
        lambda s, n, _: (n < s.as_index(count).to(I64)).where(
            s.index(0).to(I64) * s.as_index(count).to(I64) + n, -1),
    )[0]  # fmt: skip
    bags, total = shapes.flatten(b, bags), b.product([batch, count])
    mode = {"mean": "sum", "amax": "max", "amin": "min"}.get(reduce, reduce)
    wide = data.dtype.computed
    result = _reduced(call, b.cast(rows, wide), bags, total, mode)
    sizes = _counts(call, bags, total)
    finish = _finish(reduce, mode, None if initial is None else float(initial))
    result = _by_row(call, result, sizes, finish)
    return b.cast(shapes.reshape(b, result, call.shape()), call.dtype())


def _finish(reduce: str, mode: str, initial: float | None) -> Any:
    """Returns the function that applies the initial value and the mean's division to a segment."""

    def body(v: Scalar, n: Scalar) -> Scalar:
        if initial is not None:
            first = v._other(initial)
            combine = {
                "sum": lambda: v + first, "prod": lambda: v * first,
                "max": lambda: v.maximum(first), "min": lambda: v.minimum(first),
            }  # fmt: skip
            v = combine[mode]()
        if reduce != "mean":
            return v
        empty = v._other(float("nan") if initial is None else initial)
        return (n == 0).where(empty, v / n.maximum(1).to(v.dtype))

    return body
