"""
Measures the arena of a planned host function, and the lower bound of its size.

Reads the IR after `irees-plan-arena`, independently of the planner. The arena is a byte allocation;
each view of it is a temporary. A temporary is live from the first op of the function that accesses
it, directly or by a view, to the last. The peak of live bytes is a lower bound for every plan,
since buffers do not move.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from irees.analysis.element_sizes import item_bytes
from irees.dialects.storage import is_allocation, is_slot


@dataclass(frozen=True)
class ArenaUse:
    """Size of the arena and peak of live bytes; None if sizes are dynamic."""

    bytes: int | None
    live: int | None


def arena_use(function: func.FuncOp) -> ArenaUse:
    """Returns the memory for temporaries of one call; 0 without an arena."""
    if function.is_declaration:
        return ArenaUse(0, 0)
    block = function.body.block
    position = {op: number for number, op in enumerate(block.ops)}
    total, lives, known = 0, list[tuple[int, int, int]](), True
    for arena in block.ops:
        views = _views(arena)
        if not views:
            continue
        room = _bytes(arena.results[0].type)
        known = known and room is not None
        total += room or 0
        for view in views:
            size = _bytes(view.results[0].type)
            places = _touched(view.results[0], block, position)
            known = known and size is not None
            if places:
                lives.append((min(places), max(places), size or 0))
    return ArenaUse(total, most_alive(lives)) if known else ArenaUse(None, None)


@dataclass(frozen=True)
class Slot:
    """A temporary in an arena: offset and size in bytes, and the first and last op in the block."""

    offset: int
    size: int
    first: int
    last: int
    kind: MemRefType


def slots_of(function: func.FuncOp) -> list[Slot] | None:
    """
    Returns the temporaries of a function that is planned, in program order; None if sizes are
    dynamic. With several arenas, one is placed behind the other.
    """
    found: list[Slot] = []
    block, start = function.body.block, 0
    position = {op: number for number, op in enumerate(block.ops)}
    for arena in block.ops:
        views = _views(arena)
        room = _bytes(arena.results[0].type) if views else 0
        for view in views:
            offset, kind = const_evaluate_operand(view.byte_shift), view.results[0].type
            size = _bytes(kind)
            if room is None or offset is None or size is None or not isinstance(kind, MemRefType):
                return None
            if places := _touched(view.results[0], block, position):
                found.append(Slot(start + offset, size, min(places), max(places), kind))
        start += room or 0
    return sorted(found, key=lambda slot: (slot.first, slot.offset))


def most_alive(lives: list[tuple[int, int, int]]) -> int:
    """Returns the peak of live bytes, given live ranges as (first, last, size), ends included."""
    changes: dict[int, int] = {}
    for first, last, size in lives:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    alive = most = 0
    for place in sorted(changes):
        alive += changes[place]
        most = max(most, alive)
    return most


def _views(op: Operation) -> list[memref.ViewOp]:
    if not is_allocation(op):
        return []
    return [use.operation for use in op.results[0].uses if is_slot(use.operation)]


def _bytes(kind: Attribute) -> int | None:
    assert isinstance(kind, MemRefType)
    shape: tuple[int, ...] = kind.get_shape()
    if any(size < 0 for size in shape):
        return None
    return prod(shape) * item_bytes(kind.get_element_type())


def _touched(value: SSAValue, block: Block, position: dict[Operation, int]) -> list[int]:
    """Returns the positions of ops that access a buffer or its views; view ops access nothing."""
    places: list[int] = []
    for use in value.uses:
        op = use.operation
        made = [result for result in op.results if isinstance(result.type, MemRefType)]
        for result in made:
            places += _touched(result, block, position)
        while op.parent_block() is not block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        if not made:
            places.append(position[op])
    return places
