"""
A scatter of single elements, which may meet, by all threads of a workgroup. Part of
`irees-gpu-lower-linalg-ext`.

Updates are sorted by the place that they are for, stably, by its digits. So all that meet are side
by side and in their order, and one thread does them, one after another: the result has the bits of
a loop over all updates, whatever the body computes. Nothing is atomic.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, i64
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common._accumulating import destination, scatter_point
from irees.transforms.codegen.common._rows import as_type, compare, load, outside, select
from irees.transforms.codegen.gpu._block_costs import FAR, Row
from irees.transforms.codegen.gpu._block_radix import Pairs, Tallies, radix_sort
from irees.transforms.codegen.gpu._radix_rows import for_each
from irees.transforms.codegen.gpu._threads import delinearize
from irees.transforms.utils.loops import if_else, while_loop
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim

WIDTHS = (8, 16, 32, 64)
UPDATE = 4 * FAR
"""Turns of one update: its index, its value, what was there and what is now."""


def width_for(op: ext.ScatterOp) -> int:
    """Bits for the number of every element of the target, and one number more."""
    shape = _shape(op.original)
    if any(size < 0 for size in shape):
        return WIDTHS[-1]
    return next(w for w in WIDTHS if prod(shape) < 1 << w)


def why_no_sort_of_updates(op: ext.ScatterOp, room: int) -> str | None:
    """Why updates are not sorted by their places, or None."""
    shape = _shape(op.updates)
    count = -1 if any(size < 0 for size in shape) else prod(shape)
    if not op.dimension_map.get_values():
        return "all updates are for one place"
    if (needed := Tallies.bytes_for(count)) > room:
        return f"{needed} bytes of shared memory, and {room} are left"
    if count < 0:
        return None
    turns = Row(count, width_for(op), room).radix_sort() + UPDATE
    if count * UPDATE > turns:
        return None
    return f"{count * UPDATE} turns of one thread, and {turns} of all"


def _shape(buffer: SSAValue) -> tuple[int, ...]:
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.get_shape()


def scatter_in_order(op: ext.ScatterOp, room: int, at: IndexBuilder) -> None:
    """scatter  =>  its updates sorted by their places; each place for one thread"""
    width, before = width_for(op), outside(op)
    dims = list(range(len(_shape(op.updates))))
    sizes = {d: buffer_dim(op.updates, d, before) for d in dims}
    extents = [buffer_dim(op.original, d, before) for d in range(len(_shape(op.original)))]
    count, nowhere = before.product(list(sizes.values())), before.product(extents)
    tallies = Tallies.allocate(count, at)
    left = room - Tallies.bytes_for(count)
    pairs = Pairs.allocate(width, count, before.mul(count, 2), count, left, at)
    kind = IntegerType(width)

    def take(i: SSAValue, b: IndexBuilder) -> None:
        where, valid = destination(op, delinearize(i, dims, sizes, b), b)
        number: Size = 0
        for index, extent in zip(where, extents, strict=True):
            number = b.add(b.mul(number, extent), index)
        if valid is not None:
            number = select(valid, number, nowhere, b)
        pairs.put(i, _as_unsigned(b.value(number), kind, b), i, b)

    for_each(at, count, take)
    start = radix_sort(tallies, pairs, at)

    def give(i: SSAValue, b: IndexBuilder) -> None:
        place = b.add(start, i)
        key = load(pairs.keys, [place], b)
        # Of what is first there is none before: it is compared with itself.
        first = compare(i, 0, "eq", b)
        previous = load(pairs.keys, [select(first, place, b.sub(place, 1), b)], b)
        other = b.insert(arith.CmpiOp(key, previous, "ne")).results[0]
        starts = b.insert(arith.OrIOp(first, other)).results[0]
        somewhere = _as_unsigned(b.value(nowhere), kind, b)
        inside = b.insert(arith.CmpiOp(key, somewhere, "ne")).results[0]
        close, c = if_else(b, b.insert(arith.AndIOp(starts, inside)).results[0])

        def goes_on(values: list[SSAValue], d: IndexBuilder) -> SSAValue:
            (number,) = values
            more = compare(number, count, "slt", d)
            last = d.sub(count, 1)
            mine = load(pairs.keys, [d.add(start, d.minimum(number, last))], d)
            same = d.insert(arith.CmpiOp(mine, key, "eq")).results[0]
            return d.insert(arith.AndIOp(more, same)).results[0]

        body, (number,), d = while_loop(c, [i], goes_on)
        origin = pairs.origin(d.add(start, number), d)
        scatter_point(op, delinearize(origin, dims, sizes, d), d)
        body([d.value(d.add(number, 1))])
        close()

    for_each(at, count, give)


def _as_unsigned(value: SSAValue, kind: IntegerType, b: IndexBuilder) -> SSAValue:
    """The low bits of an index that is not negative."""
    assert isinstance(value.type, IndexType)
    wide = as_type(value, i64, b)
    return wide if kind == i64 else b.insert(arith.TruncIOp(wide, kind)).results[0]
