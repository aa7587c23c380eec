"""
Packs constant operands of contractions into panels at compile time.

A packed kernel copies NR columns of B at a time into a panel before it multiplies. If B is a
weight, this pass does the copy: the constant becomes [N/NR, K.., NR]. The indexing map of the
operand describes the new layout, so later passes need no other information. Panels also speed up a
product with a single row: it reads each panel sequentially, which suits hardware prefetchers.

    %r = linalg.generic {maps = [(m, n, k) -> (m, k), (m, n, k) -> (k, n), ...]} ins(%x, %w)
  =>
    %r = linalg.generic {maps = [(m, n, k) -> (m, k),
                                 (m, n, k) -> (n floordiv 32, k, n mod 32), ...]} ins(%x, %packed)

An operand is always packed if the output is contiguous along its column loop. Packing any other
operand, such as the filter of an NCHW convolution, makes the kernel scatter its output column by
column, but saves unfolding the image at run time. The pass packs it if a cost estimate favours
that. K loops that slide a window become the outer ones, so that the inner K loop is long.

The pass packs f32, and i8 and bf16 if the target has dot products for them. Dot products group
elements along K: the index is (n floordiv 64, k floordiv 4, n mod 64, k mod 4). Incomplete panels
are filled with zeros, bf16 groups with -0.0, which leaves every sum unchanged. IREE: data tiling
(`SetEncoding`) with const-eval; Georganas et al., "Anatomy of High-Performance Deep
Learning Convolutions on SIMD Architectures" (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from irees.analysis.dot_products import dot_product
from irees.analysis.register_blocking import choose_blocking, embeds_broadcasts
from irees.dialects.irees_target import dot_products_of, target_of
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.utils.constants import derived_constant
from irees.transforms.utils.structured import maps, static_ranges

NAME = "irees-pack-constant-operands"


@dataclass(frozen=True)
class Side:
    """A constant operand that can be packed along one of its loops."""

    position: int
    column: int
    rows: tuple[int, ...]
    contiguous: bool
    """Whether the output is contiguous along `column`."""
    group: int
    """Adjacent elements along K that are stored together (1: no groups)."""


@dataclass(frozen=True)
class Instructions:
    """The target's vector width in bytes, register count, and dot-product features."""

    vector_bytes: int
    registers: int
    dot_products: tuple[str, ...]

    @property
    def lanes(self) -> int:
        """32-bit lanes of a vector: every packed contraction has 32-bit accumulators."""
        return self.vector_bytes // 4

    def group(self, op: linalg.GenericOp, parts: MultiplyAdd, position: int) -> int:
        """Returns the group size along K for packing an operand; 0 if it must not be packed."""
        element = op.body.block.args[position].type
        if isinstance(element, Float32Type):
            return 1
        dot = dot_product(op, parts, position, self.dot_products, self.vector_bytes)
        reduction = roles(op, parts).k
        # With several K loops, as in a convolution, elements along K are not contiguous.
        if dot is None or len(reduction) != 1:
            return 0
        return dot.group if reduction[0] in maps(op)[position].used_dims() else 0


def constant_sides(
    op: linalg.GenericOp, parts: MultiplyAdd, instructions: Instructions
) -> list[Side]:
    """Returns the operands to pack: constants of a supported type, indexed by plain loops."""
    found, indexing = roles(op, parts), maps(op)
    last = indexing[-1].results[-1] if indexing[-1].results else None
    sides: list[Side] = []
    for position, own, rows in (
        (parts.rhs, found.n, found.m),
        (parts.lhs, found.m, found.n),
    ):
        constant = op.operands[position].owner
        if not isinstance(constant, arith.ConstantOp):
            continue
        kind, exprs = constant.result.type, indexing[position].results
        if not isinstance(constant.value, DenseResourceAttr) or not isinstance(kind, TensorType):
            continue
        group = instructions.group(op, parts, position)
        if not group:
            continue
        if not all(isinstance(e, AffineDimExpr) for e in exprs):
            continue
        contiguous = isinstance(last, AffineDimExpr) and last.position in own
        # `irees-propagate-blocked-layouts` has already packed [batch.., N/NR, K.., NR].
        inner = [e for e in exprs if not e.used_dims() <= {*found.batch}]
        if contiguous and exprs[-1] == last and inner[0].used_dims() <= {*own} - {last.position}:
            continue
        if contiguous:
            sides.append(Side(position, last.position, rows, True, group))
        elif len(own) == 1 and group == 1:
            sides.append(Side(position, own[0], rows, False, group))
    return sides


