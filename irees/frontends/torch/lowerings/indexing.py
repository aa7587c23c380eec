"""Gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...builder import Scalar, Size, Tensor, indexing, same, shapes
from ...builder.dtypes import BOOL, I64
from ..calls import Call, lowers
from ..operators import aten


@lowers(aten.embedding.default)
def embedding(call: Call, table: Tensor, indices: Tensor) -> Tensor:
    """table[indices]"""
    return indexing.take(call.b, table, indices, 0, indexing.checked)


@lowers(aten.index_select.default)
def index_select(call: Call, x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """x[..., indices, ...]"""
    if not x.rank:
        return x
    result = indexing.take(call.b, x, indices, dim % x.rank, indexing.checked)
    return shapes.reshape(call.b, result, call.shape())


@lowers(aten.gather.default)
def gather(call: Call, x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """out[i, j, k] = x[i, indices[i, j, k], k] for dim 1"""
    if not x.rank or not indices.rank:
        return shapes.reshape(call.b, x, call.shape())
    if x.rank != indices.rank:
        # The ranks may differ only if there are no indices.
        return call.b.full(0, x.dtype, call.shape())
    return indexing.take_along(call.b, x, indices, dim % x.rank, indexing.checked)


@lowers(aten.take.default)
def take(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    """The elements of x at row-major linear indices"""
    flat = shapes.flatten(call.b, x)
    return indexing.take(call.b, flat, indices, 0, indexing.checked_from_end)


def expanded(call: Call, x: Tensor, indices: Sequence[Any]) -> tuple[Tensor, list[Any]]:
    """Replaces masks by the indices of their true elements and pads with None to the rank of x."""
    found: list[Any] = []
    for index in indices:
        if index is not None and index.dtype in (BOOL,):
            places = indexing.nonzero(call.b, index)
            found += [shapes.select(call.b, places, 1, i) for i in range(index.rank)]
        else:
            found.append(index)
    return x, [*found, *[None] * (x.rank - len(found))]


def _is_checked(call: Call) -> bool:
    """Whether an operator checks its indices; those of `_unsafe` operators are in bounds."""
    return not call.target._schema.name.startswith("aten::_unsafe")


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(call: Call, x: Tensor, indices: list[Any]) -> Tensor:
    """x[i, :, j, ...], with advanced indices broadcast to common dims"""
    x, places = expanded(call, x, indices)
    place = indexing.checked_from_end if _is_checked(call) else indexing.clamped
    return indexing.index(call.b, x, places, place)


@lowers(
    aten.index_put.default,
    aten._unsafe_index_put.default,
    aten._index_put_impl.default,
)
def index_put(
    call: Call, x: Tensor, indices: list[Any], values: Tensor, accumulate: bool
) -> Tensor:
    """x with x[indices] = values, or += values"""
    mask = _single_mask(x, indices)
    if mask is not None and values.rank == 0 and not accumulate:
        wide = shapes.reshape(call.b, mask, [*mask.shape, *[1] * (x.rank - mask.rank)])
        return call.b.map(lambda c, v, old: c.where(v, old), wide, values, x, dtype=x.dtype)
    x, places = expanded(call, x, indices)
    fn = (lambda old, new: old + new) if accumulate else None
    values = call.b.cast(values, x.dtype)
    place = indexing.checked_from_end if _is_checked(call) else indexing.wrapped
    return indexing.index_update(call.b, x, places, values, fn, place)


def _single_mask(x: Tensor, indices: Sequence[Any]) -> Tensor | None:
    given = [i for i in indices if i is not None]
    if len(given) == 1 and indices[0] is not None and given[0].dtype is BOOL:
        return given[0]
    return None


@lowers(aten.nonzero.default)
def nonzero(call: Call, x: Tensor) -> Tensor:
    """The indices of the nonzero elements, one per row"""
    return indexing.nonzero(call.b, call.b.is_true(x))


@lowers(aten.masked_select.default)
def masked_select(call: Call, x: Tensor, mask: Tensor) -> Tensor:
    """The elements of x where the mask is true"""
    # PyTorch limits their count to the elements of x, which is wrong for a mask that broadcasts it.
    count = getattr(getattr(call.value.shape[0], "node", None), "expr", None)
    if count is not None:
        call.symbols.unlimited |= count.free_symbols
    shape = call.b.broadcast_shape(x.shape, mask.shape)
    flat, keep = (shapes.flatten(call.b, shapes.broadcast_to(call.b, t, shape)) for t in (x, mask))
    places = indexing.nonzero(call.b, keep)
    return indexing.take(call.b, flat, shapes.select(call.b, places, 1, 0), 0)


@lowers(aten.masked_scatter.default)
def masked_scatter(call: Call, x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with its masked elements replaced by those of source, in order"""
    b = call.b
    shape = call.shape()
    flat, keep = (shapes.flatten(b, shapes.broadcast_to(b, t, shape)) for t in (x, mask))
    ranks = indexing.running_count(b, keep)
    values = shapes.flatten(b, source)

    def element(s: Any, v: Scalar, c: Scalar, rank: Scalar, _: Scalar) -> Scalar:
        # The first count that is too large fails, so that no access needs it.
        s.check(rank <= s.as_index(values.shape[0]).to(I64), "the source has too few elements")
        at = indexing.inside(s, rank - 1, values.shape[0])
        return c.where(s.extract(values, [at]), v)

    maps = [b.broadcast_map(flat.shape, flat.shape)] * 4
    init = b.empty(x.dtype, flat.shape)
    (result,) = b.structured([flat, keep, ranks], [init], maps, [False], element)
    return shapes.reshape(b, result, shape)


