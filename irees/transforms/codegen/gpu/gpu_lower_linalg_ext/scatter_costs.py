"""
What it costs to scatter updates that may meet, in each way there is. Part of
`irees-gpu-lower-linalg-ext`.

In turns, as in `block_costs.py`, and by no measurement. A kernel that has to wait for the one
before is LAUNCH of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common.utils.accumulating import batch_rank
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_costs import FAR, PASS, VOTE, Row
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_radix import (
    AHEAD,
    DIGIT,
    THREADS,
    Tallies,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.scatter_rows import (
    place_bits,
    shape_of,
    width_for,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.wide_sort import LEAST

UPDATE = 4 * FAR
"""Turns of one point of an update: its index, its value, what was there and what is now."""

LAUNCH = 64

MANY = 1 << 16
"""Updates where nobody knows how many: one workgroup would take long for them."""

WIDE = 256
"""Points of a slice of unknown size."""


@dataclass(frozen=True)
class Meeting:
    """Updates that may meet, of some points each, and what there is for them."""

    count: int
    points: int
    width: int
    digits: int
    room: int
    """Bytes of shared memory that are left."""
    is_known: bool

    @staticmethod
    def of(op: ext.ScatterOp, room: int) -> Meeting:
        """What a scatter has to do; guessed where sizes are not known."""
        shape, batch = shape_of(op.updates), batch_rank(op)
        counts, points = shape[:batch], shape[batch:]
        return Meeting(
            MANY if min(counts, default=0) < 0 else prod(counts),
            WIDE if min(points, default=0) < 0 else prod(points),
            width_for(op),
            -(-place_bits(op) // DIGIT),
            room,
            min(shape, default=0) >= 0,
        )

    def why_no_digits(self) -> str | None:
        """Why no workgroup can sort by digits, or None."""
        needed = Tallies.bytes_for(self.count if self.is_known else -1)
        if needed <= self.room:
            return None
        return f"{needed} bytes of shared memory, and {self.room} are left"

    def in_order(self) -> int:
        """One workgroup, in which a thread has a point of each update."""
        return self.count * UPDATE * -(-self.points // THREADS)

    def sorted(self) -> int:
        """One workgroup, which sorts them first."""
        turns = -(-self.count * self.points // THREADS) * UPDATE
        return Row(self.count, self.width, self.room).radix_sort() + turns

    def by_points(self, busy: int) -> int:
        """Many workgroups, in which a thread has a point of each update."""
        return self.count * UPDATE * -(-self.points // (THREADS * busy))

    def by_parts(self, busy: int) -> int:
        """Many workgroups, which sort them first: three kernels a digit, and two."""
        part = max(LEAST, -(-self.count // (2 * busy)))
        each = -(-min(part, self.count) // THREADS)
        parts = -(-self.count // part)
        digit = 3 * LAUNCH + 3 * PASS + 2 * FAR * parts // AHEAD + each * (5 * FAR + 4 + 2 * VOTE)
        turns = -(-self.count * self.points // (THREADS * busy)) * UPDATE
        return LAUNCH + self.digits * digit + turns


def why_no_sort_of_updates(op: ext.ScatterOp, room: int) -> str | None:
    """Why one workgroup does not sort updates by their places, or None."""
    work = Meeting.of(op, room)
    reason = work.why_no_digits()
    if reason is not None:
        return reason
    one, all_ = work.in_order(), work.sorted()
    if one > all_:
        return None
    return f"{one} turns in their order, and {all_} of all threads"
