"""
Lets one thread copy the operands of a product of warpgroups, in boxes.

Where each thread copies 16 bytes at a time (`cp.async`), it computes an address for each, and tests
whether it is inside. A GPU that multiplies by warpgroups has a unit which copies a box of a tensor
for one instruction of one thread, swizzled as the product reads it, with zeros for what is outside
(`cp.async.bulk.tensor`). That asks for a tensor map, which the host makes: of at most five dims,
the last one dense, with strides and a beginning that are multiples of 16 bytes. So both operands
must be boxes of buffers from outside of the workgroup, which it does not write to; else each thread
copies, and the remark says why. It comes before `irees-gpu-lower-contractions`, which does it.

    linalg.generic {lowering_config = #iree_codegen.lowering_config<{block = [128, 256, 64, 4]}>}
  =>
    linalg.generic {lowering_config =
        #iree_codegen.lowering_config<{block = [128, 256, 64, 4], bulk_copies = 1}>}

Windows, as those of a convolution, and operands along which the reduction goes by several dims stay
as they are, and so does what goes by single warps.
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
    """Products of warpgroups say whether their operands are copied in boxes."""

    name = "irees-gpu-use-bulk-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            for inner in structured_ops(loop):
                blocking = blocking_of(inner)
                if not isinstance(blocking, WarpgroupBlocking) or why_no_blocks(inner):
                    continue
                boxes = boxes_of(inner, blocking, static_ranges(inner))
                if isinstance(boxes, str):
                    remark("missed", self.name, inner, f"copies of single threads: {boxes}")
                    continue
                if not may_rewrite(self.name, inner, "in boxes"):
                    return
                entries = LoweringConfigAttr.on(inner).as_data() | {BULK_COPIES: 1}
                inner.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