# --- scatters ---

_REDUCTIONS: dict[str, Any] = {
    "sum": lambda old, new: old + new, "add": lambda old, new: old + new,
    "prod": lambda old, new: old * new, "multiply": lambda old, new: old * new,
    "amax": Scalar.maximum, "amin": Scalar.minimum,
}  # fmt: skip

_SPELLINGS = {"add": "sum", "multiply": "prod"}


def _scatter(call: Call, x: Tensor, dim: int, indices: Tensor, source: Any, fn: Any) -> Tensor:
    b = call.b
    if not x.rank:
        result = _scatter(
            call, shapes.reshape(b, x, [1]), 0, shapes.reshape(b, indices, [1]),
            shapes.reshape(b, source, [1]) if isinstance(source, Tensor) else source, fn,
        )  # fmt: skip
        return shapes.reshape(b, result, ())
    if not isinstance(source, Tensor):
        source = shapes.broadcast_to(b, call.tensor(source, x.dtype), indices.shape)
    if not source.rank:
        source = shapes.reshape(b, source, [1] * x.rank)
    if not indices.rank:
        indices = shapes.reshape(b, indices, [1] * x.rank)
    source = shapes.slice_(b, source, [0] * source.rank, indices.shape)
    axis = dim % x.rank
    if axis == 0 and x.rank > 1 and all(map(same, x.shape[1:], indices.shape[1:])):
        # An index that is repeated along rows moves whole rows.
        row = shapes.repeated(b, indices, axis)
        if row is not None:
            return _rows(call, x, axis, row, source, fn)
    return indexing.put_along(b, x, indices, b.cast(source, x.dtype), axis, fn)


@lowers(aten.scatter.src, aten.scatter.value)
def scatter(call: Call, x: Tensor, dim: int, indices: Tensor, source: Any) -> Tensor:
    """x with x[i, indices[i, j, k], k] = source[i, j, k] for dim 1"""
    return _scatter(call, x, dim, indices, source, None)


@lowers(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_with(
    call: Call, x: Tensor, dim: int, indices: Tensor, source: Any, *, reduce: str
) -> Tensor:
    """`scatter` combined with the old value by addition or multiplication"""
    return _scatter(call, x, dim, indices, source, _REDUCTIONS[reduce])


@lowers(aten.scatter_add.default)
def scatter_add(call: Call, x: Tensor, dim: int, indices: Tensor, source: Tensor) -> Tensor:
    """`scatter` that adds to the old value"""
    return _scatter(call, x, dim, indices, source, _REDUCTIONS["sum"])


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    call: Call, x: Tensor, dim: int, indices: Tensor, source: Tensor, reduce: str,
    *, include_self: bool,
) -> Tensor:  # fmt: skip
    """`scatter` with a reduction, which includes the old value if `include_self`"""
    if reduce == "mean":
        return _scatter_mean(call, x, dim, indices, source, include_self)
    fn = _REDUCTIONS[reduce]
    reduce = _SPELLINGS.get(reduce, reduce)
    if include_self:
        return _scatter(call, x, dim, indices, source, fn)
    start = {"sum": 0, "prod": 1, "amax": x.dtype.lowest, "amin": x.dtype.highest}[reduce]
    fresh = call.b.full(start, x.dtype, x.shape)
    result = _scatter(call, fresh, dim, indices, source, fn)
    return _where_hit(call, x, dim, indices, result)


def _hits(call: Call, x: Tensor, dim: int, indices: Tensor, first: int) -> Tensor:
    """The number of sources scattered to each element, plus `first`."""
    counts = call.b.full(first, I64, x.shape)
    return _scatter(call, counts, dim, indices, 1, _REDUCTIONS["sum"])


def _where_hit(call: Call, x: Tensor, dim: int, indices: Tensor, result: Tensor) -> Tensor:
    hits = _hits(call, x, dim, indices, 0)
    return call.b.map(lambda n, new, old: (n > 0).where(new, old), hits, result, x, dtype=x.dtype)


