"""
Lowers one f16/bf16 attention to `wgmma`. Part of `irees-gpu-lower-attention`.

The loop is that of `register_attention.py`. A warpgroup holds 64 rows of queries, and both products
read keys and values from shared memory through descriptors, so no thread loads fragments. One
thread copies with TMA: the queries once, and each tile of keys and values while the tile before is
in use. The sums of a product have the layout of the left operand of `irees.warpgroup_mma`, so the
exponentials stay in registers, too.

    %full = nvgpu.mbarrier.create                           // one per slot, and one for queries
    scf.for %i = 0 to 2048 step 64 iter_args(%m, %s, %r) {
      nvgpu.mbarrier.try_wait.parity %full[%slot], %odd     // tile i has arrived
      gpu.barrier                                           // tile i - 1 is no longer read
      scf.if %first_thread { ... nvgpu.tma.async.load ... } // tile i + 1
      %t = nvgpu.warpgroup.mma %q, %k[%slot], %zero         // per 64 features
      ...
      %r = irees.warpgroup_mma %exponentials, %v[%slot], %rescaled
    }

A tile row is 128 bytes, so features are split into blocks of 64, each with its own box and
descriptor. FlashAttention-3 (Shah et al., 2024) uses the same products, but overlaps the
exponentials of a warpgroup with products of the same warpgroup; here other warpgroups fill the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from irees.dialects.irees import WarpgroupAccumulatorOp, WarpgroupMmaOp, WarpgroupSumsOp
from irees.dialects.nvgpu import (
    MBarrierArriveExpectTxOp,
    TmaAsyncLoadOp,
    WarpgroupGenerateDescriptorOp,
    WarpgroupMmaInitAccumulatorOp,
)
from irees.dialects.nvgpu import WarpgroupMmaOp as SharedMmaOp
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BarrierOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.gpu_lower_attention.register_attention import RegisterAttention
from irees.transforms.codegen.gpu.utils.attention_forms import (
    STAGES,
    boxes_of_attention,
)
from irees.transforms.codegen.gpu.utils.blocking import (
    WARPGROUP_ROWS,
    WARPGROUP_THREADS,
    AttentionBlocking,
    WarpgroupBlocking,
)
from irees.transforms.codegen.gpu.utils.boxes import (
    POINTS,
    forget_view,
    make_barriers,
    tensor_map_of,
    wait_for,
    workgroup_of,
)
from irees.transforms.utils.loops import if_else
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.views import subview


@dataclass
class WarpgroupAttention(RegisterAttention):
    """The lowering of one op whose operands are boxes."""

    def __post_init__(self) -> None:
        blocking = AttentionBlocking.on(self.op)
        assert blocking is not None
        self.warpgroups, self.threads = blocking.rows // WARPGROUP_ROWS, blocking.threads

    def lower(self, at: IndexBuilder) -> None:
        boxes = boxes_of_attention(self.op)
        assert not isinstance(boxes, str), boxes
        self.boxes = boxes
        workgroup = workgroup_of(self.op)
        assert workgroup is not None
        host = IndexBuilder(InsertPoint.before(workgroup))
        self.descriptors = [tensor_map_of(box, host) for box in boxes]
        views = [self.op.query, self.op.key, self.op.value]
        super().lower(at)
        for view in views:
            forget_view(view)

    def _keys_per_tile(self) -> int:
        return NVIDIA.attention_columns

    def _allocate(self, at: IndexBuilder) -> None:
        """Allocates the tiles, in blocks of 64 features, and the mbarriers."""
        self.blocks = [self.depth // POINTS, self.depth // POINTS, self.width // POINTS]
        lines = (self.warpgroups * WARPGROUP_ROWS, self.columns, self.columns)
        slots = (1, STAGES, STAGES)
        space = AddressSpaceAttr(AddressSpace.WORKGROUP)
        self.tiles = []
        for slot, block, line in zip(slots, self.blocks, lines, strict=True):
            shape = [slot, block, line, POINTS]
            op = memref.AllocOp.get(
                self.narrow, WarpgroupBlocking.alignment, shape, memory_space=space
            )
            self.tiles.append(at.insert(op).results[0])
        (self.full,) = make_barriers(STAGES + 1, (1,), at)

    def _find_place(self, thread: SSAValue, at: IndexBuilder) -> None:
        super()._find_place(thread, at)
        self.first_row = at.mul(at.floordiv(thread, WARPGROUP_THREADS), WARPGROUP_ROWS)
        test = arith.CmpiOp(thread, at.value(0), "eq")
        self.is_first = at.insert(test).results[0]

    # --- copies ----------------------------------------------------------------------------------

    def _begin(self, at: IndexBuilder) -> None:
        """Starts to copy the queries and the first tile, and waits for the queries."""
        close, b = if_else(at, self.is_first)
        starts = [{self.m: row} for row in range(0, self.warpgroups * WARPGROUP_ROWS, 64)]
        self._load([(0, self.k1, starts)], 0, STAGES, b)
        self._load_tile(0, b.value(0), b)
        close()
        wait_for(self.full, STAGES, 0, at)

    def _load_tile(self, first: Size, slot: SSAValue, at: IndexBuilder) -> None:
        """Starts to copy the keys and values from `first` on."""
        start: list[dict[int, Size]] = [{self.k2: first}]
        self._load([(1, self.k1, start), (2, self.n, start)], slot, slot, at)

    def _load(
        self,
        operands: Sequence[tuple[int, int, Sequence[dict[int, Size]]]],
        slot: Size,
        barrier: Size,
        at: IndexBuilder,
    ) -> None:
        """
        Starts the copies of some operands, by one thread. Each is given by its operand number, its
        feature loop, and the start indices of its boxes along the other loops.
        """
        number = at.value(barrier)
        kinds = [descriptor.type for descriptor in self.descriptors]
        count = sum(
            len(starts) * self.blocks[position] * kinds[position].bytes  # type: ignore
            for position, _, starts in operands
        )
        at.insert(MBarrierArriveExpectTxOp(self.full, number, at.value(count)))
        for position, loop, starts in operands:
            for block in range(self.blocks[position]):
                for row, start in enumerate(starts):
                    where = start | {loop: POINTS * block}
                    offsets = (slot, block, WARPGROUP_ROWS * row, 0)
                    sizes = (1, 1, prod(self.boxes[position].shape[:-1]), POINTS)
                    target = subview(self.tiles[position], offsets, sizes, [1] * 4, range(2, 4))
                    places = self.boxes[position].coordinates(where, at)
                    load = TmaAsyncLoadOp(
                        self.descriptors[position], places, self.full, number,
                        at.insert(target).results[0],
                    )  # fmt: skip
                    at.insert(load)

    def _take(self, first: SSAValue, at: IndexBuilder) -> Size:
        part = at.floordiv(first, self.columns)
        slot = at.rem(part, STAGES)
        wait_for(self.full, slot, at.floordiv(part, STAGES), at)
        # No thread still reads the slot that is overwritten next.
        at.insert(BarrierOp())
        following = at.add(first, self.columns)
        test = arith.CmpiOp(at.value(following), at.value(self.keys), "slt")
        more = arith.AndIOp(self.is_first, at.insert(test).results[0])
        close, b = if_else(at, at.insert(more).results[0])
        self._load_tile(following, b.value(b.rem(b.add(part, 1), STAGES)), b)
        close()
        return slot

    def _end(self, at: IndexBuilder) -> None:
        """Does nothing: every started copy has been waited for."""

    # --- products --------------------------------------------------------------------------------

    def _descriptor(
        self, position: int, offsets: Sequence[Size], sizes: Sequence[int], at: IndexBuilder
    ) -> SSAValue:
        kept = [axis for axis, size in enumerate(sizes) if axis > 1 or (position == 2 and axis)]
        view = subview(self.tiles[position], offsets, sizes, [1] * 4, kept)
        return at.insert(WarpgroupGenerateDescriptorOp(at.insert(view).results[0])).results[0]

    def _products(self, slot: Size, at: IndexBuilder) -> list[SSAValue]:
        sums = at.insert(WarpgroupMmaInitAccumulatorOp(WARPGROUP_ROWS, self.columns)).results[0]
        for block in range(self.blocks[0]):
            wide = WARPGROUP_ROWS, POINTS
            left = self._descriptor(0, (0, block, self.first_row, 0), (1, 1, *wide), at)
            wide = self.columns, POINTS
            right = self._descriptor(1, (slot, block, 0, 0), (1, 1, *wide), at)
            left_over = 0 if block == self.blocks[0] - 1 else 1
            op = SharedMmaOp(left, right, sums, wait=left_over, turned=(False, False))
            sums = at.insert(op).results[0]
        return [*at.insert(WarpgroupSumsOp(sums)).results]

    def _times_values(
        self, words: list[SSAValue], results: list[SSAValue], slot: Size, at: IndexBuilder
    ) -> list[SSAValue]:
        sizes = (1, self.blocks[2], self.columns, POINTS)
        right = self._descriptor(2, (slot, 0, 0, 0), sizes, at)
        sums = at.insert(WarpgroupAccumulatorOp(results)).results[0]
        product = at.insert(WarpgroupMmaOp(words, right, sums, turned=True)).results[0]
        return [*at.insert(WarpgroupSumsOp(product)).results]
