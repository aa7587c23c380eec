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
that. The filter of few channels stays as it is if vectors of adjacent pixels take fewer cycles than
vectors of channels, which few channels do not fill. K loops that slide a window become the outer
ones, so that the inner K loop is long.

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

from irees.analysis.affine_steps import linear_form
from irees.analysis.contractions import MultiplyAdd, is_contraction, multiply_add, roles
from irees.analysis.convolutions import window_loops
from irees.analysis.dot_products import dot_product
from irees.analysis.register_blocking import block_cycles, choose_blocking, embeds_broadcasts
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
    found, last = roles(op, parts), maps(op)[-1].results[-1]
    sides: list[Side] = []
    for position, own, rows in (
        (parts.rhs, found.n, found.m),
        (parts.lhs, found.m, found.n),
    ):
        group = instructions.group(op, parts, position) if is_plain_weight(op, position) else 0
        if not group:
            continue
        if not isinstance(last, AffineDimExpr) or last.position not in own:
            if len(own) == 1 and group == 1:
                sides.append(Side(position, own[0], rows, False, group))
        elif not is_blocked(maps(op)[position], set(own), set(found.batch), last):
            sides.append(Side(position, last.position, rows, True, group))
    return sides


def is_plain_weight(op: linalg.GenericOp, position: int) -> bool:
    """Whether an operand is a constant stored outside the IR, indexed by plain loops."""
    constant = op.operands[position].owner
    if not isinstance(constant, arith.ConstantOp):
        return False
    if not isinstance(constant.value, DenseResourceAttr):
        return False
    if not isinstance(constant.result.type, TensorType):
        return False
    return all(isinstance(e, AffineDimExpr) for e in maps(op)[position].results)


def is_blocked(indexing: AffineMap, own: set[int], batch: set[int], last: AffineDimExpr) -> bool:
    """Whether `irees-propagate-blocked-layouts` has made an operand [batch.., N/NR, K.., NR]."""
    inner = [e for e in indexing.results if not e.used_dims() <= batch]
    return indexing.results[-1] == last and inner[0].used_dims() <= own - {last.position}


def lanes_for(columns: int, lanes: int) -> int:
    """Returns the lanes of the vectors that hold `columns`: half of them if these suffice."""
    return lanes // 2 if 2 * columns <= lanes else lanes


