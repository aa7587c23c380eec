"""
Erases barriers of a workgroup that order no two accesses of different threads.

`irees-gpu-distribute-to-threads` and the passes before it put a barrier after each loop over
threads. It is needed only if an access before it and one after it may be to the same memory and one
of the two writes. Before and after reach to the next barrier on either side that stays.

    scf.forall (%t) in (128) { ... memref.load %partial[...] ; memref.store %m, %private[0] }
    gpu.barrier
    scf.forall (%t) in (128) { ... vector.load %x[...] ; vector.store %e, %exps[...] }
  =>
    scf.forall (%t) in (128) { ... }
    scf.forall (%t) in (128) { ... }

Two allocations are different memory; arguments of the kernel may be the same memory as each other.
Private memory needs no order. A barrier stays if an op beside it has effects that are not known:
asynchronous copies and products, atomics, other barriers inside of loops.

MLIR: `gpu-eliminate-barriers`, after Moses et al., "High-Performance GPU-to-CPU Transpilation and
Optimization via High-Level Parallel Constructs" (PPoPP 2023), section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.storage import accessed, loaded, root, stored
from irees.dialects.upstream.gpu import (
    AddressSpace,
    AddressSpaceAttr,
    BarrierOp,
    BlockMappingAttr,
    ShuffleOp,
)
from irees.dialects.upstream.scf import ForallOp
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu.utils.segments import is_free, is_mapped

PURE_DIALECTS = frozenset(("scf", "vector"))
"""Dialects whose ops have no effects but those of `storage.ACCESSES` and of their regions."""


@dataclass
class Effects:
    """The buffers that ops read and write; `known` is False if an op may have other effects."""

    reads: set[SSAValue] = field(default_factory=set[SSAValue])
    writes: set[SSAValue] = field(default_factory=set[SSAValue])
    known: bool = True

    def add(self, op: Operation) -> None:
        """Adds the effects of an op and of the ops in it."""
        for inner in op.walk():
            buffer = accessed(inner)
            if buffer is not None:
                self._access(inner, root(buffer))
            elif not is_pure(inner):
                self.known = False

    def _access(self, op: Operation, buffer: SSAValue) -> None:
        kind = buffer.type
        assert isinstance(kind, MemRefType)
        space = kind.memory_space
        if isinstance(space, AddressSpaceAttr) and space.data is AddressSpace.PRIVATE:
            return
        if loaded(op) is None:
            self.writes.add(buffer)
        if stored(op) is None:
            self.reads.add(buffer)

    def conflicts_with(self, other: Effects) -> bool:
        """Whether the two must stay in order: one may write what the other accesses."""
        if not self.known or not other.known:
            return True
        return any(
            may_overlap(a, b)
            for mine, theirs in (
                (self.writes, other.reads | other.writes),
                (self.reads, other.writes),
            )
            for a in mine
            for b in theirs
        )


def is_pure(op: Operation) -> bool:
    """Whether an op has no effects, apart from those of ops in its regions."""
    return is_free(op) or isinstance(op, ShuffleOp) or op.dialect_name() in PURE_DIALECTS


def may_overlap(a: SSAValue, b: SSAValue) -> bool:
    """Whether two buffers without views may share memory: the same one, or two arguments."""
    return a is b or (isinstance(a, BlockArgument) and isinstance(b, BlockArgument))


def eliminate(block: Block, pass_name: str) -> None:
    """Erases the barriers of a block that order nothing."""
    before = Effects()
    for op in list(block.ops):
        if not isinstance(op, BarrierOp):
            before.add(op)
            continue
        after = effects_after(op)
        if before.conflicts_with(after):
            before = Effects()
        elif may_rewrite(pass_name, op, "orders no accesses"):
            Rewriter.erase_op(op)
        else:
            return


def effects_after(barrier: BarrierOp) -> Effects:
    """Returns the effects of the ops from a barrier to the next one of its block."""
    found = Effects()
    op = barrier.next_op
    while op is not None and not isinstance(op, BarrierOp):
        found.add(op)
        op = op.next_op
    return found


@dataclass(frozen=True)
class GpuEliminateBarriersPass(ModulePass):
    """Erases barriers that order no accesses of different threads."""

    name = "irees-gpu-eliminate-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for workgroup in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(workgroup, ForallOp)
            eliminate(workgroup.region.block, self.name)
