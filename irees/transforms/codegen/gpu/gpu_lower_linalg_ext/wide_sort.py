"""
Radix-sorts one long row, or any keys, with many workgroups. Part of `irees-gpu-lower-linalg-ext`.

Each workgroup has a part of the row. Each digit takes three kernels: every workgroup counts the
digits of its part, one workgroup computes the prefix sums of the counts, and every workgroup moves
its elements to their positions, in the order of `block_radix.py`. Kernel launches are the only
synchronization. Each pass over a digit makes five global-memory accesses per element: it reads the
keys to count them, then reads and writes keys and origins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.scf import ForallOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.radix_sort import RadixKey, as_key, radix_key
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    load,
    other_dims,
    place,
    scratch,
    store,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_radix import (
    DIGIT,
    DIGITS,
    THREADS,
    Lane,
    Tallies,
    count_type_for,
    digit_of,
    index_type_for,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.radix_rows import for_each
from irees.transforms.codegen.gpu.utils.segments import (
    is_free,
    set_fewest_workgroups,
    set_threads,
    workgroups,
)
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size


def lower_widely(op: ext.SortOp, loop: Operation, busy: int) -> str | None:
    """
    sort of one long row  =>  kernels of many workgroups that replace the loop around it; or why
    not (the empty string if the row is short)
    """
    key = radix_key(Order.of(op.body.block), list(op.outputs))
    reason = why_not_wide(op, loop, key, busy)
    if reason is not None:
        return reason
    assert key is not None
    WideSort.of(op, loop, key, busy).lower(IndexBuilder(InsertPoint.before(loop)))
    Rewriter.erase_op(loop)
    return None


def why_not_wide(op: ext.SortOp, loop: Operation, key: RadixKey | None, busy: int) -> str | None:
    """Returns why a row is not sorted by many workgroups ("" if it is short), or None."""
    kind = op.outputs[0].type
    assert isinstance(kind, MemRefType)
    dim = op.dimension.value.data
    size = kind.get_shape()[dim]
    if size < NVIDIA.long_row or busy < 2:
        return ""
    if key is None:
        return "keys are not of 8, 16, 32 or 64 bits"
    if any(kind.get_shape()[d] != 1 for d in other_dims(op.outputs[0], dim)):
        return "there is more than one row"
    return why_not_alone(op, loop)


def why_not_alone(op: Operation, loop: Operation) -> str | None:
    """Returns why an op is not the only work of its workgroup, or None."""
    assert isinstance(loop, ForallOp)
    block = loop.region.block
    if any(o is not op and o is not block.last_op and not is_free(o) for o in block.ops):
        return "the workgroup does something else too"
    return None


def views_outside(loop: Operation, at: IndexBuilder) -> dict[SSAValue, SSAValue]:
    """Clones the free ops (views) of a loop over one workgroup before the loop."""
    assert isinstance(loop, ForallOp)
    known: dict[SSAValue, SSAValue] = {a: at.value(0) for a in loop.region.block.args}
    for inner in loop.region.block.ops:
        if is_free(inner):
            at.insert(inner.clone(value_mapper=known))
    return known


@dataclass(frozen=True)
class Parts:
    """The parts of a row, one per workgroup."""

    size: Size
    length: Size
    count: Size
    most: int
    """Upper bound of `count`, also for dynamic sizes."""

    @staticmethod
    def of(size: Size, busy: int, at: IndexBuilder) -> Parts:
        """Splits a row into two waves of workgroups, or fewer if parts would be too short."""
        most = NVIDIA.sort_waves * busy
        if not isinstance(size, int):
            length = at.maximum(NVIDIA.least_part, at.ceildiv(size, most))
            return Parts(size, length, at.floordiv(at.add(size, at.sub(length, 1)), length), most)
        length = max(1, -(-size // max(1, min(most, size // NVIDIA.least_part))))
        count = -(-size // length)
        return Parts(size, length, count, count)

    def range(self, workgroup: SSAValue, b: IndexBuilder) -> tuple[Size, Size]:
        """Returns the offset and the length of a workgroup's part."""
        offset = b.mul(workgroup, self.length)
        return offset, b.value(b.minimum(self.length, b.sub(self.size, offset)))

    def each(self, at: IndexBuilder, visit: Callable[[Size, IndexBuilder], None]) -> None:
        """Emits a kernel that visits each element with one thread."""

        def part(workgroup: SSAValue, b: IndexBuilder) -> None:
            offset, length = self.range(workgroup, b)
            for_each(b, length, lambda i, c: visit(c.add(offset, i), c))

        kernel(at, self.count, part)


