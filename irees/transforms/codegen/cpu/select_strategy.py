"""
Chooses how each kernel runs: which ops share a tile loop, and the tiles.

The ops of a kernel are cut into groups (`analysis/distribution.py`); each op gets a
`#iree_codegen.lowering_config` with the number of its group and a tile size for each of
its loops, 0 for a loop that is not tiled. A group with a contraction is tiled for its
packed panels, and the contraction gets its register block, MR x NR; any other is cut into
chunks of rows that are worth a thread's while. A group without a tileable loop keeps zeros
and runs as it is: that is the total fallback.

    linalg.generic {...}   =>   linalg.generic {..., lowering_config =
                                    #iree_codegen.lowering_config<{group = 0, workgroup = [1, 0]}>}

IREE: `KernelDispatch.cpp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass

from irees.analysis.contractions import (
    in_blocks,
    is_contraction,
    multiply_add,
    packed_columns,
    roles,
    vector_side,
)
from irees.analysis.distribution import Group, groups_of, loops_of
from irees.analysis.register_blocking import (
    SLICE,
    STRIP,
    UNPACKED_ROWS,
    choose_blocking,
    embeds_broadcasts,
)
from irees.analysis.transposes import crossing_loops
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.transforms.codegen.cpu._chunks import (
    DYNAMIC_GUESS,
    chunk_tiles,
    crossing_tiles,
    even,
)
from irees.transforms.codegen.cpu._tuned_configs import tuned_block, tuned_tiles
from irees.transforms.utils.shapes import element_bytes

COLUMNS = 512
"""Most columns of a contraction's tile."""

FEW_ROWS = 64
"""Packing a vector of B costs as much as multiplying it by a row or two; more rows hide that."""

STRIPS = 8
"""Times as many columns where rows go through all of their panels strip by strip: a strip is packed
once for all of them, and they need only the L3 cache."""

STREAMED_FOR = 4
"""Times as many columns where few rows go through B once, as it lies: along its rows."""

PACKED_FOR = 4
"""Times as many rows share columns that the kernel packs where no strips are cut: rows from the L3
cache cost less than packing again."""


