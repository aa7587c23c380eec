"""
Stream-K: workgroups that share the tiles of a contraction by splitting the reduction. Part of
`irees-gpu-lower-contractions` and `irees-gpu-lower-warpgroup-contractions`; `irees-gpu-stream-k`
selects the contractions.

The reduction steps of the first tiles are concatenated and divided equally among the first
workgroups; every other workgroup computes one whole tile. A workgroup iterates over the tiles that
its range of steps touches:

    scf.forall (%w) in (108) {
      scf.for %tile = %begin / 128 to %end ceildiv 128 {
        ... sums of the steps max(%begin - %tile * 128, 0) to min(%end - %tile * 128, 128)
        memref.store %one, %alone[0]
        scf.if %some_of_the_tile {
          vector.store %sums, %partials[%w + %tile, ...]
          nvvm.memory.barrier <gpu> ; gpu.barrier
          %before = memref.atomic_rmw addi %one, %counters[%tile]    // by one thread
          ... if all others have come: memref.atomic_rmw assign %zero, %counters[%tile]
                                       nvvm.memory.barrier <gpu>
          memref.store %all_have, %alone[0]
        }
        gpu.barrier
        scf.if %alone[0] {
          ... the sums, or %partials of the tile in the order of its steps, are added up and stored
        }
      }
    }

The last workgroup to arrive adds the partial sums, its own included, in the order of the steps. The
result is therefore deterministic, and no workgroup waits for another. A partial sum is stored at
index workgroup + tile: from one range to the next the workgroup, the tile or both increase, so
indices are unique and those of a tile are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees import CountersOp
from irees.dialects.nvvm import MemoryBarrierOp
from irees.dialects.storage import is_allocation, root
from irees.dialects.upstream.gpu import (
    AddressSpace,
    AddressSpaceAttr,
    BarrierOp,
)
from irees.dialects.upstream.memref import atomic_rmw
from irees.dialects.upstream.scf import ForallOp
from irees.transforms.codegen.common.utils.surroundings import fill_of
from irees.transforms.codegen.gpu.utils.segments import is_free, set_counts, set_fewest_workgroups
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.loops import for_loop, if_else, if_values
from irees.transforms.utils.shapes import IndexBuilder, Size, delinearize
from irees.transforms.utils.structured import iterators, static_ranges

STREAM_K = "stream_k"
"""Lowering config entry: the number of shared tiles, and of workgroups that share them."""

FLAG_BYTES = 16
"""Bytes of the shared-memory flag that tells the threads whether to store the tile."""


def shares_of(op: Operation) -> tuple[int, int] | None:
    """Returns (shared tiles, workgroups) if a contraction uses stream-K, else None."""
    found = LoweringConfigAttr.on(op).ints(STREAM_K)
    return None if found is None else (found[0], found[1])


def depth_of(op: linalg.GenericOp) -> int:
    """Returns the total reduction length of a contraction with static sizes."""
    pairs = zip(static_ranges(op), iterators(op), strict=True)
    return prod(size for size, kind in pairs if kind == "reduction")


@dataclass
class Share:
    """A workgroup's share of one tile: steps `first` to `last` of `steps`."""

    workgroups: int
    tiles: int
    steps: int
    loop: ForallOp
    counters: SSAValue
    alone: SSAValue
    """The shared-memory flag: whether this workgroup stores the current tile."""
    body: Block
    before: IndexBuilder
    """A builder before the loop over tiles."""
    workgroup: SSAValue
    tile: SSAValue
    first: SSAValue
    last: SSAValue
    done: SSAValue
    """Steps that the workgroup has computed in earlier tiles."""

    def collect(
        self,
        sums: Sequence[SSAValue],
        start: Callable[[IndexBuilder], list[SSAValue]],
        add: Operation,
        thread: SSAValue,
        at: IndexBuilder,
    ) -> tuple[Callable[[], None], list[SSAValue], IndexBuilder]:
        """
        Adds the partial sums of a tile in the workgroup that stores it, inside a branch that only
        this one takes. Returns a function that closes the branch, the thread's sums, and a builder
        in the branch.
        """
        partials = self._partials(sums)
        count = at.value(at.sub(self.last, self.first))
        some = _compare("ne", count, at.value(self.steps), at)
        is_first = _compare("eq", thread, at.value(0), at)
        close, b = if_else(at, is_first)
        self._tell(_number(1, b), b)
        close()
        close, b = if_else(at, some)
        for number, value in enumerate(sums):
            where = self._place(b.add(self.workgroup, self.tile), number, thread, b)
            b.insert(vector.StoreOp(value, partials, where))
        self._arrive(is_first, b)
        close()
        at.insert(BarrierOp())
        alone = at.insert(memref.LoadOp.get(self.alone, [at.value(0)])).results[0]
        done, inside = if_else(at, _compare("ne", alone, _number(0, at), at))
        begin = start(inside)
        end, others, mine = if_values(inside, some, [v.type for v in sums])
        own = [_added(add, total, value, mine) for total, value in zip(begin, sums, strict=True)]
        first, last = self._places(others)
        body, place, b = for_loop(others, first, last, 1, begin)
        found: list[SSAValue] = []
        for number, total in enumerate(body.arguments):
            where = self._place(place, number, thread, b)
            load = vector.LoadOp(partials, where, total.type)
            found.append(_added(add, total, b.insert(load).results[0], b))
        return done, end(body(found), own), inside

    def _partials(self, sums: Sequence[SSAValue]) -> SSAValue:
        """Allocates the partial sums in the launcher."""
        kind = sums[0].type
        assert isinstance(kind, VectorType)
        threads = self.loop.attributes["threads"].value.data  # type: ignore[attr-defined]
        (lanes,) = kind.get_shape()
        shape = [self.workgroups + self.tiles - 1, len(sums), threads, lanes]
        host = IndexBuilder(InsertPoint.before(self.loop))
        alloc = memref.AllocOp([], [], MemRefType(kind.element_type, shape))
        return host.insert(alloc).results[0]

    def _place(self, part: Size, number: int, thread: SSAValue, at: IndexBuilder) -> list[SSAValue]:
        """Returns the indices of one vector; those of adjacent threads are contiguous."""
        return [at.value(part), at.value(number), thread, at.value(0)]

    def _places(self, at: IndexBuilder) -> tuple[Size, Size]:
        """Returns the range of partial-sum indices of the tile."""
        first = at.mul(self.tile, self.steps)
        after = at.add(first, self.steps)
        return (
            at.add(self.tile, self._owner(at.add(first, 1), at)),
            at.add(at.add(self.tile, self._owner(after, at)), 1),
        )

    def _owner(self, steps: Size, at: IndexBuilder) -> Size:
        """Returns the workgroup that computes step `steps` - 1 of the concatenated steps."""
        return at.floordiv(at.sub(at.mul(steps, self.workgroups), 1), self.tiles * self.steps)

    def _arrive(self, is_first: SSAValue, at: IndexBuilder) -> None:
        """Publishes this workgroup's partial sums and sets the flag if it arrived last."""
        at.insert(MemoryBarrierOp())
        at.insert(BarrierOp())
        close, b = if_else(at, is_first)
        one = _number(1, b)
        before = b.insert(atomic_rmw("addi", one, self.counters, [self.tile])).results[0]
        first, last = self._places(b)
        others = b.value(b.sub(b.sub(last, first), 1))
        wanted = b.insert(arith.IndexCastOp(others, i32)).results[0]
        all_have = _compare("eq", before, wanted, b)
        reset, c = if_else(b, all_have)
        c.insert(atomic_rmw("assign", _number(0, c), self.counters, [self.tile]))
        c.insert(MemoryBarrierOp())
        reset()
        self._tell(b.insert(arith.ExtUIOp(all_have, i32)).results[0], b)
        close()

    def _tell(self, value: SSAValue, at: IndexBuilder) -> None:
        at.insert(memref.StoreOp.get(value, self.alone, [at.value(0)]))

    def guard_start(self, op: linalg.GenericOp) -> None:
        """Restricts ops before the contraction that write global memory to the first share."""
        fill = fill_of(op)
        if fill is not None:
            # Move it next to the contraction: a guard in between would prevent folding it.
            fill[0].detach()
            Rewriter.insert_op(fill[0], InsertPoint.before(op))
        ops = list(self.body.ops)
        for start in ops[: ops.index(op)]:
            if not isinstance(start, linalg.GenericOp) or (fill is not None and start is fill[0]):
                continue
            if not is_inside(root(start.outputs[0]), self.loop):
                at = IndexBuilder(InsertPoint.before(start))
                close, b = if_else(at, _compare("eq", self.first, at.value(0), at))
                start.detach()
                b.insert(start)
                close()

    def guard_rest(self) -> None:
        """Restricts the ops after the contraction to the workgroup that stores the tile."""
        barrier = next(o for o in self.body.ops if isinstance(o, BarrierOp))
        rest = list(self.body.ops)
        rest = rest[rest.index(barrier) + 1 : -1]
        if all(is_free(op) for op in rest):
            return
        at = IndexBuilder(InsertPoint.after(barrier))
        alone = at.insert(memref.LoadOp.get(self.alone, [at.value(0)])).results[0]
        close, b = if_else(at, _compare("ne", alone, _number(0, at), at))
        for op in rest:
            op.detach()
            b.insert(op)
        close()


