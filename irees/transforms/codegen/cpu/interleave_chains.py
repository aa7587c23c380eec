"""
Interleaves independent dependence chains of an innermost loop to expose instruction-level
parallelism.

A reduction has several accumulators, and each added value may take a long chain of dependent
operations (the exponentials of a softmax: 30 operations, over 60 cycles). An out-of-order core
issues ready operations from a scheduler window of a few dozen. If chains follow each other, the
window covers hardly two of them; interleaved, it covers all.

    %x0 = vector.load %t[%i]        %x0 = vector.load %t[%i]
    %r0 = arith.mulf %x0, %c        %x1 = vector.load %t[%j]
    ...                             %r0 = arith.mulf %x0, %c
    vector.store %p0, %o[%i]        %r1 = arith.mulf %x1, %c
    %x1 = vector.load %t[%j]    =>  ...
    %r1 = arith.mulf %x1, %c        ...
    ...                             vector.store %p0, %o[%i]
    vector.store %p1, %o[%j]        vector.store %p1, %o[%j]

Chains are the connected components of the loop body, without the constants, index arithmetic and
broadcasts that are placed first. They are interleaved if each is long and all have the same op
sequence. A loop with one chain and no carried values is first unrolled by four, three or
two, whichever divides the trip count.

Short chains of carried values (sums that `irees-pipeline-workgroups` adds) are distributed evenly
among the operations before the first store.

Left unchanged: chains of at most 16 vector operations, which the scheduler window covers, and loops
that read a buffer they write, where iteration order may matter. The order within each chain is
kept, so results are bit-identical.

After Rau and Glaeser, "Some Scheduling Techniques and an Easily Schedulable Horizontal
Architecture" (1981). Compilers that schedule before register allocation do this themselves; gcc on
x86 does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from irees.dialects.storage import loaded, root
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.utils.loop_work import vector_work
from irees.transforms.utils.shapes import IndexBuilder, constant_value

NAME = "irees-interleave-chains"


Chain = list[Operation]


def leading_ops(ops: Sequence[Operation], block: Block) -> list[Operation]:
    """Returns constants, index arithmetic and broadcasts that depend on no other op."""
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
    """Partitions ops into connected dependence chains, each in program order."""
    chain_of: dict[Operation, Chain] = {}
    for op in ops:
        owners = [operand.owner for operand in op.operands]
        before = [chain_of[owner] for owner in owners if owner in chain_of]
        # An op that uses several chains merges them into the longest.
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
    """Whether a buffer is both read and written, or an op has another side effect."""
    read: set[SSAValue] = set()
    written: set[SSAValue] = set()
    for op in ops:
        if (buffer := loaded(op)) is not None:
            read.add(root(buffer))
        elif isinstance(op, vector.StoreOp):
            written.add(root(op.base))
        elif not is_side_effect_free(op):
            return True
    return not read.isdisjoint(written)


def unroll_factor(loop: scf.ForOp, work: int) -> int:
    """Returns the unroll factor of a loop with one chain; it divides the trip count."""
    begin, end, step = (constant_value(v) for v in (loop.lb, loop.ub, loop.step))
    if loop.results or begin is None or end is None or step is None or step <= 0:
        return 1
    trips = max(0, -(-(end - begin) // step))
    most = CPU.scheduler_ops
    fitting = (n for n in CPU.chain_unroll if trips % n == 0 and (n == 2 or n * work <= most))
    return next(fitting, 1) if trips else 1


def unroll(loop: scf.ForOp, factor: int) -> None:
    """for %i by %s { a(%i) }  =>  for %i by 2 * %s { a(%i); a(%i + %s) }"""
    block, step = loop.body.block, constant_value(loop.step)
    terminator = block.last_op
    assert step is not None
    assert terminator is not None
    ops = [op for op in block.ops if op is not terminator]
    at = IndexBuilder(InsertPoint.before(terminator))
    for turn in range(1, factor):
        values = {block.args[0]: at.value(at.add(block.args[0], turn * step))}
        for op in ops:
            at.insert(op.clone(value_mapper=values))
    loop.operands[2] = IndexBuilder(InsertPoint.before(loop)).value(factor * step)


def spread(ops: Sequence[Operation], among: Sequence[Operation]) -> list[Operation]:
    """Distributes `ops` evenly among the ops of `among`."""
    merged: list[Operation] = []
    placed = 0
    for number, op in enumerate(among, 1):
        due = number * len(ops) // len(among)
        merged += [op, *ops[placed:due]]
        placed = due
    return merged


@dataclass(frozen=True)
class Body:
    """The ops of a loop body, without its terminator."""

    leading: list[Operation]
    long: list[Chain]
    """Chains to interleave."""
    short: list[Operation]
    """Ops of all other chains, in program order."""

    @staticmethod
    def of(loop: scf.ForOp) -> Body:
        """Splits the body of a loop."""
        block = loop.body.block
        ops = [op for op in block.ops if op is not block.last_op]
        leading = leading_ops(ops, block)
        first = set(leading)
        chains = chains_of([op for op in ops if op not in first])
        long = [chain for chain in chains if _is_long(chain)]
        placed = first.union(*long)
        return Body(leading, long, [op for op in ops if op not in placed])

    def interleaved(self) -> list[Operation]:
        """Returns all ops in their new order."""
        turned = [op for turn in zip(*self.long, strict=True) for op in turn]
        # A nontemporal store is a branch in C; C compilers form no FMA across branches.
        stores = [isinstance(op, vector.StoreOp) for op in turned]
        end = stores.index(True) if True in stores else len(stores)
        return [*self.leading, *spread(self.short, turned[:end]), *turned[end:]]


def _is_long(ops: Sequence[Operation]) -> bool:
    return vector_work(ops) > CPU.bandwidth_bound_ops


def why_not(body: Body, ops: Sequence[Operation]) -> str | None:
    """Returns the reason why the chains of a body cannot be interleaved, or None."""
    if len({tuple(op.name for op in chain) for chain in body.long}) > 1:
        return "their op sequences differ"
    return "the loop reads a buffer it writes" if reads_what_it_writes(ops) else None


def interleave(loop: scf.ForOp) -> None:
    """a0; a1; ...; b0; b1; ...  =>  a0; b0; a1; b1; ..."""
    *ops, terminator = loop.body.block.ops
    if not _is_long(ops) or any(op.regions for op in ops):
        return
    body = Body.of(loop)
    if not body.long or (body.short and not loop.results):
        return
    factor = unroll_factor(loop, vector_work(ops)) if len(body.long) == 1 else 1
    chains = len(body.long) * factor
    if chains == 1 and not body.short:
        return
    reason = why_not(body, ops)
    if reason is not None:
        remark("missed", NAME, loop, f"chains not interleaved: {reason}")
        return
    if not may_rewrite(NAME, loop, f"{chains} chains"):
        return
    if factor > 1:
        unroll(loop, factor)
        body = Body.of(loop)
    order = body.interleaved()
    for op in order:
        op.detach()
    loop.body.block.insert_ops_before(order, terminator)


@dataclass(frozen=True)
class InterleaveChainsPass(ModulePass):
    """Interleaves long independent dependence chains of a loop body."""

    name = "irees-interleave-chains"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if isinstance(o, scf.ForOp)]:
            interleave(loop)
