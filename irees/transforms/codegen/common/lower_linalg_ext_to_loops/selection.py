"""
Lowers topk: selects the first K of a row in one pass. Part of `irees-lower-linalg-ext-to-loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, MemRefType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import target_of
from irees.targets.cpu import CPU
from irees.transforms.codegen.common.lower_linalg_ext_to_loops.thresholds import (
    Threshold,
    threshold_key,
)
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    compare,
    load,
    other_dims,
    outside,
    place,
    rows,
    scratch,
    select,
    store,
)
from irees.transforms.utils.loops import for_loop, if_else, while_loop
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.structured import generic
from irees.transforms.utils.views import strides_of, subview


def lower_topk(op: ext.TopkV2Op, at: IndexBuilder) -> None:
    """
    topk  =>  one pass that inserts the elements that beat the worst kept one

    Most elements do not. A CPU with `topk_groups` of `(64, 16)` compares 64 adjacent elements at
    once, with vectors. If any of them beats the worst, it compares groups of 16, then single ones.
    """
    key = threshold_key(op, Order.of(op.body.block))
    selection = Selection.of(op, at) if key is None else Threshold.of(op, key, at)
    rows(op.values, other_dims(op.values, op.dimension.value.data), at, selection.row)


def _compared_together(op: ext.TopkV2Op) -> Sequence[int]:
    """Returns the sizes of the groups of elements to compare at once, largest first."""
    if target_of(op).gpu is not None or strides_of(op.values.type)[op.dimension.value.data] != 1:
        return ()
    return CPU.topk_groups


@dataclass(frozen=True)
class Selection:
    """The selection of the first k elements of each row."""

    op: ext.TopkV2Op
    order: Order
    k: Size
    kept: SSAValue
    """Buffer of the best elements so far, in order."""
    numbers: SSAValue | None
    """Buffer of their indices; None if no result needs them."""
    last: Size
    """Position of the worst kept element."""
    seen: Size
    """Elements of a row that may be kept."""
    first: Size
    """Elements that are kept in any case, until better ones follow."""

    @staticmethod
    def of(op: ext.TopkV2Op, at: IndexBuilder) -> Selection:
        """Allocates the buffers of a selection."""
        dim, best = op.dimension.value.data, op.output_values
        size, k = buffer_dim(op.values, dim, at), buffer_dim(best, dim, outside(op))
        kept = scratch(best.type.element_type, k, at)
        numbers = scratch(IndexType(), k, at) if op.output_indices is not None else None
        last = at.sub(k, 1)
        # If k is 0, nothing is kept, and there is no worst element to compare with.
        seen = size if isinstance(k, int) else select(compare(k, 0, "sgt", at), size, 0, at)
        order = Order.of(op.body.block)
        return Selection(op, order, k, kept, numbers, last, seen, at.minimum(k, seen))

    @property
    def dim(self) -> int:
        """The dim that rows extend along."""
        return self.op.dimension.value.data

    def row(self, ivs: dict[int, Size], b: IndexBuilder) -> None:
        """Emits the selection of one row."""
        close, i, c = for_loop(b, 0, self.first, 1)
        self.insert(load(self.op.values, place(ivs, self.dim, i), c), i, c)
        close()
        begin, together = self.first, _compared_together(self.op)
        for level, count in enumerate(together):
            groups = b.floordiv(b.sub(self.seen, begin), count)
            if groups == 0:
                continue
            close, group, c = for_loop(b, 0, groups, 1)
            self.insert_from_group(ivs, c.add(begin, c.mul(group, count)), together[level:], c)
            close()
            begin = b.add(begin, b.mul(groups, count))
        self.insert_from(ivs, begin, self.seen, b)
        self.write(ivs, b)

    def insert_from_group(
        self, ivs: dict[int, Size], begin: Size, counts: Sequence[int], b: IndexBuilder
    ) -> None:
        """Compares a group of elements; if any beats the worst, compares its subgroups."""
        count, *parts = counts
        source = self.op.values
        sizes, steps = _along(source, self.dim, count)
        view = subview(source, place(ivs, self.dim, begin), sizes, steps, [self.dim])
        values, worst = b.insert(view).results[0], load(self.kept, [self.last], b)
        close_if, c = if_else(b, any_beats(values, worst, self.order, b))
        if parts:
            close, part, d = for_loop(c, 0, count // parts[0], 1)
            self.insert_from_group(ivs, d.add(begin, d.mul(part, parts[0])), parts, d)
            close()
        else:
            self.insert_from(ivs, begin, c.add(begin, count), c)
        close_if()

    def insert_from(self, ivs: dict[int, Size], begin: Size, end: Size, b: IndexBuilder) -> None:
        """Inserts each element that beats the worst."""
        close, i, c = for_loop(b, begin, end, 1)
        value = load(self.op.values, place(ivs, self.dim, i), c)
        worst = load(self.kept, [self.last], c)
        close_if, d = if_else(c, self.order.strictly_first([value], [worst], c))
        self.insert(value, i, d)
        close_if()
        close()

    def insert(self, value: SSAValue, i: Size, b: IndexBuilder) -> None:
        """Inserts an element before those that it beats; the worst is dropped."""
        hole = self.insertion_point(value, b.minimum(i, self.last), b)
        store(value, self.kept, [hole], b)
        if self.numbers is not None:
            store(b.value(i), self.numbers, [hole], b)

    def insertion_point(self, value: SSAValue, end: Size, at: IndexBuilder) -> SSAValue:
        """Shifts kept elements that `value` beats back by one; returns the free position."""

        def goes_on(values: Sequence[SSAValue], b: IndexBuilder) -> SSAValue:
            (hole,) = values
            above = load(self.kept, [b.maximum(b.sub(hole, 1), 0)], b)
            beats = self.order.strictly_first([value], [above], b)
            return b.insert(arith.AndIOp(compare(hole, 0, "sgt", b), beats)).results[0]

        close, (hole,), b = while_loop(at, [at.value(end)], goes_on)
        above = b.value(b.sub(hole, 1))
        store(load(self.kept, [above], b), self.kept, [hole], b)
        if self.numbers is not None:
            store(load(self.numbers, [above], b), self.numbers, [hole], b)
        return close([above])[0]

    def write(self, ivs: dict[int, Size], b: IndexBuilder) -> None:
        """Writes the kept elements of a row, and their indices."""
        op, wanted = self.op, self.op.output_indices
        close, i, c = for_loop(b, 0, self.k, 1)
        store(load(self.kept, [i], c), op.output_values, place(ivs, self.dim, i), c)
        if self.numbers is not None and wanted is not None:
            number: Size = load(self.numbers, [i], c)
            if op.indices is not None:
                value = load(op.indices, place(ivs, self.dim, number), c)
            else:
                value = as_type(number, wanted.type.element_type, c)
            store(value, wanted, place(ivs, self.dim, i), c)
        close()


def _along(buffer: SSAValue, dim: int, size: int) -> tuple[list[Size], list[Size]]:
    """Returns sizes and strides of a slice of one row."""
    assert isinstance(buffer.type, MemRefType)
    rank = buffer.type.get_num_dims()
    return [size if d == dim else 1 for d in range(rank)], [1] * rank


def any_beats(values: SSAValue, worst: SSAValue, order: Order, at: IndexBuilder) -> SSAValue:
    """Emits whether any of the values orders strictly before `worst`."""
    assert isinstance(values.type, MemRefType)
    flag = at.insert(memref.AllocaOp.get(i32, shape=[])).results[0]
    store(at.insert(arith.ConstantOp.from_int_and_width(0, 32)).results[0], flag, [], at)
    block = Block(arg_types=[values.type.element_type, i32])
    b = IndexBuilder(InsertPoint.at_end(block))
    beats = order.strictly_first([block.args[0]], [worst], b)
    number = b.insert(arith.ExtUIOp(beats, i32)).results[0]
    b.insert(linalg.YieldOp(b.insert(arith.OrIOp(number, block.args[1])).results[0]))
    maps = [AffineMap.identity(1), AffineMap(1, 0, ())]
    at.insert(generic([values], [flag], maps, ["reduction"], Region(block)))
    zero = at.insert(arith.ConstantOp.from_int_and_width(0, 32)).results[0]
    return at.insert(arith.CmpiOp(load(flag, [], at), zero, "ne")).results[0]