@dataclass(frozen=True)
class WideKeys:
    """Keys of a row and their origins, double-buffered in two halves."""

    parts: Parts
    keys: SSAValue
    origins: SSAValue
    counts: SSAValue
    starts: SSAValue

    @staticmethod
    def allocate(width: int, parts: Parts, at: IndexBuilder) -> WideKeys:
        """Allocates the buffers in global memory."""
        places, count = at.mul(parts.size, 2), count_type_for(parts.size)
        kinds = (IntegerType(width), index_type_for(parts.size))
        keys, origins = (scratch(kind, places, at) for kind in kinds)
        counts = _buffer(count, [parts.most, DIGITS], at)
        return WideKeys(parts, keys, origins, counts, _buffer(count, [DIGITS], at))

    def put(self, i: Size, key: SSAValue, b: IndexBuilder) -> None:
        """Stores the key of element `i` before the sort."""
        store(key, self.keys, [i], b)
        store(as_type(b.value(i), self._kind, b), self.origins, [i], b)

    def origin(self, i: Size, b: IndexBuilder) -> SSAValue:
        """Returns the original index of the element at position `i`."""
        return as_type(load(self.origins, [i], b), IndexType(), b)

    @property
    def _kind(self) -> Attribute:
        assert isinstance(self.origins.type, MemRefType)
        return self.origins.type.element_type

    def sort(self, passes: Size, at: IndexBuilder) -> Size:
        """Sorts by `passes` digits; returns the offset of the result (0 or size)."""
        parts, size, counts, starts = self.parts, self.parts.size, self.counts, self.starts
        close, number, host = for_loop(at, 0, passes, 1)
        odd = host.rem(number, 2)
        start = host.value(host.mul(odd, size))
        target = host.value(host.sub(size, start))
        shift = host.value(host.mul(number, DIGIT))

        def digit(lane: Lane, offset: Size, b: IndexBuilder) -> tuple[SSAValue, SSAValue]:
            key = load(self.keys, [b.add(b.add(start, offset), lane.index)], b)
            return digit_of(key, as_type(shift, key.type, b), b), key

        def count(workgroup: SSAValue, b: IndexBuilder) -> None:
            offset, length = parts.range(workgroup, b)
            tallies = self._tally(digit, offset, length, b)

            def give(d: SSAValue, _: SSAValue, total: SSAValue, c: IndexBuilder) -> None:
                store(total, counts, [workgroup, d], c)

            tallies.scan(b, give)

        def add_up(workgroup: SSAValue, b: IndexBuilder) -> None:
            tallies = Tallies.allocate(size, b)

            def give(d: SSAValue, before: SSAValue, _: SSAValue, c: IndexBuilder) -> None:
                store(before, starts, [d], c)

            tallies.scan(b, give, counts, parts.count)

        def move(workgroup: SSAValue, b: IndexBuilder) -> None:
            offset, length = parts.range(workgroup, b)
            tallies = self._tally(digit, offset, length, b)

            def give(d: SSAValue, _: SSAValue, __: SSAValue, c: IndexBuilder) -> None:
                both = arith.AddiOp(load(starts, [d], c), load(counts, [workgroup, d], c))
                store(c.insert(both).results[0], tallies.starts, [d], c)

            tallies.scan(b, give)

            def visit(lane: Lane, c: IndexBuilder) -> None:
                mine, key = digit(lane, offset, c)

                def put(rank: SSAValue, d: IndexBuilder) -> None:
                    first = load(tallies.starts, [as_type(mine, IndexType(), d)], d)
                    where = d.add(d.add(target, as_type(first, IndexType(), d)), rank)
                    here = d.add(d.add(start, offset), lane.index)
                    store(key, self.keys, [where], d)
                    store(load(self.origins, [here], d), self.origins, [where], d)

                tallies.rank(lane, mine, c, put)

            tallies.each(length, b, visit)

        kernel(host, parts.count, count)
        kernel(host, 1, add_up)
        kernel(host, parts.count, move)
        close()
        return at.mul(at.rem(passes, 2), size)

    def _tally(
        self,
        digit: Callable[[Lane, Size, IndexBuilder], tuple[SSAValue, SSAValue]],
        offset: Size,
        length: Size,
        b: IndexBuilder,
    ) -> Tallies:
        """Counts the digits of a part."""
        tallies = Tallies.allocate(self.parts.size, b)
        tallies.clear(b)
        tallies.each(length, b, lambda lane, c: tallies.tally(lane, digit(lane, offset, c)[0], c))
        return tallies


