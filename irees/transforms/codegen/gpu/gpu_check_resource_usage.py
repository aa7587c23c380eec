"""
Rejects kernels that need more shared memory than a workgroup of the target can have.

    func.func @f() { memref.alloc() : memref<274432xi8, #gpu.address_space<workgroup>> }
  =>
    error: func.func: uses 274432 bytes of shared memory; exceeded the limit of 65536 bytes

The limit is the `shared_opt_in_bytes` of `#irees.target`. The pass adds up all static allocations
of a workgroup, without overflow; an index has eight bytes. Workgroup loops of a function run one
after another, so only the largest counts, plus the allocations outside all of them. A dynamic
allocation is an error, because no bound is known. Passes that choose tile sizes check footprints
earlier; this is the final check. IREE: `iree-codegen-gpu-check-resource-usage`.

Raises LimitExceededError.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.dialects.irees_target import gpu_of
from irees.dialects.nvgpu import MBarrierCreateOp
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.errors import LimitExceededError
from irees.transforms.codegen.gpu.utils.segments import is_mapped
from irees.transforms.utils.footprint import shared_memory


def shared_bytes(op: Operation) -> int:
    """Returns the shared memory of an op in bytes: its allocations and mbarriers."""
    barriers = sum(o.barriers.type.bytes for o in op.walk() if isinstance(o, MBarrierCreateOp))
    return shared_memory(op).known + barriers


@dataclass(frozen=True)
class GpuCheckResourceUsagePass(ModulePass):
    """Checks the shared memory of every function against the limit of the target's GPU."""

    name = "irees-gpu-check-resource-usage"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limit = gpu_of(op).shared_opt_in_bytes
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            whole = shared_memory(function)
            for allocation in whole.dynamic:
                raise LimitExceededError(
                    "a shared memory allocation has a dynamic size",
                    op=allocation,
                    hint="give it a static shape, or a bound to allocate",
                )
            launches = [o for o in function.walk() if is_mapped(o, BlockMappingAttr)]
            each = [shared_bytes(o) for o in launches]
            used = shared_bytes(function) - sum(each) + max(each, default=0)
            if used > limit:
                raise LimitExceededError(
                    f"uses {used} bytes of shared memory; exceeded the limit of {limit} bytes",
                    op=function,
                    hint="use smaller tiles, or fewer ops in one kernel",
                )
