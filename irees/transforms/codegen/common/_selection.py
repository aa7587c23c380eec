"""
The best K of a row in one pass. Part of `irees-lower-linalg-ext-to-loops`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common._rows import (
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


def lower_topk(op: ext.TopkV2Op, at: IndexBuilder) -> None:
    """topk  =>  one pass that inserts what beats the worst kept"""
    dim = op.dimension.value.data
    source, best = op.values, op.output_values
    size, k = buffer_dim(source, dim, at), buffer_dim(best, dim, outside(op))
    order = Order.of(op.body.block)
    kept = scratch(best.type.element_type, k, at)
    wanted = op.output_indices
    numbers = scratch(IndexType(), k, at) if wanted is not None else None
    last = at.sub(k, 1)
    # Where nothing is kept there is no worst to beat.
    seen = size if isinstance(k, int) else select(compare(k, 0, "sgt", at), size, 0, at)

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        close, i, c = for_loop(b, 0, seen, 1)
        value = load(source, place(ivs, dim, i), c)
        filling = compare(i, k, "slt", c)
        worst = load(kept, [c.minimum(c.value(i), last)], c)
        beats = order.strictly_first([value], [worst], c)
        enters = c.insert(arith.OrIOp(filling, beats)).results[0]
        close_if, d = if_else(c, enters)
        hole = insertion_point(kept, numbers, value, d.minimum(i, last), order, d)
        store(value, kept, [hole], d)
        if numbers is not None:
            store(i, numbers, [hole], d)
        close_if()
        close()
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


def insertion_point(
    kept: SSAValue,
    numbers: SSAValue | None,
    value: SSAValue,
    end: Size,
    order: Order,
    at: IndexBuilder,
) -> SSAValue:
    """Moves what `value` beats one place back, from `end` on; returns the place that is free."""

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
