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
    size = plan.tiling.kc * plan.nr
    kind = MemRefType(panels.b.type.element_type, [size], StridedLayoutAttr([1], None))
    offset = at.value(at.mul(columns.start, plan.tiling.kc))
    view = memref.SubviewOp.get(panels.b, [offset], [size], [1], kind)
    return replace(panels, b=at.insert(view).results[0])


def pack_rows(panels: Panels, base: Size, rows: Size, depth: Size, at: IndexBuilder) -> None:
    """panel[i, k] = A[i, k] for some rows and one slice of K, from address `base` on"""
    plan = panels.plan
    assert panels.a is not None
    indices = (base, rows, plan.row_step(plan.a), depth, plan.a.steps[plan.loops.k[-1][-1]])
    shape = (panels.row, plan.lanes * plan.group, plan.group)
    bias = plan.dot is not None and plan.dot.biased
    places = list(map(at.value, indices))
    at.insert(PackRowsOp(plan.a.flat, panels.a, places, shape, unsigned=plan.unsigned_a, bias=bias))


def pack_columns(
    panels: Panels, columns: Columns, base: Size, part: Slice, at: IndexBuilder
) -> None:
    """
    panel[k, j] = B[part.start + k, columns.start + j]; columns past the last valid one repeat it.
    """
    plan = panels.plan
    assert part.depth is not None
    assert panels.b is not None
    assert panels.offsets is not None
    loops = [
        [(at.value(plan.sizes[x]), at.value(plan.b.steps[x])) for x in group]
        for group in (plan.loops.k[-1], plan.loops.n)
    ]
    valid = None
    if columns.valid is not None:
        valid = (at.value(columns.valid), at.value(plan.size_n))
    place = [at.value(x) for x in (base, part.start, part.depth, columns.start)]
    shape = (columns.vectors, plan.lanes, plan.group)
    buffers = (plan.b.flat, panels.b, panels.offsets)
    at.insert(
        PackColumnsOp(buffers, place, valid, (loops[0], loops[1]), shape, unsigned=plan.unsigned_b)
    )
