"""
Computes scalars of a workgroup by every thread instead of by thread 0.

The last step of a reduction and the elementwise ops on its result (a mean, a reciprocal) have one
result per workgroup. Thread 0 would compute it while all others wait, and they would wait again
until it is in shared memory. If every thread computes the same value into a register of its own,
nobody waits: `irees-gpu-eliminate-barriers` erases the barrier.

    %s = memref.alloca() : memref<1xf32>
    scf.forall (%t) in (1) {
      ... %sum = ... memref.load %partial[%t, 3] ; memref.store %sum, %s[%t]
    } {mapping = [#gpu.thread<linear_dim_0>]}
  =>
    %s = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
    scf.forall (%t) in (128) {
      ... %sum = ... memref.load %partial[0, 3] ; memref.store %sum, %s[0]
    } {mapping = [#gpu.thread<linear_dim_0>]}

A buffer of one element qualifies if all its accesses are loads and stores inside loops over
threads, and all its stores are in loops of one thread that store to nothing else but such buffers
and do not read the buffer they store to. The stores then have the same value in all threads, so it
does not matter whose copy a thread reads. A constant that a loop of one thread stores, such as the
initial value of a reduction, replaces the loads of it in later loops first.

IREE distributes such ops the same way: a thread-level tile of size 1 is computed by all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, MemRefType, ModuleOp, NoneAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.storage import (
    accessed,
    is_allocation,
    is_on_stack,
    loaded,
    root,
    stored,
    users,
)
from irees.dialects.upstream.gpu import (
    AddressSpace,
    AddressSpaceAttr,
    BlockMappingAttr,
    ThreadMappingAttr,
)
from irees.dialects.upstream.scf import ForallOp
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu.utils.segments import (
    is_free,
    is_mapped,
    threads_per_workgroup,
)
from irees.transforms.codegen.gpu.utils.warps import put

PURE = frozenset("scf.forall.in_parallel vector.broadcast vector.extract vector.reduction".split())
"""Ops that every thread may execute, beside loads and those that `is_free` knows."""


def thread_loop(op: Operation) -> ForallOp | None:
    """Returns the loop over threads around an op, or None."""
    found = op.parent_op()
    while found is not None and not is_mapped(found, ThreadMappingAttr):
        found = found.parent_op()
    return found if isinstance(found, ForallOp) else None


def is_of_one_thread(loop: ForallOp) -> bool:
    """Whether only thread 0 runs a loop."""
    bounds = loop.properties.get("staticUpperBound")
    return isinstance(bounds, DenseArrayBase) and list(bounds.get_values()) == [1]


def writers_of(buffer: SSAValue) -> set[ForallOp] | None:
    """Returns the loops of one thread that store to a scalar buffer; None if it has other uses."""
    found: set[ForallOp] = set()
    for op in users(buffer):
        loop = thread_loop(op)
        if loop is None or (loaded(op) is None and stored(op) is None):
            return None
        if (target := stored(op)) is not None:
            if root(target) is not buffer or not is_of_one_thread(loop):
                return None
            found.add(loop)
    return found


def may_repeat(loop: ForallOp, scalars: set[SSAValue]) -> bool:
    """Whether all threads may run a loop of one thread that stores to these buffers."""
    written: set[SSAValue] = set()
    read: set[SSAValue] = set()
    for op in loop.region.block.ops:
        if (buffer := stored(op)) is not None:
            written.add(root(buffer))
        elif (buffer := loaded(op)) is not None:
            read.add(root(buffer))
        elif not is_free(op) and op.name not in PURE:
            return False
    return written <= scalars and not written & read


def repeat(loop: ForallOp, threads: int) -> None:
    """scf.forall (%t) in (1)  =>  scf.forall (%t) in (threads), with 0 for %t in its body"""
    block = loop.region.block
    zero = arith.ConstantOp(IntegerAttr(0, block.args[0].type))
    Rewriter.insert_op(zero, InsertPoint.at_start(block))
    block.args[0].replace_all_uses_with(zero.result)
    loop.properties["staticUpperBound"] = DenseArrayBase.from_list(i64, [threads])


def on_stack(buffer: SSAValue) -> SSAValue:
    """Returns a buffer that is allocated on the stack in place of this one."""
    owner, kind = buffer.owner, buffer.type
    assert isinstance(owner, Operation)
    assert isinstance(kind, MemRefType)
    if is_on_stack(owner):
        return buffer
    new = memref.AllocaOp.build(operands=[[], []], result_types=[kind])
    Rewriter.replace_op(owner, new)
    return new.memref


def buffers_of(workgroup: ForallOp) -> list[SSAValue]:
    """Returns the buffers of one element that the threads of a workgroup share."""
    found: list[SSAValue] = []
    for op in workgroup.walk():
        if is_allocation(op) and thread_loop(op) is None:
            kind = op.results[0].type
            assert isinstance(kind, MemRefType)
            if isinstance(kind.memory_space, NoneAttr) and all(n == 1 for n in kind.get_shape()):
                found.append(op.results[0])
    return found


def forward_constants(block: Block, buffers: Sequence[SSAValue]) -> None:
    """store %c, %s ; ... ; load %s  =>  store %c, %s ; ... ; %c, in loops of one thread"""
    known: dict[SSAValue, arith.ConstantOp] = {}
    for loop in block.ops:
        accesses = [(o, root(b)) for o in loop.walk() if (b := accessed(o)) is not None]
        alone = isinstance(loop, ForallOp) and is_of_one_thread(loop)
        # A store of an op inside of the loop may precede its loads: those of a later iteration.
        changed = {
            b for o, b in accesses if loaded(o) is None and not (alone and o.parent_op() is loop)
        }
        for buffer in changed:
            known.pop(buffer, None)
        if alone:
            forward(known, [(o, b) for o, b in accesses if b in buffers and b not in changed])


def forward(
    known: dict[SSAValue, arith.ConstantOp], accesses: Sequence[tuple[Operation, SSAValue]]
) -> None:
    """Replaces the loads of known constants, in order; records what is stored."""
    for op, buffer in accesses:
        if loaded(op) is not None:
            if buffer in known and op.results[0].type == known[buffer].result.type:
                Rewriter.replace_op(op, known[buffer].clone())
            continue
        known.pop(buffer, None)
        if isinstance(value := op.operands[0].owner, arith.ConstantOp):
            known[buffer] = value


def scalars_of(workgroup: ForallOp, buffers: Sequence[SSAValue]) -> dict[SSAValue, set[ForallOp]]:
    """Returns the buffers that every thread may compute, and the loops that store to them."""
    found: dict[SSAValue, set[ForallOp]] = {}
    for buffer in buffers:
        if writers := writers_of(buffer):
            found[buffer] = writers
    while True:
        scalars = set(found)
        bad = [b for b, loops in found.items() if not all(may_repeat(x, scalars) for x in loops)]
        if not bad:
            return found
        for buffer in bad:
            del found[buffer]


@dataclass(frozen=True)
class GpuReplicateScalarsPass(ModulePass):
    """Computes scalars of a workgroup by every thread instead of by thread 0."""

    name = "irees-gpu-replicate-scalars"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for workgroup in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(workgroup, ForallOp)
            threads = threads_per_workgroup(workgroup)
            buffers = buffers_of(workgroup)
            if not buffers or not may_rewrite(self.name, workgroup, "scalars by every thread"):
                continue
            forward_constants(workgroup.region.block, buffers)
            scalars = scalars_of(workgroup, buffers)
            for loop in dict.fromkeys(loop for loops in scalars.values() for loop in loops):
                repeat(loop, threads)
            for buffer in scalars:
                put(on_stack(buffer), AddressSpaceAttr(AddressSpace.PRIVATE))
