"""
Groups the ops that become one kernel.

Ops are taken in order. Each joins the group of a producer when the group stays one tile
loop (`analysis/distribution.py`, on tensors): every value that passes inside is written
and read in the same tile. So a reduction takes its elementwise neighbours along, a
softmax or a norm becomes one kernel over rows, and a contraction takes its epilogue.

    %m = generic {max over columns} ins(%x)            flow.dispatch.region {
    %e = generic {exp(x - m)} ins(%x, %m)       =>       %m, %e, %s, %d
    %s = generic {sum over columns} ins(%e)              flow.return %d
    %d = generic {e / s} ins(%e, %s)                   }

A group holds one contraction at most, and keeps all of its parallel loops. Joining must
not make the group wait for itself: no path may leave it and come back. What costs nothing
(empty tensors, fills) is copied into each kernel that wants it. Values used outside are
returned; a kernel may return several. A splat constant of more than 256 MiB is written by a
kernel of its own instead of being a constant of the program. IREE: `FormDispatchRegions`,
`CloneProducersIntoDispatchRegions`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import is_contraction
from irees.analysis.distribution import Group, Loops, classes_of, loops_of
from irees.dialects.flow import DispatchRegionOp, ReturnOp
from irees.transforms.utils.constants import splat_scalar
from irees.transforms.utils.shapes import IndexBuilder, dynamic_dims, element_bytes
from irees.transforms.utils.structured import captured_values

DISPATCHED = (linalg.GenericOp, tensor.InsertSliceOp, tensor.ExtractSliceOp)

MAX_MEMBERS = 12
ENOUGH_TILES = 16
"""Independent tiles below which a group must not fall by fusion."""
LARGE_SPLAT = 1 << 28
"""Bytes above which a splat constant is written by a kernel when it is needed."""


def is_dispatched(op: Operation) -> bool:
    """Whether an op computes tensor data and so has to run in a kernel."""
    if op.name.startswith("iree_linalg_ext."):
        return any(isinstance(r.type, TensorType) for r in op.results)
    return isinstance(op, DISPATCHED)


def is_cloneable(op: Operation) -> bool:
    """Whether an op is so cheap that each kernel that needs it computes it again."""
    return isinstance(op, tensor.EmptyOp) or is_fill(op)


def is_fill(op: Operation) -> bool:
    """Whether an op writes one scalar everywhere: a generic that copies it, without inputs."""
    if not isinstance(op, linalg.GenericOp) or len(op.outputs) != 1:
        return False
    if any(isinstance(i.type, TensorType) for i in op.inputs):
        return False
    if not isinstance(op.outputs[0].owner, tensor.EmptyOp):
        return False
    *body, _ = op.body.block.ops
    return all(isinstance(o, arith.ConstantOp) for o in body)


def is_large_splat(op: Operation) -> bool:
    """Whether an op is a constant of one number that is too large to be kept beside the program."""
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.result.type, TensorType):
        return False
    kind = op.result.type
    size = prod(kind.get_shape()) * element_bytes(kind)
    return size > LARGE_SPLAT and splat_scalar(op) is not None


@dataclass
class Draft:
    """A group in the making."""

    members: list[Loops] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)


class Grouping:
    """The groups of one block."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.of: dict[Operation, Draft] = {}
        self.order: dict[Operation, int] = {}

    def add(self, op: Operation, number: int) -> None:
        """Puts an op into the best group that takes it, else into one of its own."""
        self.order[op] = number
        loops = loops_of(op)
        for draft in self._candidates(op):
            if loops is not None and self._fits(draft, loops) and not self._path_back(draft, op):
                draft.members.append(loops)
                draft.ops.append(op)
                self.of[op] = draft
                return
        draft = Draft([loops] if loops is not None else [], [op])
        self.drafts.append(draft)
        self.of[op] = draft

    def _candidates(self, op: Operation) -> list[Draft]:
        found: list[Draft] = []
        for operand in op.operands:
            if isinstance(operand, OpResult) and operand.op in self.of:
                draft = self.of[operand.op]
                if draft not in found:
                    found.append(draft)
        return sorted(found, key=lambda d: -self.order[d.ops[-1]])

    def _fits(self, draft: Draft, loops: Loops) -> bool:
        if not draft.members or len(draft.members) >= MAX_MEMBERS:
            return False
        heavy = [m for m in draft.members if _is_contraction(m.op)]
        if _is_contraction(loops.op):
            return False
        members = [*draft.members, loops]
        joined = classes_of(members)
        if not joined:
            return False
        if heavy:
            kept = {c[members.index(heavy[0])] for c in joined}
            wanted = {i for i, kind in enumerate(heavy[0].kinds) if kind == "parallel"}
            return wanted <= kept
        group = Group(members, joined)
        before = Group(list(draft.members), classes_of(draft.members) or [])
        alone = Group([loops], classes_of([loops]) or [])
        needed = min(ENOUGH_TILES, max(before.parallelism(), alone.parallelism()))
        return group.parallelism() >= needed

    def _path_back(self, draft: Draft, op: Operation) -> bool:
        """Whether an operand of `op` outside the group depends on the group."""
        members = set(draft.ops)
        first = min(self.order[m] for m in members)
        seen: set[Operation] = set()
        stack = [*op.operands, *captured_values(op)]
        while stack:
            value = stack.pop()
            if not isinstance(value, OpResult) or value.op in seen:
                continue
            producer = value.op
            seen.add(producer)
            if producer in members:
                continue
            if self.order.get(producer, -1) < first and producer in self.order:
                continue
            if any(isinstance(o, OpResult) and o.op in members for o in producer.operands):
                return True
            other = self.of.get(producer)
            sources = other.ops if other is not None else [producer]
            for source in sources:
                seen.add(source)
                for operand in [*source.operands, *captured_values(source)]:
                    if isinstance(operand, OpResult) and operand.op in members:
                        return True
                    stack.append(operand)
        return False


