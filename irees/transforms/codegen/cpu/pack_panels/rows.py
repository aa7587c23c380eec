"""Copies rows of A into a panel. Part of `irees-pack-panels`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from irees.dialects.panel import PackRowsOp, element_of
from irees.dialects.sizes import Size, folded
from irees.transforms.codegen.cpu.utils.widening import widened
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder

SIGN = -128
"""-128 as i8, 128 as unsigned i8: xor with it adds 128, giving an unsigned value."""


@dataclass(frozen=True)
class Rows:
    """A `panel.pack_rows`, its constants as ints."""

    op: PackRowsOp
    base: Size
    rows: Size
    across: Size
    depth: Size
    step: Size

    @staticmethod
    def of(op: PackRowsOp) -> Rows:
        """Returns the op with its constants folded."""
        return Rows(op, *map(folded, (op.base, op.rows, op.across, op.depth, op.step)))

    @property
    def group(self) -> int:
        """Elements of K in a group."""
        return self.op.group.value.data

    @property
    def pitch(self) -> int:
        """Stride between packed rows, in elements."""
        return self.op.pitch.value.data

    @property
    def element(self) -> Attribute:
        """The element type of the panel."""
        return element_of(self.op.panel)

    @property
    def vector_lanes(self) -> int:
        """Elements in a vector of the panel."""
        return self.op.lanes.value.data

    def widened(self, value: SSAValue, at: IndexBuilder) -> SSAValue:
        """Returns elements of A as those of the panel."""
        return widened(value, self.element, at, unsigned=self.op.unsigned is not None)


def pack_rows(a: Rows, at: IndexBuilder) -> None:
    """panel[i, k] = A[i, k] for some rows, with the bias if any, padded to a whole group of K"""
    op = a.op
    main: Size = 0
    if isinstance(a.step, int) and a.step == 1:
        main = _copy_runs(a, at)
    if isinstance(a.across, int) and a.across == 1:
        # Rows are contiguous in A: read along them, though each element goes to another packed row.
        close_outer, k, outer = for_loop(at, main, a.depth, 1)
        close, i, b = for_loop(outer, 0, a.rows, 1)
    else:
        close_outer, i, outer = for_loop(at, 0, a.rows, 1)
        close, k, b = for_loop(outer, main, a.depth, 1)
    source = b.value(b.add(b.add(a.base, b.mul(i, a.across)), b.mul(k, a.step)))
    value = b.insert(memref.LoadOp.get(op.source, [source])).results[0]
    if op.bias is not None:
        sign = b.insert(arith.ConstantOp(IntegerAttr(SIGN, a.element))).results[0]
        value = b.insert(arith.XOrIOp(value, sign)).results[0]
    there = b.value(b.add(b.mul(i, a.pitch), k))
    b.insert(memref.StoreOp.get(value, op.panel, [there]))
    close()
    close_outer()
    close_outer, i, outer = for_loop(at, 0, a.rows, 1)
    filled = outer.mul(outer.ceildiv(a.depth, a.group), a.group)
    close, k, b = for_loop(outer, a.depth, filled, 1)
    pad = b.insert(arith.ConstantOp(padding(a.element, 0.0))).results[0]
    there = b.value(b.add(b.mul(i, a.pitch), k))
    b.insert(memref.StoreOp.get(pad, op.panel, [there]))
    close()
    close_outer()


def _copy_runs(a: Rows, at: IndexBuilder) -> Size:
    """Packs the whole vectors of rows of A; returns the number of K elements that it packed."""
    op, chunk = a.op, a.vector_lanes
    kind = vector_of(a.element, chunk)
    main = at.mul(at.floordiv(a.depth, chunk), chunk)
    close_rows, i, row = for_loop(at, 0, a.rows, 1)
    source = row.add(a.base, row.mul(i, a.across))
    close, k, b = for_loop(row, 0, main, chunk)
    part = b.insert(vector.LoadOp(op.source, [b.value(b.add(source, k))], kind)).results[0]
    if op.bias is not None:
        signs = DenseIntOrFPElementsAttr.from_list(kind, [SIGN])
        part = b.insert(arith.XOrIOp(part, b.insert(arith.ConstantOp(signs)).results[0])).results[0]
    there = b.value(b.add(b.mul(i, a.pitch), k))
    b.insert(vector.StoreOp(part, op.panel, [there]))
    close()
    close_rows()
    return main


def padding(element: Attribute, zero: float) -> IntegerAttr | FloatAttr:
    """Returns the padding of an incomplete last group."""
    if isinstance(element, AnyFloat):
        return FloatAttr(zero, element)
    return IntegerAttr(0, element)
