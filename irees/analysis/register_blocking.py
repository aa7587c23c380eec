"""
Chooses MR and NR, the register block of a contraction's micro-kernel.

A micro-kernel keeps an MR x NR block of C in registers and does one outer product per step of K:
NR / lanes loads of B, MR broadcasts of A, MR x NR / lanes multiply-adds. The cost model picks the
block with the fewest cycles for a given M and N, including edge blocks. After Van Zee and van de
Geijn, "BLIS" (2015), and Low et al., "Analytical Modeling Is Enough for High-Performance BLIS"
(2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from irees.targets.cpu import CPU


@dataclass(frozen=True)
class Blocking:
    """Register block of a micro-kernel: MR rows by `vectors` vectors."""

    rows: int
    vectors: int


def embeds_broadcasts(vector_bytes: int) -> bool:
    """
    Whether multiply-adds can broadcast a memory operand, as in AVX-512 (Intel SDM, "Embedded
    Broadcast Support"). AVX2 and NEON first load the broadcast into a register.
    """
    return vector_bytes >= 64


def step_cycles(rows: int, vectors: int, registers: int, *, embeds: bool) -> float:
    """
    Estimates the cycles of one step of K: the maximum of multiply-adds, loads and latency, plus the
    part of the loads that is not hidden.
    """
    work = rows * vectors
    latency = CPU.fma_latency * 2 if work < 8 else 0.0
    loads = CPU.load * (rows + vectors)
    if embeds and work + vectors + 1 > registers:
        loads = CPU.load * vectors + CPU.embedded_broadcast * work
    return max(work, rows + vectors, latency) + CPU.step_overhead + loads + CPU.panel_load * vectors


def block_cycles(
    rows: int, columns: int, lanes: int, registers: int, block: Blocking, *, embeds: bool
) -> float:
    """Estimates the cycles of one step of K over the whole M x N output, including edge blocks."""
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
    Returns the register block with the lowest estimated time for M rows and N columns, -1 if
    dynamic.

    `vectors` fixes the width if an operand is already packed for it. `embeds` says that broadcasts
    need no registers.
    """
    spare = 0 if embeds else CPU.broadcast_registers
    rows = CPU.assumed_extent if rows < 0 else rows
    columns = CPU.assumed_extent if columns < 0 else columns
    best, best_cycles = Blocking(1, 1), float("inf")
    for width in range(CPU.most_block_vectors, 0, -1) if vectors is None else (vectors,):
        if vectors is None and width > 1 and columns <= (width - 1) * lanes:
            continue
        for height in range(1, CPU.most_block_rows + 1):
            if height * width + width + spare > registers or height > rows:
                continue
            block = Blocking(height, width)
            cycles = block_cycles(rows, columns, lanes, registers, block, embeds=embeds)
            if cycles < best_cycles:
                best, best_cycles = block, cycles
    return best


def rest_rows(rows: int) -> list[int]:
    """
    Returns the heights of the blocks for a dynamic remainder of rows. Each is half of the one
    before: blocks of single rows would wait for the latency of each multiply-add.
    """
    heights = [max(1, rows // 2)]
    while heights[-1] > 1:
        heights.append(heights[-1] // 2)
    return heights


def rest_vectors(rows: int, vectors: int) -> int | None:
    """
    Returns the vectors of a panel for a dynamic remainder of columns, most of which would not exist
    in a panel of `vectors`: as few as hide the latency of a multiply-add. None for no fewer.
    """
    fewer = ceil(CPU.fma_latency / rows)
    return fewer if fewer < vectors else None
