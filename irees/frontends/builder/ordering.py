"""Sorting, selection, search, and running maxima and minima with their indices."""

from __future__ import annotations

from math import isqrt
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import Block

from irees.dialects.iree_linalg_ext import YieldOp
from irees.dialects.iree_linalg_ext.sorting import SortOp, TopkV2Op
from irees.targets.common import COMMON

from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, F64, I32, I64, INDEX, LONGEST_I32, U8, DType
from .scalars import Body, Scalar
from .shapes import slice_axis

MANTISSA, BIAS = 52, 1023
"""Bits of the mantissa of an f64, and the bias of its exponent."""


def _along(b: Builder, x: Tensor, axis: int) -> Tensor:
    """A tensor of the shape of x with each element's index along an axis, in i64."""
    return b.from_function(lambda s, *at: at[axis].to(I64), x.shape, I64)


def _keys(b: Builder, x: Tensor) -> Tensor:
    """Converts x to a type that the sort comparator supports: bool becomes u8."""
    return b.cast(x, U8) if x.dtype is BOOL else x


def sort(b: Builder, x: Tensor, axis: int, descending: bool) -> tuple[Tensor, Tensor]:
    """
    Sorts x along an axis; also returns each element's original index in i64. The sort is stable;
    NaN compares above every number.
    """
    keys = _keys(b, x)
    kind = keys.dtype
    block = _comparator(kind, 1, descending, b)
    where = _along(b, x, axis)
    outs = [b.empty(kind, x.shape).value, b.empty(I64, x.shape).value]
    op = SortOp.of([keys.value, where.value], outs, {"dimension": IntegerAttr(axis, i64)}, block)
    b.insert(op)
    values = b.cast(Tensor(op.res[0], kind, x.shape), x.dtype)
    return values, Tensor(op.res[1], I64, x.shape)


def _comparator(kind: DType, others: int, descending: bool, b: Builder) -> Block:
    """The comparator form that the lowering of sorts recognizes; it orders NaN last."""
    block = Block(arg_types=[kind.element] * 2 + [I64.element] * 2 * others)
    s = Body(block, b.location)
    left, right = (Scalar(s, arg, kind) for arg in block.args[:2])
    block.add_op(YieldOp((left > right if descending else left < right).value))
    return block