def _scatter_mean(
    call: Call, x: Tensor, dim: int, indices: Tensor, source: Tensor, include: bool
) -> Tensor:
    base = x if include else call.b.full(0, x.dtype, x.shape)
    total = _scatter(call, base, dim, indices, source, _REDUCTIONS["sum"])
    counts = _hits(call, x, dim, indices, int(include))

    def divide(t: Scalar, n: Scalar) -> Scalar:
        n = n.maximum(1).to(t.dtype)
        return t.floordiv(n) if t.dtype.is_integer else t / n

    result = call.b.map(divide, total, counts)
    return result if include else _where_hit(call, x, dim, indices, result)


def _rows(call: Call, x: Tensor, dim: int, indices: Tensor, source: Any, fn: Any) -> Tensor:
    """x[..., indices[j], ...] combined with source[..., j, ...] by `fn`"""
    b = call.b
    if not x.rank:
        x1, source = shapes.reshape(b, x, [1]), shapes.reshape(b, source, [1])
        indices = shapes.reshape(b, indices, [1])
        return shapes.reshape(b, _rows(call, x1, 0, indices, source, fn), ())
    axis = dim % x.rank
    if not indices.rank:
        indices = shapes.reshape(b, indices, [1])
    shape = [indices.shape[0] if i == axis else s for i, s in enumerate(x.shape)]
    source = shapes.broadcast_to(b, b.cast(source, x.dtype), shape)
    places: list[Any] = [indices if i == axis else None for i in range(x.rank)]
    return indexing.index_update(b, x, places, source, fn, indexing.checked)


@lowers(aten.index_add.default)
def index_add(
    call: Call, x: Tensor, dim: int, indices: Tensor, source: Tensor, *, alpha: Any
) -> Tensor:
    """x[..., indices[j], ...] += alpha * source[..., j, ...]"""
    if alpha != 1:
        source = call.elementwise(lambda v, a: v * a, source, alpha)
    return _rows(call, x, dim, indices, source, _REDUCTIONS["sum"])


@lowers(aten.index_copy.default)
def index_copy(call: Call, x: Tensor, dim: int, indices: Tensor, source: Tensor) -> Tensor:
    """x[..., indices[j], ...] = source[..., j, ...]"""
    return _rows(call, x, dim, indices, source, None)


@lowers(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(call: Call, x: Tensor, dim: int, indices: Tensor, value: Any) -> Tensor:
    """x[..., indices[j], ...] = value; counts negative indices from the end"""
    size = x.shape[dim] if x.rank else 1
    indices = indexing.placed(call.b, indices, size, indexing.checked_from_end)
    return _rows(call, x, dim, indices, call.tensor(value, x.dtype), None)


@lowers(aten.index_reduce.default)
def index_reduce(
    call: Call, x: Tensor, dim: int, indices: Tensor, source: Tensor, reduce: str,
    *, include_self: bool,
) -> Tensor:  # fmt: skip
    """x[..., indices[j], ...] reduced with source[..., j, ...]"""
    b = call.b
    if not x.rank:
        one, rows = (shapes.reshape(b, t, [1]) for t in (x, source))
        result = index_reduce(call, one, 0, indices, rows, reduce, include_self=include_self)
        return shapes.reshape(b, result, ())
    axis = dim % x.rank
    flat = indices if indices.rank else shapes.reshape(b, indices, [1])
    shape: list[Size] = [1] * x.rank
    shape[axis] = flat.shape[0]
    wide = shapes.broadcast_to(b, shapes.reshape(b, flat, shape), source.shape)
    return scatter_reduce(call, x, axis, wide, source, reduce, include_self=include_self)


@lowers(aten.put.default)
def put(call: Call, x: Tensor, indices: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    """x with the elements at row-major linear indices set or added to"""
    b = call.b
    flat, places = shapes.flatten(b, x), shapes.flatten(b, indices)
    fn = _REDUCTIONS["sum"] if accumulate else None
    values = shapes.flatten(b, b.cast(source, x.dtype))
    done = indexing.index_update(b, flat, [places], values, fn, indexing.checked_from_end)
    return shapes.reshape(b, done, x.shape)


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(
    call: Call, x: Tensor, part: Tensor, offset: int, first: int, second: int
) -> Tensor:
    """x with a diagonal replaced"""
    b, rank = call.b, x.rank
    first, second = first % rank, second % rank
    rest = [i for i in range(rank) if i not in (first, second)]
    size = part.shape[-1]
    part = b.cast(part, x.dtype)

    def element(s: Any, old: Scalar, _: Scalar) -> Scalar:
        row, column = s.index(first), s.index(second)
        along = row - max(-offset, 0)
        hit = (along + max(offset, 0) == column) & (along >= 0)
        at = indexing.inside(s, along, size)
        new = s.extract(part, [*(s.index(i) for i in rest), at])
        return hit.where(new, old)

    identity = b.broadcast_map(x.shape, x.shape)
    init = b.empty(x.dtype, x.shape)
    return b.structured([x], [init], [identity] * 2, [False] * rank, element)[0]
