"""
Gives a destination that is only scratch to the thread.

An op in destination-passing style must have a destination for each result, also for one that
nobody reads but that it needs, as a sort needs its keys. Bufferized as it is, such a
destination would be an allocation in global memory, which a kernel may not make.

    %s:2 = iree_linalg_ext.sort outs(%keys, %places)                   // only %s#1 is used
  =>
    %p = bufferization.alloc_tensor() copy(%keys) {memory_space = #gpu.address_space<private>}
    %s:2 = iree_linalg_ext.sort outs(%p, %places)

Only for fewer than 32 elements, dynamic dims not counted: a thread's own memory is small.
irees' pipeline plans scratch for such results of any size; this pass is for IREE's form of
kernels. IREE: `iree-codegen-gpu-alloc-private-memory-for-dps-ops`.
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

MAX_ELEMENTS = 32


def allocate_private(op: Operation) -> None:
    """op outs(%unused)  =>  op outs(copy of %unused in private memory)"""
    outputs = list(getattr(op, "outputs", ()))
    if not outputs or len(outputs) != len(op.results):
        return
    for output, result in zip(outputs, op.results, strict=True):
        kind = output.type
        if result.uses or not isinstance(kind, TensorType):
            continue
        if prod(size for size in kind.get_shape() if size >= 0) >= MAX_ELEMENTS:
            continue
        private = bufferization.AllocTensorOp(kind, copy=output)
        private.attributes["memory_space"] = AddressSpaceAttr(AddressSpace.PRIVATE)
        private.location = op.location
        Rewriter.insert_op(private, InsertPoint.before(op))
        op.operands[list(op.operands).index(output)] = private.tensor


@dataclass(frozen=True)
class GpuAllocPrivateMemoryForDpsOpsPass(ModulePass):
    """Destinations of unused results become private memory."""

    name = "irees-gpu-alloc-private-memory-for-dps-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if len(o.results) > 0]:
            allocate_private(inner)
