"""
Interleaves the chains of operations of one loop that do not depend on each other.

A reduction is summed in several accumulators, and what each of them adds may take a long chain of
operations, of which every one waits for the one before (the powers of a softmax: thirty
operations, sixty cycles and more). A processor begins what is ready among the few dozen operations
that wait in its schedulers. Where one chain stands after the other, it sees hardly two of them;
where their operations take turns, it sees all.

    %x0 = vector.load %t[%i]        %x0 = vector.load %t[%i]
    %r0 = arith.mulf %x0, %c        %x1 = vector.load %t[%j]
    ...                             %r0 = arith.mulf %x0, %c
    vector.store %p0, %o[%i]        %r1 = arith.mulf %x1, %c
    %x1 = vector.load %t[%j]    =>  ...
    %r1 = arith.mulf %x1, %c        ...
    ...                             vector.store %p0, %o[%i]
    vector.store %p1, %o[%j]        vector.store %p1, %o[%j]

Chains are what an innermost loop computes apart from constants, indices and values spread from
outside, which come first. They take turns if each is long and all are alike, op by op. Left alone
are loops with chains of at most 16 operations on vectors, of which a processor sees enough, with
one chain, and loops that read what they write: which iteration comes first may matter there. Each
chain computes what it did, in its order, so results stay the same bit for bit.

After Rau and Glaeser, "Some Scheduling Techniques and an Easily Schedulable Horizontal
Architecture" (1981); compilers schedule so where they allocate registers later, which gcc does not
do for x86.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from irees.analysis.distribution import root
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.cpu.use_nontemporal_stores import MOST_WORK, vector_work

NAME = "irees-interleave-chains"

Chain = list[Operation]


def leading_ops(ops: Sequence[Operation], block: Block) -> list[Operation]:
    """Constants, indices and values spread from outside, which depend on nothing else."""
    leading: dict[Operation, None] = {}
    for op in ops:
        spread = isinstance(op, arith.ConstantOp | vector.BroadcastOp)
        computed = any(isinstance(result.type, VectorType) for result in op.results)
        if not is_side_effect_free(op) or (computed and not spread):
            continue
        if all(_is_outside(o, block) or o.owner in leading for o in op.operands):
            leading[op] = None
    return list(leading)


def _is_outside(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return owner is block or (isinstance(owner, Operation) and owner.parent is not block)


def chains_of(ops: Sequence[Operation]) -> list[Chain]:
    """Ops with those that they depend on among them, chain by chain, each in order."""
    chain_of: dict[Operation, Chain] = {}
    for op in ops:
        owners = [operand.owner for operand in op.operands]
        before = [chain_of[owner] for owner in owners if owner in chain_of]
        # What joins chains makes them one: the longest takes in the others.
        chain: Chain = max(before, key=len, default=[])
        for other in before:
            if chain_of[other[0]] is not chain:
                chain += other
                chain_of.update(dict.fromkeys(other, chain))
        chain.append(op)
        chain_of[op] = chain
    place = {op: number for number, op in enumerate(ops)}
    chains = {id(chain): chain for chain in chain_of.values()}
    for chain in chains.values():
        chain.sort(key=place.__getitem__)
    return sorted(chains.values(), key=lambda chain: place[chain[0]])


def reads_what_it_writes(ops: Sequence[Operation]) -> bool:
    """Whether a buffer is read and written, or something else is done with memory."""
    read: set[SSAValue] = set()
    written: set[SSAValue] = set()
    for op in ops:
        if isinstance(op, vector.LoadOp):
            read.add(root(op.base))
        elif isinstance(op, vector.StoreOp):
            written.add(root(op.base))
        elif isinstance(op, memref.LoadOp):
            read.add(root(op.memref))
        elif not is_side_effect_free(op):
            return True
    return not read.isdisjoint(written)


def interleave(block: Block) -> None:
    """a0; a1; ...; b0; b1; ...  =>  a0; b0; a1; b1; ..."""
    terminator = block.last_op
    ops = [op for op in block.ops if op is not terminator]
    if terminator is None or vector_work(ops) <= 2 * MOST_WORK or any(op.regions for op in ops):
        return
    leading = leading_ops(ops, block)
    first = set(leading)
    chains = chains_of([op for op in ops if op not in first])
    if len(chains) < 2 or min(map(vector_work, chains)) <= MOST_WORK:
        return
    if len({tuple(op.name for op in chain) for chain in chains}) > 1:
        remark("missed", NAME, block.parent_op() or terminator, "the chains differ")
        return
    if reads_what_it_writes(ops):
        remark("missed", NAME, block.parent_op() or terminator, "it reads what it writes")
        return
    if not may_rewrite(NAME, terminator, f"{len(chains)} chains"):
        return
    for op in ops:
        op.detach()
    turns = [op for turn in zip(*chains, strict=True) for op in turn]
    block.insert_ops_before([*leading, *turns], terminator)


@dataclass(frozen=True)
class InterleaveChainsPass(ModulePass):
    """Long chains of operations of one loop that do not depend on each other take turns."""

    name = "irees-interleave-chains"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if isinstance(o, scf.ForOp)]:
            interleave(loop.body.block)
