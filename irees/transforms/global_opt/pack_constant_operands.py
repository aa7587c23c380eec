"""
Lays constant operands of contractions out in panels, once, at compile time.

A packed kernel copies NR columns of B at a time into a panel before it multiplies. When B
is a weight the copy can be made here: the constant becomes [N/NR, K.., NR] and the op
reads it there. The new place is written in the indexing map, so nothing downstream has to
be told.

    %r = linalg.generic {maps = [(m, n, k) -> (m, k), (m, n, k) -> (k, n), ...]} ins(%x, %w)
  =>
    %r = linalg.generic {maps = [(m, n, k) -> (m, k),
                                 (m, n, k) -> (n floordiv 48, k, n mod 48), ...]} ins(%x, %packed)

Only an operand along whose N loop the output is contiguous is packed (the other one is
read by broadcasts, in any layout), and only f32. A last panel that is not full is filled
with zeros. IREE: data tiling (`SetEncoding`) with const-eval.
"""

from __future__ import annotations

from dataclasses import dataclass

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

from irees.analysis.contractions import is_contraction, multiply_add, roles
from irees.transforms.utils.constants import array_of, constant_of
from irees.transforms.utils.structured import maps, static_ranges

MIN_ROWS = 5
"""With fewer rows a contraction reads its matrix once, in the layout it has."""


def pack(array: np.ndarray, exprs: tuple[AffineExpr, ...], n: int, columns: int) -> np.ndarray:
    """array[.., n, ..]  =>  panels [N/NR, others.., NR], zero-filled"""
    axis = next(i for i, e in enumerate(exprs) if e == AffineExpr.dimension(n))
    moved = np.moveaxis(array, axis, -1)
    size = moved.shape[-1]
    panels = -(-size // columns)
    if panels * columns != size:
        padding = [(0, 0)] * (moved.ndim - 1) + [(0, panels * columns - size)]
        moved = np.pad(moved, padding)
    split = moved.reshape(*moved.shape[:-1], panels, columns)
    return np.ascontiguousarray(np.moveaxis(split, -2, 0))


def pack_operand(op: linalg.GenericOp, columns: int) -> bool:
    """contraction(x, constant)  =>  contraction(x, packed constant)"""
    parts = multiply_add(op)
    if parts is None or parts.lhs == parts.rhs:
        return False
    found = roles(op, parts)
    indexing = maps(op)
    output = indexing[-1].results
    if not output or not isinstance(output[-1], AffineDimExpr):
        return False
    n = output[-1].position
    if n in found.n:
        position, rows = parts.rhs, found.m
    elif n in found.m:
        position, rows = parts.lhs, found.n
    else:
        return False
    ranges = static_ranges(op)
    if rows and all(0 <= ranges[r] for r in rows) and np.prod([ranges[r] for r in rows]) < MIN_ROWS:
        return False
    constant = op.operands[position].owner
    exprs = indexing[position].results
    if (
        not rows
        or not isinstance(constant, arith.ConstantOp)
        or not isinstance(constant.value, DenseResourceAttr)
        or not all(isinstance(e, AffineDimExpr) for e in exprs)
        or AffineExpr.dimension(n) not in exprs
    ):
        return False
    kind = constant.result.type
    assert isinstance(kind, TensorType)
    if not isinstance(kind.get_element_type(), Float32Type) or ranges[n] < columns:
        return False
    array = array_of(constant)
    assert isinstance(array, np.ndarray)
    packed = pack(array, exprs, n, columns)
    key = f"{constant.value.resource_handle.data}_packed{columns}"
    new = constant_of(packed, TensorType(kind.get_element_type(), packed.shape), key)
    new.location = constant.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    column = AffineExpr.dimension(n)
    rest = tuple(e for e in exprs if e != column)
    packed_map = AffineMap(
        indexing[position].num_dims, 0, (column // columns, *rest, column % columns)
    )
    indexing[position] = packed_map
    op.operands[position] = new.result
    op.indexing_maps = ArrayAttr(AffineMapAttr(m) for m in indexing)
    return True


@dataclass(frozen=True)
class PackConstantOperandsPass(ModulePass):
    """Constant matrices of contractions are stored in panels of `columns`."""

    name = "irees-pack-constant-operands"

    columns: int = 48

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Resources are printed by the builtin dialect, which text without a module does not load.
        ctx.get_optional_op(ModuleOp.name)
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            if inner.res and is_contraction(inner):
                pack_operand(inner, self.columns)