def topk(b: Builder, x: Tensor, k: Size, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along an axis in order, and their indices in i64."""
    if not isinstance(k, int) or not 0 < k <= _longest_selection(x.shape[axis]):
        values, indices = sort(b, x, axis, descending=largest)
        return slice_axis(b, values, axis, 0, k), slice_axis(b, indices, axis, 0, k)
    keys = _keys(b, x)
    shape = [k if i == axis else size for i, size in enumerate(x.shape)]
    outs = [b.empty(keys.dtype, shape), b.empty(I64, shape)]
    op = TopkV2Op.of(
        [keys.value],
        [t.value for t in outs],
        {"dimension": IntegerAttr(axis, i64), "is_sorted": UnitAttr()},
        _comparator(keys.dtype, 0, largest, b),
    )
    b.insert(op)
    values, indices = (Tensor(r, t.dtype, t.shape) for r, t in zip(op.results, outs))
    return b.cast(values, x.dtype), indices


def _longest_selection(size: Size) -> int:
    """Largest k that is selected from a row; selected elements are ordered by comparing pairs."""
    if not isinstance(size, int):
        return COMMON.selected
    return min(COMMON.most_selected, max(COMMON.selected, isqrt(COMMON.compared_pairs * size)))


def running_best(b: Builder, x: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """
    The running maximum (or minimum) along an axis and its index in i64: ties give the last index,
    and the first NaN propagates.
    """
    from .indexing import scan

    def better(old: Scalar, new: Scalar) -> Scalar:
        found = new >= old if largest else new <= old
        # A NaN before is neither: it stays.
        return found | new.isnan() if new.dtype.is_float else found

    best = scan(b, x, axis, lambda old, new: better(old, new).where(new, old))
    size = x.shape[axis]
    wide = I32 if isinstance(size, int) and size <= LONGEST_I32 else I64
    identity = projection(x.rank, tuple(range(x.rank)))

    # An element is the best one up to its place if it equals that one, or is a NaN.
    def place(s: Body, new: Scalar, now: Scalar, _: Scalar) -> Scalar:
        is_best = (new == now) | new.isnan() if new.dtype.is_float else new == now
        return is_best.where(s.index(axis).to(wide), 0)

    (places,) = b.structured(
        [x, best], [b.empty(wide, x.shape)], [identity] * 3, [False] * x.rank, place
    )
    last = scan(b, places, axis, lambda old, new: new.maximum(old))
    return best, b.cast(last, I64)


def search(b: Builder, sorted_: Tensor, values: Tensor, right: bool) -> Tensor:
    """
    The number of elements of a sorted row that are less than each value (`right`: less than or
    equal), in i64. `sorted_` is a vector for all values, or has one row for each row of values.

    A binary search: [low, high) contains the answer and is halved at mid = low + (high - low) / 2.
    Unsorted rows give the same result as C++'s `std::lower_bound`.
    """
    size, rank = sorted_.shape[-1], values.rank
    row = range(0 if sorted_.rank == 1 else rank - 1)

    def step(s: Body, value: Scalar, low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
        mid = (low + high).shift_right(s.number(1, INDEX))
        # An empty interval may be at the end of the row.
        place = mid.minimum(s.as_index(size) - 1)
        element = s.extract(sorted_, [*(s.index(i) for i in row), place])
        before, active = _is_before(element, value, right), low < high
        return (active & before).where(mid + 1, low), (active & ~before).where(mid, high)

    if isinstance(size, int) and size == 0:
        return b.full(0, I64, values.shape)
    if isinstance(size, int):
        return b.structured(
            [values], [b.empty(I64, values.shape)],
            [projection(rank, tuple(range(rank)))] * 2, [False] * rank,
            lambda s, value, _: _bisect(s, size, lambda low, high: step(s, value, low, high)),
        )[0]  # fmt: skip
    return _search_by_loop(b, values, size, step)


def _bisect(s: Body, size: int, step: Any) -> Scalar:
    low, high = s.number(0, INDEX), s.number(size, INDEX)
    for _ in range(size.bit_length()):
        low, high = step(low, high)
    return low.to(I64)


def _search_by_loop(b: Builder, values: Tensor, size: Size, step: Any) -> Tensor:
    """`search` for rows of dynamic size."""
    rank = values.rank
    loops = rank + 1
    whole = projection(loops, tuple(range(rank)))
    steps = b.empty(BOOL, [_bisections(b, size)])

    def body(s: Body, value: Scalar, _: Scalar, low: Scalar, high: Scalar) -> tuple[Scalar, ...]:
        return tuple(new.to(I64) for new in step(s, value, low.to(INDEX), high.to(INDEX)))

    begin = b.full(0, I64, values.shape)
    end = b.from_function(lambda s, *_: s.as_index(size).to(I64), values.shape, I64)
    maps = [whole, projection(loops, (rank,)), whole, whole]
    return b.structured([values, steps], [begin, end], maps, [False] * rank + [True], body)[0]


def _bisections(b: Builder, size: Size) -> Size:
    """Bit length of a size: as many halvings leave nothing of a row. A float has it as exponent."""
    if isinstance(size, int):
        return size.bit_length()

    def length(n: Scalar) -> Scalar:
        exponent = n.to(I64).to(F64).bitcast(I64).shift_right(MANTISSA) - BIAS
        return (exponent + 1).maximum(0).to(INDEX)

    return b.compute(length, (size, INDEX)).value


def _is_before(element: Scalar, value: Scalar, right: bool) -> Scalar:
    """element < value, or <= for `right`; NaN compares above every number."""
    before = element <= value if right else element < value
    if value.dtype.is_float:
        nan = value.isnan()
        before = before | (nan if right else nan & ~element.isnan())
    return before
