"""
Allocates destinations of unused results in private memory of the thread.

An op in destination-passing style has a destination for each result, even for an unused result
that the op needs as scratch, such as the keys of a sort. After bufferization, such a destination
would be an allocation in global memory, which is illegal in kernels.

    %s:2 = iree_linalg_ext.sort outs(%keys, %places)                   // only %s#1 is used
  =>
    %p = bufferization.alloc_tensor() copy(%keys) {memory_space = #gpu.address_space<private>}
    %s:2 = iree_linalg_ext.sort outs(%p, %places)

The pass only handles destinations of fewer than 32 elements, ignoring dynamic dims, because private
memory is small. The irees pipeline plans scratch of any size for such results; this pass is for
IREE's form of kernels. IREE: `iree-codegen-gpu-alloc-private-memory-for-dps-ops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import bufferization
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr
from irees.targets.nvidia import NVIDIA


def allocate_private(op: Operation) -> None:
    """op outs(%unused)  =>  op outs(copy of %unused in private memory)"""
    outputs = list(getattr(op, "outputs", ()))
    if not outputs or len(outputs) != len(op.results):
        return
    for output, result in zip(outputs, op.results, strict=True):
        kind = output.type
        if result.uses or not isinstance(kind, TensorType):
            continue
        if prod(size for size in kind.get_shape() if size >= 0) >= NVIDIA.private_elements:
            continue
        private = bufferization.AllocTensorOp(kind, copy=output)
        private.attributes["memory_space"] = AddressSpaceAttr(AddressSpace.PRIVATE)
        private.location = op.location
        Rewriter.insert_op(private, InsertPoint.before(op))
        op.operands[list(op.operands).index(output)] = private.tensor


@dataclass(frozen=True)
class GpuAllocPrivateMemoryForDpsOpsPass(ModulePass):
    """Allocates the destinations of unused results in private memory."""

    name = "irees-gpu-alloc-private-memory-for-dps-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if len(o.results) > 0]:
            allocate_private(inner)