@dataclass(frozen=True)
class Machine:
    """What a choice depends on: threads to feed, vector registers and their bytes."""

    threads: int
    vector_bytes: int
    registers: int
    l2_bytes: int

    @property
    def rows(self) -> int:
        """Most rows of a contraction's tile: a slice of K of them fills half of the L2 cache."""
        return max(FEW_ROWS, self.l2_bytes // 2 // (SLICE * 4))


def contraction_config(
    group: Group, number: int, machine: Machine
) -> tuple[list[int], tuple[int, int]]:
    """
    Tiles of a contraction's loops, one per class of the group, and its register block.

    Whole batches first. Then rows and columns are cut until there are enough workgroups: the
    columns first where packing them again for each block of rows would be dear (an image
    that is unfolded, or as many columns as rows, of which there are strips) or where they lie
    in panels or blocks, each of which one thread then reads; else the rows.
    """
    member = group.members[number]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    parts = multiply_add(op)
    assert parts is not None
    found, side = roles(op, parts), vector_side(op, parts)
    assert side is not None
    rows, columns = (found.n, found.m) if side == parts.lhs else (found.m, found.n)
    loops = [c[number] for c in group.classes]
    packed = packed_columns(op.indexing_maps.data[side].data)
    lanes = machine.vector_bytes // 4
    block = choose_blocking(
        min(machine.rows, _extent(member.sizes, rows[-1:])),
        _extent(member.sizes, columns),
        lanes,
        machine.registers,
        None if packed is None or packed % lanes else packed // lanes,
        embeds=embeds_broadcasts(machine.vector_bytes),
    )
    panel = packed or block.vectors * lanes
    tiles = {loop: 1 if loop in found.batch else 0 for loop in loops}
    count = 1
    for loop in found.batch:
        count *= DYNAMIC_GUESS if member.sizes[loop] < 0 else max(1, member.sizes[loop])
    unfolds = any(
        not isinstance(expr, AffineDimExpr) and expr.used_dims() & set(columns)
        for indexing in op.indexing_maps
        for expr in indexing.data.results
    )
    blocked = in_blocks(op, parts, side)
    order = (columns, rows) if unfolds or blocked else (rows, columns)
    most, columns_at_most = machine.rows, COLUMNS
    if packed is None and not blocked:
        height = member.sizes[rows[0]] if len(rows) == 1 and not unfolds else 0
        # Panels of narrow elements are a half or a quarter as large.
        strips = height > 2 * STRIP and element_bytes(op.operands[side].type) >= 4
        most = height if strips else most * PACKED_FOR
        few = _extent(member.sizes, rows) <= UNPACKED_ROWS
        columns_at_most *= STRIPS if strips else STREAMED_FOR if few else 1
        if strips and _extent(member.sizes, columns) >= height:
            order = (columns, rows)
    for part in order:
        for loop in (x for x in loops if x in part):
            # The schedule is static: more workgroups than threads would balance nothing.
            missing = -(-machine.threads // count)
            if part is columns:
                tiles[loop] = _column_tile(
                    member.sizes, loop, columns, panel, missing, columns_at_most
                )
            else:
                tiles[loop] = _row_tile(
                    member.sizes, loop, rows, missing, most, last=part is order[1]
                )
            count *= _tiles_in(member.sizes[loop], tiles[loop])
    return [tiles[loop] for loop in loops], (block.rows, panel)


def _extent(sizes: tuple[int, ...], loops: tuple[int, ...]) -> int:
    """Points of some loops together; a dynamic one counts as many."""
    return prod(DYNAMIC_GUESS if sizes[x] < 0 else sizes[x] for x in loops)


def _tiles_in(size: int, tile: int) -> int:
    return 1 if tile == 0 else DYNAMIC_GUESS if size < 0 else max(1, -(-size // tile))


def _row_tile(
    sizes: tuple[int, ...],
    loop: int,
    side: tuple[int, ...],
    wanted: int,
    most: int,
    *,
    last: bool,
) -> int:
    """
    Up to `most` rows; for `wanted` tiles fewer, but a number that is worth packing columns for.

    Rows of several loops are those of a window, of which no slice is kept in the cache.
    """
    size = sizes[loop]
    inner = [sizes[other] for other in side if other > loop]
    if size < 0 and inner:
        return 1
    least = 16 if last else FEW_ROWS
    if inner:
        each = prod(DYNAMIC_GUESS if n < 0 else max(1, n) for n in inner)
        least, most = -(-least // each), size
    limit = max(least, min(most, -(-size // wanted)))
    if size < 0:
        return most if wanted == 1 else FEW_ROWS
    return 0 if size <= limit else even(size, limit)


def _column_tile(
    sizes: tuple[int, ...], loop: int, side: tuple[int, ...], panel: int, wanted: int, most: int
) -> int:
    """About `most` points over the loops of the side in whole panels, fewer for `wanted` tiles."""
    inner = 1
    for other in side:
        if other > loop:
            inner *= DYNAMIC_GUESS if sizes[other] < 0 else max(1, sizes[other])
    size = sizes[loop]
    tile = max(1, most // inner)
    if size < 0:
        return -(-tile // panel) * panel if inner == 1 else tile
    pieces = max(1, -(-size // tile), min(wanted, -(-size * inner // (2 * panel))))
    # A last thread with one tile less would wait for the others.
    pieces = -(-pieces // wanted) * wanted if pieces > wanted else pieces
    tile = -(-size // pieces)
    if inner == 1:
        tile = -(-tile // panel) * panel
    return 0 if tile >= size else tile


def _has_panels(op: linalg.GenericOp) -> bool:
    """Whether an op is a contraction that is worth packing for: not one channel by channel."""
    parts = multiply_add(op)
    return parts is not None and is_contraction(op) and vector_side(op, parts) is not None


def configure(function: func.FuncOp, machine: Machine) -> list[LoweringConfigAttr]:
    """
    Writes the config of every op of one kernel, and returns all in order, with trip counts.

    Tiles and a register block that an op has already (`irees-apply-tuning`) stay as they are.
    """
    ops = [o for o in function.body.block.ops if loops_of(o) is not None]
    chosen: dict[Operation, LoweringConfigAttr] = {}
    for number, group in enumerate(groups_of(ops, enough=4 * machine.threads)):
        heavy = next(
            (
                i
                for i, m in enumerate(group.members)
                if isinstance(m.op, linalg.GenericOp) and _has_panels(m.op)
            ),
            None,
        )
        block = None
        if heavy is None:
            only = group.members[0].op
            crossing = None
            if len(group.members) == 1 and isinstance(only, linalg.GenericOp):
                crossing = crossing_loops(only)
            tiles = chunk_tiles(group) if crossing is None else crossing_tiles(group, *crossing)
        else:
            tiles, block = contraction_config(group, heavy, machine)
        tiles = tuned_tiles(group, tiles)
        for position, member in enumerate(group.members):
            workgroup = [0] * len(member.kinds)
            for group_class, tile in zip(group.classes, tiles, strict=True):
                workgroup[group_class[position]] = tile
            entries: dict[str, int | Sequence[int]] = {"group": number, "workgroup": workgroup}
            if position == heavy and block is not None:
                entries["block"] = tuned_block(member.op, block, machine.vector_bytes // 4)
            member.op.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
            entries["sizes"] = [max(-1, size) for size in member.sizes]
            chosen[member.op] = LoweringConfigAttr.of(**entries)
    return [chosen[op] for op in ops]


@dataclass(frozen=True)
class SelectStrategyPass(ModulePass):
    """Every op of a kernel gets a lowering config."""

    name = "irees-select-strategy"

    threads: int = 2
    vector_bytes: int = 64
    registers: int = 32
    l2_bytes: int = 1 << 20

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = Machine(self.threads, self.vector_bytes, self.registers, self.l2_bytes)
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                # Tiling takes the configs off the ops; reports read them here.
                executable.attributes["configs"] = ArrayAttr(configure(function, machine))