def worth_scattering(op: linalg.GenericOp, side: Side, reduction: list[int], lanes: int) -> bool:
    """Whether writing the output column by column costs less than packing the other operand."""
    ranges, windows = static_ranges(op), window_loops(op)
    if any(ranges[x] < 0 for x in (side.column, *reduction)):
        return False
    depth, columns = prod(ranges[k] for k in reduction), ranges[side.column]
    vectors = -(-columns // lanes_for(columns, lanes))
    # Both costs are in cycles per K iteration and output vector. Half a vector counts as a whole.
    scattered = CPU.scattered_store * lanes / depth + vectors * lanes / columns
    output = maps(op)[-1].results[-1]
    copy = CPU.unfolded_copy if output.used_dims() & windows else CPU.packed_copy
    pixels = prod(ranges[x] for x in side.rows) if all(ranges[x] > 0 for x in side.rows) else 0
    waste = -(-pixels // lanes) * lanes / pixels if pixels else 1.0
    return scattered < copy * lanes / columns + waste


def is_direct(op: linalg.GenericOp, side: Side, image: int, instructions: Instructions) -> bool:
    """
    Whether vectors of adjacent pixels, read where the image is, take fewer cycles than vectors of
    channels: few channels do not fill these, or one vector of them shares no broadcast.
    """
    ranges, lanes, indexing = static_ranges(op), instructions.lanes, maps(op)
    last = indexing[-1].results[-1]
    columns, rows = ranges[side.column], [ranges[x] for x in side.rows]
    if not isinstance(last, AffineDimExpr) or not 0 < columns <= CPU.direct_rows:
        return False
    width, form = ranges[last.position], linear_form(indexing[image].results[-1])
    if form is None or form[0].get(last.position) != 1 or min(rows, default=0) <= 0:
        return False
    if not any(0 < step < lanes for loop, step in form[0].items() if loop != last.position):
        return False
    if width < lanes:
        vectors = min(2, width.bit_count())
    else:
        vectors = -(-width // lanes)
    # Both are relative to the cycles of multiply-adds of whole vectors.
    direct = CPU.direct_cycles * vectors * lanes / width
    registers, pixels = instructions.registers, prod(rows)
    narrow, embeds = lanes_for(columns, lanes), embeds_broadcasts(instructions.vector_bytes)
    block = choose_blocking(pixels, columns, narrow, registers, embeds=embeds)
    cycles = block_cycles(pixels, columns, narrow, registers, block, embeds=embeds)
    return direct < cycles * lanes / (pixels * columns)


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

    @property
    def name(self) -> str:
        """A name of the layout, for the names of packed constants."""
        group = f"x{self.group}" if self.group > 1 else ""
        return f"packed{self.columns}{group}_" + "".join(map(str, self.order))

    def indexing(self, plain: AffineMap) -> AffineMap:
        """Returns the indexing map of a packed operand, given that of the plain one."""
        column, rest = plain.results[self.axis], [plain.results[d] for d in self.order]
        inner = [column % self.columns]
        if self.group > 1:
            depth = rest.pop()
            rest.append(depth // self.group)
            inner.append(depth % self.group)
        return AffineMap(plain.num_dims, 0, (column // self.columns, *rest, *inner))

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


def choose_side(
    op: linalg.GenericOp, parts: MultiplyAdd, instructions: Instructions
) -> Side | None:
    """Returns the operand to pack, preferably one with a contiguous output; None if none pays."""
    ranges, lanes = static_ranges(op), instructions.lanes
    sides = [
        s
        for s in constant_sides(op, parts, instructions)
        if ranges[s.column] >= (lanes if s.contiguous else lanes // 2)
    ]
    side = min(sides, key=lambda s: not s.contiguous, default=None)
    if side is None or side.contiguous:
        return side
    image = parts.lhs if side.position == parts.rhs else parts.rhs
    if is_direct(op, side, image, instructions):
        return None
    return side if worth_scattering(op, side, list(roles(op, parts).k), lanes) else None


def panels_of(
    op: linalg.GenericOp, side: Side, reduction: set[int], instructions: Instructions
) -> Panels:
    """Returns the layout of a packed operand, as wide as the micro-kernel."""
    ranges, windows = static_ranges(op), window_loops(op)
    lanes = lanes_for(ranges[side.column], instructions.lanes)
    extents = [ranges[r] for r in side.rows]
    known = min(extents, default=0) >= 0 and not windows & set(side.rows)
    rows = prod(extents) if known else extents[-1]
    # The unsigned operand of a dot-product instruction cannot be a broadcast from memory.
    embeds = side.group == 1 and embeds_broadcasts(instructions.vector_bytes)
    block = choose_blocking(rows, ranges[side.column], lanes, instructions.registers, embeds=embeds)
    exprs = maps(op)[side.position].results
    axis = exprs.index(AffineExpr.dimension(side.column))

    def nesting(dim: int) -> int:
        """Other dims are outermost, then the windows of the reduction, then its other loops."""
        loops = exprs[dim].used_dims()
        if not loops & reduction:
            return 0
        return 1 if loops & windows else 2

    order = sorted((dim for dim in range(len(exprs)) if dim != axis), key=nesting)
    return Panels(tuple(order), axis, lanes * block.vectors, side.group)


def pack_operand(op: linalg.GenericOp, instructions: Instructions) -> bool:
    """contraction(x, constant)  =>  contraction(x, packed constant)"""
    parts, indexing = multiply_add(op), maps(op)
    if parts is None or parts.lhs == parts.rhs or not indexing[-1].results:
        return False
    side = choose_side(op, parts, instructions)
    if side is None or not may_rewrite(NAME, op, "pack_operand of linalg.generic"):
        return False
    panels = panels_of(op, side, set(roles(op, parts).k), instructions)
    constant = op.operands[side.position].owner
    assert isinstance(constant, arith.ConstantOp)
    kind = constant.result.type
    assert isinstance(kind, TensorType)
    packed = TensorType(kind.get_element_type(), panels.shape(kind.get_shape()))
    new = derived_constant([constant], panels.make, packed, panels.name)
    new.location = constant.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    indexing[side.position] = panels.indexing(indexing[side.position])
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
