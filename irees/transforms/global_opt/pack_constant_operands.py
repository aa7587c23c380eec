"""
Lays constant operands of contractions out in panels, once, at compile time.

A packed kernel copies NR columns of B at a time into a panel before it multiplies. When B
is a weight the copy can be made here: the constant becomes [N/NR, K.., NR] and the op
reads it there. The new place is written in the indexing map, so nothing downstream has to
be told.

    %r = linalg.generic {maps = [(m, n, k) -> (m, k), (m, n, k) -> (k, n), ...]} ins(%x, %w)
  =>
    %r = linalg.generic {maps = [(m, n, k) -> (m, k),
                                 (m, n, k) -> (n floordiv 32, k, n mod 32), ...]} ins(%x, %packed)

An operand along whose loop the output is contiguous is always packed. Any other, such as
the filter of an NCHW convolution, makes the kernel write its output column by column, but
spares it to unfold the image at run time: it is packed where an estimate of the two says
so. K loops that slide a window go outside the others, so that the inner one is long.

Only f32. A last panel that is not full is filled with zeros. IREE: data tiling
(`SetEncoding`) with const-eval; Georganas et al., "Anatomy of High-Performance Deep
Learning Convolutions on SIMD Architectures" (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseResourceAttr,
    Float32Type,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import MultiplyAdd, is_contraction, multiply_add, roles
from irees.analysis.register_blocking import choose_blocking
from irees.rewrites import may_rewrite
from irees.transforms.utils.constants import array_of, constant_of
from irees.transforms.utils.structured import maps, static_ranges

NAME = "irees-pack-constant-operands"

MIN_ROWS = 5
"""With fewer rows a contraction reads its matrix once, in the layout it has."""

SCATTER = 1.5
"""Cycles to write one element of the output apart from its neighbours."""

COPY = 0.125
UNFOLD = 1.25
"""Cycles to pack one element at run time: with its neighbours, or by itself."""


@dataclass(frozen=True)
class Side:
    """A constant operand that can be packed along one of its loops."""

    position: int
    column: int
    rows: tuple[int, ...]
    contiguous: bool
    """The output is contiguous along `column`."""


def constant_sides(op: linalg.GenericOp, parts: MultiplyAdd) -> list[Side]:
    """The operands that are constant f32 tensors indexed by plain loops."""
    found, indexing = roles(op, parts), maps(op)
    last = indexing[-1].results[-1] if indexing[-1].results else None
    sides: list[Side] = []
    for position, own, rows in (
        (parts.rhs, found.n, found.m),
        (parts.lhs, found.m, found.n),
    ):
        constant = op.operands[position].owner
        if not isinstance(constant, arith.ConstantOp) or not rows:
            continue
        kind, exprs = constant.result.type, indexing[position].results
        if not isinstance(constant.value, DenseResourceAttr) or not isinstance(kind, TensorType):
            continue
        if not isinstance(kind.get_element_type(), Float32Type):
            continue
        if not all(isinstance(e, AffineDimExpr) for e in exprs):
            continue
        contiguous = isinstance(last, AffineDimExpr) and last.position in own
        # What `irees-propagate-blocked-layouts` laid out [batch.., N/NR, K.., NR] stays.
        inner = [e for e in exprs if not e.used_dims() <= {*found.batch}]
        if contiguous and exprs[-1] == last and inner[0].used_dims() <= {*own} - {last.position}:
            continue
        if contiguous:
            sides.append(Side(position, last.position, rows, True))
        elif len(own) == 1:
            sides.append(Side(position, own[0], rows, False))
    return sides


def window_loops(op: linalg.GenericOp) -> set[int]:
    """Loops that some operand adds to others or strides over, as a convolution does."""
    return {
        dim
        for indexing in maps(op)
        for expr in indexing.results
        if not isinstance(expr, AffineDimExpr)
        for dim in expr.used_dims()
    }


def worth_scattering(op: linalg.GenericOp, side: Side, reduction: list[int], lanes: int) -> bool:
    """Whether writing the output column by column costs less than packing the other operand."""
    ranges, windows = static_ranges(op), window_loops(op)
    if any(ranges[x] < 0 for x in (side.column, *reduction)):
        return False
    depth, columns = prod(ranges[k] for k in reduction), ranges[side.column]
    # Both in cycles for one step of K and one vector of the output.
    scattered = SCATTER * lanes / depth + -(-columns // lanes) * lanes / columns
    output = maps(op)[-1].results[-1]
    copy = UNFOLD if output.used_dims() & windows else COPY
    pixels = prod(ranges[x] for x in side.rows) if all(ranges[x] > 0 for x in side.rows) else 0
    waste = -(-pixels // lanes) * lanes / pixels if pixels else 1.0
    return scattered < copy * lanes / columns + waste


def pack(array: np.ndarray, order: list[int], axis: int, columns: int) -> np.ndarray:
    """array[.., n, ..]  =>  panels [N/NR, others in order.., NR], zero-filled"""
    moved = np.transpose(array, [*order, axis])
    size = moved.shape[-1]
    panels = -(-size // columns)
    if panels * columns != size:
        padding = [(0, 0)] * (moved.ndim - 1) + [(0, panels * columns - size)]
        moved = np.pad(moved, padding)
    split = moved.reshape(*moved.shape[:-1], panels, columns)
    return np.ascontiguousarray(np.moveaxis(split, -2, 0))


def pack_operand(op: linalg.GenericOp, lanes: int, registers: int) -> bool:
    """contraction(x, constant)  =>  contraction(x, packed constant)"""
    parts = multiply_add(op)
    if parts is None or parts.lhs == parts.rhs or not maps(op)[-1].results:
        return False
    ranges, windows = static_ranges(op), window_loops(op)
    reduction = list(roles(op, parts).k)
    sides = [s for s in constant_sides(op, parts) if ranges[s.column] >= lanes]
    side = next((s for s in sides if s.contiguous), None) or next(iter(sides), None)
    if side is None:
        return False
    extents = [ranges[r] for r in side.rows]
    if all(e >= 0 for e in extents) and prod(extents) < MIN_ROWS:
        return False
    if not side.contiguous and not worth_scattering(op, side, reduction, lanes):
        return False
    if not may_rewrite(NAME, op, "pack_operand of linalg.generic"):
        return False
    flat = extents[-1] if windows & set(side.rows) or min(extents) < 0 else prod(extents)
    columns = lanes * choose_blocking(flat, ranges[side.column], lanes, registers).vectors
    indexing = maps(op)
    constant = op.operands[side.position].owner
    assert isinstance(constant, arith.ConstantOp)
    array = array_of(constant)
    assert isinstance(array, np.ndarray)
    exprs = indexing[side.position].results
    column = AffineExpr.dimension(side.column)
    axis = exprs.index(column)
    order = [i for i in range(len(exprs)) if i != axis]
    order.sort(
        key=lambda i: (
            2
            if not exprs[i].used_dims() & set(reduction)
            else 1
            if exprs[i].used_dims() & windows
            else 0
        ),
        reverse=True,
    )
    packed = pack(array, order, axis, columns)
    key = f"{constant.value.resource_handle.data}_packed{columns}_" + "".join(map(str, order))
    new = constant_of(
        packed, TensorType(constant.result.type.get_element_type(), packed.shape), key
    )
    new.location = constant.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    rest = tuple(exprs[i] for i in order)
    indexing[side.position] = AffineMap(
        indexing[side.position].num_dims, 0, (column // columns, *rest, column % columns)
    )
    op.operands[side.position] = new.result
    op.indexing_maps = ArrayAttr(AffineMapAttr(m) for m in indexing)
    return True


@dataclass(frozen=True)
class PackConstantOperandsPass(ModulePass):
    """Constant matrices of contractions are stored in panels for vectors of `vector_bytes`."""

    name = "irees-pack-constant-operands"

    vector_bytes: int = 64
    registers: int = 32

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Resources are printed by the builtin dialect, which text without a module does not load.
        ctx.get_optional_op(ModuleOp.name)
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            if inner.res and is_contraction(inner):
                pack_operand(inner, self.vector_bytes // 4, self.registers)
