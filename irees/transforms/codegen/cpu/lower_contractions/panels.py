"""
Scratch buffers for packed slices of operands, and the ops that fill them. Part of
`irees-lower-contractions`.

B is packed as [KC, NR], so that the micro-kernel streams through it. A keeps its rows, but padded
to slightly more than a slice of K, so that no two rows of a block map to the same cache set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType, MemRefType, StridedLayoutAttr
from xdsl.ir import SSAValue

from irees.dialects.panel import PackColumnsOp, PackRowsOp
from irees.transforms.codegen.cpu.lower_contractions.epilogue import Slice
from irees.transforms.codegen.cpu.lower_contractions.plan import Plan
from irees.transforms.utils.lanes import LINE
from irees.transforms.utils.shapes import IndexBuilder, Size, upper_bound

APART = LINE // 4
"""Padding between packed rows of A, in 4-byte words: one cache line, so that adjacent rows map to
adjacent sets."""


@dataclass
class Columns:
    """One panel of columns: its start, its vectors, and the number of valid columns."""

    start: Size
    vectors: int
    valid: Size | None
    """None if all are valid."""


@dataclass
class Panels:
    """Scratch buffers for packed slices; None for an operand that is read in place."""

    plan: Plan
    b: SSAValue | None
    offsets: SSAValue | None
    a: SSAValue | None

    @property
    def row(self) -> int:
        """Stride between packed rows of A, in elements."""
        assert self.plan.tiling.kc is not None
        return self.plan.tiling.kc + APART * self.plan.group


def allocate(plan: Plan, at: IndexBuilder) -> Panels:
    """
    Allocates space for one panel of B, or for all, unless B is read in place, and for a slice of A
    if it is packed.
    """
    b = offsets = None
    if not plan.packing.in_place:
        assert plan.tiling.kc is not None
        count = 1 if plan.tiling.mc is None else -(-(upper_bound(plan.size_n) or 0) // plan.nr)
        kind = MemRefType(plan.packed_element, [plan.tiling.kc * plan.nr * count])
        b = at.insert(memref.AllocOp([], [], kind)).results[0]
        offsets = at.insert(memref.AllocaOp.get(IndexType(), shape=[plan.nr])).results[0]
    panels = Panels(plan, b, offsets, None)
    if plan.packing.a:
        # Scratch memory is sized at compile time, so its size is a static upper bound.
        most = plan.tiling.mc or upper_bound(plan.size_m)
        assert most is not None
        kind = MemRefType(plan.packed_element, [most * panels.row])
        panels.a = at.insert(memref.AllocOp([], [], kind)).results[0]
    return panels


def panel_of(panels: Panels, columns: Columns, at: IndexBuilder) -> Panels:
    """Returns a view of one panel if all panels of a slice are packed."""
    plan = panels.plan
    assert panels.b is not None
    assert isinstance(panels.b.type, MemRefType)
    assert plan.tiling.kc is not None
    size = plan.tiling.kc * columns.vectors * plan.lanes
    kind = MemRefType(panels.b.type.element_type, [size], StridedLayoutAttr([1], None))
    offset = at.value(at.mul(columns.start, plan.tiling.kc))
    view = memref.SubviewOp.get(panels.b, [offset], [size], [1], kind)
    return replace(panels, b=at.insert(view).results[0])


def pack_rows(
    panels: Panels, ivs: dict[int, Size], first: Size, rows: Size, part: Slice, at: IndexBuilder
) -> None:
    """panel[i, k] = A[first + i, part.start + k], if A is packed at all"""
    plan = panels.plan
    if panels.a is None:
        return
    assert part.depth is not None
    point = {**ivs, plan.loops.m[-1]: first} if plan.loops.m else ivs
    step = plan.a.steps[plan.loops.k[-1][-1]]
    base = at.add(plan.a.at(point, at), at.mul(part.start, plan.a.steps[plan.loops.k[0][-1]]))
    places = [at.value(x) for x in (base, rows, plan.row_step(plan.a), part.depth, step)]
    shape = (panels.row, plan.lanes * plan.group, plan.group)
    bias = plan.dot is not None and plan.dot.biased
    at.insert(PackRowsOp(plan.a.flat, panels.a, places, shape, unsigned=plan.unsigned_a, bias=bias))


def pack_columns(
    panels: Panels, columns: Columns, ivs: dict[int, Size], part: Slice, at: IndexBuilder
) -> Panels:
    """
    panel[k, j] = B[part.start + k, columns.start + j], unless B is read in place

    Columns past the last valid one repeat it. Returns the panels.
    """
    plan = panels.plan
    if panels.b is None:
        return panels
    assert part.depth is not None
    assert panels.offsets is not None
    base = plan.b.at(ivs, at)
    k, n = (
        [(at.value(plan.sizes[x]), at.value(plan.b.steps[x])) for x in group]
        for group in (plan.loops.k[-1], plan.loops.n)
    )
    valid = None
    if columns.valid is not None:
        valid = (at.value(columns.valid), at.value(plan.size_n))
    place = [at.value(x) for x in (base, part.start, part.depth, columns.start)]
    shape, buffers = (columns.vectors, plan.lanes, plan.group), (plan.b.flat, panels.b)
    at.insert(
        PackColumnsOp(
            (*buffers, panels.offsets), place, valid, (k, n), shape, unsigned=plan.unsigned_b
        )
    )
    return panels
