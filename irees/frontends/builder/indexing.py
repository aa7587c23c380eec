"""
Gathers and scatters.

A `Place` defines how an index is interpreted. `clamped` and `wrapped` are for indices that are
known to be in bounds, or whose elements are not used. `checked` and `checked_from_end` are for
indices that the program computes: an out-of-bounds index aborts the program, as in PyTorch. The
check costs less than clamping, because a branch that is not taken does not delay the load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Block

from irees.dialects.iree_linalg_ext import YieldOp
from irees.dialects.iree_linalg_ext.indexing import ScatterOp
from irees.dialects.iree_linalg_ext.sorting import ScanOp

from . import reductions
from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, I32, I64, INDEX, LONGEST_I32, DType
from .scalars import Body, Scalar
from .shapes import flatten, reshape, select

Combine = Callable[[Scalar, Scalar], Scalar]

Place = Callable[[Body, Scalar, Size], Scalar]
"""Converts an index of any integer dtype, for a dim of a given size, to type index."""


def wrapped(s: Body, index: Scalar, size: Size) -> Scalar:
    """Converts an index of any integer dtype to type index; adds `size` if it is negative."""
    at = index.to(INDEX)
    return at if index.dtype.is_unsigned else (at < 0).where(at + s.as_index(size), at)


def inside(s: Body, at: Scalar, size: Size) -> Scalar:
    """Clamps an integer to 0 <= i < size, as an index."""
    at = at.to(INDEX)
    return at.clamp(0, s.as_index(size) - 1)


def clamped(s: Body, index: Scalar, size: Size) -> Scalar:
    """The nearest index in bounds, after adding `size` to a negative index."""
    return inside(s, wrapped(s, index, size), size)


def checked(s: Body, index: Scalar, size: Size) -> Scalar:
    """The index; aborts the program unless 0 <= index < size."""
    at = index.to(INDEX)
    where = f" of size {size}" if isinstance(size, int) else ""
    s.check((at >= 0) & (at < s.as_index(size)), f"an index is out of bounds for a dim{where}")
    return at


def checked_from_end(s: Body, index: Scalar, size: Size) -> Scalar:
    """The index, plus size if negative; aborts the program unless -size <= index < size."""
    return checked(s, wrapped(s, index, size), size)


def placed(b: Builder, indices: Tensor, size: Size, place: Place) -> Tensor:
    """Applies `place` to each index for a dim of that size; the result is i64."""
    return b.map(lambda i: place(i.body, i, size).to(I64), indices, dtype=I64)


def take(b: Builder, x: Tensor, indices: Tensor, axis: int, place: Place = clamped) -> Tensor:
    """out[i..., j..., k...] = x[i..., indices[j...], k...], with i the dims before the axis."""
    shape = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]]
    rank, middle = len(shape), tuple(range(axis, axis + indices.rank))
    maps = [projection(rank, middle), projection(rank, tuple(range(rank)))]

    def element(s: Body, index: Scalar, _: Scalar) -> Scalar:
        at = place(s, index, x.shape[axis])
        before = [s.index(i) for i in range(axis)]
        after = [s.index(i) for i in range(axis + indices.rank, rank)]
        return s.extract(x, [*before, at, *after])

    return b.structured([indices], [b.empty(x.dtype, shape)], maps, [False] * rank, element)[0]


def take_along(b: Builder, x: Tensor, indices: Tensor, axis: int, place: Place = clamped) -> Tensor:
    """out[i, j, k] = x[i, indices[i, j, k], k] for axis 1, in the shape of the indices."""
    rank = indices.rank
    identity = projection(rank, tuple(range(rank)))

    def element(s: Body, index: Scalar, _: Scalar) -> Scalar:
        at = [s.index(i) for i in range(rank)]
        at[axis] = place(s, index, x.shape[axis])
        return s.extract(x, at)

    init = b.empty(x.dtype, indices.shape)
    return b.structured([indices], [init], [identity] * 2, [False] * rank, element)[0]


class _Advanced:
    """
    Layout of advanced indexing, x[i, :, j]: the broadcast shape of the indices, its position among
    the result dims, and the result loop that indexes each other dim of x.
    """

    def __init__(self, b: Builder, x: Tensor, places: Sequence[Tensor | None]):
        self.given = [(axis, p) for axis, p in enumerate(places) if p is not None]
        self.batch = b.broadcast_shape(*(p.shape for _, p in self.given))
        axes = [axis for axis, _ in self.given]
        together = axes == list(range(axes[0], axes[0] + len(axes)))
        self.first = axes[0] if together else 0
        rest = [i for i in range(x.rank) if i not in axes]
        before = rest[: self.first] if together else []
        after = rest[len(before) :]
        order = [*before, *self.batch, *after]
        self.shape: list[Size] = [
            *(x.shape[i] for i in before), *self.batch, *(x.shape[i] for i in after)
        ]  # fmt: skip
        self.loop_of = {axis: i for i, axis in enumerate(before)}
        for i, axis in enumerate(after):
            self.loop_of[axis] = len(before) + len(self.batch) + i
        self.rank = len(order)
        self.last = axes[-1]

    def map_of(self, b: Builder, index: Tensor) -> Any:
        """The map of one index tensor in loops over the result (or over its leading dims)."""
        return self.map_in(index, self.rank)

    def map_in(self, index: Tensor, loops: int) -> Any:
        """The same map in a nest of `loops` loops."""
        skipped = self.first + len(self.batch) - index.rank
        dims = (
            None if isinstance(n, int) and n == 1 and self.batch[i + skipped - self.first] != 1
            else i + skipped
            for i, n in enumerate(index.shape)
        )  # fmt: skip
        return projection(loops, tuple(dims))


def index(b: Builder, x: Tensor, places: Sequence[Tensor | None], place: Place = clamped) -> Tensor:
    """
    x[i, :, j] with integer tensors, one per dim of x (None is `:`): numpy's advanced indexing,
    where the index dims come first if the indexed dims are not adjacent.
    """
    where = _Advanced(b, x, places)
    tensors = [p for _, p in where.given]
    maps = [where.map_of(b, p) for p in tensors]
    maps.append(projection(where.rank, tuple(range(where.rank))))

    def element(s: Body, *scalars: Scalar) -> Scalar:
        at: dict[int, Scalar] = {axis: s.index(loop) for axis, loop in where.loop_of.items()}
        for (axis, _), value in zip(where.given, scalars):
            at[axis] = place(s, value, x.shape[axis])
        return s.extract(x, [at[i] for i in range(x.rank)])

    init = b.empty(x.dtype, where.shape)
    return b.structured(tensors, [init], maps, [False] * where.rank, element)[0]


def index_update(
    b: Builder, x: Tensor, places: Sequence[Tensor | None], values: Tensor, fn: Combine | None,
    place: Place = wrapped,
) -> Tensor:  # fmt: skip
    """
    x with x[i, :, j] = values, or fn(x[i, :, j], values), applied in order. Values broadcast to the
    shape that `index` returns; for duplicate indices the last value wins. Updates out of bounds are
    ignored.
    """
    from .shapes import broadcast_to

    where = _Advanced(b, x, places)
    values = broadcast_to(b, values, where.shape)
    depth = where.last + 1
    slices = x.rank - depth
    batch = where.rank - slices
    tensors = [p for _, p in where.given]
    maps = [where.map_in(p, batch + 1) for p in tensors]
    maps.append(projection(batch + 1, tuple(range(batch + 1))))

    def component(s: Body, *scalars: Scalar) -> Scalar:
        which, found = s.index(batch), s.number(0, I64)
        for axis in range(depth):
            given = [v for (a, _), v in zip(where.given, scalars) if a == axis]
            value = place(s, given[0], x.shape[axis]) if given else s.index(where.loop_of[axis])
            found = (which == axis).where(value.to(I64), found)
        return found

    init = b.empty(I64, [*where.shape[:batch], depth])
    (at,) = b.structured(tensors, [init], maps, [False] * (batch + 1), component)
    return scatter(b, x, at, values, fn)


def scatter(b: Builder, x: Tensor, at: Tensor, values: Tensor, fn: Combine | None) -> Tensor:
    """
    x with x[at[i..., :]] = values[i..., k...], or fn of both, in the order of i. The last dim of
    `at` has one index for each leading dim of x; updates out of bounds are ignored.
    """
    depth = at.shape[-1]
    assert isinstance(depth, int)
    element = x.dtype.element
    block = Block(arg_types=[element, element])
    s = Body(block, b.location)
    new, old = (Scalar(s, arg, x.dtype) for arg in block.args)
    block.add_op(YieldOp((new if fn is None else fn(old, new)).value))
    op = ScatterOp.of(
        [values.value, at.value],
        [x.value],
        {
            "dimension_map": DenseArrayBase.from_list(i64, list(range(depth))),
            "unique_indices": BoolAttr.from_bool(False),
        },
        block,
    )
    b.insert(op)
    return Tensor(op.res[0], x.dtype, x.shape)


def put_along(
    b: Builder, x: Tensor, indices: Tensor, values: Tensor, axis: int, fn: Combine | None
) -> Tensor:
    """
    x with x[i, indices[i, j, k], k] = values[i, j, k] for axis 1, or fn of both. An index that is
    out of bounds aborts the program.
    """
    rank = indices.rank
    identity = projection(rank, (*range(rank),))
    strides = [b.product(x.shape[i + 1 :]) for i in range(rank)]
    total = b.product(x.shape)
    wide = I32 if isinstance(total, int) and total <= LONGEST_I32 else I64

    # One number per update takes less memory than an index per dim.
    def place(s: Body, index: Scalar, _: Scalar) -> Scalar:
        found = s.number(0, INDEX)
        for i, stride in enumerate(strides):
            own = checked(s, index, x.shape[axis]) if i == axis else s.index(i)
            found = found + own * s.as_index(stride)
        return found.to(wide)

    init = b.empty(wide, indices.shape)
    (at,) = b.structured([indices], [init], [identity] * 2, [False] * rank, place)
    count = b.product(indices.shape)
    flat = scatter(b, flatten(b, x), reshape(b, at, [count, 1]), flatten(b, values), fn)
    return reshape(b, flat, x.shape)


def scan(b: Builder, x: Tensor, axis: int, fn: Combine, dtype: DType | None = None) -> Tensor:
    """Inclusive scan along an axis: out[0] = x[0], out[i] = fn(out[i - 1], x[i])."""
    from .core import tensor_type

    wide = dtype or x.dtype
    x = b.cast(x, wide)
    block = Block(arg_types=[wide.element, wide.element])
    s = Body(block, b.location)
    left, right = (Scalar(s, arg, wide) for arg in block.args)
    block.add_op(YieldOp(fn(left, right).value))
    rest = [size for i, size in enumerate(x.shape) if i != axis]
    op = ScanOp.of(
        [x.value],
        [b.empty(wide, x.shape).value, b.full(0, wide, rest).value],
        {"dimension": IntegerAttr(axis, i64), "inclusive": BoolAttr.from_bool(True)},
        block,
        [tensor_type(wide, x.shape), tensor_type(wide, rest)],
    )
    b.insert(op)
    return Tensor(op.res[0], wide, x.shape)


def running_count(b: Builder, mask: Tensor) -> Tensor:
    """Inclusive prefix count of the true elements of a vector, in i64."""
    return scan(b, mask, 0, lambda acc, v: acc + v, I64)


def nonzero(b: Builder, mask: Tensor) -> Tensor:
    """
    The indices of the true elements of a bool tensor, in row-major order, one per row, in i64. The
    true elements are counted first, so the first dim of the result is dynamic.
    """
    flat = flatten(b, mask)
    if isinstance(flat.shape[0], int) and flat.shape[0] == 0:
        return b.empty(I64, [0, mask.rank])
    total = reductions.sum_(b, flat, [0], I64)
    count = b.compute(lambda v: v.to(INDEX), (b.item(total), I64)).value
    identity = projection(1, (0,))
    ranks = running_count(b, flat)
    (targets,) = b.structured(
        [flat, ranks], [b.empty(I64, flat.shape)], [identity] * 3, [False],
        lambda s, c, r, _: c.where(r - 1, -1),
    )  # fmt: skip
    places = b.from_function(lambda s, i: i.to(I64), flat.shape, I64)
    column = reshape(b, targets, [flat.shape[0], 1])
    linear = scatter(b, b.full(0, I64, [count]), column, places, None)
    return _coordinates(b, linear, mask.shape)


def _coordinates(b: Builder, linear: Tensor, shape: Sequence[Size]) -> Tensor:
    """Converts row-major linear indices to one index per dim."""
    rank = len(shape)
    init = b.empty(I64, [linear.shape[0], rank])
    maps = [projection(2, (0,)), projection(2, (0, 1))]

    def component(s: Body, place: Scalar, _: Scalar) -> Scalar:
        rest, which, found = place.to(INDEX), s.index(1), s.number(0, I64)
        for i in reversed(range(rank)):
            size = s.as_index(shape[i])
            found = (which == i).where(rest.rem(size).to(I64), found)
            rest = rest.truncdiv(size)
        return found

    if not rank:
        return init
    return b.structured([linear], [init], maps, [False] * 2, component)[0]


__all__ = [
    "BOOL", "checked", "checked_from_end", "clamped", "index", "index_update", "inside", "nonzero",
    "placed", "put_along", "running_count", "scan", "scatter", "select", "take", "take_along",
    "wrapped",
]  # fmt: skip
