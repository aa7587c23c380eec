"""
Lowers a scatter with colliding updates by sorting them. Part of `irees-gpu-lower-scatters`.

A stable radix sort orders the updates by target index. Updates of the same target are then adjacent
and in their original order, and one thread applies them sequentially. The result is bit-identical
to a serial loop for any body, without atomics. Each element of a slice has its own thread, and
adjacent elements have adjacent threads. If the body ignores the old value, only the last update of
a target is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, i64
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common.utils.accumulating import batch_rank, destination
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    compare,
    load,
    outside,
    select,
    store,
)
from irees.transforms.codegen.gpu.utils.block_radix import (
    Pairs,
    Tallies,
    radix_sort,
)
from irees.transforms.codegen.gpu.utils.segments import for_each
from irees.transforms.utils.loops import if_else, while_loop
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, delinearize

WIDTHS = (8, 16, 32, 64)


def shape_of(buffer: SSAValue) -> tuple[int, ...]:
    """Returns the sizes of a buffer; dynamic ones are negative."""
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.get_shape()


def place_bits(op: ext.ScatterOp) -> int:
    """Returns the bits of a linear target index, including one value for "out of bounds"."""
    shape = shape_of(op.original)[: len(op.dimension_map)]
    return WIDTHS[-1] if any(size < 0 for size in shape) else max(1, prod(shape).bit_length())


def width_for(op: ext.ScatterOp) -> int:
    """Returns the width of the smallest integer type for such an index."""
    bits = place_bits(op)
    return next(width for width in WIDTHS if bits <= width)


def overwrites(op: ext.ScatterOp) -> bool:
    """Whether the body ignores the old value."""
    return not op.body.block.args[1].uses


@dataclass(frozen=True)
class Updates:
    """The updates of a scatter: their count, elements per update, and number of targets."""

    op: ext.ScatterOp
    sizes: dict[int, Size]
    extents: dict[int, Size]
    count: Size
    points: Size
    nowhere: Size
    """The index of out-of-bounds targets: the number of targets."""

    @staticmethod
    def of(op: ext.ScatterOp, at: IndexBuilder) -> Updates:
        """Computes the sizes at the given position."""
        batch = batch_rank(op)
        sizes = {d: buffer_dim(op.updates, d, at) for d in range(len(shape_of(op.updates)))}
        extents = {d: buffer_dim(op.original, d, at) for d in range(len(op.dimension_map))}
        count = at.product([sizes[d] for d in range(batch)])
        points = at.product([sizes[d] for d in range(batch, len(sizes))])
        return Updates(op, sizes, extents, count, points, at.product(list(extents.values())))

    @property
    def kind(self) -> IntegerType:
        """The type of a linear target index."""
        return IntegerType(width_for(self.op))

    def update(self, number: Size, at: IndexBuilder) -> dict[int, Size]:
        """Returns the batch indices of an update."""
        return delinearize(at.value(number), range(batch_rank(self.op)), self.sizes, at)

    def point(self, number: Size, at: IndexBuilder) -> dict[int, Size]:
        """Returns the indices of an element of a slice."""
        dims = range(batch_rank(self.op), len(self.sizes))
        return delinearize(at.value(number), dims, self.sizes, at) if dims else {}

    def key(self, number: Size, b: IndexBuilder) -> SSAValue:
        """Returns the linear target index of an update, as a sort key."""
        anywhere = dict.fromkeys(self.sizes, 0)
        where, valid = destination(self.op, anywhere | self.update(number, b), b)
        place: Size = 0
        for dim, extent in self.extents.items():
            place = b.add(b.mul(place, extent), where[dim])
        if valid is not None:
            place = select(valid, place, self.nowhere, b)
        return self._as_key(place, b)

    def _as_key(self, place: Size, b: IndexBuilder) -> SSAValue:
        """Truncates a non-negative index to the key type."""
        wide = as_type(b.value(place), i64, b)
        return wide if self.kind == i64 else b.insert(arith.TruncIOp(wide, self.kind)).results[0]

    def place(self, key: SSAValue, b: IndexBuilder) -> list[Size]:
        """Returns the target indices of a linear target index."""
        wide = key if key.type == i64 else b.insert(arith.ExtUIOp(key, i64)).results[0]
        found = delinearize(as_type(wide, IndexType(), b), list(self.extents), self.extents, b)
        return [found[d] for d in self.extents]


@dataclass(frozen=True)
class SortedUpdates:
    """Updates sorted by target: keys from `start` on, and the original number of each."""

    updates: Updates
    keys: SSAValue
    origin: Callable[[Size, IndexBuilder], SSAValue]
    start: Size

    def do(self, number: SSAValue, b: IndexBuilder) -> None:
        """Applies one element of all updates of a target, or of the last one if it overwrites."""
        updates = self.updates
        i = b.value(b.floordiv(number, updates.points))
        point = updates.point(b.rem(number, updates.points), b)
        key = self._key(i, b)
        last = overwrites(updates.op)
        # The outermost update has no neighbor: compare it with itself.
        first = compare(i, b.sub(updates.count, 1) if last else 0, "eq", b)
        beyond = b.add(i, 1) if last else b.sub(i, 1)
        neighbour = self._key(select(first, i, beyond, b), b)
        other = b.insert(arith.CmpiOp(key, neighbour, "ne")).results[0]
        starts = b.insert(arith.OrIOp(first, other)).results[0]
        nowhere = updates._as_key(updates.nowhere, b)
        inside = b.insert(arith.CmpiOp(key, nowhere, "ne")).results[0]
        close, c = if_else(b, b.insert(arith.AndIOp(starts, inside)).results[0])
        where = [*updates.place(key, c), *(point[d] for d in sorted(point))]
        if last:
            new = self._new(i, point, c)
            result = inline_region(updates.op.body.block, [new, new], c)[0]
        else:
            result = self._combine(i, key, point, load(updates.op.original, where, c), c)
        store(result, updates.op.original, where, c)
        close()

    def _combine(
        self, i: SSAValue, key: SSAValue, point: dict[int, Size], old: SSAValue, b: IndexBuilder
    ) -> SSAValue:
        """Applies all updates of one target to the old value, in order."""
        count = self.updates.count

        def goes_on(values: list[SSAValue], c: IndexBuilder) -> SSAValue:
            more = compare(values[0], count, "slt", c)
            mine = self._key(c.minimum(values[0], c.sub(count, 1)), c)
            same = c.insert(arith.CmpiOp(mine, key, "eq")).results[0]
            return c.insert(arith.AndIOp(more, same)).results[0]

        body, (number, value), c = while_loop(b, [i, old], goes_on)
        new = self._new(number, point, c)
        following = inline_region(self.updates.op.body.block, [new, value], c)[0]
        return body([c.value(c.add(number, 1)), following])[1]

    def _key(self, i: Size, b: IndexBuilder) -> SSAValue:
        return load(self.keys, [b.add(self.start, i)], b)

    def _new(self, i: Size, point: dict[int, Size], b: IndexBuilder) -> SSAValue:
        """Loads an element of the update at sorted position `i`."""
        update = self.updates.update(self.origin(b.add(self.start, i), b), b)
        where = update | point
        return load(self.updates.op.updates, [where[d] for d in sorted(where)], b)


def scatter_in_order(op: ext.ScatterOp, room: int, at: IndexBuilder) -> None:
    """scatter  =>  updates sorted by target in one workgroup, then one thread per target"""
    before = outside(op)
    updates = Updates.of(op, before)
    count = updates.count
    tallies = Tallies.allocate(count, at)
    left = room - Tallies.bytes_for(count)
    pairs = Pairs.allocate(width_for(op), count, before.mul(count, 2), count, left, at)
    for_each(at, count, lambda i, b: pairs.put(i, updates.key(i, b), i, b))
    start = radix_sort(tallies, pairs, at)
    done = SortedUpdates(updates, pairs.keys, pairs.origin, start)
    for_each(at, before.mul(count, updates.points), done.do)
