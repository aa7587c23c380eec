"""
Checks that temporaries with overlapping live ranges have disjoint byte ranges in their arena.

A temporary is a view of a byte allocation. Its live range spans all users of the view and of views
of it. A user inside a loop or branch counts as the whole loop or branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from irees.analysis.accesses.polynomials import Polynomial
from irees.dialects.storage import is_slot


@dataclass(frozen=True)
class Temporary:
    """A slot of an arena: its byte range, and the numbers of its first and last user."""

    op: memref.ViewOp
    start: Polynomial
    end: Polynomial
    first: int
    last: int


def users(value: SSAValue) -> Iterator[Operation]:
    """Yields the users of a buffer and of its views."""
    for use in value.uses:
        yield use.operation
        for result in use.operation.results:
            if isinstance(result.type, MemRefType):
                yield from users(result)


def lifetime(op: memref.ViewOp, block: Block, numbers: dict[Operation, int]) -> tuple[int, int]:
    """Returns the live range of a temporary, as numbers of ops in a block."""
    found = []
    for user in users(op.result):
        at: Operation | None = user
        while at is not None and at.parent is not block:
            at = at.parent_op()
        if at is not None:
            found.append(numbers[at])
    return (min(found), max(found)) if found else (0, -1)


def temporaries(
    block: Block, ends: dict[Operation, tuple[Polynomial, Polynomial]]
) -> dict[SSAValue, list[Temporary]]:
    """Returns the slots of each arena in a block; `ends` has the byte range of each view."""
    numbers = {op: number for number, op in enumerate(block.ops)}
    found: dict[SSAValue, list[Temporary]] = {}
    for op, (start, end) in ends.items():
        if is_slot(op) and op.parent is block:
            life = lifetime(op, block, numbers)
            found.setdefault(op.source, []).append(Temporary(op, start, end, *life))
    return found


def overlapping(parts: Sequence[Temporary]) -> Iterator[Temporary]:
    """Yields slots of constant range that overlap an earlier one in bytes and live range."""
    for a, b in combinations(parts, 2):
        if a.last < b.first or b.last < a.first or min(a.last, b.last) < 0:
            continue
        gaps = ((b.start - a.end).constant, (a.start - b.end).constant)
        # With dynamic sizes a missing proof is no evidence of an overlap.
        if all(gap is not None and gap < 0 for gap in gaps):
            yield b
