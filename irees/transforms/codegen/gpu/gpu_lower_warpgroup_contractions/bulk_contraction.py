"""
Lowers one contraction to `wgmma` with TMA copies of the operands. Part of
`irees-gpu-lower-warpgroup-contractions`.

The loop is that of `warpgroup_contraction.py`, but one thread copies for all: it announces
the expected bytes to the mbarrier of a slot, and starts one copy per operand, or one per 64 rows
(columns) of an operand that is not contiguous along the reduction. All threads wait for the
mbarrier. A second mbarrier per slot counts the warps whose products no longer read it. So nothing
in the loop waits for all threads of the workgroup, and warpgroups may be a product apart.

    %map = nvgpu.tma.create.descriptor %a box[128, 64]      // by the host
    %full, %free = nvgpu.mbarrier.create                    // one of each for each slot
    nvgpu.mbarrier.init %full[0], 1 ... nvvm.fence.mbarrier.init, gpu.barrier    // once
    scf.for %k = 0 to 512 step 64 iter_args(%sums) {        // part i, at i mod stages
      nvgpu.mbarrier.try_wait.parity %full[%slot], %odd     // part i has arrived
      ... nvgpu.warpgroup.mma ... {waitGroup = 1}           // product i begins, i - 1 is done
      scf.if %first_lane { nvgpu.mbarrier.arrive %free[%slot of part i - 1] }
      scf.if %first_thread_and_not_past_the_end {           // part i + stages - 1
        nvgpu.mbarrier.try_wait.parity %free[%next], %odd   // all warps arrived
        nvgpu.mbarrier.arrive.expect_tx %full[%next], 32768
        nvgpu.tma.async.load %map[%row, %k + 192], %full[%next] to %as[%next] ...
      }
    }

The copies of a part start while product i runs, so the copying thread delays no product. TMA
writes and `wgmma` reads both use the async proxy, so no fence is needed. Parts are numbered across
all blocks of a workgroup, since mbarrier phases continue: part n is phase n / stages of mbarrier
n mod stages. Parts past the end of the reduction are not copied. The design is that of
`PipelineTmaAsync` of CUTLASS, without warps that only copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from irees.dialects.nvgpu import (
    MBarrierArriveExpectTxOp,
    MBarrierArriveOp,
    TmaAsyncLoadOp,
)
from irees.transforms.codegen.gpu.gpu_lower_warpgroup_contractions.warpgroup_contraction import (
    Ring,
    WarpgroupContraction,
)
from irees.transforms.codegen.gpu.utils.blocking import WarpgroupBlocking
from irees.transforms.codegen.gpu.utils.boxes import (
    POINTS,
    Box,
    boxes_of,
    forget_view,
    make_barriers,
    tensor_map_of,
    wait_for,
    workgroup_of,
)
from irees.transforms.codegen.gpu.utils.contraction import Indices
from irees.transforms.codegen.gpu.utils.operands import Side
from irees.transforms.codegen.gpu.utils.shares import Share
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.loops import if_else
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import static_ranges
from irees.transforms.utils.views import subview


class BulkContraction(WarpgroupContraction):
    """The lowering of one contraction with TMA copies in flight."""

    def __init__(
        self, op: linalg.GenericOp, blocking: WarpgroupBlocking, share: Share | None = None
    ):
        super().__init__(op, blocking, share)
        boxes = boxes_of(op, blocking, static_ranges(op))
        assert not isinstance(boxes, str), boxes
        self.boxes = boxes

    def lower(self) -> int:
        workgroup = workgroup_of(self.op)
        assert workgroup is not None
        host = IndexBuilder(InsertPoint.before(workgroup))
        self.maps = [tensor_map_of(box, host) for box in self.boxes]
        views = list(self.op.inputs)
        taken = super().lower()
        for view in views:
            forget_view(view)
        return taken

    def _is_turned(self, side: Side) -> bool:
        return self.boxes[side is self.columns].turned

    def _find_place(self, at: IndexBuilder) -> None:
        super()._find_place(at)
        loop = at.point.block.parent_op()
        assert loop is not None
        before = IndexBuilder(InsertPoint.before(loop))
        if self.share is not None:
            before = self.share.before
        warps = self.blocking.threads // WARP
        self.full, self.free = make_barriers(self.stages, (1, warps), before)
        zero = at.value(0)
        self.is_first = at.insert(arith.CmpiOp(self.thread, zero, "eq")).results[0]
        lane = at.value(at.rem(self.thread, WARP))
        self.is_leader = at.insert(arith.CmpiOp(lane, zero, "eq")).results[0]

    def _ring(self, ivs: Indices, row: Size, column: Size, at: IndexBuilder) -> Ring:
        if (share := self.share) is not None:
            # Parts are numbered per tile, mbarrier phases per workgroup: offset by the difference.
            before = at.sub(share.done, share.first)
            return BoxRing(self, ivs, (row, column), before, share.last)
        parts = -(-int(self.total) // self.blocking.depth)  # type: ignore[arg-type]
        number: Size = 0
        for loop in self.batch:
            number = at.add(at.mul(number, self.sizes[loop]), ivs[loop])
        blocks = (
            (row, self.row_count, self.blocking.rows),
            (column, self.column_count, self.blocking.columns),
        )
        for first, count, extent in blocks:
            number = at.mul(number, at.ceildiv(count, extent))
            number = at.add(number, at.floordiv(first, extent))
        return BoxRing(self, ivs, (row, column), at.mul(number, parts), parts)


@dataclass
class BoxRing:
    """A ring that thread 0 fills with TMA copies; the first lane of each warp releases slots."""

    contraction: BulkContraction
    ivs: Indices
    points: tuple[Size, Size]
    before: Size
    """Number of parts in earlier blocks."""
    parts: Size
    """End of the part numbers of this block."""

    @property
    def ahead(self) -> int:
        """How many parts are copied ahead: all slots but the one that the running product reads."""
        return self.contraction.stages - 1

    def slot(self, part: Size, at: IndexBuilder) -> Size:
        """Returns the slot of a part."""
        return at.rem(at.add(self.before, part), self.contraction.stages)

    def begin(self, part: Size, at: IndexBuilder) -> None:
        """Starts to copy both operands' boxes once the slot is free, if the part exists."""
        contraction, inside = self.contraction, self.contraction.is_first
        if isinstance(part, int) and isinstance(self.parts, int):
            if part >= self.parts:
                return
        else:
            inside = self._both(inside, part, "slt", self.parts, at)
        slot = at.value(self.slot(part, at))
        close, b = if_else(at, inside)
        if (phase := self._phase(part, b)) != 0:
            # In phase 0 this returns at once: the phase before the first counts as complete.
            wait_for(contraction.free, slot, b.add(phase, 1), b)
        maps = [m.type for m in contraction.maps]
        count = sum(
            box.copies * kind.bytes  # type: ignore[attr-defined]
            for box, kind in zip(contraction.boxes, maps, strict=True)
        )
        b.insert(MBarrierArriveExpectTxOp(contraction.full, slot, b.value(count)))
        for number in range(2):
            self._copy(number, part, slot, b)
        close()

    def _both(
        self, condition: SSAValue, left: Size, predicate: str, right: Size, at: IndexBuilder
    ) -> SSAValue:
        """Returns `condition` and a comparison."""
        test = at.insert(arith.CmpiOp(at.value(left), at.value(right), predicate)).results[0]
        return at.insert(arith.AndIOp(condition, test)).results[0]

    def _phase(self, part: Size, at: IndexBuilder) -> Size:
        """Returns the phase of the mbarriers of a part's slot."""
        return at.floordiv(at.add(self.before, part), self.contraction.stages)

    def _copy(self, number: int, part: Size, slot: SSAValue, at: IndexBuilder) -> None:
        """Starts the copies of one operand."""
        contraction = self.contraction
        box, side = contraction.boxes[number], contraction.sides[number]
        (step,) = [x for x in contraction.depth if contraction.sizes[x] != 1]
        where = {**self.ivs, step: at.mul(part, contraction.blocking.depth)}
        for copy in range(box.copies):
            if box.points is not None:
                where[box.points] = at.add(self.points[number], copy * POINTS)
            target = _part(side, box, slot, copy, at)
            places = box.coordinates(where, at)
            load = TmaAsyncLoadOp(contraction.maps[number], places, contraction.full, slot, target)
            at.insert(load)

    def take(self, part: Size, at: IndexBuilder) -> None:
        """Waits until a part is complete."""
        slot = at.value(self.contraction.slot)
        wait_for(self.contraction.full, slot, self._phase(part, at), at)

    def release(self, part: Size, at: IndexBuilder) -> None:
        """Frees the slot of the previous part, and starts to copy another part to it."""
        first = at.floordiv(self.contraction.first, self.contraction.blocking.depth)
        leads = self._both(self.contraction.is_leader, part, "sgt", first, at)
        self._arrive(at.sub(part, 1), leads, at)
        self.begin(at.add(part, self.ahead), at)

    def end(self, at: IndexBuilder) -> None:
        """Frees the slot of the last part, so that the phases continue in the next block."""
        if self.parts != 0:
            self._arrive(at.sub(self.parts, 1), self.contraction.is_leader, at)

    def _arrive(self, part: Size, leads: SSAValue, at: IndexBuilder) -> None:
        close, b = if_else(at, leads)
        b.insert(MBarrierArriveOp(self.contraction.free, b.value(self.slot(part, b))))
        close()


def _part(side: Side, box: Box, slot: Size, copy: int, at: IndexBuilder) -> SSAValue:
    """Returns the view of the tile that a copy writes its box to."""
    tile = side.tile.type
    assert isinstance(tile, MemRefType)
    *_, lines, row = tile.get_shape()
    offsets, sizes = (slot, 0, 0), (1, prod(box.shape[:-1]), row)
    if box.turned:
        offsets, sizes = (slot, copy, 0, 0), (1, 1, lines, row)
    kept = range(len(sizes) - 2, len(sizes))
    return at.insert(subview(side.tile, offsets, sizes, [1] * len(sizes), kept)).results[0]
