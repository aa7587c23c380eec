"""
Lowers sort: radix sort for numeric orders, else merge sort. Part of
`irees-lower-linalg-ext-to-loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.targets.common import COMMON
from irees.transforms.codegen.common.utils.radix_keys import RadixKey, radix_key
from irees.transforms.codegen.common.utils.radix_sort import numbers_for, sort_numbers
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    below,
    compare,
    load,
    load_or_position,
    other_dims,
    outside,
    place,
    rows,
    scratch,
    store,
)
from irees.transforms.utils.loops import for_loop, while_loop
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


def lower_sort(op: ext.SortOp, at: IndexBuilder) -> None:
    """sort  =>  loops that sort every row in scratch memory"""
    dim = op.dimension.value.data
    targets = list(op.outputs)
    size = buffer_dim(targets[0], dim, outside(op))
    order = Order.of(op.body.block)
    key = radix_key(order, targets)
    if key is None or (isinstance(size, int) and size < COMMON.merged_row):
        sort_by_merging(op, size, order, at)
    else:
        sort_by_radix(op, size, key, at)


def sort_by_radix(op: ext.SortOp, size: Size, key: RadixKey, at: IndexBuilder) -> None:
    """Radix-sorts the keys of every row, then permutes all operands."""
    dim, targets = op.dimension.value.data, list(op.outputs)
    sources, kinds = op.sources, [t.type.element_type for t in targets]
    numbers = numbers_for(key, size, outside(op).mul(size, 2), at)
    copies = [scratch(kind, size, at) for kind in kinds]

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        def read(i: SSAValue, c: IndexBuilder) -> SSAValue:
            pairs = zip(sources, kinds, strict=True)
            values = [load_or_position(s, k, ivs, dim, i, c) for s, k in pairs]
            for value, copy in zip(values, copies, strict=True):
                store(value, copy, [i], c)
            return values[key.operand]

        start = sort_numbers(key, numbers, size, read, b)
        close, i, c = for_loop(b, 0, size, 1)
        origin = as_type(load(numbers.origins, [c.add(start, i)], c), IndexType(), c)
        origin = below(origin, size, c)
        for target, copy in zip(targets, copies, strict=True):
            store(load(copy, [origin], c), target, place(ivs, dim, i), c)
        close()

    rows(targets[0], other_dims(targets[0], dim), at, row)


def sort_by_merging(op: ext.SortOp, size: Size, order: Order, at: IndexBuilder) -> None:
    """Merge-sorts every row bottom-up, with any comparator."""
    dim = op.dimension.value.data
    targets = list(op.outputs)
    sources, kinds = op.sources, [t.type.element_type for t in targets]
    double = outside(op).mul(size, 2)
    halves = [scratch(kind, double, at) for kind in kinds]

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        close, i, c = for_loop(b, 0, size, 1)
        for source, kind, half in zip(sources, kinds, halves, strict=True):
            store(load_or_position(source, kind, ivs, dim, i, c), half, [i], c)
        close()
        final = MergeSort(halves, size, order).emit(b)
        close, i, c = for_loop(b, 0, size, 1)
        for target, half in zip(targets, halves, strict=True):
            store(load(half, [c.add(final, i)], c), target, place(ivs, dim, i), c)
        close()

    rows(targets[0], other_dims(targets[0], dim), at, row)


@dataclass(frozen=True)
class Runs:
    """Two adjacent sorted runs of a row: [low, middle) and [middle, high)."""

    low: Size
    middle: Size
    high: Size


@dataclass(frozen=True)
class MergeSort:
    """The bottom-up merge sort of a row of `size` elements, one buffer per operand."""

    buffers: Sequence[SSAValue]
    """Buffers of 2 * size elements: the row is in one half, and is merged into the other."""
    size: Size
    order: Order

    def emit(self, at: IndexBuilder) -> SSAValue:
        """Emits the loops; returns the offset of the sorted row (0 or size)."""
        size = self.size
        close, (width, start), b = while_loop(
            at, [at.value(1), at.value(0)], lambda values, c: compare(values[0], size, "slt", c)
        )
        target = b.sub(size, start)
        double = b.mul(width, 2)
        close_runs, low, c = for_loop(b, 0, size, double)
        middle = c.minimum(c.add(low, width), size)
        high = c.minimum(c.add(low, double), size)
        self._merge(Runs(low, middle, high), start, target, c)
        close_runs()
        return close([b.value(double), b.value(target)])[1]

    def _merge(self, runs: Runs, start: Size, target: Size, at: IndexBuilder) -> None:
        """Merges two runs of the half at offset `start` into the half at offset `target`."""
        last = at.sub(self.size, 1)
        first = [at.value(runs.low), at.value(runs.middle)]
        close, out, b = for_loop(at, runs.low, runs.high, 1, first)
        i, j = close.arguments
        left = [load(x, [b.add(start, b.minimum(i, last))], b) for x in self.buffers]
        right = [load(x, [b.add(start, b.minimum(j, last))], b) for x in self.buffers]
        in_left = compare(i, runs.middle, "slt", b)
        right_done = compare(j, runs.high, "sge", b)
        stays = self.order.first_stays(left, right, b)
        either = b.insert(arith.OrIOp(right_done, stays)).results[0]
        take = b.insert(arith.AndIOp(in_left, either)).results[0]
        for buffer, x, y in zip(self.buffers, left, right, strict=True):
            taken = b.insert(arith.SelectOp(take, x, y)).results[0]
            store(taken, buffer, [b.add(target, out)], b)
        step = b.insert(arith.ExtUIOp(take, i64)).results[0]
        step = b.insert(arith.IndexCastOp(step, IndexType())).results[0]
        next_i = b.insert(arith.AddiOp(i, step)).results[0]
        next_j = b.insert(arith.SubiOp(b.value(b.add(j, 1)), step)).results[0]
        close([next_i, next_j])
