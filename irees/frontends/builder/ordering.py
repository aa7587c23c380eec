"""Sorting, selection, and running folds with the place of what they found."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block

from irees.dialects.iree_linalg_ext import YieldOp
from irees.dialects.iree_linalg_ext.sorting import SortOp

from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, I64, U8
from .scalars import Body, Scalar
from .shapes import slice_axis


def _along(b: Builder, x: Tensor, axis: int) -> Tensor:
    """The index along an axis, everywhere, in i64."""
    return b.from_function(lambda s, *at: at[axis].to(I64), x.shape, I64)


def _keys(b: Builder, x: Tensor) -> Tensor:
    """x in a type whose order the comparator of a sort can say: bool as u8."""
    return b.cast(x, U8) if x.dtype is BOOL else x


def sort(b: Builder, x: Tensor, axis: int, descending: bool) -> tuple[Tensor, Tensor]:
    """
    x in order along an axis, and where each element was, in i64. Equal elements keep their order;
    NaN is larger than every number.
    """
    keys = _keys(b, x)
    kind = keys.dtype
    block = Block(arg_types=[kind.element] * 2 + [I64.element] * 2)
    s = Body(block, b.location)
    left, right = (Scalar(s, arg, kind) for arg in block.args[:2])
    block.add_op(YieldOp((left > right if descending else left < right).value))
    where = _along(b, x, axis)
    outs = [b.empty(kind, x.shape).value, b.empty(I64, x.shape).value]
    op = SortOp.of([keys.value, where.value], outs, {"dimension": IntegerAttr(axis, i64)}, block)
    b.insert(op)
    values = b.cast(Tensor(op.res[0], kind, x.shape), x.dtype)
    return values, Tensor(op.res[1], I64, x.shape)


def topk(b: Builder, x: Tensor, k: Size, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along an axis in order, and where, in i64."""
    values, indices = sort(b, x, axis, descending=largest)
    return slice_axis(b, values, axis, 0, k), slice_axis(b, indices, axis, 0, k)


def running_best(b: Builder, x: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """
    The largest (or smallest) element up to each place along an axis, and where it is, in i64: of
    equal ones the last, and NaN from the first one on.
    """
    from .indexing import scan, take_along

    # A scan has one value: it runs over places, and compares the elements there.
    where = _along(b, x, axis)

    def best(acc: Scalar, new: Scalar) -> Scalar:
        s = acc.body
        old, value = _element(s, x, axis, acc), _element(s, x, axis, new)
        better = value >= old if largest else value <= old
        if value.dtype.is_float:
            better = better & ~old.isnan() | value.isnan()
        return better.where(new, acc)

    if x.rank != 1:
        return _running_best_by_loop(b, x, axis, largest)
    places = scan(b, where, axis, 0, best)
    return take_along(b, x, places, axis), places


def _element(s: Body, x: Tensor, axis: int, place: Scalar) -> Scalar:
    return s.extract(x, [place])


def _running_best_by_loop(b: Builder, x: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Each place looks at all before it: quadratic, and no scan of pairs."""
    rank = x.rank
    loops = rank + 1
    inits = [
        b.full(x.dtype.lowest if largest else x.dtype.highest, x.dtype, x.shape),
        b.full(-1, I64, x.shape),
    ]
    maps = [projection(loops, (rank,)), *[projection(loops, tuple(range(rank)))] * 2]
    shape = b.empty(x.dtype, [x.shape[axis]])

    def body(s: Body, _: Scalar, acc: Scalar, where: Scalar) -> tuple[Scalar, Scalar]:
        here = s.index(rank)
        at = [here if i == axis else s.index(i) for i in range(rank)]
        value = s.extract(x, at)
        better = value >= acc if largest else value <= acc
        if value.dtype.is_float:
            better = (better & ~acc.isnan()) | value.isnan()
        taken = (here <= s.index(axis)) & (better | (where < 0))
        return taken.where(value, acc), taken.where(here.to(I64), where)

    values, places = b.structured([shape], inits, maps, [False] * rank + [True], body)
    return values, places


def search(b: Builder, sorted_: Tensor, values: Tensor, right: bool) -> Tensor:
    """
    How many elements of a sorted row are less than each value (`right`: less than or equal), in
    i64. `sorted_` is a vector for all values, or has one row for each row of values.
    """
    shared = sorted_.rank == 1
    rank = values.rank
    loops = rank + 1
    maps = [
        projection(loops, tuple(range(rank))),
        projection(loops, (rank,) if shared else (*range(rank - 1), rank)),
        projection(loops, tuple(range(rank))),
    ]

    def body(s: Body, value: Scalar, element: Scalar, acc: Scalar) -> Scalar:
        # NaN is larger than every number.
        before = ~(element > value) if right else element < value
        if value.dtype.is_float:
            nan = value.isnan()
            before = (before & ~element.isnan()) | (nan if right else nan & ~element.isnan())
        return acc + before.to(I64)

    init = b.full(0, I64, values.shape)
    (found,) = b.structured([values, sorted_], [init], maps, [False] * rank + [True], body)
    return found
