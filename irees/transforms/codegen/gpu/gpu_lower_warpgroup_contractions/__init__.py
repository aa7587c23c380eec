"""
Lowers contractions to `wgmma`: four warps multiply operands that stay in shared memory.

All products of a block are one instruction per slice of the reduction, which reads both operands
through descriptors of swizzled tiles (`warpgroup_contraction.py`). It runs while later slices are
copied, by all threads (`cp.async`), or by one thread (TMA) if `irees-gpu-use-bulk-copies` chose it
(`bulk_contraction.py`).

    linalg.generic ins(%a, %b : memref<128x512xf16>, memref<512x128xf16>)
        {lowering_config = #iree_codegen.lowering_config<{block = [128, 128, 64, 4]}>}
  =>
    %as = memref.alloc() : memref<4x128x64xf16, #gpu.address_space<workgroup>>    // and %bs
    scf.forall (%t) in (256) {
      %sums = scf.for %k = 0 to 512 step 64 iter_args(...) {
        ... wait for slice %k, begin to copy a later one ...
        %x, %y = nvgpu.warpgroup.generate.descriptor %as[%slot], %bs[%slot]
        nvgpu.warpgroup.mma %x, %y, %sums {waitGroup = 1}
      }
      ... store ...
    } {mapping = [#gpu.thread<linear_dim_0>]}

Sums are reassociated. The fill before and the elementwise op after are fused in registers, and
workgroups share tiles if `irees-gpu-stream-k` chose it (`utils/shares.py`).

Left to `irees-gpu-lower-contractions`, which uses `mma.sync`, with a remark: blocks that exceed the
registers or the shared memory of a workgroup, and operands that neither TMA nor threads can copy
(computed by the workgroup, not aligned, or along a dynamic reduction).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import gpu_of
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu.gpu_lower_warpgroup_contractions.bulk_contraction import (
    BulkContraction,
)
from irees.transforms.codegen.gpu.gpu_lower_warpgroup_contractions.warpgroup_contraction import (
    WarpgroupContraction,
)
from irees.transforms.codegen.gpu.utils.blocked_workgroups import Workgroup
from irees.transforms.codegen.gpu.utils.blocking import (
    WarpgroupBlocking,
    blocking_of,
    why_no_blocks,
)
from irees.transforms.codegen.gpu.utils.boxes import BULK_COPIES
from irees.transforms.codegen.gpu.utils.operands import why_no_thread_copies
from irees.transforms.codegen.gpu.utils.segments import is_mapped
from irees.transforms.utils.structured import static_ranges
from irees.transforms.utils.views import share_views


def takes_boxes(op: linalg.GenericOp) -> bool:
    """Whether TMA copies the operands of a contraction."""
    return bool(LoweringConfigAttr.on(op).int(BULK_COPIES))


def why_not(op: linalg.GenericOp, blocking: WarpgroupBlocking, workgroup: Workgroup) -> str | None:
    """Returns why `wgmma` cannot compute a contraction, or None."""
    reason = workgroup.why_not(op, blocking, gpu_of(op).shared_opt_in_bytes)
    if reason is None and not takes_boxes(op):
        return why_no_thread_copies(op, blocking, static_ranges(op))
    return reason


@dataclass(frozen=True)
class GpuLowerWarpgroupContractionsPass(ModulePass):
    """Lowers contractions to matrix instructions of warpgroups."""

    name = "irees-gpu-lower-warpgroup-contractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            workgroup = Workgroup.of(loop)
            for inner in workgroup.structured_ops():
                blocking = blocking_of(inner)
                if not isinstance(blocking, WarpgroupBlocking) or why_no_blocks(inner) is not None:
                    continue
                reason = why_not(inner, blocking, workgroup)
                if reason is not None:
                    remark("missed", self.name, inner, f"using mma.sync, not wgmma: {reason}")
                    continue
                if not may_rewrite(self.name, inner, "in blocks of warpgroups"):
                    return
                # The epilogue is found through its view of the output tile, so merge equal views.
                assert inner.parent is not None
                share_views(inner.parent)
                kind = BulkContraction if takes_boxes(inner) else WarpgroupContraction
                workgroup.lower(inner, blocking, kind)
