"""
Lowers one contraction to `wgmma`. Part of `irees-gpu-lower-warpgroup-contractions`.

A warpgroup multiplies 64 rows with all columns of the block and reads both operands from shared
memory through descriptors. Tiles therefore use a layout that descriptors support: rows of 128 bytes
(64 or 32 if the slice of the reduction is shorter), with 16-byte pieces swizzled in groups of eight
rows, which avoids bank conflicts. An operand that is contiguous along the reduction has one tile
row per row (or column). Otherwise, a tile row is one step of the reduction for 64 rows (or
columns), with one block of tile rows per 64, and `wgmma` transposes it.

    scf.for %k = 0 to 512 step 64 iter_args(%sums) {      // part i, at i mod stages
      nvgpu.device_async_wait ...                         // of part i, by each thread for its own
      nvvm.fence.proxy                                    // products read through another proxy
      gpu.barrier                                         // all of part i has arrived
      nvgpu.device_async_copy ...                         // part i + stages - 2 begins
      %a = nvgpu.warpgroup.generate.descriptor ...
      nvgpu.warpgroup.mma %a, %b, %sums {waitGroup = 1}   // product i begins, i - 1 is done
    }

The copy overwrites the slot of product i - 2: every thread has waited for that product by the
barrier, while product i - 1 is still running. Accumulators start at 0, and initial values are added
at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import copysign
from typing import Protocol

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from irees.dialects.irees import WarpgroupSumsOp
from irees.dialects.nvgpu import (
    DeviceAsyncWaitOp,
    WarpgroupGenerateDescriptorOp,
    WarpgroupMmaInitAccumulatorOp,
    WarpgroupMmaOp,
)
from irees.dialects.nvvm import FenceProxyOp, WgmmaWaitGroupOp
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BarrierOp
from irees.transforms.codegen.gpu.utils.blocking import WARPGROUP_ROWS, WarpgroupBlocking
from irees.transforms.codegen.gpu.utils.boxes import POINTS
from irees.transforms.codegen.gpu.utils.contraction import Access, Indices
from irees.transforms.codegen.gpu.utils.fragments import FragmentContraction
from irees.transforms.codegen.gpu.utils.operands import Side
from irees.transforms.codegen.gpu.utils.shares import Share
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.views import subview

PIECE = 16
"""Granularity of a swizzle, in bytes."""


class Ring(Protocol):
    """Ring buffer of operand slices in shared memory; `wgmma` uses up to two slots at a time."""

    ahead: int
    """Number of slices that are copied ahead of the first product."""

    def slot(self, part: Size, at: IndexBuilder) -> Size:
        """Returns the slot in shared memory that holds a slice."""
        ...

    def begin(self, part: Size, at: IndexBuilder) -> None:
        """Starts to copy a slice."""
        ...

    def take(self, part: Size, at: IndexBuilder) -> None:
        """Waits until the whole slice is visible to `wgmma`."""
        ...

    def release(self, part: Size, at: IndexBuilder) -> None:
        """Reuses the slot of the previous slice: its product is done, and that of `part` runs."""
        ...

    def end(self, at: IndexBuilder) -> None:
        """Drains the copies in flight."""
        ...


class WarpgroupContraction(FragmentContraction):
    """The lowering of one contraction to `wgmma`."""

    blocking: WarpgroupBlocking  # type: ignore[assignment]

    def __init__(
        self, op: linalg.GenericOp, blocking: WarpgroupBlocking, share: Share | None = None
    ):
        super().__init__(op, blocking, share)  # type: ignore[arg-type]

    def _choose_stages(self) -> int:
        return self.blocking.stages

    def _tile(self, side: Side, at: IndexBuilder) -> SSAValue:
        depth, shape = self.blocking.depth, [side.extent, self.blocking.depth]
        if self._is_turned(side):
            shape = [side.extent // POINTS, depth, POINTS]
        space = AddressSpaceAttr(AddressSpace.WORKGROUP)
        kind = MemRefType(self.narrow, [self.stages, *shape], memory_space=space)
        alignment = self.blocking.alignment
        alloc = memref.AllocOp.get(self.narrow, alignment, kind.get_shape(), memory_space=space)
        return at.insert(alloc).results[0]

    def _find_place(self, at: IndexBuilder) -> None:
        super()._find_place(at)
        warpgroup = at.floordiv(self.thread, 2 * WARPGROUP_ROWS)
        self.warpgroup_row = at.mul(warpgroup, WARPGROUP_ROWS)

    def _place_of(self, side: Side, access: Access, slot: Size, at: IndexBuilder) -> list[SSAValue]:
        """Returns the swizzled indices: the piece number xor the row number, modulo 8 rows."""
        turned = self._is_turned(side)
        line, column, row = access.place, access.depth, self.blocking.depth
        blocks: list[Size] = []
        if turned:
            line, column, row = access.depth, at.rem(access.place, POINTS), POINTS
            blocks = [at.floordiv(access.place, POINTS)]
        pieces = row * self.bytes // PIECE
        number = at.rem(at.floordiv(line, 8 // pieces), pieces)
        moved = at.value(at.mul(number, PIECE // self.bytes))
        column = at.insert(arith.XOrIOp(at.value(column), moved)).results[0]
        return [at.value(i) for i in (slot, *blocks, line, column)]

    # --- products -------------------------------------------------------------------------------

    def _descriptor(self, side: Side, first: Size, count: int, at: IndexBuilder) -> SSAValue:
        """Returns a descriptor of `count` rows (columns) of a side in the current slot."""
        depth, tile = self.blocking.depth, side.tile
        if self._is_turned(side):
            blocks = at.floordiv(first, POINTS)
            offsets, sizes = (self.slot, blocks, 0, 0), (1, count // POINTS, depth, POINTS)
        else:
            offsets, sizes = (self.slot, first, 0), (1, count, depth)
        kept = range(1, len(sizes))
        part = at.insert(subview(tile, offsets, sizes, [1] * len(sizes), kept)).results[0]
        return at.insert(WarpgroupGenerateDescriptorOp(part)).results[0]

    def _multiplied(
        self, sums: Sequence[SSAValue], first: SSAValue, at: IndexBuilder
    ) -> list[SSAValue]:
        """Starts the product of the current slice; at most the previous one stays in flight."""
        left = self._descriptor(self.rows, self.warpgroup_row, WARPGROUP_ROWS, at)
        right = self._descriptor(self.columns, 0, self.blocking.columns, at)
        turned = self._is_turned(self.rows), self._is_turned(self.columns)
        op = WarpgroupMmaOp(left, right, sums[0], wait=1, turned=turned)
        return [at.insert(op).results[0]]

    def _block(self, ivs: Indices, row: Size, column: Size, at: IndexBuilder) -> None:
        depth = self.blocking.depth
        rows, columns = self._my_points(row, column, at)
        ring = self._ring(ivs, row, column, at)
        for number in range(ring.ahead):
            ring.begin(at.add(at.floordiv(self.first, depth), number), at)
        zeros = at.insert(WarpgroupMmaInitAccumulatorOp(WARPGROUP_ROWS, self.blocking.columns))
        body, first, b = for_loop(at, self.first, self.end, depth, zeros.results)
        part = b.floordiv(first, depth)
        self.slot = ring.slot(part, b)
        ring.take(part, b)
        products = self._multiplied(body.arguments, first, b)
        ring.release(part, b)
        (product,) = body(products)
        at.insert(WgmmaWaitGroupOp(0))
        ring.end(at)
        at.insert(BarrierOp())
        sums: list[SSAValue] = [*at.insert(WarpgroupSumsOp(product)).results]
        if self.share is None and not self._starts_at_zero():
            start = self._start(ivs, rows, columns, at)
            sums = [at.insert(arith.AddfOp(a, b)).results[0] for a, b in zip(start, sums)]
        self._close(sums, ivs, rows, columns, at)

    def _ring(self, ivs: Indices, row: Size, column: Size, at: IndexBuilder) -> Ring:
        """Returns the ring that copies the operand slices of a block."""
        return ThreadRing(self, self._all_accesses(ivs, row, column, at))

    def copy_part(
        self, accesses: list[list[Access]], part: Size, slot: Size, at: IndexBuilder
    ) -> SSAValue:
        """Starts this thread's copies of a slice, as one group."""
        return self._copy(accesses, at.mul(part, self.blocking.depth), slot, at)

    def _starts_at_zero(self) -> bool:
        """Whether the initial value is +0.0, which the accumulators start with anyway."""
        value = None if self.start is None else self.start.value
        return (
            isinstance(value, FloatAttr) and copysign(1, value.value.data) > 0 == value.value.data
        )


