"""
Prefetches the next panel of B during the use of the current one. Part of
`irees-lower-contractions`.

    for j in N by NR:
      for i in M by MR:
        for k in K: acc += A[i:i+MR, k] (x) panel_j[k]
  =>
        for k in K: prefetch of panel_{j+NR}, 1/R of it in each of R blocks; acc += ...

The first block of rows reads its panel from memory and waits for it. Later blocks hit the L2
cache, and memory is idle. Hardware prefetchers follow the current stream but cannot predict the
next panel, so each block of rows prefetches an equal part of it. After the last panel the
prefetches are useless but harmless.

A panel that this pass packed exceeds the L1 cache, and the kernel reads it faster than the
hardware prefetchers fill L1 from L2: each step of K prefetches the vectors of a later one.

    for k in K: prefetch of panel_j[k + 4]; acc += A[i:i+MR, k] (x) panel_j[k]

If B is streamed once, several rows at a time, each step prefetches the following rows into the L2
cache: in L1 they would evict each other before use.

Prefetches take issue slots, so operands of few bytes get none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from irees.dialects.upstream.memref import L1, L2, PrefetchOp
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.lower_contractions.panels import Columns, Panels
from irees.transforms.codegen.cpu.lower_contractions.plan import Plan, Rows
from irees.transforms.utils.lanes import LINE, lane_bytes
from irees.transforms.utils.shapes import IndexBuilder, Size


@dataclass(frozen=True)
class NextPanel:
    """A panel, and the lines of it that each step of K of each block of rows prefetches."""

    buffer: SSAValue
    start: Size
    """The offset of the first block's part, in elements."""
    turn: Size
    """The number of the first block in this iteration of the loops around the blocks."""
    share: int
    """Elements from one block's part to the next."""
    last: int | None
    """The last block with a part of its own; None if all have one."""
    step: int
    """Elements from one step of K to the next."""
    hints: Sequence[int]
    """Offsets of the lines of one step."""

    def share_of(self, block: Size, at: IndexBuilder) -> Size:
        """Returns the offset of the part that a block of rows prefetches."""
        number = at.add(self.turn, block)
        if self.last is not None:
            number = at.minimum(number, self.last)
        return at.add(self.start, at.mul(number, self.share))

    def ask(self, begin: Size, step: Size, at: IndexBuilder) -> None:
        """memref.prefetch %b[begin + step * ...]"""
        place = at.add(begin, at.mul(step, self.step))
        for hint in self.hints:
            ask(self.buffer, at.add(place, hint), L2, at)


def ask(buffer: SSAValue, place: Size, locality: int, at: IndexBuilder) -> None:
    """memref.prefetch %buffer[place]"""
    at.insert(PrefetchOp(buffer, [at.value(place)], locality=locality))


