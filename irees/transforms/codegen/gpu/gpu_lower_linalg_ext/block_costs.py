"""
What it costs a workgroup to sort a row, or to find the first of it. Part of
`irees-gpu-lower-linalg-ext`.

A cost is counted in turns: accesses to shared memory that a thread makes one after another. A
barrier counts as a few of them, and so does an access to memory that is not shared, and a vote of
a warp. These are counts, not measurements: they say which of two ways does several times less.
"""

from __future__ import annotations

from dataclasses import dataclass

from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_radix import (
    DIGIT,
    THREADS,
    WARPS,
    Tallies,
    index_type_for,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_sort import WORTHWHILE

BARRIER = 4
VOTE = 4
FAR = 4
"""Turns of an access to what did not fit into shared memory."""

EXCHANGE = 8
"""Two keys and two origins are read, and written."""

PASS = 2 * WARPS + 10 + 5 * BARRIER
"""Of one digit, whatever the row: counts are cleared and added up."""


@dataclass(frozen=True)
class Row:
    """A row of numbers, and the shared memory that a workgroup has for it."""

    size: int
    width: int
    """Bits of a key."""
    room: int

    @property
    def network_bytes(self) -> int:
        """What a network works in."""
        return self.size * (self.width // 8 + 4)

    @property
    def radix_bytes(self) -> int:
        """What a radix sort works in."""
        pair = self.width + index_type_for(self.size).width.data
        return Tallies.bytes_for(self.size) + 2 * self.size * pair // 8

    def network_sort(self) -> int:
        """Each step of a network exchanges half as many pairs as there are numbers."""
        stages = _logarithm(self.size)
        return stages * (stages + 1) // 2 * self._step(self.size // 2)

    def network_select(self, count: int) -> int:
        """Runs are sorted, and the better half of two is kept until one is left."""
        if WORTHWHILE * count > self.size:
            return self.network_sort()
        stages = _logarithm(count)
        turns, left = stages * (stages + 1) // 2 * self._step(self.size // 2), self.size
        while left > 1 << stages:
            turns += self._step(left // 2) + stages * self._step(left // 4)
            left //= 2
        return turns

    def radix_sort(self) -> int:
        """A pass reads keys, then reads and writes them with their origins."""
        far = 1 if self.radix_bytes <= self.room else FAR
        return self.width // DIGIT * (PASS + _each(self.size) * (5 * far + 4 + 2 * VOTE))

    def radix_select(self, count: int) -> int:
        """A pass for each digit and two at the end read the row where it is."""
        passes = self.width // DIGIT * (PASS + _each(self.size) * (FAR + 1 + VOTE))
        collected = 2 * BARRIER + 2 * WARPS + _each(self.size) * (2 * FAR + 4 + 2 * VOTE)
        kept = Row(count, self.width, self.room)
        return passes + collected + min(kept.network_sort(), kept.radix_sort())

    def _step(self, pairs: int) -> int:
        far = 1 if self.network_bytes <= self.room else FAR
        return BARRIER + _each(pairs) * EXCHANGE * far


def _each(count: int) -> int:
    """How many of some things a thread does."""
    return -(-count // THREADS)


def _logarithm(size: int) -> int:
    """The least number of doublings that reach a size."""
    return max(0, size - 1).bit_length()


def prefers_network(radix: int, network: int) -> str | None:
    """Why digits are not taken, or None where they are."""
    return f"{radix} turns by digits, and {network} of a network" if network <= radix else None
