"""
Prefetches B within the loops over K. Part of `irees-lower-micro-kernels`.

    for j in N by NR:
      for i in M by MR:
        for k in K: acc += A[i:i+MR, k] (x) panel_j[k]
  =>
        for k in K: prefetch of panel_{j+NR}, 1/R of it in each of R blocks; acc += ...

The first block of rows reads its panel from memory and waits for it. Later blocks hit the L2
cache, and memory is idle. Hardware prefetchers follow the current stream but cannot predict the
next panel, so each block of rows prefetches an equal part of it. After the last panel the
prefetches are useless but harmless. Blocks of columns have gaps between them: each block of rows
prefetches its slices of whole blocks, until none is left.

A long panel exceeds the L1 cache, and the kernel reads it faster than the hardware prefetchers fill
L1 from L2: each step of K prefetches the vectors of a later one.

    for k in K: prefetch of panel_j[k + 4]; acc += A[i:i+MR, k] (x) panel_j[k]

If B is streamed once, several rows at a time, each step prefetches the following rows into the L2
cache: in L1 they would evict each other before use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from irees.dialects.panel import element_of
from irees.dialects.sizes import Size, folded
from irees.dialects.upstream.memref import L1, L2, PrefetchOp
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.lower_micro_kernels.block import Block
from irees.transforms.utils.lanes import LINE, lane_bytes
from irees.transforms.utils.shapes import IndexBuilder


@dataclass(frozen=True)
class NextPanel:
    """The part of the next panel that one block of rows prefetches."""

    buffer: SSAValue
    start: Size
    step: int
    """Elements from one step of K to the next."""
    hints: Sequence[int]
    """Offsets of the lines of one step."""

    def prefetch(self, number: Size, at: IndexBuilder) -> None:
        """memref.prefetch %b[start + step * number + ...]"""
        place = at.add(self.start, at.mul(number, self.step))
        for hint in self.hints:
            prefetch(self.buffer, at.add(place, hint), L2, at)


def prefetch(buffer: SSAValue, place: Size, locality: int, at: IndexBuilder) -> None:
    """memref.prefetch %buffer[place]"""
    at.insert(PrefetchOp(buffer, [at.value(place)], locality=locality))


def next_panel(block: Block, at: IndexBuilder) -> NextPanel | None:
    """Returns the part that a micro-kernel prefetches of the panel that is read after its own."""
    op, steps = block.op, block.steps
    if op.following is None or steps is None:
        return None
    assert op.start is not None
    assert op.block is not None
    number, nr = folded(op.block), op.tile.get_values()[1]
    blocks = CPU.assumed_row_blocks if op.blocks is None else op.blocks.value.data
    # More blocks than assumed have no part of their own.
    last = blocks - 1 if op.blocks is None else None
    apart = block.apart
    if op.layout.data != "blocks" or not isinstance(apart, int) or apart == steps * block.lanes:
        step = -(-nr * block.group // blocks)
        share, hints = steps * step, range(0, step, LINE // block.panel_bytes)
    else:
        vectors = nr // block.lanes
        some = -(-vectors // blocks)
        step, share, hints = block.lanes, some * apart, range(0, some * apart, apart)
        last = -(-vectors // some) - 1
    if last is not None:
        number = at.minimum(number, last)
    start = at.add(folded(op.start), at.mul(number, share))
    return NextPanel(op.following, start, step, hints)


def steps_ahead(block: Block) -> int | None:
    """
    Returns how many steps of K ahead to prefetch a line of B; None if hardware brings it in time.

    That holds for panels that the L1 cache holds, and for rows that only one block reads. Dot
    products get none: per instruction they read four times as much of K, and prefetches cost more
    than they gain.
    """
    layout, steps = block.op.layout.data, block.steps
    if layout == "streamed":
        return CPU.streams
    if block.group > 1 or layout == "plain" or steps is None:
        return None
    mr, nr = block.op.tile.get_values()
    # A panel that this nest packed is in L2 already, so rows of A do not count.
    width = nr if layout == "packed" else nr + mr
    return CPU.l1_prefetch_steps if steps * width * block.panel_bytes > CPU.near_bytes else None


def prefetch_ahead(block: Block, column: Size, steps: int, at: IndexBuilder) -> None:
    """Prefetches the lines of B that are read some steps after the vectors at `column`."""
    line = LINE // lane_bytes(element_of(block.op.b))
    locality = L2 if block.op.layout.data == "streamed" else L1
    vectors = [at.mul(block.apart, v) for v in range(block.op.vectors)]
    later, asked = at.add(column, at.mul(block.b_steps[-1], steps)), -line
    for place in vectors:
        if isinstance(place, int) and place < asked + line:
            continue
        prefetch(block.op.b, at.add(later, place), locality, at)
        asked = place if isinstance(place, int) else asked
