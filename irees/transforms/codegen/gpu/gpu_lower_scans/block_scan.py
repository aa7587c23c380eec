"""
Scans tiles of a row by all threads of a workgroup. Part of `irees-gpu-lower-scans`.

Each thread reduces adjacent elements of a tile. Lanes of a warp then scan these partial results by
`gpu.shuffle`, and warps scan theirs in shared memory. This gives each thread the prefix of its
elements; it then scans them sequentially.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i32
from xdsl.ir import Attribute, SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BarrierOp, ShuffleOp
from irees.transforms.codegen.common.utils.rows import compare, load, other_dims, place, store
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES, alignment
from irees.transforms.codegen.gpu.utils.scan_costs import combiner_of, elements_per_thread
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.combiners import neutral_element
from irees.transforms.utils.lanes import lane_of, unit_stride, vector_of
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


@dataclass
class BlockScan:
    """A scan by the threads of a workgroup; `at` is before the loop over them."""

    op: ext.ScanOp
    threads: int
    at: IndexBuilder
    thread: SSAValue = field(init=False)
    """Number of this thread, once the loop over threads is open."""

    def __post_init__(self) -> None:
        op = self.op
        assert isinstance(op.input.type, MemRefType)
        self.kind: Attribute = op.input.type.element_type
        self.dim = op.dimension.value.data
        bits = getattr(self.kind, "bitwidth", 64)
        self.each = elements_per_thread(bits)
        self.size = buffer_dim(op.input, self.dim, self.at)
        space = AddressSpaceAttr(AddressSpace.WORKGROUP)
        shape = MemRefType(self.kind, [self.threads // WARP], memory_space=space)
        self.sums = self.at.insert(memref.AllocOp([], [], shape)).results[0]
        self.lanes = min(self.each, ACCESS_BYTES * 8 // bits)
        while self.lanes > 1 and not all(self._aligned(b) for b in (op.input, op.output)):
            self.lanes //= 2

    @property
    def tile(self) -> int:
        """Elements that the threads scan between barriers."""
        return self.threads * self.each

    def _aligned(self, buffer: SSAValue) -> bool:
        """Whether each vector of elements of a row is one aligned access."""
        kind = buffer.type
        assert isinstance(kind, MemRefType)
        along = self.dim == kind.get_num_dims() - 1 and isinstance(self.size, int)
        return (
            along
            and self.size % self.lanes == 0
            and unit_stride(kind)
            and alignment(buffer) % self.lanes == 0
        )

    def neutral(self, at: IndexBuilder) -> SSAValue:
        """Returns the neutral element of the combiner."""
        combiner = combiner_of(self.op)
        assert combiner is not None
        return at.insert(neutral_element(combiner)).results[0]

    def both(self, first: SSAValue, second: SSAValue, at: IndexBuilder) -> SSAValue:
        """Combines two elements."""
        return inline_region(self.op.body.block, [first, second], at)[0]

    def total(self, values: Sequence[SSAValue], at: IndexBuilder) -> SSAValue:
        """Combines a list of elements, in order."""
        return reduce(lambda first, second: self.both(first, second, at), values)

    def across(self, mine: SSAValue, at: IndexBuilder) -> tuple[SSAValue, SSAValue]:
        """Returns the combined values of the preceding threads, and those of all threads."""
        warp, lane = at.floordiv(self.thread, WARP), at.value(at.rem(self.thread, WARP))
        before, whole = self.neutral(at), mine
        for distance in (1, 2, 4, 8, 16):
            offset, width = (
                at.insert(arith.ConstantOp(IntegerAttr(n, i32))).results[0]
                for n in (distance, WARP)
            )
            theirs = at.insert(ShuffleOp(whole, offset, width)).results[0]
            later = compare(at.rem(at.floordiv(lane, distance), 2), 1, "eq", at)
            more = self.both(theirs, before, at)
            before = at.insert(arith.SelectOp(later, more, before)).results[0]
            whole = self.both(whole, theirs, at)
        close, b = if_else(at, compare(lane, 0, "eq", at))
        store(whole, self.sums, [warp], b)
        close()
        at.insert(BarrierOp())
        found = [load(self.sums, [number], at) for number in range(self.threads // WARP)]
        # The next tile overwrites the shared values.
        at.insert(BarrierOp())
        earlier = self.neutral(at)
        for number, value in enumerate(found[:-1]):
            more = self.both(earlier, value, at)
            is_earlier = compare(number, warp, "slt", at)
            earlier = at.insert(arith.SelectOp(is_earlier, more, earlier)).results[0]
        return self.both(earlier, before, at), self.total(found, at)

    def read(self, ivs: dict[int, Size], first: Size, at: IndexBuilder) -> list[SSAValue]:
        """Returns this thread's elements of the tile at `first`; neutral ones past the end."""
        kind, found, nothing = vector_of(self.kind, self.lanes), list[SSAValue](), self.neutral(at)
        for index in self._indices(first, at):
            inside = self._inside(index, at)
            safe = index
            if inside is not None:
                safe = at.minimum(index, at.sub(self.size, self.lanes))
            where = [at.value(i) for i in place(ivs, self.dim, safe)]
            values = [load(self.op.input, where, at)] if self.lanes == 1 else []
            if self.lanes > 1:
                whole = at.insert(vector.LoadOp(self.op.input, where, kind)).results[0]
                values = [lane_of(whole, lane, at.insert) for lane in range(self.lanes)]
            if inside is not None:
                values = [at.insert(arith.SelectOp(inside, v, nothing)).results[0] for v in values]
            found += values
        return found

    def _indices(self, first: Size, at: IndexBuilder) -> list[Size]:
        """Returns the start indices of this thread's accesses to a tile."""
        mine = at.add(first, at.mul(self.thread, self.each))
        return [at.add(mine, number) for number in range(0, self.each, self.lanes)]

    def _inside(self, index: Size, at: IndexBuilder) -> SSAValue | None:
        if isinstance(self.size, int) and self.size % self.tile == 0:
            return None
        return compare(index, self.size, "slt", at)

    def scan(
        self, ivs: dict[int, Size], first: Size, carry: SSAValue, at: IndexBuilder
    ) -> SSAValue:
        """Scans the tile at `first` with the prefix `carry`; returns the next tile's prefix."""
        values = self.read(ivs, first, at)
        before, whole = self.across(self.total(values, at), at)
        running, results = self.both(carry, before, at), list[SSAValue]()
        inclusive = self.op.inclusive.value.data
        for value in values:
            after = self.both(running, value, at)
            results.append(after if inclusive else running)
            running = after
        where = [ivs[d] for d in sorted(ivs)]
        for number, index in enumerate(self._indices(first, at)):
            mine = results[number * self.lanes : (number + 1) * self.lanes]
            inside = self._inside(index, at)
            close, b = (lambda: None, at) if inside is None else if_else(at, inside)
            self._write(mine, place(ivs, self.dim, index), b)
            end, c = if_else(b, compare(b.add(index, self.lanes), self.size, "eq", b))
            store(mine[-1], self.op.accumulator, where, c)
            end()
            close()
        return self.both(carry, whole, at)

    def _write(self, values: Sequence[SSAValue], where: Sequence[Size], at: IndexBuilder) -> None:
        """Stores adjacent results with one access."""
        if len(values) == 1:
            store(values[0], self.op.output, where, at)
            return
        kind = vector_of(self.kind, len(values))
        whole = at.insert(vector.BroadcastOp(values[0], kind)).results[0]
        for lane, value in enumerate(values[1:], 1):
            whole = at.insert(vector.InsertOp(value, whole, [lane])).results[0]
        at.insert(vector.StoreOp(whole, self.op.output, [at.value(i) for i in where]))

    def start(self, ivs: dict[int, Size], at: IndexBuilder) -> SSAValue:
        """Returns the initial prefix of a row: the accumulator of an exclusive scan."""
        if self.op.inclusive.value.data:
            return self.neutral(at)
        return load(self.op.accumulator, [ivs[d] for d in sorted(ivs)], at)

    def row(
        self, ivs: dict[int, Size], bounds: tuple[Size, Size], carry: SSAValue, at: IndexBuilder
    ) -> None:
        """Scans the tiles between two bounds of a row; the first bound starts a tile."""
        first, end = bounds
        if first == 0 and isinstance(end, int) and 0 < end <= self.tile:
            self.scan(ivs, 0, carry, at)
            return
        body, index, b = for_loop(at, first, end, self.tile, [carry])
        body([self.scan(ivs, index, body.arguments[0], b)])

    @property
    def other_dims(self) -> list[int]:
        """The dims of the rows."""
        return other_dims(self.op.input, self.dim)
