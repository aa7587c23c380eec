"""
Selects the `wgmma` contractions whose operands are copied with TMA (bulk tensor copies).

With `cp.async`, each thread copies 16 bytes at a time, computes every address and checks bounds.
GPUs with `wgmma` have a unit (TMA) that copies a box of a tensor with one instruction of a single
thread, swizzled as `wgmma` reads it, with zeros out of bounds (`cp.async.bulk.tensor`). It needs a
tensor map that the host creates: at most five dims, the last one dense, and a start and strides
that are multiples of 16 bytes. Both operands must therefore be boxes of buffers from outside the
workgroup that the workgroup does not write. Otherwise all threads copy, and a remark says why. The
pass runs before `irees-gpu-lower-warpgroup-contractions`, which emits the copies.

    linalg.generic {lowering_config = #iree_codegen.lowering_config<{block = [128, 256, 64, 4]}>}
  =>
    linalg.generic {lowering_config =
        #iree_codegen.lowering_config<{block = [128, 256, 64, 4], bulk_copies = 1}>}

Windows (convolutions), operands with several reduction dims, and `mma.sync` contractions are left
unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu.utils.blocking import (
    WarpgroupBlocking,
    blocking_of,
    why_no_blocks,
)
from irees.transforms.codegen.gpu.utils.boxes import BULK_COPIES, boxes_of
from irees.transforms.codegen.gpu.utils.segments import is_mapped, structured_ops
from irees.transforms.utils.structured import static_ranges


@dataclass(frozen=True)
class GpuUseBulkCopiesPass(ModulePass):
    """Marks the `wgmma` contractions whose operands are copied with TMA."""

    name = "irees-gpu-use-bulk-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            for inner in structured_ops(loop):
                blocking = blocking_of(inner)
                if not isinstance(blocking, WarpgroupBlocking) or why_no_blocks(inner):
                    continue
                boxes = boxes_of(inner, blocking, static_ranges(inner))
                if isinstance(boxes, str):
                    remark("missed", self.name, inner, f"not using TMA: {boxes}")
                    continue
                if not may_rewrite(self.name, inner, "in boxes"):
                    return
                entries = LoweringConfigAttr.on(inner).as_data() | {BULK_COPIES: 1}
                inner.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