@dataclass(frozen=True)
class Blocks:
    """The blocks of rows that use a panel, each of which prefetches a part of the next one."""

    count: int
    last: int | None = None
    """The last block with a part of its own; None if all have one."""
    turn: Size = 0
    """The number of the first block in this iteration of the loops around the blocks."""

    @staticmethod
    def of(plan: Plan, rows: Rows, ivs: dict[int, Size], at: IndexBuilder) -> Blocks | None:
        """Returns the blocks of `rows` in the iteration `ivs`; None if one block has all rows."""
        turns = [rows.turns, *(plan.sizes[loop] for loop in plan.loops.outer_m[1:])]
        counts = [size for size in (rows.count, *turns) if isinstance(size, int)]
        blocks, last = CPU.assumed_row_blocks, CPU.assumed_row_blocks - 1
        if len(counts) == 1 + len(turns):
            blocks, last = -(-counts[0] // plan.tiling.mr) * prod(counts[1:]), None
        if blocks < 2:
            return None
        turn: Size = 0
        for number, (loop, size) in enumerate(zip(plan.loops.outer_m, turns, strict=False)):
            before = rows.turn if number == 0 else 0
            turn = at.add(at.mul(turn, size), at.sub(ivs[loop], before))
        each = at.ceildiv(rows.count, plan.tiling.mr) if plan.loops.outer_m else 1
        return Blocks(blocks, last, at.mul(turn, each))


def next_panel(
    plan: Plan, panel: Size, rows: Rows, depth: Size | None, ivs: dict[int, Size], at: IndexBuilder
) -> NextPanel | None:
    """
    Returns the prefetches of the panel after the constant one that starts at `panel`.

    `rows` are those in the iteration `ivs` of the loops `outer_m`. None if K is dynamic or a single
    block has all rows.
    """
    points = _points(plan, depth)
    if points is None or _is_small(plan):
        return None
    blocks, after = Blocks.of(plan, rows, ivs, at), _panel_size(plan)
    if blocks is None or after is None:
        return None
    steps, start, block = -(-points // plan.group), at.add(panel, after), _block_step(plan)
    if not isinstance(block, int) or block == steps * plan.lanes:
        return _even_shares(plan, plan.b.flat, start, blocks, steps)
    # Each block of rows prefetches its slices of whole blocks of columns, until none is left.
    vectors = plan.tiling.vectors
    some = -(-vectors // blocks.count)
    hints = range(0, some * block, block)
    last = -(-vectors // some) - 1
    return NextPanel(plan.b.flat, start, blocks.turn, some * block, last, plan.lanes, hints)


def _block_step(plan: Plan) -> Size | None:
    """Returns the elements from one block of columns to the next; None if B has none."""
    if plan.packing.panel is not None or plan.loops.vector_loop is None:
        return None
    return plan.b.steps[plan.loops.vector_loop]


def _panel_size(plan: Plan) -> int | None:
    """Returns the elements from one panel of the kernel to the next, if static."""
    if plan.packing.panel is not None:
        step, number = plan.panel_step, plan.nr // plan.packing.panel
    else:
        step, number = _block_step(plan), plan.tiling.vectors
    return step * number if isinstance(step, int) else None


def next_packed_panel(
    panels: Panels, columns: Columns, rows: Size, depth: Size | None, at: IndexBuilder
) -> NextPanel | None:
    """
    Returns the prefetches of the panel after one that this kernel has packed, for each block of
    `rows`. If that panel is not packed yet, its destination is prefetched. None if L1 could
    hold the panel.
    """
    plan = panels.plan
    points = _points(plan, depth)
    if points is None or not isinstance(rows, int) or rows <= plan.tiling.mr:
        return None
    if points * plan.nr * lane_bytes(plan.packed_element) <= CPU.near_bytes:
        return None
    assert panels.b is not None
    assert plan.tiling.kc is not None
    start = at.mul(at.add(columns.start, plan.nr), plan.tiling.kc)
    blocks = Blocks(-(-rows // plan.tiling.mr))
    return _even_shares(plan, panels.b, start, blocks, -(-points // plan.group))


def steps_ahead(plan: Plan, panels: Panels, depth: Size | None) -> int | None:
    """
    Returns how many steps of K ahead to prefetch a line of B; None if hardware brings it in time.

    That holds for panels that the L1 cache holds, and for rows that only one block reads. Dot
    products get none: per instruction they read four times as much of K, and prefetches cost more
    than they gain.
    """
    if plan.packing.streamed:
        return plan.tiling.kc
    in_panels = (
        panels.b is not None or plan.packing.panel is not None or plan.loops.vector_loop is not None
    )
    points = _points(plan, depth)
    if plan.dot is not None or not in_panels or points is None:
        return None
    # A panel that this kernel packed is in L2 already, so rows of A do not count.
    rows = plan.tiling.mr if panels.b is None else 0
    narrow = lane_bytes(plan.packed_element)
    return CPU.l1_prefetch_steps if points * (plan.nr + rows) * narrow > CPU.near_bytes else None


def ask_ahead(
    plan: Plan,
    panel: SSAValue,
    column: Size,
    step: Size,
    vectors: Sequence[Size],
    at: IndexBuilder,
) -> None:
    """Prefetches the lines of B that are read one `step` after `vectors` at `column`."""
    assert isinstance(panel.type, MemRefType)
    line = LINE // lane_bytes(panel.type.element_type)
    later, asked = at.add(column, step), -line
    locality = L2 if plan.packing.streamed else L1
    for place in vectors:
        if isinstance(place, int) and place < asked + line:
            continue
        ask(panel, at.add(later, place), locality, at)
        asked = place if isinstance(place, int) else asked


def _even_shares(
    plan: Plan, buffer: SSAValue, start: Size, blocks: Blocks, steps: int
) -> NextPanel:
    """Returns prefetches that split the columns of each step of K among the blocks of rows."""
    share = -(-plan.nr * plan.group // blocks.count)
    hints = range(0, share, LINE // lane_bytes(plan.packed_element))
    return NextPanel(buffer, start, blocks.turn, steps * share, blocks.last, share, hints)


def _points(plan: Plan, depth: Size | None) -> int | None:
    """Returns the elements of K, or of a slice of it, if static."""
    sizes = [plan.sizes[x] for group in plan.loops.k for x in group]
    if depth is not None:
        sizes = [depth, *(plan.sizes[x] for group in plan.loops.k[1:] for x in group)]
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def _is_small(plan: Plan) -> bool:
    """Whether B is statically small; a tile of columns may end where the output does."""
    loops = [*plan.loops.outer_n, *plan.loops.n, *(x for group in plan.loops.k for x in group)]
    sizes = [size for loop in loops if isinstance(size := plan.sizes[loop], int)]
    bytes_ = prod(sizes) * lane_bytes(plan.packed_element)
    return len(sizes) == len(loops) and bytes_ < CPU.prefetched_bytes