@dataclass(frozen=True)
class WideSort:
    """The lowering of a sort of one row, in parts."""

    key: RadixKey
    size: int
    dim: int
    busy: int
    sources: Sequence[SSAValue]
    targets: Sequence[SSAValue]

    @staticmethod
    def of(op: ext.SortOp, loop: Operation, key: RadixKey, busy: int) -> WideSort:
        """Builds the sort from a loop over one workgroup, with its views cloned outside."""
        known = views_outside(loop, IndexBuilder(InsertPoint.before(loop)))
        targets = [known.get(v, v) for v in op.outputs]
        sources = [known.get(v, v) for v in op.inputs] or targets
        kind, dim = targets[0].type, op.dimension.value.data
        assert isinstance(kind, MemRefType)
        return WideSort(key, kind.get_shape()[dim], dim, busy, sources, targets)

    def lower(self, at: IndexBuilder) -> None:
        """Emits the kernels in order."""
        parts = Parts.of(self.size, self.busy, at)
        keys = WideKeys.allocate(self.key.width, parts, at)
        elements = [t.type.element_type for t in self.targets]  # type: ignore[attr-defined]
        copies = [scratch(element, self.size, at) for element in elements]
        ivs: dict[int, Size] = {d: 0 for d in other_dims(self.targets[0], self.dim)}

        def take(i: Size, b: IndexBuilder) -> None:
            values = [load(source, place(ivs, self.dim, i), b) for source in self.sources]
            for value, copy in zip(values, copies, strict=True):
                store(value, copy, [i], b)
            keys.put(i, as_key(self.key, values[self.key.operand], b), b)

        parts.each(at, take)
        final = keys.sort(self.key.width // DIGIT, at)

        def give(i: Size, b: IndexBuilder) -> None:
            origin = keys.origin(b.add(i, final), b)
            for copy, output in zip(copies, self.targets, strict=True):
                store(load(copy, [origin], b), output, place(ivs, self.dim, i), b)

        parts.each(at, give)


def kernel(
    at: IndexBuilder,
    count: Size,
    body: Callable[[SSAValue, IndexBuilder], None],
    threads: int = THREADS,
) -> None:
    """Emits a loop over `count` workgroups of `threads` threads each."""
    block = Block(arg_types=[IndexType()])
    loop = workgroups(block, [count])
    at.insert(loop)
    assert block.last_op is not None
    body(block.args[0], IndexBuilder(InsertPoint.before(block.last_op)))
    set_threads(loop, threads)
    set_fewest_workgroups(loop, 1)


def _buffer(kind: Attribute, shape: Sequence[int], at: IndexBuilder) -> SSAValue:
    return at.insert(memref.AllocOp([], [], MemRefType(kind, shape))).results[0]
