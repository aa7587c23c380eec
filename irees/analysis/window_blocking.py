"""
Chooses how many rows and features of a convolution a kernel computes at a time, from numbers alone.

The kernel keeps a vector of adjacent pixels of each row of each feature in registers. Each row of
the image that it loads serves all taps, rows and features of the block that need it; each
coefficient serves all rows.
"""

from __future__ import annotations

from irees.targets.cpu import CPU


def choose_block(
    size: int | None, features: int, taps: int, registers: int, least: int
) -> tuple[int, int]:
    """
    Returns the rows and the features of a block, with the fewest loads per multiply-add. `size` is
    the number of rows, None if it is dynamic; such blocks, and those that would not be larger, have
    `least` rows.
    """
    most = min(CPU.sliding_results, CPU.unrolled_window // taps)
    blocks = [
        (rows, width)
        for rows in ([least] if size is None else divisors(size, most))
        for width in divisors(features, most // rows)
        if rows * width + width * taps + CPU.broadcast_registers <= registers
    ]

    def loads(block: tuple[int, int]) -> float:
        rows, width = block
        read = CPU.unaligned_load * (rows + taps - 1) + width * taps
        return read / (rows * width * taps)

    best = min(blocks, key=lambda block: (loads(block), -block[0]), default=(least, 1))
    return best if best[0] * best[1] > least else (least, 1)


def divisors(size: int, most: int) -> list[int]:
    """Returns the divisors of a number up to `most`."""
    return [n for n in range(1, most + 1) if size % n == 0]


def in_order_of_reads(rows: int, taps: int, steps: tuple[int, int]) -> list[tuple[int, int]]:
    """
    Returns all pairs of a row and a tap by the place that they read, `steps` apart: each place is
    loaded once, and needs no register after its last use.
    """
    pairs = [(row, tap) for tap in range(taps) for row in range(rows)]
    return sorted(pairs, key=lambda pair: pair[0] * steps[0] + pair[1] * steps[1])
