"""
Rejects kernels that use more stack than every thread is guaranteed to have.

    func.func @f() { memref.alloca() : memref<65536xf32> }
  =>
    error: func.func: uses 262144 bytes of stack; exceeded the limit of 32768 bytes

Only `memref.alloca` allocates on the stack. Larger buffers of a kernel are `memref.alloc`: scratch
memory of any size, placed by the memory planner. A stack allocation of dynamic size is always an
error: it has overflowed stacks before (iree-org/iree#24735). IREE: the stack check of
`LLVMCPUCheckIRBeforeLLVMConversion`, limit 32 KiB.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.dialects.irees_target import target_of
from irees.errors import LimitExceededError
from irees.transforms.utils.footprint import stack


@dataclass(frozen=True)
class CpuCheckResourceUsagePass(ModulePass):
    """Rejects functions that use more than `limit` bytes of stack."""

    name = "irees-cpu-check-resource-usage"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limit = target_of(op).stack_bytes
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            used = stack(function)
            for allocation in used.dynamic:
                raise LimitExceededError(
                    "a stack allocation has a dynamic size",
                    op=allocation,
                    hint="allocate it with memref.alloc: that is scratch memory of any size",
                )
            if used.known > limit:
                raise LimitExceededError(
                    f"uses {used.known} bytes of stack; exceeded the limit of {limit} bytes",
                    op=function,
                    hint="allocate with memref.alloc: that is scratch memory of any size",
                )
