"""
Cost model of sort and top-k of a row in one workgroup. Part of `irees-gpu-lower-linalg-ext` and
`irees-gpu-lower-scatters`.

The unit ("turn") is one sequential shared-memory access of a thread. A barrier, a global-memory
access and a warp vote count as several units. Costs are counted, not measured: they only separate
variants that differ by a factor of several.
"""

from __future__ import annotations

from dataclasses import dataclass

from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.block_radix import (
    DIGIT,
    THREADS,
    WARPS,
    Tallies,
    index_type_for,
)

PASS = 2 * WARPS + NVIDIA.digit_setup + 5 * NVIDIA.barrier
"""Fixed cost per digit: clearing the counts and their prefix sums."""


@dataclass(frozen=True)
class Row:
    """A row, and the shared memory available for it in bytes (`room`)."""

    size: int
    width: int
    """Bits of a key."""
    room: int

    @property
    def network_bytes(self) -> int:
        """Shared memory of a sorting network in bytes."""
        return self.size * (self.width // 8 + 4)

    @property
    def radix_bytes(self) -> int:
        """Shared memory of a radix sort in bytes."""
        pair = self.width + index_type_for(self.size).width.data
        return Tallies.bytes_for(self.size) + 2 * self.size * pair // 8

    def network_sort(self) -> int:
        """Returns the cost of a network sort: each step exchanges size / 2 pairs."""
        stages = _logarithm(self.size)
        return stages * (stages + 1) // 2 * self._step(self.size // 2)

    def network_select(self, count: int) -> int:
        """Returns the cost of a network top-k: sorted runs are merged pairwise."""
        if NVIDIA.selection_ratio * count > self.size:
            return self.network_sort()
        stages = _logarithm(count)
        turns, left = stages * (stages + 1) // 2 * self._step(self.size // 2), self.size
        while left > 1 << stages:
            turns += self._step(left // 2) + stages * self._step(left // 4)
            left //= 2
        return turns

    def radix_sort(self) -> int:
        """Returns the cost of a radix sort: per digit, a count pass and a move pass."""
        far = 1 if self.radix_bytes <= self.room else NVIDIA.global_access
        return self.width // DIGIT * (PASS + _each(self.size) * (5 * far + 4 + 2 * NVIDIA.vote))

    def radix_select(self, count: int) -> int:
        """Returns the cost of a radix top-k: one pass per digit plus two, all in place."""
        far, vote, each = NVIDIA.global_access, NVIDIA.vote, _each(self.size)
        passes = self.width // DIGIT * (PASS + each * (far + 1 + vote))
        collected = 2 * NVIDIA.barrier + 2 * WARPS + each * (2 * far + 4 + 2 * vote)
        kept = Row(count, self.width, self.room)
        return passes + collected + min(kept.network_sort(), kept.radix_sort())

    def _step(self, pairs: int) -> int:
        far = 1 if self.network_bytes <= self.room else NVIDIA.global_access
        return NVIDIA.barrier + _each(pairs) * NVIDIA.exchange * far


def _each(count: int) -> int:
    """Returns the elements per thread."""
    return -(-count // THREADS)


def _logarithm(size: int) -> int:
    """Returns ceil(log2(size))."""
    return max(0, size - 1).bit_length()


def prefers_network(radix: int, network: int) -> str | None:
    """Returns why radix sort is not used, or None."""
    return f"predicted cost {radix} by radix, {network} by a network" if network <= radix else None
