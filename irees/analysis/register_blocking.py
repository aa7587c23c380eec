"""
How many rows and columns of a contraction's output to hold in vector registers at once.

A micro-kernel keeps MR x NR of C in registers and does one outer product per step of K:
NR / lanes loads of B, MR broadcasts of A, MR x NR / lanes multiply-adds. The estimate
here picks the block that takes the fewest cycles for a given M and N, edges included.
After Van Zee and van de Geijn, "BLIS" (2015), and Low et al., "Analytical Modeling Is
Enough for High-Performance BLIS" (2016).
"""

from __future__ import annotations

from dataclasses import dataclass

DYNAMIC_GUESS = 1 << 10
"""What a dynamic extent is taken for."""

SLICE = 512
"""Depth of a slice of K of f32: reading and writing C for each is then little of the work."""

STRIP = 64
"""Rows of A that go through all panels of a slice of B together, where there are more than two
times as many. Their slices leave most of the L2 cache to the panel in use and to the next, which
comes from the L3 cache in the time of a few blocks of rows."""

STREAMS = 4
"""Rows of a matrix that are read side by side where it is read once: memory is faster to give from
several places than from one, and along a row than from row to row."""

STREAMED = 128 << 10
"""Bytes of such a matrix that come from memory, or from a cache that is shared."""

UNPACKED_ROWS = 4
"""With no more rows, packing B would cost as much as multiplying by it."""

MAX_ROWS = 14
LATENCY = 4.0
"""Cycles until the result of a multiply-add can be added to."""

OVERHEAD = 0.3
"""Cycles of a step of K that are neither loads nor multiply-adds."""

LOAD = 0.2
"""Cycles by which a load holds up multiply-adds beside it, where two of those start in a cycle."""

OPERAND = 0.06
"""The same where a multiply-add reads its broadcast itself, for want of a register for it."""

STREAM = 0.25
"""The same of a vector of B, which comes from the L2 cache: a panel is larger than the L1 cache."""


BROADCASTS = 2
"""Registers for broadcasts where a multiply-add needs one: that of this row and that of the next.
With one less, C compilers read the vectors of B from memory once more for each row."""


@dataclass(frozen=True)
class Blocking:
    """Register block of a micro-kernel: MR rows by `vectors` vectors."""

    rows: int
    vectors: int


def embeds_broadcasts(vector_bytes: int) -> bool:
    """
    Whether a multiply-add reads one element from memory for all its lanes, as those of AVX-512 do
    (Intel SDM, "Embedded Broadcast Support"). AVX2 and NEON load it into a register first.
    """
    return vector_bytes >= 64


def step_cycles(rows: int, vectors: int, registers: int, *, embeds: bool) -> float:
    """
    Cycles of one step of K: its multiply-adds, its loads or its latency, whichever are more, and
    what of the others is not hidden behind them.
    """
    work = rows * vectors
    latency = LATENCY * 2 if work < 8 else 0.0
    loads = LOAD * (rows + vectors)
    if embeds and work + vectors + 1 > registers:
        loads = LOAD * vectors + OPERAND * work
    return max(work, rows + vectors, latency) + OVERHEAD + loads + STREAM * vectors


def block_cycles(
    rows: int, columns: int, lanes: int, registers: int, block: Blocking, *, embeds: bool
) -> float:
    """Cycles of one step of K over a whole M x N output; edge blocks are narrower, not cheaper."""
    full, rest = divmod(columns, block.vectors * lanes)
    edge = -(-rest // lanes)
    total = 0.0
    for height, count in ((block.rows, rows // block.rows), (rows % block.rows, 1)):
        if height and count:
            total += count * full * step_cycles(height, block.vectors, registers, embeds=embeds)
            if edge:
                total += count * step_cycles(height, edge, registers, embeds=embeds)
    return total


def choose_blocking(
    rows: int,
    columns: int,
    lanes: int,
    registers: int,
    vectors: int | None = None,
    *,
    embeds: bool,
) -> Blocking:
    """
    The register block with the least estimated time for M rows and N columns, -1 where dynamic.

    `vectors` fixes the width, for an operand that is already laid out for it. A multiply-add that
    `embeds` its broadcast needs no register for it.
    """
    spare = 0 if embeds else BROADCASTS
    rows = DYNAMIC_GUESS if rows < 0 else rows
    columns = DYNAMIC_GUESS if columns < 0 else columns
    best, best_cycles = Blocking(1, 1), float("inf")
    for width in (4, 3, 2, 1) if vectors is None else (vectors,):
        if vectors is None and width > 1 and columns <= (width - 1) * lanes:
            continue
        for height in range(1, MAX_ROWS + 1):
            if height * width + width + spare > registers or height > rows:
                continue
            block = Blocking(height, width)
            cycles = block_cycles(rows, columns, lanes, registers, block, embeds=embeds)
            if cycles < best_cycles:
                best, best_cycles = block, cycles
    return best