@dataclass
class ThreadRing:
    """A ring that every thread fills with its own copies (`cp.async`), zero-filled at the end."""

    contraction: WarpgroupContraction
    accesses: list[list[Access]]
    begun: SSAValue = field(init=False)

    @property
    def ahead(self) -> int:
        """Number of slices copied ahead: all slots but the two that products may read."""
        return self.contraction.stages - 2

    def slot(self, part: Size, at: IndexBuilder) -> Size:
        """Returns the slot in shared memory that holds a slice."""
        return at.rem(part, self.contraction.stages)

    def begin(self, part: Size, at: IndexBuilder) -> None:
        """Starts this thread's copies of a slice."""
        self.begun = self.contraction.copy_part(self.accesses, part, self.slot(part, at), at)

    def take(self, part: Size, at: IndexBuilder) -> None:
        """
        Waits for a slice, and starts the copies of a later one to the slot of product `part` - 2.

        The proxy fence makes this thread's copies visible to `wgmma`, and the barrier those of all
        threads. Every thread has waited for product `part` - 2 by then.
        """
        at.insert(DeviceAsyncWaitOp(self.begun, self.ahead - 1))
        at.insert(FenceProxyOp())
        at.insert(BarrierOp())
        self.begin(at.add(part, self.ahead), at)

    def release(self, part: Size, at: IndexBuilder) -> None:
        """Does nothing: the barrier of the next slice is enough."""

    def end(self, at: IndexBuilder) -> None:
        """Drains the last copies, which no product reads."""
        at.insert(DeviceAsyncWaitOp(self.begun, 0))
