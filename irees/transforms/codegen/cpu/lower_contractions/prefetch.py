"""
Finds the panel of B that is read next, for the micro-kernel to prefetch. Part of
`irees-lower-contractions`.

Each block of rows prefetches a part of it (`irees-lower-micro-kernels`). Prefetches take issue
slots, so operands of few bytes get none.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.lower_contractions.panels import Columns, Panels
from irees.transforms.codegen.cpu.lower_contractions.plan import Plan, Rows
from irees.transforms.utils.lanes import lane_bytes
from irees.transforms.utils.shapes import IndexBuilder, Size, upper_bound


@dataclass(frozen=True)
class NextPanel:
    """The panel that is read after the current one, and the blocks of rows that prefetch it."""

    buffer: SSAValue
    start: Size
    """The offset of its first element."""
    blocks: int | None
    """Blocks of rows, None if dynamic."""
    turn: Size = 0
    """The number of the first block in this iteration of the loops around the blocks."""


def next_panel(
    plan: Plan, panel: Size, rows: Rows, depth: Size | None, ivs: dict[int, Size], at: IndexBuilder
) -> NextPanel | None:
    """
    Returns the panel after the constant one that starts at `panel`.

    `rows` are those in the iteration `ivs` of the loops `outer_m`. None if K is dynamic or a single
    block has all rows.
    """
    if _depth(plan, depth) is None or _is_small(plan):
        return None
    turns = [rows.turns, *(plan.sizes[loop] for loop in plan.loops.outer_m[1:])]
    # A last strip of fewer turns prefetches a part of its next panel.
    counts = [n for size in (rows.count, *turns) if (n := upper_bound(size)) is not None]
    blocks = None
    if len(counts) == 1 + len(turns):
        blocks = -(-counts[0] // plan.tiling.mr) * prod(counts[1:])
        if blocks < 2:
            return None
    turn: Size = 0
    for number, (loop, size) in enumerate(zip(plan.loops.outer_m, turns, strict=False)):
        before = rows.turn if number == 0 else 0
        turn = at.add(at.mul(turn, size), at.sub(ivs[loop], before))
    each = at.ceildiv(rows.count, plan.tiling.mr) if plan.loops.outer_m else 1
    turn, after = at.mul(turn, each), _panel_size(plan)
    if after is None:
        return None
    return NextPanel(plan.b.flat, at.add(panel, after), blocks, turn)


def _panel_size(plan: Plan) -> int | None:
    """Returns the elements from one panel of the kernel to the next, if static."""
    step, number = plan.panel_step, plan.tiling.vectors
    if plan.packing.panel is not None:
        number = plan.nr // plan.packing.panel
    elif plan.loops.vector_loop is not None:
        step = plan.b.steps[plan.loops.vector_loop]
    else:
        return None
    return step * number if isinstance(step, int) else None


def next_packed_panel(
    panels: Panels, columns: Columns, rows: Size, depth: Size | None, at: IndexBuilder
) -> NextPanel | None:
    """
    Returns the panel after one that this kernel has packed, for each block of `rows`.

    If that panel is not packed yet, its destination is prefetched. None if L1 could hold the panel.
    """
    plan = panels.plan
    deep = _depth(plan, depth)
    if deep is None or not isinstance(rows, int) or rows <= plan.tiling.mr:
        return None
    if deep * plan.nr * lane_bytes(plan.packed_element) <= CPU.near_bytes:
        return None
    assert panels.b is not None
    assert plan.tiling.kc is not None
    start = at.mul(at.add(columns.start, plan.nr), plan.tiling.kc)
    return NextPanel(panels.b, start, -(-rows // plan.tiling.mr))


def _depth(plan: Plan, depth: Size | None) -> int | None:
    """Returns the elements of K, or of a slice of it, if static."""
    groups = plan.loops.k if depth is None else plan.loops.k[1:]
    sizes = [*([] if depth is None else [depth]), *(plan.sizes[x] for g in groups for x in g)]
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def _is_small(plan: Plan) -> bool:
    """Whether B is statically small; a tile of columns may end where the output does."""
    loops = [*plan.loops.outer_n, *plan.loops.n, *(x for group in plan.loops.k for x in group)]
    sizes = [size for loop in loops if isinstance(size := plan.sizes[loop], int)]
    bytes_ = prod(sizes) * lane_bytes(plan.packed_element)
    return len(sizes) == len(loops) and bytes_ < CPU.prefetched_bytes
