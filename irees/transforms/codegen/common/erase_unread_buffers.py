"""
Erases buffers of a kernel that nothing reads, with the stores to them.

    %m = memref.alloc() : memref<i64>
    scf.for %i = ... { ... }
    memref.store %last, %m[]
  =>
    scf.for %i = ... { ... }

An op that writes two results is lowered with a place for both; where the program uses one of them,
only stores are left of the other. Loops that computed nothing else go as well. What else is done
with a buffer, such as a copy from it or a branch that yields it, keeps it. MLIR:
`memref::eraseDeadAllocAndStores`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import region_dce

from irees.transforms.codegen.common.utils.surroundings import erase_unused_buffer
from irees.transforms.utils.memory_accesses import PLACES, VIEWS, memory_of

_STORES = tuple(name for name in PLACES if name.endswith(("store", "scatter")))
_LOOKS = (*VIEWS, memref.ExtractStridedMetaDataOp)


def stores_to(buffer: SSAValue) -> list[Operation] | None:
    """The stores to a buffer, through views, too; None where it has another use."""
    found: list[Operation] = []
    for use in buffer.uses:
        user = use.operation
        if isinstance(user, _LOOKS):
            beneath = stores_to(user.results[0])
            if beneath is None:
                return None
            found += beneath
        elif user.name in _STORES and memory_of(user) is buffer and not user.results:
            found.append(user)
        else:
            return None
    return found


def erase_unread(function: func.FuncOp) -> None:
    """Erases the buffers that nothing reads."""
    allocations = [o for o in function.walk() if isinstance(o, memref.AllocOp | memref.AllocaOp)]
    stores = {op: stores_to(op.memref) for op in allocations}
    for store in [store for found in stores.values() for store in found or ()]:
        Rewriter.erase_op(store)
    if any(stores.values()):
        region_dce(function.body)
    for op in allocations:
        erase_unused_buffer(op.memref)


@dataclass(frozen=True)
class EraseUnreadBuffersPass(ModulePass):
    """Buffers that are only written go, with what writes them."""

    name = "irees-erase-unread-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            erase_unread(function)
