"""
Refuses a kernel that needs more shared memory than a workgroup has.

    func.func @f() { memref.alloc() : memref<274432xi8, #gpu.address_space<workgroup>> }
  =>
    error: func.func: uses 274432 bytes of shared memory; exceeded the limit of 65536 bytes

The sum is over all allocations of a workgroup, in Python's integers; an index takes eight bytes.
Workgroups of a function that are launched one after another do not share theirs: each is counted
by itself, with what is outside of them all. An allocation whose size is known only at run time
cannot be promised to fit and is refused by name. It is the last check: what decides on tiles asks
for footprints before. IREE: `iree-codegen-gpu-check-resource-usage`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.dialects.nvgpu import MBarrierCreateOp
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.errors import LimitExceededError
from irees.transforms.codegen.gpu.utils.segments import is_mapped
from irees.transforms.utils.footprint import footprint


def shared_bytes(op: Operation) -> int:
    """What the allocations in an op take together, and the barriers that copies have."""
    barriers = sum(o.barriers.type.bytes for o in op.walk() if isinstance(o, MBarrierCreateOp))
    return footprint(op, memref.AllocOp, "workgroup").known + barriers


@dataclass(frozen=True)
class GpuCheckResourceUsagePass(ModulePass):
    """Shared memory of every function stays below `limit` bytes."""

    name = "irees-gpu-check-resource-usage"

    limit: int = 65536

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            whole = footprint(function, memref.AllocOp, "workgroup")
            for allocation in whole.dynamic:
                raise LimitExceededError(
                    "a shared memory allocation whose size is not known when it is compiled",
                    op=allocation,
                    hint="give it a static shape, or a bound to allocate",
                )
            launches = [o for o in function.walk() if is_mapped(o, BlockMappingAttr)]
            each = [shared_bytes(o) for o in launches]
            used = shared_bytes(function) - sum(each) + max(each, default=0)
            if used > self.limit:
                raise LimitExceededError(
                    f"uses {used} bytes of shared memory; exceeded the limit of {self.limit} bytes",
                    op=function,
                    hint="smaller tiles, or fewer ops in one kernel",
                )