def window_loops(op: linalg.GenericOp) -> set[int]:
    """Returns the loops in indices that are not a plain loop, such as a convolution's windows."""
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
    # Both costs are in cycles per K iteration and output vector.
    scattered = CPU.scattered_store * lanes / depth + -(-columns // lanes) * lanes / columns
    output = maps(op)[-1].results[-1]
    copy = CPU.unfolded_copy if output.used_dims() & windows else CPU.packed_copy
    pixels = prod(ranges[x] for x in side.rows) if all(ranges[x] > 0 for x in side.rows) else 0
    waste = -(-pixels // lanes) * lanes / pixels if pixels else 1.0
    return scattered < copy * lanes / columns + waste


@dataclass(frozen=True)
class Panels:
    """
    The layout of a packed array: columns along `axis`, the other dims in `order`.

    array[.., k, n]  =>  panels [N/NR, others in order.., NR], zero-filled

    With `group` > 1 the panels are [N/NR, .., K/group, NR, group], where K is last in `order`.
    """

    order: tuple[int, ...]
    axis: int
    columns: int
    group: int = 1

    def shape(self, sizes: Sequence[int]) -> list[int]:
        """Returns the packed shape of an array of these sizes."""
        outer, panels = [sizes[d] for d in self.order], -(-sizes[self.axis] // self.columns)
        if self.group == 1:
            return [panels, *outer, self.columns]
        return [panels, *outer[:-1], -(-outer[-1] // self.group), self.columns, self.group]

    def pack(self, array: np.ndarray, out: np.ndarray) -> None:
        """Packs an array into `out`."""
        moved = np.transpose(array, [*self.order, self.axis])
        if self.group > 1:
            np.copyto(out, self._in_groups(moved))
            return
        columns, size = self.columns, moved.shape[-1]
        whole, rest = divmod(size, columns)
        full = moved[..., : whole * columns].reshape(*moved.shape[:-1], whole, columns)
        np.copyto(out[:whole], np.moveaxis(full, -2, 0))
        if rest:
            np.copyto(out[whole, ..., :rest], moved[..., whole * columns :])
            out[whole, ..., rest:] = 0

    def make(self, arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Packs the only array into `out`; constants call this when their bytes are needed."""
        self.pack(arrays[0], out)

    def _in_groups(self, moved: np.ndarray) -> np.ndarray:
        *outer, depth, size = moved.shape
        panels, groups = -(-size // self.columns), -(-depth // self.group)
        filled = np.zeros((*outer, groups * self.group, panels * self.columns), moved.dtype)
        if moved.dtype.kind != "i":
            filled = -filled
        filled[..., :depth, :size] = moved
        split = np.moveaxis(filled.reshape(*filled.shape[:-1], panels, self.columns), -2, 0)
        split = split.reshape(*split.shape[:-2], groups, self.group, self.columns)
        return split.swapaxes(-1, -2)


def pack_operand(op: linalg.GenericOp, instructions: Instructions) -> bool:
    """contraction(x, constant)  =>  contraction(x, packed constant)"""
    parts = multiply_add(op)
    if parts is None or parts.lhs == parts.rhs or not maps(op)[-1].results:
        return False
    ranges, windows = static_ranges(op), window_loops(op)
    reduction, lanes = list(roles(op, parts).k), instructions.lanes
    sides = [s for s in constant_sides(op, parts, instructions) if ranges[s.column] >= lanes]
    side = next((s for s in sides if s.contiguous), None) or next(iter(sides), None)
    if side is None:
        return False
    extents = [ranges[r] for r in side.rows]
    if not side.contiguous and not worth_scattering(op, side, reduction, lanes):
        return False
    if not may_rewrite(NAME, op, "pack_operand of linalg.generic"):
        return False
    known = min(extents, default=0) >= 0 and not windows & set(side.rows)
    flat = prod(extents) if known else extents[-1]
    # The unsigned operand of a dot-product instruction cannot be a broadcast from memory.
    embeds = side.group == 1 and embeds_broadcasts(instructions.vector_bytes)
    block = choose_blocking(flat, ranges[side.column], lanes, instructions.registers, embeds=embeds)
    columns = lanes * block.vectors
    indexing = maps(op)
    constant = op.operands[side.position].owner
    assert isinstance(constant, arith.ConstantOp)
    kind = constant.result.type
    assert isinstance(kind, TensorType)
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
    panels = Panels(tuple(order), axis, columns, side.group)
    layout = f"packed{columns}" + (f"x{side.group}" if side.group > 1 else "")
    suffix = f"{layout}_" + "".join(map(str, order))
    packed = TensorType(kind.get_element_type(), panels.shape(kind.get_shape()))
    new = derived_constant([constant], panels.make, packed, suffix)
    new.location = constant.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    rest = [exprs[i] for i in order]
    inner = [column % columns]
    if side.group > 1:
        depth = rest.pop()
        rest.append(depth // side.group)
        inner.append(depth % side.group)
    indexing[side.position] = AffineMap(
        indexing[side.position].num_dims, 0, (column // columns, *rest, *inner)
    )
    op.operands[side.position] = new.result
    op.indexing_maps = ArrayAttr(AffineMapAttr(m) for m in indexing)
    return True


@dataclass(frozen=True)
class PackConstantOperandsPass(ModulePass):
    """Packs constant operands of contractions into panels for vectors of `vector_bytes`."""

    name = "irees-pack-constant-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Resources are printed by the builtin dialect, which text without a module does not load.
        ctx.get_optional_op(ModuleOp.name)
        target = target_of(op)
        if target.gpu is not None:
            return
        instructions = Instructions(
            target.vector_bytes, target.vector_registers, dot_products_of(op)
        )
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            if inner.res and is_contraction(inner):
                pack_operand(inner, instructions)
