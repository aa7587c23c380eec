"""
Lowers topk: selects the first K of a row in one pass. Part of `irees-lower-linalg-ext-to-loops`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, MemRefType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import target_of
from irees.targets.cpu import CPU
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


def _compared_together(op: ext.TopkV2Op) -> Sequence[int]:
    return CPU.topk_groups if target_of(op).gpu is None else ()


def lower_topk(op: ext.TopkV2Op, at: IndexBuilder) -> None:
    """
    topk  =>  one pass that inserts the elements that beat the worst kept one

    Most elements do not. A CPU with `topk_groups` of `(64, 16)` compares 64 adjacent elements at
    once, with vectors. If any of them beats the worst, it compares groups of 16, then single ones.
    """
    dim = op.dimension.value.data
    source, best = op.values, op.output_values
    size, k = buffer_dim(source, dim, at), buffer_dim(best, dim, outside(op))
    order = Order.of(op.body.block)
    kept = scratch(best.type.element_type, k, at)
    wanted = op.output_indices
    numbers = scratch(IndexType(), k, at) if wanted is not None else None
    last = at.sub(k, 1)
    # If k is 0, nothing is kept, and there is no worst element to compare with.
    seen = size if isinstance(k, int) else select(compare(k, 0, "sgt", at), size, 0, at)
    first = at.minimum(k, seen)
    together = _compared_together(op) if strides_of(source.type)[dim] == 1 else ()

    def insert(value: SSAValue, i: Size, b: IndexBuilder) -> None:
        hole = insertion_point(kept, numbers, value, b.minimum(i, last), order, b)
        store(value, kept, [hole], b)
        if numbers is not None:
            store(b.value(i), numbers, [hole], b)

    def consider(ivs: dict[int, Size], begin: Size, end: Size, b: IndexBuilder) -> None:
        close, i, c = for_loop(b, begin, end, 1)
        value = load(source, place(ivs, dim, i), c)
        close_if, d = if_else(c, order.strictly_first([value], [load(kept, [last], c)], c))
        insert(value, i, d)
        close_if()
        close()

    def look(ivs: dict[int, Size], begin: Size, counts: Sequence[int], b: IndexBuilder) -> None:
        """Compares a group of elements; if any beats the worst, compares its subgroups."""
        count, *parts = counts
        view = subview(source, place(ivs, dim, begin), *_along(source, dim, count), [dim])
        found = any_beats(b.insert(view).results[0], load(kept, [last], b), order, b)
        close_if, c = if_else(b, found)
        if parts:
            close, part, d = for_loop(c, 0, count // parts[0], 1)
            look(ivs, d.add(begin, d.mul(part, parts[0])), parts, d)
            close()
        else:
            consider(ivs, begin, c.add(begin, count), c)
        close_if()

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        close, i, c = for_loop(b, 0, first, 1)
        insert(load(source, place(ivs, dim, i), c), i, c)
        close()
        begin = first
        for level, count in enumerate(together):
            groups = b.floordiv(b.sub(seen, begin), count)
            if groups == 0:
                continue
            close, group, c = for_loop(b, 0, groups, 1)
            look(ivs, c.add(begin, c.mul(group, count)), together[level:], c)
            close()
            begin = b.add(begin, b.mul(groups, count))
        consider(ivs, begin, seen, b)
        close, i, c = for_loop(b, 0, k, 1)
        store(load(kept, [i], c), best, place(ivs, dim, i), c)
        if numbers is not None and wanted is not None:
            number: Size = load(numbers, [i], c)
            if op.indices is not None:
                value = load(op.indices, place(ivs, dim, number), c)
            else:
                value = as_type(number, wanted.type.element_type, c)
            store(value, wanted, place(ivs, dim, i), c)
        close()

    rows(source, other_dims(source, dim), at, row)


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


def insertion_point(
    kept: SSAValue,
    numbers: SSAValue | None,
    value: SSAValue,
    end: Size,
    order: Order,
    at: IndexBuilder,
) -> SSAValue:
    """Shifts kept elements that `value` beats back by one; returns the free position."""

    def goes_on(values: Sequence[SSAValue], b: IndexBuilder) -> SSAValue:
        (hole,) = values
        above = load(kept, [b.maximum(b.sub(hole, 1), 0)], b)
        beats = order.strictly_first([value], [above], b)
        return b.insert(arith.AndIOp(compare(hole, 0, "sgt", b), beats)).results[0]

    close, (hole,), b = while_loop(at, [at.value(end)], goes_on)
    above = b.value(b.sub(hole, 1))
    store(load(kept, [above], b), kept, [hole], b)
    if numbers is not None:
        store(load(numbers, [above], b), numbers, [hole], b)
    return close([above])[0]
