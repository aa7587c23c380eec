"""
Determines which loops of a group of ops can be tiled into independent tiles.

Ops are on buffers or on tensors; a tensor op writes its results. Two ops may be fused into one tile
loop if each tile of the consumer reads only what the same tile of the producer wrote. The analysis
partitions the loops of all ops into classes: if two ops each index a dim of a shared buffer by a
single loop, these two loops are in one class. A reduction loop, or a loop that indexes a shared
buffer in any other way, disqualifies its class. A class is tileable if every op of the group has
exactly one loop in it and indexes all its outputs by that loop.

Distribution and fusion both use this relation (in IREE: `TilingInterface` and an iteration-dim
tracker).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from irees.analysis.contractions import is_contraction
from irees.analysis.element_sizes import item_bytes
from irees.dialects.storage import is_allocation, is_reshape, is_view, root, slice_of
from irees.interfaces import domain_of, loops_model_of, outputs_of
from irees.targets.common import COMMON


def is_read_in_place(op: Operation) -> bool:
    """Whether an op is a slice of a tensor with unit strides, which a kernel can read in place."""
    part = slice_of(op)
    return part is not None and not is_view(op) and all(stride == 1 for stride in part.strides)


def leads(op: Operation) -> bool:
    """Whether an op justifies a kernel by itself: a contraction, or an op whose model says so."""
    if isinstance(op, linalg.GenericOp):
        return is_contraction(op)
    return getattr(loops_model_of(op), "leads", False)


@dataclass(frozen=True)
class Access:
    """An access of an op to one buffer."""

    buffer: SSAValue
    map: AffineMap
    writes: bool


@dataclass(frozen=True)
class Loops:
    """The loop nest of an op: iterator types, indexed buffers, and buffers accessed anywhere."""

    op: Operation
    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    accesses: tuple[Access, ...]
    anywhere: tuple[SSAValue, ...]

    def written(self) -> set[SSAValue]:
        """Returns the buffers that the op writes."""
        return {root(access.buffer) for access in self.accesses if access.writes}

    def reads_anywhere(self, buffers: set[SSAValue]) -> bool:
        """Whether the op may access any element of one of the buffers."""
        return any(root(buffer) in buffers for buffer in self.anywhere)

    def untileable(self) -> set[int]:
        """Returns the loops that are not parallel or do not index every output plainly."""
        found = {loop for loop, kind in enumerate(self.kinds) if kind != "parallel"}
        for access in self.accesses:
            if access.writes:
                plain = {e.position for e in access.map.results if isinstance(e, AffineDimExpr)}
                found |= set(range(len(self.kinds))) - plain
        return found


def loops_of(op: Operation) -> Loops | None:
    """Returns the loop nest of an op, or None if unknown."""
    if isinstance(op, linalg.GenericOp):
        return _generic_loops(op)
    domain = domain_of(op)
    if domain is None:
        return None
    outputs = outputs_of(op)
    accesses = tuple(
        Access(
            op.results[outputs.index(value)] if value in outputs and op.results else value,
            indexing,
            value in outputs,
        )
        for value, indexing in zip(op.operands, domain.maps, strict=True)
        if indexing is not None
    )
    return Loops(op, domain.kinds, domain.sizes(op), accesses, ())


def _generic_loops(op: linalg.GenericOp) -> Loops:
    indexing = [m.data for m in op.indexing_maps]
    kinds = tuple(
        "parallel" if str(k.data) == "parallel" else "reduction" for k in op.iterator_types
    )
    sizes = [-1] * len(kinds)
    accesses: list[Access] = []
    for position, (value, indexing_map) in enumerate(zip(op.operands, indexing, strict=True)):
        if not isinstance(value.type, MemRefType | TensorType):
            continue
        writes = position >= len(op.inputs)
        if writes and op.res:
            value = op.res[position - len(op.inputs)]
        accesses.append(Access(value, indexing_map, writes))
        for expr, size in zip(indexing_map.results, value.type.get_shape(), strict=True):
            if isinstance(expr, AffineDimExpr) and size >= 0:
                sizes[expr.position] = size
    anywhere = tuple(
        operand
        for inner in op.body.walk()
        for operand in inner.operands
        if isinstance(operand.type, MemRefType | TensorType)
    )
    return Loops(op, kinds, tuple(sizes), tuple(accesses), anywhere)


@dataclass
class Group:
    """Consecutive ops fused into one tile loop."""

    members: list[Loops] = field(default_factory=list)
    classes: list[dict[int, int]] = field(default_factory=list)
    """Per tileable class: member number => loop."""

    @staticmethod
    def of(members: Sequence[Loops]) -> Group:
        """Returns a group with its tileable classes; without any if fusion is illegal."""
        return Group(list(members), classes_of(members) or [])

    def extents(self) -> list[int]:
        """Returns the trip count of each class, -1 if dynamic."""
        found: list[int] = []
        for group_class in self.classes:
            sizes = [self.members[m].sizes[loop] for m, loop in group_class.items()]
            found.append(max(sizes))
        return found

    def parallelism(self) -> int:
        """Returns the number of tiles of size 1; dynamic extents are assumed."""
        many = COMMON.assumed_trip_count
        return prod(many if extent < 0 else extent for extent in self.extents())

    def tile_bytes(self) -> int:
        """Estimates the bytes that a tile of size 1 accesses: all buffers over all tiles."""
        buffers = {access.buffer for member in self.members for access in member.accesses}
        return bytes_of(buffers) // max(1, self.parallelism())

    def storage(self) -> set[SSAValue]:
        """Returns the buffers that the ops access; reshapes of one tensor are the same buffer."""
        return {_reshaped(access.buffer) for member in self.members for access in member.accesses}

    def loses_loops(self, parts: Sequence[Group], share: int) -> bool:
        """
        Whether fusing `parts` into this group loses a parallel loop of one of them for little: they
        have less than one `share`-th of their bytes in common. So a table of a value per column
        does not make its consumer a loop over columns.
        """
        if all(len(part.classes) <= len(self.classes) for part in parts):
            return False
        common = set.intersection(*(part.storage() for part in parts))
        return bytes_of(common) * share < bytes_of(self.storage())

    def is_worthwhile(self, parts: Sequence[Group], enough: int, small: int) -> bool:
        """
        Whether fusing `parts` into this group pays off: the group has `enough` tiles, or as many as
        each part alone, or its tiles access at most `small` bytes. The last rule is for generic ops
        only: bytes do not measure the cost of a sort.
        """
        needed = min(enough, max(part.parallelism() for part in parts))
        if self.parallelism() >= needed:
            return True
        generic = all(isinstance(m.op, linalg.GenericOp) for m in self.members)
        return generic and self.tile_bytes() <= small


def _reshaped(value: SSAValue) -> SSAValue:
    """Returns the tensor that a chain of reshapes shows."""
    while isinstance(value, OpResult) and is_reshape(value.op):
        value = value.op.operands[0]
    return value


def bytes_of(buffers: Iterable[SSAValue]) -> int:
    """Estimates the size of buffers; dynamic dims are assumed."""
    many = COMMON.assumed_trip_count
    return sum(
        item_bytes(b.type.element_type) * prod(many if n < 0 else n for n in b.type.get_shape())
        for b in buffers
        if isinstance(b.type, MemRefType | TensorType)
    )


def _whole_dims(first: SSAValue, second: SSAValue) -> list[bool] | None:
    """
    Returns which dims two buffers share whole, if both are a private buffer or a static slice of it
    without rank reduction, such as a padded tile and its inside; else None.
    """
    whole = root(first)
    if not isinstance(whole.type, MemRefType) or not is_allocation(whole.owner):
        return None
    shared = [True] * whole.type.get_num_dims()
    for buffer in (first, second):
        if buffer is whole:
            continue
        part = slice_of(buffer.owner)
        if part is None or part.source is not whole or len(part.kept) != len(shared):
            return None
        sizes = whole.type.get_shape()
        for dim, (offset, size, step) in enumerate(
            zip(part.offsets, part.sizes, part.strides, strict=True)
        ):
            shared[dim] &= (offset, size, step) == (0, sizes[dim], 1)
    return shared


Node = tuple[int, int]
"""A loop of a group: the number of the member, and the loop."""


class Partition:
    """A partition of the loops of several ops into classes."""

    def __init__(self, members: Sequence[Loops]) -> None:
        self.members = members
        self.parent: dict[Node, Node] = {
            (m, loop): (m, loop)
            for m, member in enumerate(members)
            for loop in range(len(member.kinds))
        }
        """Union-find: the representative of a class is its own parent."""
        self.spoiled: set[Node] = set()
        """Loops that disqualify their class."""

    def find(self, node: Node) -> Node:
        """Returns the representative of a loop's class."""
        while self.parent[node] != node:
            node = self.parent[node]
        return node

    def spoil(self, member: int, loops: Iterable[int]) -> None:
        """Disqualifies the classes of loops of a member."""
        self.spoiled.update((member, loop) for loop in loops)

    def connect(self, earlier: int, later: int) -> bool:
        """Unites loops that index a shared buffer. Returns False if fusion is illegal."""
        first, second = self.members[earlier], self.members[later]
        if second.reads_anywhere(first.written()) or first.reads_anywhere(second.written()):
            return False
        for a, b in product(first.accesses, second.accesses):
            if root(a.buffer) is not root(b.buffer) or not (a.writes or b.writes):
                continue
            if a.buffer is b.buffer:
                same = [True] * len(a.map.results)
            elif (shared := _whole_dims(a.buffer, b.buffer)) is not None:
                same = shared
            else:
                return False
            for x, y, whole in zip(a.map.results, b.map.results, same, strict=True):
                if whole and isinstance(x, AffineDimExpr) and isinstance(y, AffineDimExpr):
                    left, right = self.find((earlier, x.position)), self.find((later, y.position))
                    self.parent[right] = left
                else:
                    self.spoil(earlier, x.used_dims())
                    self.spoil(later, y.used_dims())
        return True

    def tileable(self) -> Iterator[dict[int, int]]:
        """Yields the classes with one loop of each member, none of them spoiled."""
        bad = {self.find(node) for node in self.spoiled}
        classes: dict[Node, list[Node]] = {}
        for node in self.parent:
            classes.setdefault(self.find(node), []).append(node)
        for representative, nodes in classes.items():
            found = dict(nodes)
            if representative not in bad and len(found) == len(nodes) == len(self.members):
                yield found


