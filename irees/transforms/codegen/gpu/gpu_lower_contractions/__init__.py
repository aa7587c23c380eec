"""
Lowers contractions to blocked loops: operand tiles in shared memory, accumulators in registers.

For each slice of the reduction loops, all threads load the operand tiles of the workgroup,
coalesced and 16 bytes at a time if alignment permits. After a barrier, each thread multiplies its
rows with its columns while its loads of the next slice are in flight. Rows and columns may be
several loops each, and operands may be indexed by sums of loops, so convolutions use the same code
(implicit GEMM).

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

The blocking in the lowering config selects the variant:

* Matrix instructions (`irees.mma_sync`): f16 or bf16 into f32, f32 rounded to tf32, i8 into i32.
* Several stages: asynchronous copies (`nvgpu.device_async_copy`) of global operands fill the next
  stages while one is multiplied.
* Warpgroups (`nvgpu.warpgroup.mma`): operands stay in shared memory, filled by `cp.async`, or by
  TMA if `irees-gpu-use-bulk-copies` chose it. Operands that permit neither use `mma.sync`.
* Stream-K, if `irees-gpu-stream-k` chose it: workgroups share tiles (`utils/shares.py`).

Except for float matrix instructions and stream-K, each element is summed in loop order, so
`fp=strict` results are bit-exact. Out-of-range rows and columns are clamped when loaded and not
stored. The fill before and the elementwise op after are fused in registers
(`codegen/common/utils/surroundings.py`). Left to `irees-gpu-distribute-to-threads`: ops whose
elements have no vector type, and products without rows or columns (matrix-vector).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import gpu_of
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.target import GpuFacts
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
from irees.transforms.codegen.gpu.utils.operands import why_no_thread_copies
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
    """Whether TMA copies the operands of a `wgmma` contraction."""
    return bool(LoweringConfigAttr.on(op).int(BULK_COPIES))


def lower(op: linalg.GenericOp, blocking: AnyBlocking, share: Share | None) -> int:
    """Replaces the op with its loops; returns their shared memory in bytes."""
    if isinstance(blocking, WarpgroupBlocking):
        kind = BulkContraction if takes_boxes(op) else WarpgroupContraction
        return kind(op, blocking, share).lower()
    if isinstance(blocking, MatrixBlocking):
        return MatrixContraction(op, blocking, share).lower()
    kind = StagedContraction if blocking.stages > 1 else Contraction
    return kind(op, blocking, share).lower()


def shared(loop: Operation, op: linalg.GenericOp, blocking: AnyBlocking) -> Share | None:
    """Distributes tiles by stream-K if configured; returns a workgroup's share, or None."""
    shares = shares_of(op)
    if shares is None:
        return None
    assert isinstance(loop, ForallOp)
    share = share_tiles(loop, *shares, -(-depth_of(op) // blocking.depth))
    share.guard_start(op)
    return share


@dataclass(frozen=True)
class GpuLowerContractionsPass(ModulePass):
    """Lowers contractions to blocked loops over shared memory and registers."""

    name = "irees-gpu-lower-contractions"

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
                reason = reason or fits(blocking, inner, self._room(blocking, gpu_of(op)) - taken)
                if reason is None and count not in (None, blocking.threads):
                    reason = f"{blocking.threads} threads, and the workgroup has {count}"
                if reason is not None:
                    remark("missed", self.name, inner, reason)
                    continue
                if not may_rewrite(self.name, inner, "in blocks"):
                    return
                # The epilogue is found through its view of the output tile, so merge equal views.
                # Not for SIMT code, where the epilogue of a partial tile would spill.
                if not isinstance(blocking, Blocking):
                    share_views(inner.parent)
                count = blocking.threads
                set_threads(loop, count)
                share = shared(loop, inner, blocking)
                taken += lower(inner, blocking, share)
                if share is not None:
                    share.guard_rest()
                    taken += FLAG_BYTES

    @staticmethod
    def _room(blocking: AnyBlocking, gpu: GpuFacts) -> int:
        """Returns the shared memory that a workgroup may use, in bytes."""
        if isinstance(blocking, WarpgroupBlocking):
            return gpu.shared_opt_in_bytes
        matrix = isinstance(blocking, MatrixBlocking)
        return gpu.matrix_shared_bytes if matrix else gpu.shared_bytes

    def _blocking(self, op: linalg.GenericOp, taken: int) -> AnyBlocking:
        """Returns the blocking of an op; falls back to `mma.sync` if `wgmma` cannot be used."""
        blocking = blocking_of(op)
        if not isinstance(blocking, WarpgroupBlocking) or why_no_blocks(op) is not None:
            return blocking
        reason = fits(blocking, op, self._room(blocking, gpu_of(op)) - taken)
        if reason is None and not takes_boxes(op):
            reason = why_no_thread_copies(op, blocking, static_ranges(op))
        if reason is None:
            return blocking
        remark("missed", self.name, op, f"using mma.sync, not wgmma: {reason}")
        return blocking.by_warps()
