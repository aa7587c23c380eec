"""
A sort of one long row by many workgroups. Part of `irees-gpu-lower-linalg-ext`.

Each workgroup has a part of the row. For each digit there are three kernels: one in which each
counts the digits of its part, one workgroup that adds the counts up, and one in which each moves
its elements to where they belong, in the order of `_block_radix.py`. Kernels follow each other, so
nobody waits. A pass reads keys twice, and reads and writes keys and origins: with two passes over
all operands that is five accesses for each element and digit, in memory that all workgroups see.
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
from irees.transforms.codegen.common._radix_sort import RadixKey, as_key, radix_key
from irees.transforms.codegen.common._rows import as_type, load, other_dims, place, store
from irees.transforms.codegen.gpu._block_radix import (
    DIGIT,
    DIGITS,
    THREADS,
    Lane,
    Tallies,
    count_type_for,
    digit_of,
    index_type_for,
)
from irees.transforms.codegen.gpu._radix_rows import for_each
from irees.transforms.codegen.gpu._segments import (
    is_free,
    set_fewest_workgroups,
    set_threads,
    workgroups,
)
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.orders import LONG_ROW, Order
from irees.transforms.utils.shapes import IndexBuilder, Size

EACH = 16
"""Elements of a thread, at least."""


def lower_widely(op: ext.SortOp, loop: Operation, busy: int) -> str | None:
    """
    sort of one long row  =>  kernels of many workgroups, instead of the loop around it; or why not,
    the empty string where it is short
    """
    key = radix_key(Order.of(op.body.block), list(op.outputs))
    reason = why_not_wide(op, loop, key, busy)
    if reason is not None:
        return reason
    assert isinstance(loop, ForallOp)
    assert key is not None
    WideSort.of(op, loop, key, busy).lower(IndexBuilder(InsertPoint.before(loop)))
    Rewriter.erase_op(loop)
    return None


def why_not_wide(op: ext.SortOp, loop: Operation, key: RadixKey | None, busy: int) -> str | None:
    """Why a row is not for many workgroups, or None; the empty string where it is short."""
    kind = op.outputs[0].type
    assert isinstance(kind, MemRefType)
    dim = op.dimension.value.data
    size = kind.get_shape()[dim]
    if size < LONG_ROW or busy < 2:
        return ""
    if key is None:
        return "keys are not of 8, 16, 32 or 64 bits"
    if any(kind.get_shape()[d] != 1 for d in other_dims(op.outputs[0], dim)):
        return "there is more than one row"
    assert isinstance(loop, ForallOp)
    block = loop.region.block
    if any(o is not op and o is not block.last_op and not is_free(o) for o in block.ops):
        return "the workgroup does something else too"
    return None


@dataclass(frozen=True)
class WideSort:
    """One row, in parts."""

    key: RadixKey
    size: int
    dim: int
    busy: int
    sources: Sequence[SSAValue]
    targets: Sequence[SSAValue]

    @staticmethod
    def of(op: ext.SortOp, loop: ForallOp, key: RadixKey, busy: int) -> WideSort:
        """The sort of a loop over one workgroup, whose views are made outside of it."""
        at = IndexBuilder(InsertPoint.before(loop))
        known: dict[SSAValue, SSAValue] = {a: at.value(0) for a in loop.region.block.args}
        for inner in loop.region.block.ops:
            if is_free(inner):
                at.insert(inner.clone(value_mapper=known))
        targets = [known.get(v, v) for v in op.outputs]
        sources = [known.get(v, v) for v in op.inputs] or targets
        kind, dim = targets[0].type, op.dimension.value.data
        assert isinstance(kind, MemRefType)
        return WideSort(key, kind.get_shape()[dim], dim, busy, sources, targets)

    @property
    def _part(self) -> int:
        """Elements of a workgroup."""
        parts = max(1, min(2 * self.busy, self.size // (THREADS * EACH)))
        return -(-self.size // parts)

    @property
    def _parts(self) -> int:
        return -(-self.size // self._part)

    def lower(self, at: IndexBuilder) -> None:
        """The kernels, in their order."""
        size, kind = self.size, index_type_for(self.size)
        keys = _buffer(IntegerType(self.key.width), [2 * size], at)
        origins = _buffer(kind, [2 * size], at)
        elements = [t.type.element_type for t in self.targets]  # type: ignore[attr-defined]
        copies = [_buffer(element, [size], at) for element in elements]
        counts = _buffer(count_type_for(size), [self._parts, DIGITS], at)
        starts = _buffer(count_type_for(size), [DIGITS], at)
        ivs: dict[int, Size] = {d: 0 for d in other_dims(self.targets[0], self.dim)}

        def take(i: Size, b: IndexBuilder) -> None:
            values = [load(source, place(ivs, self.dim, i), b) for source in self.sources]
            for value, copy in zip(values, copies, strict=True):
                store(value, copy, [i], b)
            store(as_key(self.key, values[self.key.operand], b), keys, [i], b)
            store(as_type(b.value(i), kind, b), origins, [i], b)

        self._each_element(at, take)
        passes = self.key.width // DIGIT
        close, number, host = for_loop(at, 0, passes, 1)
        odd = host.rem(number, 2)
        start = host.value(host.mul(odd, size))
        target = host.value(host.sub(size, start))
        shift = host.value(host.mul(number, DIGIT))

        def digit(lane: Lane, offset: Size, b: IndexBuilder) -> tuple[SSAValue, SSAValue]:
            key = load(keys, [b.add(b.add(start, offset), lane.index)], b)
            return digit_of(key, as_type(shift, key.type, b), b), key

        def count(workgroup: SSAValue, b: IndexBuilder) -> None:
            offset, length = self._range(workgroup, b)
            tallies = self._tally(digit, offset, length, b)

            def give(d: SSAValue, _: SSAValue, total: SSAValue, c: IndexBuilder) -> None:
                store(total, counts, [workgroup, d], c)

            tallies.scan(b, give)

        def add_up(workgroup: SSAValue, b: IndexBuilder) -> None:
            tallies = Tallies.allocate(size, b)

            def give(d: SSAValue, before: SSAValue, _: SSAValue, c: IndexBuilder) -> None:
                store(before, starts, [d], c)

            tallies.scan(b, give, counts, self._parts)

        def move(workgroup: SSAValue, b: IndexBuilder) -> None:
            offset, length = self._range(workgroup, b)
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
                    store(key, keys, [where], d)
                    store(load(origins, [here], d), origins, [where], d)

                tallies.rank(lane, mine, c, put)

            tallies.each(length, b, visit)

        _kernel(host, self._parts, count)
        _kernel(host, 1, add_up)
        _kernel(host, self._parts, move)
        close()
        final = passes % 2 * size

        def give(i: Size, b: IndexBuilder) -> None:
            origin = as_type(load(origins, [b.add(i, final)], b), IndexType(), b)
            for copy, output in zip(copies, self.targets, strict=True):
                store(load(copy, [origin], b), output, place(ivs, self.dim, i), b)

        self._each_element(at, give)

    def _range(self, workgroup: SSAValue, b: IndexBuilder) -> tuple[Size, Size]:
        """Where the part of a workgroup begins, and how long it is."""
        offset = b.mul(workgroup, self._part)
        return offset, b.value(b.minimum(self._part, b.sub(self.size, offset)))

    def _tally(
        self,
        digit: Callable[[Lane, Size, IndexBuilder], tuple[SSAValue, SSAValue]],
        offset: Size,
        length: Size,
        b: IndexBuilder,
    ) -> Tallies:
        """The counts of a part."""
        tallies = Tallies.allocate(self.size, b)
        tallies.clear(b)
        tallies.each(length, b, lambda lane, c: tallies.tally(lane, digit(lane, offset, c)[0], c))
        return tallies

    def _each_element(self, at: IndexBuilder, visit: Callable[[Size, IndexBuilder], None]) -> None:
        def part(workgroup: SSAValue, b: IndexBuilder) -> None:
            offset, length = self._range(workgroup, b)
            for_each(b, length, lambda i, c: visit(c.add(offset, i), c))

        _kernel(at, self._parts, part)


def _kernel(at: IndexBuilder, count: int, body: Callable[[SSAValue, IndexBuilder], None]) -> None:
    """A loop over workgroups."""
    block = Block(arg_types=[IndexType()])
    loop = workgroups(block, [count])
    at.insert(loop)
    assert block.last_op is not None
    body(block.args[0], IndexBuilder(InsertPoint.before(block.last_op)))
    set_threads(loop, THREADS)
    set_fewest_workgroups(loop, 1)


def _buffer(kind: Attribute, shape: Sequence[int], at: IndexBuilder) -> SSAValue:
    return at.insert(memref.AllocOp([], [], MemRefType(kind, shape))).results[0]
