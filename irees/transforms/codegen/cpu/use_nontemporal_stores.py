"""
Lets what a kernel writes pass by the caches, where it is too large for them anyway.

A store to memory first reads the line that it writes to, and drives out another one. A kernel that
writes half as much as the last-level cache holds, or more, gains nothing by either: the line is
written whole, and it is gone from the cache before somebody reads it. A nontemporal store does
neither; a copy then moves two bytes for a byte copied, not three.

    vector.store %v, %out[%i] : memref<16777216xf32>, vector<16xf32>
  =>
    vector.store %v, %out[%i] {nontemporal = true} : memref<16777216xf32>, vector<16xf32>

A vector that is a part of a line waits for the rest of it in one of a few buffers. Where much is
computed between the two, memory is not what a loop waits for, and that wait costs more than the
line that is not read (Zen 4, vectors of half a line: 1.02 to 1.04 of the time). So a loop over such
vectors has at most 16 operations for each store. Whole lines pass at any time: a GELU on two
threads takes 0.8 of it.

Only a buffer that the kernel gets from outside, whose size is known and which the kernel never
reads, is written so. It is a hint, as in MLIR's `vector.store`: a printer may ignore it, and stores
to addresses that are not multiples of the vector's size are ordinary ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, memref, vector
from xdsl.dialects.builtin import BoolAttr, MemRefType, ModuleOp, VectorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from irees.analysis.element_sizes import item_bytes
from irees.dialects.irees_target import target_of
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.utils.large_buffers import bytes_of
from irees.transforms.codegen.cpu.utils.loop_work import vector_work
from irees.transforms.utils.lanes import LINE


def written_only(buffer: SSAValue) -> list[vector.StoreOp] | None:
    """The vector stores to a buffer and its views, or None when anything reads it."""
    stores: list[vector.StoreOp] = []
    for use in buffer.uses:
        user = use.operation
        if isinstance(user, vector.StoreOp) and user.base is buffer:
            stores.append(user)
        elif isinstance(user, memref.SubviewOp):
            inner = written_only(user.result)
            if inner is None:
                return None
            stores += inner
        elif not (isinstance(user, memref.StoreOp) and user.memref is buffer):
            return None
    return stores


def leaves_at_once(store: vector.StoreOp) -> bool:
    """Whether a store is a whole line, or the loop around it does little but load and store."""
    kind, block = store.vector.type, store.parent
    assert isinstance(kind, VectorType)
    assert block is not None
    if prod(kind.get_shape()) * item_bytes(kind.element_type) >= LINE:
        return True
    stores = sum(isinstance(o, vector.StoreOp) for o in block.ops)
    return vector_work(block.ops) <= CPU.bandwidth_bound_ops * stores


@dataclass(frozen=True)
class UseNontemporalStoresPass(ModulePass):
    """Stores to outputs of `limit` bytes or more go past the caches."""

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
