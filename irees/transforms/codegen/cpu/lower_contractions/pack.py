"""
Copies slices of a contraction's operands into panels. Part of `irees-lower-contractions`.

B is packed as [KC, NR], so that the micro-kernel streams through it. A keeps its rows, but padded
to slightly more than a slice of K, so that no two rows of a block map to the same cache set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IndexType, MemRefType, StridedLayoutAttr
from xdsl.ir import SSAValue

from irees.transforms.codegen.cpu.lower_contractions.epilogue import Slice
from irees.transforms.codegen.cpu.lower_contractions.plan import Operand, Plan, widened
from irees.transforms.utils.lanes import LINE, vector_of
from irees.transforms.utils.loops import for_loop, if_both
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
    """panel[i, k] = A[i, k] for some rows and one slice of K, vector by vector"""
    plan, lanes = panels.plan, panels.plan.lanes
    assert panels.a is not None
    assert isinstance(plan.a.flat.type, MemRefType)
    kind = vector_of(plan.a.flat.type.element_type, lanes)
    close_rows, i, row = for_loop(at, 0, rows, 1)
    source = row.add(base, row.mul(i, plan.row_step(plan.a)))
    target = row.mul(i, panels.row)
    main = row.mul(row.floordiv(depth, lanes), lanes)
    close, k, inner = for_loop(row, 0, main, lanes)
    read = vector.LoadOp(plan.a.flat, [inner.value(inner.add(source, k))], kind)
    value = widened(inner.insert(read).results[0], plan.widen_a, lanes, inner)
    inner.insert(vector.StoreOp(value, panels.a, [inner.value(inner.add(target, k))]))
    close()
    if not (isinstance(main, int) and main == depth):
        close, k, inner = for_loop(row, main, depth, 1)
        load = memref.LoadOp.get(plan.a.flat, [inner.value(inner.add(source, k))])
        value = widened(inner.insert(load).results[0], plan.widen_a, lanes, inner)
        inner.insert(memref.StoreOp.get(value, panels.a, [inner.value(inner.add(target, k))]))
        close()
    close_rows()


def spread(
    loops: Sequence[int], index: Size, operand: Operand, sizes: Sequence[Size], b: IndexBuilder
) -> Size:
    """Returns the address of iteration `index` of collapsed loops: its digits times the strides."""
    total: Size = 0
    rest = index
    for position, loop in enumerate(reversed(loops)):
        digit = rest if position == len(loops) - 1 else b.rem(rest, sizes[loop])
        total = b.add(total, b.mul(digit, operand.steps[loop]))
        if position < len(loops) - 1:
            rest = b.floordiv(rest, sizes[loop])
    return total


def pack_columns(
    panels: Panels, columns: Columns, linear: bool, base: Size, part: Slice, at: IndexBuilder
) -> None:
    """
    panel[k, j] = B[part.start + k, columns.start + j]; columns past the last valid one repeat it.

    `linear` says that adjacent columns are contiguous everywhere in B.
    """
    plan, lanes = panels.plan, panels.plan.lanes
    assert part.depth is not None
    simple = linear and columns.valid is None
    if not simple:
        write_offsets(panels, columns, at)
    together = [None if simple else neighbours(panels, v, at) for v in range(columns.vectors)]
    close, kk, b = for_loop(at, 0, part.depth, 1)
    from_k = b.add(base, spread(plan.loops.k[-1], b.add(part.start, kk), plan.b, plan.sizes, b))
    row = b.mul(kk, columns.vectors * lanes)
    for v, condition in enumerate(together):
        place = b.value(b.add(row, v * lanes))
        if simple:
            _copy_vector(panels, b.add(from_k, b.add(columns.start, v * lanes)), place, b)
            continue
        if condition is None:
            _copy_lanes(panels, from_k, v, place, b)
            continue
        end, yes, no = if_both(b, condition)
        first = yes.insert(memref.LoadOp.get(panels.offsets, [yes.value(v * lanes)])).results[0]
        _copy_vector(panels, yes.add(from_k, first), place, yes)
        _copy_lanes(panels, from_k, v, place, no)
        end()
    close()


def write_offsets(panels: Panels, columns: Columns, at: IndexBuilder) -> None:
    """Stores the offset of each column in B."""
    plan = panels.plan
    close, lane, b = for_loop(at, 0, columns.vectors * plan.lanes, 1)
    column = b.add(columns.start, lane)
    if columns.valid is not None:
        column = b.minimum(column, b.sub(plan.size_n, 1))
    offset = spread(plan.loops.n, column, plan.b, plan.sizes, b)
    b.insert(memref.StoreOp.get(b.value(offset), panels.offsets, [lane]))
    close()


def neighbours(panels: Panels, v: int, at: IndexBuilder) -> SSAValue | None:
    """Returns whether the columns of vector `v` are contiguous in B; None if they never are."""
    plan, lanes = panels.plan, panels.plan.lanes
    if plan.b.steps[plan.loops.n[-1]] != 1:
        return None
    first = at.insert(memref.LoadOp.get(panels.offsets, [at.value(v * lanes)])).results[0]
    always = at.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]
    # Checking only the last lane is wrong: a gap may be as long as the repeated lanes.
    close, lane, b = for_loop(at, 1, lanes, 1, [always])
    place = b.value(b.add(lane, v * lanes))
    offset = b.insert(memref.LoadOp.get(panels.offsets, [place])).results[0]
    next_to = b.insert(arith.CmpiOp(offset, b.value(b.add(first, lane)), "eq")).results[0]
    return close([b.insert(arith.AndIOp(close.arguments[0], next_to)).results[0]])[0]


def _copy_vector(panels: Panels, source: Size, place: SSAValue, b: IndexBuilder) -> None:
    plan = panels.plan
    assert isinstance(plan.b.flat.type, MemRefType)
    kind = vector_of(plan.b.flat.type.element_type, plan.lanes)
    value = b.insert(vector.LoadOp(plan.b.flat, [b.value(source)], kind)).results[0]
    value = widened(value, plan.widen_b, plan.lanes, b)
    b.insert(vector.StoreOp(value, panels.b, [place]))


def _copy_lanes(panels: Panels, from_k: Size, v: int, place: SSAValue, b: IndexBuilder) -> None:
    plan = panels.plan
    close, lane, c = for_loop(b, 0, plan.lanes, 1)
    number = c.value(c.add(lane, v * plan.lanes))
    offset = c.insert(memref.LoadOp.get(panels.offsets, [number])).results[0]
    source = c.value(c.add(from_k, offset))
    value = c.insert(memref.LoadOp.get(plan.b.flat, [source])).results[0]
    value = widened(value, plan.widen_b, plan.lanes, c)
    c.insert(memref.StoreOp.get(value, panels.b, [c.value(c.add(place, lane))]))
    close()
