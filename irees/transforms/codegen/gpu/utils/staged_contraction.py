"""
Lowers one contraction with asynchronous, multi-stage copies to shared memory (`cp.async`). Part of
`irees-gpu-lower-contractions` and `irees-gpu-lower-warpgroup-contractions`.

The copy of a slice of both operands starts `stages` - 1 iterations before it is multiplied, so one
barrier per iteration is enough. An operand that is contiguous along the reduction is transposed by
copying single elements; the other is copied 16 bytes at a time. Operands that the workgroup
computes may be in shared memory already, so they use the synchronous path.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from irees.dialects.nvgpu import (
    DeviceAsyncCopyOp,
    DeviceAsyncCreateGroupOp,
    DeviceAsyncWaitOp,
)
from irees.dialects.upstream.gpu import BarrierOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.blocking import WIDE_CANDIDATE
from irees.transforms.codegen.gpu.utils.contraction import Access, Contraction, Indices
from irees.transforms.codegen.gpu.utils.operands import is_outside
from irees.transforms.utils.lanes import lane_bytes
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

COPIED_BYTES = (4, 8, 16)
"""Sizes of one asynchronous copy, in bytes."""


class StagedContraction(Contraction):
    """The lowering of one contraction with copies in flight."""

    def _choose_stages(self) -> int:
        """Returns several stages if the operands can be copied unconverted, else 1."""
        size = lane_bytes(self.element)
        widths = [1 if side.along_depth else side.lanes for side in self.sides]
        if not all(
            not side.widen and width * size in COPIED_BYTES and is_outside(self.op, side)
            for side, width in zip(self.sides, widths, strict=True)
        ):
            return 1
        elements = [s.extent * self.blocking.depth // w for s, w in zip(self.sides, widths)]
        wide = self.blocking == WIDE_CANDIDATE
        most = NVIDIA.wide_copies if wide else NVIDIA.copies_per_thread
        if sum(n // self.blocking.threads for n in elements) > most:
            return 1
        for side, width in zip(self.sides, widths, strict=True):
            side.lanes = width
        return self.blocking.stages

    def _block(self, ivs: Indices, row: Size, column: Size, at: IndexBuilder) -> None:
        if self.stages == 1:
            super()._block(ivs, row, column, at)
            return
        ahead, depth = self.stages - 1, self.blocking.depth
        rows, columns = self._my_points(row, column, at)
        sums = self._first_sums(ivs, rows, columns, at)
        accesses = self._all_accesses(ivs, row, column, at)
        for number in range(ahead):
            slot = at.rem(at.add(at.floordiv(self.first, depth), number), self.stages)
            begun = self._copy(accesses, at.add(self.first, number * depth), slot, at)
        body, first, b = for_loop(at, self.first, self.end, depth, sums)
        part = b.floordiv(first, depth)
        self.slot = b.rem(part, self.stages)
        b.insert(DeviceAsyncWaitOp(begun, ahead - 1))
        # Makes all copies visible, and no thread still reads the slot that is overwritten next.
        b.insert(BarrierOp())
        following = b.rem(b.add(part, ahead), self.stages)
        self._copy(accesses, b.add(first, ahead * depth), following, b)
        results = body(self._multiplied(body.arguments, first, b))
        at.insert(DeviceAsyncWaitOp(begun, 0))
        at.insert(BarrierOp())
        self._close(results, ivs, rows, columns, at)

    def _copy(
        self, accesses: list[list[Access]], first: Size, slot: Size, at: IndexBuilder
    ) -> SSAValue:
        """Starts to copy a slice of both operands, as one group."""
        begun: list[SSAValue] = []
        for side, mine in zip(self.sides, accesses, strict=True):
            for access in mine:
                where = self._source(side, access, first, at)
                source = self.points.indices(side.operand, where, at)
                step, end = at.value(at.add(first, access.depth)), at.value(self.end)
                inside = at.insert(arith.CmpiOp(step, end, "slt")).results[0]
                some, none = at.value(side.lanes), at.value(0)
                count = at.insert(arith.SelectOp(inside, some, none)).results[0]
                target = self._place_of(side, access, slot, at)
                copy = DeviceAsyncCopyOp(
                    self.op.operands[side.operand], source, side.tile, target, side.lanes, count
                )
                begun.append(at.insert(copy).results[0])
        return at.insert(DeviceAsyncCreateGroupOp(begun)).results[0]
