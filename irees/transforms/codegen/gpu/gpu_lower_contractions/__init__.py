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
* Stream-K, if `irees-gpu-stream-k` chose it: workgroups share tiles (`utils/shares.py`).

Blocks for `wgmma` that `irees-gpu-lower-warpgroup-contractions` left use `mma.sync` in as many
threads.

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
from xdsl.passes import ModulePass

from irees.dialects.irees_target import gpu_of
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu.gpu_lower_contractions.matrix_contraction import (
    MatrixContraction,
)
from irees.transforms.codegen.gpu.utils.blocked_workgroups import Workgroup
from irees.transforms.codegen.gpu.utils.blocking import (
    WIDE_CANDIDATE,
    Blocking,
    MatrixBlocking,
    WarpgroupBlocking,
    blocking_of,
    why_no_blocks,
)
from irees.transforms.codegen.gpu.utils.contraction import Contraction
from irees.transforms.codegen.gpu.utils.segments import is_mapped
from irees.transforms.codegen.gpu.utils.staged_contraction import StagedContraction
from irees.transforms.utils.views import share_views


def blocking_by_warps(op: linalg.GenericOp) -> Blocking | MatrixBlocking:
    """Returns the blocking of an op, of as many threads for `mma.sync` if it is for `wgmma`."""
    blocking = blocking_of(op)
    return blocking.by_warps() if isinstance(blocking, WarpgroupBlocking) else blocking


def kind_of(blocking: Blocking | MatrixBlocking) -> type[Contraction]:
    """Returns the class that lowers a contraction in these blocks."""
    if isinstance(blocking, MatrixBlocking):
        return MatrixContraction
    return StagedContraction if blocking.stages > 1 else Contraction


@dataclass(frozen=True)
class GpuLowerContractionsPass(ModulePass):
    """Lowers contractions to blocked loops over shared memory and registers."""

    name = "irees-gpu-lower-contractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            workgroup = Workgroup.of(loop)
            for inner in workgroup.structured_ops():
                blocking, gpu = blocking_by_warps(inner), gpu_of(op)
                matrix = isinstance(blocking, MatrixBlocking)
                wide = matrix or blocking == WIDE_CANDIDATE
                room = gpu.matrix_shared_bytes if wide else gpu.shared_bytes
                reason = why_no_blocks(inner) or workgroup.why_not(inner, blocking, room)
                if reason is not None:
                    remark("missed", self.name, inner, reason)
                    continue
                if not may_rewrite(self.name, inner, "in blocks"):
                    return
                # The epilogue is found through its view of the output tile, so merge equal views.
                # Not for SIMT code, where the epilogue of a partial tile would spill.
                if matrix:
                    assert inner.parent is not None
                    share_views(inner.parent)
                workgroup.lower(inner, blocking, kind_of(blocking))
