"""
Uses nontemporal stores for outputs that are too large for the caches.

An ordinary store to an uncached line reads the line first and evicts another one. A kernel that
writes at least half the size of the last-level cache gains nothing from either: it overwrites the
whole line, and the line is evicted before it is read. A nontemporal store avoids both: a copy then
moves two bytes per byte copied, not three.

    vector.store %v, %out[%i] : memref<16777216xf32>, vector<16xf32>
  =>
    vector.store %v, %out[%i] {nontemporal = true} : memref<16777216xf32>, vector<16xf32>

A vector that is shorter than a line waits for the rest of the line in one of a few write-combining
buffers. In a compute-bound loop, this wait costs more than reading the line would. So a loop with
such vectors gets nontemporal stores only if it has at most 16 operations per store. Stores of whole
lines are always nontemporal.

The pass changes only stores to kernel arguments of static size that the kernel never reads. The
attribute is a hint, as in MLIR's `vector.store`: a printer may ignore it, and stores to addresses
that are not aligned to the vector's size are ordinary ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, vector
from xdsl.dialects.builtin import BoolAttr, MemRefType, ModuleOp, VectorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from irees.analysis.element_sizes import item_bytes
from irees.dialects.irees_target import target_of
from irees.dialects.storage import is_view, stored
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.utils.large_buffers import bytes_of
from irees.transforms.codegen.cpu.utils.loop_work import vector_work
from irees.transforms.utils.lanes import LINE


def written_only(buffer: SSAValue) -> list[vector.StoreOp] | None:
    """Returns the vector stores to a buffer and its views, or None if any other op may read it."""
    stores: list[vector.StoreOp] = []
    for use in buffer.uses:
        user = use.operation
        if isinstance(user, vector.StoreOp) and user.base is buffer:
            stores.append(user)
        elif is_view(user):
            inner = written_only(user.results[0])
            if inner is None:
                return None
            stores += inner
        elif stored(user) is not buffer:
            return None
    return stores


def leaves_at_once(store: vector.StoreOp) -> bool:
    """Whether a store is a whole line, or the loop around it is bandwidth-bound."""
    kind, block = store.vector.type, store.parent
    assert isinstance(kind, VectorType)
    assert block is not None
    if prod(kind.get_shape()) * item_bytes(kind.element_type) >= LINE:
        return True
    stores = sum(isinstance(o, vector.StoreOp) for o in block.ops)
    return vector_work(block.ops) <= CPU.bandwidth_bound_ops * stores


@dataclass(frozen=True)
class UseNontemporalStoresPass(ModulePass):
    """Makes stores to outputs of the target's `uncached_bytes` or more nontemporal."""

    name = "irees-use-nontemporal-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limit = target_of(op).uncached_bytes
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if function.is_declaration:
                continue
            for argument in function.body.block.args:
                if not isinstance(argument.type, MemRefType):
                    continue
                if bytes_of(argument.type) < limit:
                    continue
                for store in written_only(argument) or ():
                    if not leaves_at_once(store):
                        continue
                    if may_rewrite(self.name, store, "a store past the caches"):
                        store.properties["nontemporal"] = BoolAttr.from_bool(True)
