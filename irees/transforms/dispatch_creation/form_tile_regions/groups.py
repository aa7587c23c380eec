"""
Decides which ops share a tile loop. Part of `irees-form-tile-regions`.

Ops are visited in order. Each joins the group of a producer if every value inside the group is
written and read in the same tile (`analysis/distribution.py`). A group contains at most one
contraction or attention, and keeps all its parallel loops, except for those over the pixels of an
image that it pads. Other groups must keep enough independent tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from irees.analysis.body_weight import Weights
from irees.analysis.distribution import Access, Group, Loops, bytes_of, leads, loops_of
from irees.analysis.masked_columns import masked_columns
from irees.analysis.paddings import is_framed
from irees.dialects.storage import inserted
from irees.targets.common import COMMON
from irees.transforms.utils.dispatch_regions import Order


@dataclass(eq=False)
class Draft:
    """A group under construction. `waits`: bit set of the groups it transitively depends on."""

    number: int
    members: list[Loops] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)
    waits: int = 0


@dataclass(frozen=True)
class Limits:
    """
    Fusion must leave a group `enough` tiles, or as many as its parts, unless a tile accesses at
    most `small` bytes (-1: no exception). It must keep all parallel loops unless the parts have at
    least one `share`-th of their bytes in common (0: no such limit). A contraction joins the kernel
    of another one if a mask hides some of at least `columns` columns (0: never), and there is a row
    for each of the `threads`. It joins the kernel that pads its input if a tile of that takes at
    most `padded` bytes (0: never).
    """

    enough: int
    small: int
    share: int = 0
    columns: int = 0
    threads: int = 1
    padded: int = 0


class TileGroups:
    """The groups of one block."""

    def __init__(self, order: Order, limits: Limits) -> None:
        self.limits = limits
        self.weights = Weights()
        self.sources = order.sources
        self.drafts: list[Draft] = []
        self.of: dict[Operation, Draft] = {}
        self.order: dict[Operation, int] = {}
        self.reads: dict[Operation, int] = {}
        """Op outside all groups => bit set of the groups whose results it needs."""

    def add(self, op: Operation) -> None:
        """Adds an op to the best group that accepts it, else to a new group."""
        self.order[op] = len(self.order)
        source = op.operands[0].owner if is_framed(op) else None
        if source in self.of:
            # The kernel of the source computes it in place, inside the padding.
            self._join(self.of[source], op, None)
            return
        loops = loops_of(op)
        if self._join_scores(op, loops) or self._join_padding(op, loops):
            return
        candidates = self._candidates(op)
        for draft in candidates:
            if (
                loops is None
                or not self._fits(draft.members, [loops])
                or self._path_back(draft, op)
            ):
                continue
            self._join(draft, op, loops)
            for sibling in candidates:
                if sibling is not draft and self._are_mergeable(draft, sibling):
                    self._merge(draft, sibling)
            return
        draft = Draft(len(self.drafts))
        self.drafts.append(draft)
        self._join(draft, op, loops)

    def leave(self, op: Operation) -> None:
        """Records the groups that an op outside all groups depends on."""
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
        """Returns the groups that must run before the results of an op are available."""
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
        """Whether an operand of `op` from outside the group depends on the group."""
        outside = [source for source in self.sources(op) if self.of.get(source) is not draft]
        return any(self._needed(source) >> draft.number & 1 for source in outside)

    def _candidates(self, op: Operation) -> list[Draft]:
        makers = [o.op for o in op.operands if isinstance(o, OpResult) and o.op in self.of]
        drafts = dict.fromkeys(self.of[maker] for maker in makers)
        return sorted(drafts, key=lambda d: -self.order[d.ops[-1]])

    def _are_mergeable(self, a: Draft, b: Draft) -> bool:
        """Whether two groups read a common tensor, fit, and have no dependence via other ops."""
        if not _tensors_read(a) & _tensors_read(b) or not self._fits(a.members, b.members):
            return False
        both = 1 << a.number | 1 << b.number
        inside = {a, b}
        return not any(
            self._needed(source) & both
            for op in (*a.ops, *b.ops)
            for source in self.sources(op)
            if self.of.get(source) not in inside
        )

    def _fits(self, group: Sequence[Loops], more: Sequence[Loops]) -> bool:
        """Whether these ops can share the tiles of a group and enough tiles remain."""
        members = [*group, *more]
        if not group or not more or len(members) > COMMON.kernel_ops:
            return False
        if any(leads(m.op) for m in more) or self.weights.too_heavy(*(m.op for m in members)):
            return False
        whole = Group.of(members)
        if not whole.classes:
            return False
        if any(leads(m.op) for m in group):
            return _keeps_loops(whole, group)
        return self._pays_off(whole, [Group.of(group), Group.of(more)])

    def _join_scores(self, op: Operation, loops: Loops | None) -> bool:
        """
        Joins a contraction to the kernels between it and a contraction before it, if a mask hides
        columns of both. Returns whether it did.
        """
        if loops is None or not self.limits.columns or not leads(op):
            return False
        for draft in self._candidates(op):
            for first in self._nearest_contractions(draft):
                parts = self._between(first, draft)
                if not self._skips(parts, loops) or not self._is_closed(parts, op):
                    continue
                for part in parts:
                    if part is not draft:
                        self._merge(draft, part)
                self._join(draft, op, loops)
                return True
        return False

    def _join_padding(self, op: Operation, loops: Loops | None) -> bool:
        """
        Joins a contraction to the kernel that pads its input, if no tile reads what another one
        reads: a depthwise convolution by channels, a grouped one by groups. Returns whether it did.
        """
        if loops is None or not leads(op) or not self.limits.padded:
            return False
        for value in op.operands:
            if not is_framed(value.owner) or not value.has_one_use():
                continue
            draft = self.of[value.owner]
            members = [with_padding(member, value.owner) for member in draft.members]
            if self._pads_tiles(members, loops, value) and not self._path_back(draft, op):
                draft.members = members
                self._join(draft, op, loops)
                return True
        return False

    def _pads_tiles(self, members: Sequence[Loops], last: Loops, padded: SSAValue) -> bool:
        """Whether a contraction shares enough tiles with elementwise ops that pad its input."""
        whole, limits = Group.of([*members, last]), self.limits
        if len(whole.members) > COMMON.kernel_ops:
            return False
        if any(kind != "parallel" for member in members for kind in member.kinds):
            return False
        shared = {group_class[len(members)] for group_class in whole.classes}
        apart = all(
            any(isinstance(e, AffineDimExpr) and e.position in shared for e in access.map.results)
            for access in last.accesses
        )
        tiles = whole.parallelism()
        return apart and tiles >= limits.enough and bytes_of([padded]) <= limits.padded * tiles

    def _nearest_contractions(self, draft: Draft) -> list[Draft]:
        """Returns the groups with a contraction that a group reads, directly or via others."""
        found: list[Draft] = []
        seen = [draft]
        for current in seen:
            if any(map(leads, current.ops)):
                found.append(current)
            elif len(seen) < COMMON.kernel_ops:
                makers = (s for o in current.ops for s in self.sources(o))
                more = dict.fromkeys(self.of[s] for s in makers if s in self.of)
                seen += [d for d in more if d not in seen]
        return found

    def _between(self, first: Draft, last: Draft) -> list[Draft]:
        """Returns the groups from one to another that depends on it, both included."""
        after = 1 << first.number
        before = last.waits | 1 << last.number
        return [
            d
            for d in self.drafts
            if d.ops and before >> d.number & 1 and (d is first or d.waits & after)
        ]

    def _skips(self, parts: Sequence[Draft], last: Loops) -> bool:
        """Whether a contraction and its masked operand have many columns and share rows."""
        members = [m for part in parts for m in part.members]
        members = [*sorted(members, key=lambda m: self.order[m.op]), last]
        if len(members) > COMMON.kernel_ops or self.weights.too_heavy(*(m.op for m in members)):
            return False
        masked = masked_columns(members)
        if masked is None or len(members) - 1 not in masked.loops:
            return False
        columns = members[masked.mask].sizes[masked.loops[masked.mask]]
        rows = Group.of(members)
        if not rows.classes or rows.parallelism() < self.limits.threads:
            return False
        return not 0 <= columns < self.limits.columns

    def _is_closed(self, parts: Sequence[Draft], op: Operation) -> bool:
        """Whether no op outside of these groups and `op` depends on one and is read by another."""
        bits = sum(1 << part.number for part in parts)
        return not any(
            self._needed(source) & bits
            for each in (op, *(o for part in parts for o in part.ops))
            for source in self.sources(each)
            if self.of.get(source) not in parts
        )

    def _pays_off(self, whole: Group, parts: Sequence[Group]) -> bool:
        """Whether fusing these parts saves enough, and leaves enough parallelism."""
        limits = self.limits
        if limits.share and whole.loses_loops(parts, limits.share):
            return False
        return whole.is_worthwhile(parts, limits.enough, limits.small)

    def _merge(self, draft: Draft, other: Draft) -> None:
        """Moves the ops of another group into a group; the other group remains, empty."""
        by_place = self.order.__getitem__
        draft.ops = sorted([*draft.ops, *other.ops], key=by_place)
        draft.members = sorted([*draft.members, *other.members], key=lambda m: by_place(m.op))
        self.of.update((op, draft) for op in other.ops)
        here, there = 1 << draft.number, 1 << other.number
        draft.waits = (draft.waits | other.waits) & ~(here | there)
        other.ops, other.members, other.waits = [], [], 0
        for each in self.drafts:
            if each.waits & (here | there):
                each.waits = each.waits & ~there | here | draft.waits
        for op, needed in self.reads.items():
            if needed & there:
                self.reads[op] = needed & ~there | here


def with_padding(member: Loops, padding: Operation) -> Loops:
    """Adds the padded tensor to what an op writes, if the op computes its inside in place."""
    part = inserted(padding)
    assert part is not None
    inside = [a for a in member.accesses if a.buffer is padding.operands[0]]
    if not inside or not isinstance(part.source.type, TensorType):
        return member
    moved = AffineMap(
        inside[0].map.num_dims,
        0,
        tuple(
            expr if size == whole else expr + AffineExpr.constant(offset)
            for expr, offset, size, whole in zip(
                inside[0].map.results, part.offsets, part.sizes, part.source.type.get_shape()
            )
        ),
    )
    return replace(member, accesses=(*member.accesses, Access(padding.results[0], moved, True)))


def _keeps_loops(whole: Group, group: Sequence[Loops]) -> bool:
    """Whether fusion keeps the parallel loops that the contractions of a group are tiled by."""
    return len(whole.classes) == len(Group.of(group).classes)


def _tensors_read(draft: Draft) -> set[SSAValue]:
    """Returns the tensors that a group reads but does not write."""
    made = {access.buffer for m in draft.members for access in m.accesses if access.writes}
    return {a.buffer for m in draft.members for a in m.accesses if not a.writes} - made
