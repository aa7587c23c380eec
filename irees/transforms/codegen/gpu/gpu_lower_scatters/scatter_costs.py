"""
Cost model of the scatter variants for updates that may collide. Part of
`irees-gpu-lower-scatters`.

Costs are in the unit of `utils/block_costs.py` ("turns"), and are not measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from irees.dialects import iree_linalg_ext as ext
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.accumulating import batch_rank
from irees.transforms.codegen.gpu.gpu_lower_scatters.scatter_rows import (
    place_bits,
    shape_of,
    width_for,
)
from irees.transforms.codegen.gpu.utils.block_costs import PASS, Row
from irees.transforms.codegen.gpu.utils.block_radix import DIGIT, THREADS, Tallies
from irees.transforms.codegen.gpu.utils.sort_tiles import wide_tile

UPDATE = 4 * NVIDIA.global_access
"""Cost per element of an update: its index, its value, and a read and a write of the target."""


@dataclass(frozen=True)
class Meeting:
    """Sizes of a scatter whose updates may collide, and the available shared memory."""

    count: int
    points: int
    width: int
    digits: int
    room: int
    """Free shared memory in bytes."""
    is_known: bool

    @staticmethod
    def of(op: ext.ScatterOp, room: int) -> Meeting:
        """Returns the sizes of a scatter, with guesses for dynamic ones."""
        shape, batch = shape_of(op.updates), batch_rank(op)
        counts, points = shape[:batch], shape[batch:]
        return Meeting(
            NVIDIA.assumed_updates if min(counts, default=0) < 0 else prod(counts),
            NVIDIA.assumed_slice if min(points, default=0) < 0 else prod(points),
            width_for(op),
            -(-place_bits(op) // DIGIT),
            room,
            min(shape, default=0) >= 0,
        )

    def why_no_digits(self) -> str | None:
        """Returns why a workgroup cannot radix-sort, or None."""
        needed = Tallies.bytes_for(self.count if self.is_known else -1)
        if needed <= self.room:
            return None
        return f"needs {needed} bytes of shared memory; {self.room} are free"

    def in_order(self) -> int:
        """Cost in one workgroup with one slice element per thread, updates in order."""
        return self.count * UPDATE * -(-self.points // THREADS)

    def sorted(self) -> int:
        """Cost in one workgroup that sorts the updates first."""
        turns = -(-self.count * self.points // THREADS) * UPDATE
        return Row(self.count, self.width, self.room).radix_sort() + turns

    def by_points(self, busy: int) -> int:
        """Cost in many workgroups with one slice element per thread, updates in order."""
        return self.count * UPDATE * -(-self.points // (THREADS * busy))

    def by_parts(self, busy: int) -> int:
        """Cost in many workgroups that sort first: three kernels per digit, plus two."""
        tile = wide_tile(1, self.count, self.width, self.room, busy)
        waves = -(-self.count // (tile.size * busy))
        far, launch = NVIDIA.global_access, NVIDIA.dependent_launch
        digit = 3 * launch + 3 * PASS
        digit += waves * tile.items * (5 * far + 4 + NVIDIA.vote)
        turns = -(-self.count * self.points // (THREADS * busy)) * UPDATE
        return launch + self.digits * digit + turns


def why_no_sort_of_updates(op: ext.ScatterOp, room: int) -> str | None:
    """Returns why one workgroup does not sort updates by target index, or None."""
    work = Meeting.of(op, room)
    reason = work.why_no_digits()
    if reason is not None:
        return reason
    one, all_ = work.in_order(), work.sorted()
    if one > all_:
        return None
    return f"predicted cost {one} in order, {all_} by sorting"
