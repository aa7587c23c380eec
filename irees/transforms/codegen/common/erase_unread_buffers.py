"""
Erases buffers of a kernel that are never read, with the stores to them.

    %m = memref.alloc() : memref<i64>
    scf.for %i = ... { ... }
    memref.store %last, %m[]
  =>
    scf.for %i = ... { ... }

An op with two results is lowered with a buffer for each; if the program uses only one result, only
stores to the other buffer remain. Loops that become dead are erased, too. Any other use of a
buffer, such as a copy from it or a branch that yields it, keeps it. MLIR:
`memref::eraseDeadAllocAndStores`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import region_dce

from irees.dialects.storage import is_allocation, is_view, stored
from irees.transforms.codegen.common.utils.surroundings import erase_unused_buffer


def stores_to(buffer: SSAValue) -> list[Operation] | None:
    """Returns the stores to a buffer and its views, or None if it has other uses."""
    found: list[Operation] = []
    for use in buffer.uses:
        user = use.operation
        if is_view(user):
            beneath = stores_to(user.results[0])
            if beneath is None:
                return None
            found += beneath
        elif stored(user) is buffer and not user.results:
            found.append(user)
        else:
            return None
    return found


def erase_unread(function: func.FuncOp) -> None:
    """Erases the buffers that are never read."""
    allocations = [o for o in function.walk() if is_allocation(o)]
    stores = {op: stores_to(op.results[0]) for op in allocations}
    for store in [store for found in stores.values() for store in found or ()]:
        Rewriter.erase_op(store)
    if any(stores.values()):
        region_dce(function.body)
    for op in allocations:
        erase_unused_buffer(op.results[0])


@dataclass(frozen=True)
class EraseUnreadBuffersPass(ModulePass):
    """Erases write-only buffers and the stores to them."""

    name = "irees-erase-unread-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            erase_unread(function)