def is_inside(buffer: SSAValue, loop: Operation) -> bool:
    """Whether a buffer is local to a workgroup."""
    return isinstance(buffer.owner, Operation) and loop.is_ancestor(buffer.owner)


def share_tiles(loop: ForallOp, tiles: int, workgroups: int, steps: int) -> Share:
    """Turns a loop over tiles into one over workgroups; the first ones share the first tiles."""
    block, counts = loop.region.block, counts_of(loop)
    end = block.last_op
    assert end is not None
    host, at = IndexBuilder(InsertPoint.before(loop)), IndexBuilder(InsertPoint.before(end))
    counters = host.insert(CountersOp(tiles)).results[0]
    # The memory of a workgroup is reused for all of its tiles.
    inner = [o for o in block.ops if o is not end and not is_allocation(o)]
    space = AddressSpaceAttr(AddressSpace.WORKGROUP)
    flag = memref.AllocOp([], [], MemRefType(i32, [1], memory_space=space))
    alone = at.insert(flag).results[0]
    old = list(block.args)
    workgroup = block.insert_arg(old[0].type, len(old))

    def begin(number: Size) -> Size:
        """Returns the first of the concatenated steps of a workgroup."""
        shared = at.floordiv(at.mul(number, tiles * steps), workgroups)
        if tiles == prod(counts):
            return shared
        whole = at.mul(at.add(at.sub(number, workgroups), tiles), steps)
        test = _compare("slt", at.value(number), at.value(workgroups), at)
        choice = arith.SelectOp(test, at.value(shared), at.value(whole))
        return at.insert(choice).results[0]

    first, last = begin(workgroup), begin(at.add(workgroup, 1))
    close, tile, b = for_loop(at, at.floordiv(first, steps), at.ceildiv(last, steps), 1)
    tile_begin = b.mul(tile, steps)
    share = Share(
        workgroups=workgroups,
        tiles=tiles,
        steps=steps,
        loop=loop,
        counters=counters,
        alone=alone,
        body=b.point.block,
        before=IndexBuilder(InsertPoint.before(close.loop)),
        workgroup=workgroup,
        tile=tile,
        first=b.value(b.maximum(b.sub(first, tile_begin), 0)),
        last=b.value(b.minimum(b.sub(last, tile_begin), steps)),
        done=b.value(b.maximum(b.sub(tile_begin, first), 0)),
    )
    places = delinearize(tile, range(len(counts)), counts, b)
    for number, argument in enumerate(old):
        argument.replace_all_uses_with(b.value(places[number]))
        block.erase_arg(argument)
    for op in inner:
        op.detach()
        b.insert(op)
    close()
    set_counts(loop, [workgroups + prod(counts) - tiles])
    # One workgroup per multiprocessor: limiting registers for more occupancy gains nothing.
    set_fewest_workgroups(loop, 1)
    return share


def counts_of(loop: ForallOp) -> list[int]:
    """Returns the number of tiles along each dim of a loop; -1 if dynamic."""
    return list(loop.properties["staticUpperBound"].get_values())  # type: ignore[attr-defined]


def _compare(predicate: str, lhs: SSAValue, rhs: SSAValue, at: IndexBuilder) -> SSAValue:
    return at.insert(arith.CmpiOp(lhs, rhs, predicate)).results[0]


def _number(value: int, at: IndexBuilder) -> SSAValue:
    return at.insert(arith.ConstantOp(IntegerAttr(value, i32))).results[0]


def _added(add: Operation, lhs: SSAValue, rhs: SSAValue, at: IndexBuilder) -> SSAValue:
    return at.insert(same_op(add, [lhs, rhs], [lhs.type])).results[0]
