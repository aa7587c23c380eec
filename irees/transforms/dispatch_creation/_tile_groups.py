"""
The groups that the pipeline makes: what stays one tile loop.

Ops are taken in order. Each joins the group of a producer when every value that passes inside is
written and read in the same tile (`analysis/distribution.py`). A group holds one contraction at
most, and keeps all of its parallel loops; it must not have fewer independent tiles than its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult
from xdsl.rewriter import Rewriter

from irees.analysis.contractions import is_contraction
from irees.analysis.distribution import Group, Loops, classes_of, loops_of
from irees.analysis.paddings import is_framed
from irees.dialects.flow import DispatchRegionOp
from irees.transforms.dispatch_creation._dispatch_regions import (
    Order,
    clone_producers,
    make_region,
    sort_block,
)
from irees.transforms.utils.constants import splat_scalar
from irees.transforms.utils.shapes import element_bytes

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


def is_cheap(op: Operation) -> bool:
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


@dataclass(eq=False)
class Draft:
    """A group in the making. `waits` has a bit for each group that it needs, however far away."""

    number: int
    members: list[Loops] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)
    waits: int = 0


class TileGroups:
    """The groups of one block."""

    def __init__(self, order: Order) -> None:
        self.sources = order.sources
        self.drafts: list[Draft] = []
        self.of: dict[Operation, Draft] = {}
        self.order: dict[Operation, int] = {}
        self.reads: dict[Operation, int] = {}
        """Per op that is in no group: the groups whose results it needs, a bit each."""

    def add(self, op: Operation) -> None:
        """Puts an op into the best group that takes it, else into one of its own."""
        self.order[op] = len(self.order)
        source = op.operands[0].owner if is_framed(op) else None
        if source in self.of:
            # The kernel that computes the source computes it in place.
            self._join(self.of[source], op, None)
            return
        loops = loops_of(op)
        for draft in self._candidates(op):
            if loops is not None and self._fits(draft, loops) and not self._path_back(draft, op):
                self._join(draft, op, loops)
                return
        draft = Draft(len(self.drafts))
        self.drafts.append(draft)
        self._join(draft, op, loops)

    def leave(self, op: Operation) -> None:
        """Notes what an op reads that stays outside of all groups."""
        self.reads[op] = 0
        for source in self.sources(op):
            if source in self.of:
                self.reads[op] |= 1 << self.of[source].number
            else:
                self.reads[op] |= self.reads.get(source, 0)

    def _join(self, draft: Draft, op: Operation, loops: Loops | None) -> None:
        draft.ops.append(op)
        self.of[op] = draft
        if loops is not None:
            draft.members.append(loops)
        bit = 1 << draft.number
        for source in self.sources(op):
            draft.waits |= self._needed(source) & ~bit
        for other in self.drafts:
            if other.waits & bit:
                other.waits |= draft.waits

    def _needed(self, op: Operation) -> int:
        """The groups that must have run before an op's results are there."""
        found = 1 << self.of[op].number if op in self.of else self.reads.get(op, 0)
        return found | self._behind(found)

    def _behind(self, drafts: int) -> int:
        found = 0
        while drafts:
            last = drafts & -drafts
            found |= self.drafts[last.bit_length() - 1].waits
            drafts ^= last
        return found

    def _path_back(self, draft: Draft, op: Operation) -> bool:
        """Whether an operand of `op` from outside of the group depends on the group."""
        outside = [source for source in self.sources(op) if self.of.get(source) is not draft]
        return any(self._needed(source) >> draft.number & 1 for source in outside)

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


def _is_contraction(op: Operation) -> bool:
    return isinstance(op, linalg.GenericOp) and is_contraction(op)


def clone_cheap(region: DispatchRegionOp) -> None:
    """Lets a kernel compute what is cheap itself."""
    clone_producers(region, lambda value: is_cheap(value.op))


def form_tile_regions(function: Operation) -> None:
    """Groups the ops of every block of a function; each kernel computes what is cheap itself."""
    for block in {o.parent_block(): None for o in function.walk() if is_dispatched(o)}:
        assert block is not None
        _form_in_block(block)
    for constant in [o for o in function.walk() if is_large_splat(o)]:
        if not isinstance(constant.parent_op(), DispatchRegionOp):
            make_region([constant])


def _form_in_block(block: Block) -> None:
    order = Order(block)
    groups = TileGroups(order)
    for op in block.ops:
        if is_dispatched(op) and not is_cheap(op):
            groups.add(op)
        else:
            groups.leave(op)
    regions = [make_region(draft.ops) for draft in groups.drafts]
    sort_block(block, order)
    for region in regions:
        clone_cheap(region)
    for left in [o for o in block.ops if is_cheap(o)][::-1]:
        if not any(r.uses for r in left.results):
            Rewriter.erase_op(left)
        elif is_fill(left):
            clone_cheap(make_region([left]))
