"""
Computes contractions in blocks: a workgroup has parts of both operands in shared memory, a thread
has its part of the output in registers.

For each part of the reduction loops all threads fetch what the workgroup reads of both operands,
neighbours fetching neighbours, 16 bytes at a time where all is aligned to it; after a barrier
each thread multiplies its rows with its columns, while the next part is on its way to registers.
Rows and columns may be several loops each, and what an operand is indexed by may be any sum of
loops, so that a convolution is the same nest (implicit GEMM).

    linalg.generic ins(%a, %b : memref<64x512xf32>, memref<512x64xf32>) outs(%c : memref<64x64xf32>)
  =>
    %as = memref.alloc() : memref<1x16x68xf32, #gpu.address_space<workgroup>>   // and %bs
    scf.forall (%t) in (256) {
      %acc:4 = scf.for %k = 0 to 512 step 16 iter_args(..., %next_a = %a[...], ...) {
        vector.store %next_a, %as[0, ...] ...
        gpu.barrier
        %a[... %k + 16 ...] ...
        scf.for %kk = 0 to 16 { %acc[i] + %as[0, %kk, 4 * %ty + i] * %bs[0, %kk, ...] }
        gpu.barrier
      }
      ... store ...
    } {mapping = [#gpu.thread<linear_dim_0>]}

Products of f16 or bf16 into f32 go by matrix instructions (`irees.mma_sync`) where the strategy
says so; those sum in an order of their own. So do products of f32 that may be rounded to tf32, and
products of i8 into i32, exactly. Where the strategy asks for stages, parts of operands that come
from outside are copied to shared memory (`nvgpu.device_async_copy`) while others are multiplied.
Where it asks for warpgroups, four warps multiply what is in shared memory while later parts arrive
(`nvgpu.warpgroup.mma`); where their operands cannot be copied so, the block goes by single warps.
Parts of those come by copies of all threads, or in boxes that one thread asks for, where
`irees-gpu-use-bulk-copies` says so. Where `irees-gpu-stream-k` does, workgroups share tiles, by
steps of the reduction (`utils/shares.py`). But for that and for matrix instructions each element of
the output is summed in the order of the loops, so `fp=strict` keeps its bits. Rows and columns past
the end are fetched as the last ones and not stored. The fill before and the elementwise op after
are done in registers (`codegen/common/_surroundings.py`). An op whose elements have no vectors, or
with rows only, is left for `irees-gpu-distribute-to-threads`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu.gpu_lower_contractions.bulk_contraction import BulkContraction
from irees.transforms.codegen.gpu.utils.blocking import (
    AnyBlocking,
    Blocking,
    MatrixBlocking,
    WarpgroupBlocking,
    blocking_of,
    fits,
    why_no_blocks,
)
from irees.transforms.codegen.gpu.utils.boxes import BULK_COPIES
from irees.transforms.codegen.gpu.utils.contraction import Contraction
from irees.transforms.codegen.gpu.utils.matrix_contraction import MatrixContraction
from irees.transforms.codegen.gpu.utils.segments import is_mapped, set_threads, structured_ops
from irees.transforms.codegen.gpu.utils.shares import (
    FLAG_BYTES,
    Share,
    depth_of,
    share_tiles,
    shares_of,
)
from irees.transforms.codegen.gpu.utils.staged_contraction import StagedContraction
from irees.transforms.codegen.gpu.utils.warpgroup_contraction import WarpgroupContraction
from irees.transforms.utils.structured import static_ranges
from irees.transforms.utils.views import share_views


def takes_boxes(op: linalg.GenericOp) -> bool:
    """Whether a product of warpgroups has its operands copied in boxes."""
    return bool(LoweringConfigAttr.on(op).int(BULK_COPIES))


def lower(op: linalg.GenericOp, blocking: AnyBlocking, share: Share | None) -> int:
    """Replaces the op by its loops; returns the bytes of shared memory that they take."""
    if isinstance(blocking, WarpgroupBlocking):
        kind = BulkContraction if takes_boxes(op) else WarpgroupContraction
        return kind(op, blocking, share).lower()
    if isinstance(blocking, MatrixBlocking):
        return MatrixContraction(op, blocking, share).lower()
    kind = StagedContraction if blocking.stages > 1 else Contraction
    return kind(op, blocking, share).lower()


def shared(loop: Operation, op: linalg.GenericOp, blocking: AnyBlocking) -> Share | None:
    """The share of a workgroup, where tiles are shared: the loop is one over workgroups then."""
    shares = shares_of(op)
    if shares is None:
        return None
    assert isinstance(loop, ForallOp)
    share = share_tiles(loop, *shares, -(-depth_of(op) // blocking.depth))
    share.guard_start(op)
    return share


@dataclass(frozen=True)
class GpuLowerContractionsPass(ModulePass):
    """Contractions become blocks in shared memory and registers."""

    name = "irees-gpu-lower-contractions"

    shared_bytes: int = 48 << 10
    matrix_shared_bytes: int = 48 << 10
    warpgroup_shared_bytes: int = 48 << 10

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            taken = 0
            count: int | None = None
            for inner in structured_ops(loop):
                if inner.parent is None:
                    continue
                reason = why_no_blocks(inner)
                if reason == "no contraction":
                    continue
                blocking = self._blocking(inner, taken)
                reason = reason or fits(blocking, inner, self._room(blocking) - taken)
                if reason is None and count not in (None, blocking.threads):
                    reason = f"{blocking.threads} threads, and the workgroup has {count}"
                if reason is not None:
                    remark("missed", self.name, inner, reason)
                    continue
                if not may_rewrite(self.name, inner, "in blocks"):
                    return
                # What follows a product is found by the view that both have of its tile. Where a
                # tile is cut, views differ: threads that add up alone have no registers for it.
                if not isinstance(blocking, Blocking):
                    share_views(inner.parent)
                count = blocking.threads
                set_threads(loop, count)
                share = shared(loop, inner, blocking)
                taken += lower(inner, blocking, share)
                if share is not None:
                    share.guard_rest()
                    taken += FLAG_BYTES

    def _room(self, blocking: AnyBlocking) -> int:
        """What a workgroup may have of shared memory."""
        if isinstance(blocking, WarpgroupBlocking):
            return self.warpgroup_shared_bytes
        matrix = isinstance(blocking, MatrixBlocking)
        return self.matrix_shared_bytes if matrix else self.shared_bytes

    def _blocking(self, op: linalg.GenericOp, taken: int) -> AnyBlocking:
        """The blocking of an op; by single warps where warpgroups cannot."""
        blocking = blocking_of(op)
        if not isinstance(blocking, WarpgroupBlocking) or why_no_blocks(op) is not None:
            return blocking
        reason = fits(blocking, op, self._room(blocking) - taken)
        if reason is None and not takes_boxes(op):
            reason = WarpgroupContraction(op, blocking).why_not(static_ranges(op))
        if reason is None:
            return blocking
        remark("missed", self.name, op, f"by single warps: {reason}")
        return blocking.by_warps()
