"""
Asks for the next panel of B while this one is multiplied by. Part of `irees-lower-contractions`.

    for j in N by NR:
      for i in M by MR:
        for k in K: acc += A[i:i+MR, k] (x) panel_j[k]
  =>
        for k in K: prefetch of panel_{j+NR}, 1/R of it in each of R blocks; acc += ...

The first block of rows reads its panel from memory and waits for it; the blocks after it find the
panel in the L2 cache, and memory is idle. The processor's own prefetchers follow the stream that is
read, and do not know of the next. So each block of rows asks for an equal share of the next panel.
What lies behind the last one is asked for in vain: a hint about nothing.

A hint costs a place in the pipeline, so there are none for operands of few bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from irees.dialects.upstream.memref import PrefetchOp
from irees.transforms.codegen.cpu._contraction_plan import Plan
from irees.transforms.utils.lanes import lane_bytes
from irees.transforms.utils.shapes import IndexBuilder, Size

LINE = 64
"""Bytes of a line of the caches."""

LEAST_BYTES = 64 << 10
"""Of B, for hints to pay."""

L2 = 2
"""The locality of a hint for the L2 cache: the L1 cache is for the panel in use."""


@dataclass(frozen=True)
class NextPanel:
    """A panel, and how much of it each step of each block of rows asks for."""

    buffer: SSAValue
    start: Size
    """Where the share of the first block begins."""
    steps: int
    """Steps of K of one block."""
    share: int
    """Elements for each step."""
    line: int
    """Elements that one hint brings."""

    def share_of(self, block: Size, at: IndexBuilder) -> Size:
        """Where the share of a block of rows begins."""
        return at.add(self.start, at.mul(block, self.steps * self.share))

    def ask(self, begin: Size, step: Size, at: IndexBuilder) -> None:
        """memref.prefetch %b[begin + step * share]"""
        place = at.add(begin, at.mul(step, self.share))
        for ahead in range(0, self.share, self.line):
            index = at.value(at.add(place, ahead))
            at.insert(PrefetchOp(self.buffer, [index], locality=L2))


def next_panel(
    plan: Plan, panel: Size, rows: Size, depth: Size | None, ivs: dict[int, Size], at: IndexBuilder
) -> NextPanel | None:
    """
    What follows a slice of a constant panel that starts at `panel`, for `rows` of A in each turn of
    the loops `outer_m` at `ivs`. None where sizes are not known, or one block has all rows.
    """
    turns = [plan.sizes[x] for x in plan.outer_m]
    points = _points(plan) if depth is None else depth
    if not (isinstance(rows, int) and isinstance(points, int)) or _bytes(plan) < LEAST_BYTES:
        return None
    each, blocks, turn = -(-rows // plan.block.rows), -(-rows // plan.block.rows), 0
    for loop, size in zip(plan.outer_m, turns, strict=True):
        if not isinstance(size, int):
            return None
        blocks, turn = blocks * size, at.add(at.mul(turn, size), ivs[loop])
    steps = -(-points // plan.group)
    after = _distance(plan, steps)
    if after is None or blocks < 2:
        return None
    share = -(-plan.columns * plan.group // blocks)
    start = at.add(at.add(panel, after), at.mul(turn, each * steps * share))
    line = LINE // lane_bytes(plan.packed_element)
    return NextPanel(plan.b.flat, start, steps, share, line)


def _points(plan: Plan) -> int | None:
    """The points of all K where they are known."""
    sizes = [plan.sizes[x] for group in plan.k for x in group]
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def _bytes(plan: Plan) -> int:
    """The bytes of B, as far as its sizes are known."""
    loops = [*plan.outer_n, *plan.n, *(x for group in plan.k for x in group)]
    sizes = [size for loop in loops if isinstance(size := plan.sizes[loop], int)]
    return prod(sizes) * lane_bytes(plan.packed_element)


def _distance(plan: Plan, steps: int) -> int | None:
    """From a panel to the next, in elements; None unless a slice of it is contiguous."""
    if plan.packed is not None:
        apart = plan.panel_step
        return apart * (plan.columns // plan.packed) if isinstance(apart, int) else None
    if plan.vector_loop is None:
        return None
    block = plan.b.steps[plan.vector_loop]
    if not isinstance(block, int) or block != steps * plan.lanes:
        return None
    return block * plan.block.vectors