def _is_contraction(op: Operation) -> bool:
    return isinstance(op, linalg.GenericOp) and is_contraction(op)


def clone_producers(region: DispatchRegionOp) -> None:
    """region uses cheap(x)  =>  region computes cheap(x) itself"""
    block = region.body.block
    while True:
        wanted = [
            v for v in captured_values(region) if isinstance(v, OpResult) and is_cloneable(v.op)
        ]
        if not wanted:
            return
        for value in wanted:
            copy = value.op.clone()
            first = next(o for o in block.ops if value in o.operands or value in captured_values(o))
            Rewriter.insert_op(copy, InsertPoint.before(first))
            # A constant may be used all over the program; only this region is looked through.
            for user in block.walk():
                if value in user.operands:
                    new = copy.results[value.index]
                    user.operands = [new if o is value else o for o in user.operands]


def _within(op: Operation, region: Operation) -> bool:
    current: Operation | None = op
    while current is not None:
        if current is region:
            return True
        current = current.parent_op()
    return False


def make_region(group: list[Operation]) -> DispatchRegionOp:
    """ops  =>  flow.dispatch.region { ops ; flow.return what is used elsewhere }"""
    members = set(group)
    escaping: list[SSAValue] = [
        r
        for op in group
        for r in op.results
        if any(not any(_within(u.operation, m) for m in members) for u in r.uses)
    ]
    last = group[-1]
    builder = IndexBuilder(InsertPoint.before(last))
    sizes = [
        d
        for v in escaping
        if isinstance(v.type, TensorType) and DYNAMIC_INDEX in v.type.get_shape()
        for d in dynamic_dims(v, builder)
    ]
    block = Block()
    region = DispatchRegionOp(sizes, [v.type for v in escaping], Region(block))
    region.location = last.location
    Rewriter.insert_op(region, InsertPoint.before(last))
    for op in group:
        op.detach()
        block.add_op(op)
    block.add_op(ReturnOp(escaping))
    for value, result in zip(escaping, region.res, strict=True):
        value.replace_uses_with_if(result, lambda use: not _within(use.operation, region))
    return region


def sort_block(block: Block) -> None:
    """Puts ops after what they use again, otherwise in the order they had."""
    ops = list(block.ops)
    position = {op: i for i, op in enumerate(ops)}
    placed: set[Operation] = set()
    result: list[Operation] = []

    def sources(op: Operation) -> list[Operation]:
        values = [*op.operands, *captured_values(op)]
        return [v.op for v in values if isinstance(v, OpResult) and v.op in position]

    for op in ops:
        stack = [op]
        while stack:
            current = stack[-1]
            if current in placed:
                stack.pop()
                continue
            waiting = [s for s in sources(current) if s not in placed]
            if waiting:
                stack.extend(waiting)
                continue
            placed.add(current)
            result.append(current)
            stack.pop()
    for op in ops:
        op.detach()
    for op in result:
        block.add_op(op)


@dataclass(frozen=True)
class FormDispatchRegionsPass(ModulePass):
    """Groups tensor ops into dispatch regions."""

    name = "irees-form-dispatch-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if not function.is_declaration:
                form_regions(function)


def form_regions(function: func.FuncOp) -> None:
    """Groups the ops of every block of a function."""
    for block in {o.parent_block(): None for o in function.walk() if is_dispatched(o)}:
        assert block is not None
        grouping = Grouping()
        for number, op in enumerate(block.ops):
            if is_dispatched(op) and not is_cloneable(op):
                grouping.add(op, number)
        regions = [make_region(draft.ops) for draft in grouping.drafts]
        sort_block(block)
        for region in regions:
            clone_producers(region)
        for left in [o for o in block.ops if is_cloneable(o)][::-1]:
            if not any(r.uses for r in left.results):
                Rewriter.erase_op(left)
            elif is_fill(left):
                clone_producers(make_region([left]))
    for constant in [o for o in function.walk() if is_large_splat(o)]:
        if not isinstance(constant.parent_op(), DispatchRegionOp):
            make_region([constant])
