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

A panel of its own is larger than the L1 cache, and a step of K reads it faster than the processor's
prefetchers bring it from the L2 cache: each step asks for the vectors of a later one.

    for k in K: prefetch of panel_j[k + 4]; acc += A[i:i+MR, k] (x) panel_j[k]

Rows of B that are read once, some side by side, ask for the rows below them. Those go to the L2
cache: in the L1 cache they would take the place of each other before they are read.

A hint costs a place in the pipeline, so there are none for operands of few bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from irees.dialects.upstream.memref import PrefetchOp
from irees.transforms.codegen.cpu.lower_contractions.pack import Columns, Panels
from irees.transforms.codegen.cpu.lower_contractions.plan import Plan, Rows
from irees.transforms.utils.lanes import LINE, lane_bytes
from irees.transforms.utils.shapes import IndexBuilder, Size

SOME_BLOCKS = 8
"""Blocks of rows that share a panel where nobody knows how many there are: if there are more, all
but the first ones ask for the last share again, and if there are fewer, some is not asked for."""

LEAST_BYTES = 64 << 10
"""Of B, for hints to pay."""

L2 = 2
"""The locality of a hint for the L2 cache: the L1 cache is for the panel in use."""

L1 = 3
"""The locality of a hint for the L1 cache."""

L1_BYTES = 32 << 10
"""Of a panel, and of a block of rows of A beside a constant one, that stay in the L1 cache until
the next block."""

STEPS = 8
"""Of K, in which a line comes from the L2 cache to the L1 cache."""


@dataclass(frozen=True)
class NextPanel:
    """A panel, and what each step of K of each block of rows asks for of it."""

    buffer: SSAValue
    start: Size
    """Where the share of the first block begins, in elements."""
    turn: Size
    """The number of the first block, in this turn of the loops around the blocks."""
    share: int
    """From the share of a block to that of the next."""
    last: int | None
    """The last block that has a share of its own, if not all have."""
    step: int
    """From one step of K to the next."""
    hints: Sequence[int]
    """Where the lines of one step are."""

    def share_of(self, block: Size, at: IndexBuilder) -> Size:
        """Where the share of a block of rows begins."""
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


def next_panel(
    plan: Plan, panel: Size, rows: Rows, depth: Size | None, ivs: dict[int, Size], at: IndexBuilder
) -> NextPanel | None:
    """
    What follows a slice of a constant panel that starts at `panel`, for those of the `rows` that
    are in the turn of the loops `outer_m` at `ivs`. None where K is not known, or one block has all
    rows.
    """
    points = _points(plan, depth)
    if points is None or _is_small(plan):
        return None
    turns = [rows.turns, *(plan.sizes[loop] for loop in plan.loops.outer_m[1:])]
    counts = [size for size in (rows.count, *turns) if isinstance(size, int)]
    blocks, last = SOME_BLOCKS, SOME_BLOCKS - 1
    if len(counts) == 1 + len(turns):
        blocks, last = -(-counts[0] // plan.tiling.mr) * prod(counts[1:]), None
    if blocks < 2:
        return None
    turn: Size = 0
    for number, (loop, size) in enumerate(zip(plan.loops.outer_m, turns, strict=False)):
        before = rows.turn if number == 0 else 0
        turn = at.add(at.mul(turn, size), at.sub(ivs[loop], before))
    each = at.ceildiv(rows.count, plan.tiling.mr) if plan.loops.outer_m else 1
    turn, steps, vectors = at.mul(turn, each), -(-points // plan.group), plan.tiling.vectors
    if plan.packing.panel is not None:
        after, block = plan.panel_step, None
        after = after * (plan.nr // plan.packing.panel) if isinstance(after, int) else None
    else:
        block = None if plan.loops.vector_loop is None else plan.b.steps[plan.loops.vector_loop]
        after = block * vectors if isinstance(block, int) else None
    if after is None:
        return None
    start = at.add(panel, after)
    if isinstance(block, int) and block != steps * plan.lanes:
        # A slice of each block of columns, some for each block of rows as long as there are any.
        some = -(-vectors // blocks)
        hints = range(0, some * block, block)
        last = -(-vectors // some) - 1
        return NextPanel(plan.b.flat, start, turn, some * block, last, plan.lanes, hints)
    return _even_shares(plan, plan.b.flat, start, turn, last, blocks, steps)


def next_packed_panel(
    panels: Panels, columns: Columns, rows: Size, depth: Size | None, at: IndexBuilder
) -> NextPanel | None:
    """
    What follows a panel that this kernel has packed, for each strip of `rows`; where the panel
    behind is not packed yet, its place is asked for. None for panels that the L1 cache could hold.
    """
    plan = panels.plan
    points = _points(plan, depth)
    if points is None or not isinstance(rows, int) or rows <= plan.tiling.mr:
        return None
    if points * plan.nr * lane_bytes(plan.packed_element) <= L1_BYTES:
        return None
    assert panels.b is not None
    assert plan.tiling.kc is not None
    start = at.mul(at.add(columns.start, plan.nr), plan.tiling.kc)
    blocks, steps = -(-rows // plan.tiling.mr), -(-points // plan.group)
    return _even_shares(plan, panels.b, start, 0, None, blocks, steps)


def steps_ahead(plan: Plan, panels: Panels, depth: Size | None) -> int | None:
    """
    How many steps of K before it is read a line of B is to be asked for; None for those that come
    in time: of panels that the L1 cache holds, or of rows that a block has to itself. Not for dot
    products: as many instructions read four times as much of K, and hints cost more than they
    bring.
    """
    if plan.packing.streamed:
        return plan.tiling.kc
    in_panels = (
        panels.b is not None or plan.packing.panel is not None or plan.loops.vector_loop is not None
    )
    points = _points(plan, depth)
    if plan.dot is not None or not in_panels or points is None:
        return None
    # What the kernel has packed itself is near already.
    rows = plan.tiling.mr if panels.b is None else 0
    narrow = lane_bytes(plan.packed_element)
    return STEPS if points * (plan.nr + rows) * narrow > L1_BYTES else None


def ask_ahead(
    plan: Plan,
    panel: SSAValue,
    column: Size,
    step: Size,
    vectors: Sequence[Size],
    at: IndexBuilder,
) -> None:
    """The lines of B that are read one `step` after those of `vectors` at `column`."""
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
    plan: Plan, buffer: SSAValue, start: Size, turn: Size, last: int | None, blocks: int, steps: int
) -> NextPanel:
    """Some columns of each step of K for each block of rows."""
    share = -(-plan.nr * plan.group // blocks)
    hints = range(0, share, LINE // lane_bytes(plan.packed_element))
    return NextPanel(buffer, start, turn, steps * share, last, share, hints)


def _points(plan: Plan, depth: Size | None) -> int | None:
    """The points of K, or of a slice of it, where they are known."""
    sizes = [plan.sizes[x] for group in plan.loops.k for x in group]
    if depth is not None:
        sizes = [depth, *(plan.sizes[x] for group in plan.loops.k[1:] for x in group)]
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def _is_small(plan: Plan) -> bool:
    """Whether B is known to have few bytes; a tile of columns may end where the output does."""
    loops = [*plan.loops.outer_n, *plan.loops.n, *(x for group in plan.loops.k for x in group)]
    sizes = [size for loop in loops if isinstance(size := plan.sizes[loop], int)]
    bytes_ = prod(sizes) * lane_bytes(plan.packed_element)
    return len(sizes) == len(loops) and bytes_ < LEAST_BYTES