def classes_of(members: Sequence[Loops]) -> list[dict[int, int]] | None:
    """Returns the tileable classes of a group in loop order, or None if fusion is illegal."""
    partition = Partition(members)
    for later, member in enumerate(members):
        for earlier in range(later):
            if not partition.connect(earlier, later):
                return None
        partition.spoil(later, member.untileable())
    return sorted(partition.tileable(), key=lambda c: max(c.items())[1])


def groups_of(ops: Sequence[Operation], enough: int, small: int = -1) -> list[Group]:
    """
    Partitions a sequence of ops greedily into fusion groups.

    An op joins the last group if a tileable class remains and `Group.is_worthwhile` holds. An op
    that reads no buffer (a fill) joins the group of the next op that does. Finally, all ops are
    tried as one group: independent ops may share tiles through a later consumer of both.
    """
    groups: list[Group] = []
    pending: list[Loops] = []
    for op in ops:
        member = loops_of(op)
        assert member is not None
        pending.append(member)
        if all(access.writes for access in member.accesses) and not member.anywhere:
            continue
        _place(groups, pending, enough, small)
        pending = []
    if pending:
        _place(groups, pending, enough, small)
    if len(groups) > 1:
        members = [member for group in groups for member in group.members]
        whole = Group.of(members)
        if whole.classes and whole.is_worthwhile(groups, enough, small):
            return [whole]
    return groups


def _place(groups: list[Group], batch: list[Loops], enough: int, small: int) -> None:
    """Adds ops to the last group, else as a new group, else as one group per op."""
    alone = Group.of(batch)
    if groups:
        current = groups[-1]
        joined = Group.of([*current.members, *batch])
        if joined.classes and joined.is_worthwhile([current, alone], enough, small):
            groups[-1] = joined
            return
    if alone.classes or len(batch) == 1:
        groups.append(alone)
    else:
        groups.extend(Group.of([member]) for member in batch)
