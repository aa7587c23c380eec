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
    is_contraction,
    multiply_add,
    packed_columns,
    roles,
    vector_side,
)
from irees.analysis.distribution import Group, groups_of, loops_of
from irees.analysis.register_blocking import choose_blocking
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.transforms.codegen.cpu._tuned_configs import tuned_block, tuned_tiles

CHUNK = 16384
"""Points of an elementwise or reduction op that are worth handing to a thread."""

ROWS = 256
COLUMNS = 512
"""Largest tile of a contraction: with a slice of K, it stays in the L2 cache."""

FEW_ROWS = 64
"""Packing a vector of B costs as much as multiplying it by a row or two; more rows hide that."""

DYNAMIC_GUESS = 256
"""What a dynamic trip count is taken for when tiles are chosen."""


def chunk_tiles(group: Group) -> list[int]:
    """Tiles of rows: outer loops one by one, the next in slices, inner loops whole."""
    member = max(group.members, key=lambda m: len(m.kinds))
    extents = group.extents()
    inner = 1
    for loop, size in enumerate(member.sizes):
        number = group.members.index(member)
        if not any(c[number] == loop for c in group.classes):
            inner *= DYNAMIC_GUESS if size < 0 else size
    tiles = [0] * len(extents)
    for position in reversed(range(len(extents))):
        extent = DYNAMIC_GUESS if extents[position] < 0 else extents[position]
        if inner >= CHUNK:
            tiles[position] = 1
        elif inner * extent > CHUNK or position == 0:
            tile = max(1, CHUNK // max(1, inner))
            tiles[position] = tile if extents[position] < 0 or tile < extents[position] else 0
            tiles[position] = even(extents[position], tiles[position])
            inner *= max(1, tile)
        else:
            inner *= extent
    return tiles


def even(extent: int, tile: int) -> int:
    """A tile of about that size that divides the extent, if one is near."""
    if extent <= 0 or tile <= 0:
        return tile
    for candidate in range(tile, max(tile // 2, 1) - 1, -1):
        if extent % candidate == 0:
            return candidate
    return tile


@dataclass(frozen=True)
class Machine:
    """What a choice depends on: threads to feed, vector registers and their bytes."""

    threads: int
    vector_bytes: int
    registers: int


def contraction_config(
    group: Group, number: int, machine: Machine
) -> tuple[list[int], tuple[int, int] | None]:
    """
    Tiles of a contraction's loops, one per class of the group, and its register block.

    Whole batches first. Then rows and columns are cut until there are enough workgroups: the
    columns first where packing them again for each block of rows would be dear (an image
    that is unfolded) or where they lie in panels, else the rows.
    """
    member = group.members[number]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    parts = multiply_add(op)
    assert parts is not None
    found, side = roles(op, parts), vector_side(op, parts)
    rows, columns = (found.n, found.m) if side == parts.lhs else (found.m, found.n)
    loops = [c[number] for c in group.classes]
    packed = None if side is None else packed_columns(op.indexing_maps.data[side].data)
    lanes = machine.vector_bytes // 4
    block = choose_blocking(
        min(ROWS, _extent(member.sizes, rows[-1:])),
        _extent(member.sizes, columns),
        lanes,
        machine.registers,
        None if packed is None or packed % lanes else packed // lanes,
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
    order = (columns, rows) if unfolds else (rows, columns)
    for part in order:
        for loop in (x for x in loops if x in part):
            missing = -(-2 * machine.threads // count)
            if part is columns:
                tiles[loop] = _column_tile(member.sizes, loop, columns, panel, missing)
            else:
                tiles[loop] = _row_tile(member.sizes, loop, rows, missing, last=part is order[1])
            count *= _tiles_in(member.sizes[loop], tiles[loop])
    return [tiles[loop] for loop in loops], None if side is None else (block.rows, panel)


def _extent(sizes: tuple[int, ...], loops: tuple[int, ...]) -> int:
    """Points of some loops together; a dynamic one counts as many."""
    return prod(DYNAMIC_GUESS if sizes[x] < 0 else sizes[x] for x in loops)


def _tiles_in(size: int, tile: int) -> int:
    return 1 if tile == 0 else DYNAMIC_GUESS if size < 0 else max(1, -(-size // tile))


def _row_tile(
    sizes: tuple[int, ...], loop: int, side: tuple[int, ...], wanted: int, *, last: bool
) -> int:
    """Up to ROWS rows; for `wanted` tiles fewer, but a number that is worth packing columns for."""
    size = sizes[loop]
    if size < 0 and any(other > loop for other in side):
        return 1
    least = 16 if last else FEW_ROWS
    limit = max(least, min(ROWS, -(-size // wanted)))
    if size < 0:
        return ROWS if wanted == 1 else FEW_ROWS
    return 0 if size <= limit else even(size, limit)


def _column_tile(
    sizes: tuple[int, ...], loop: int, side: tuple[int, ...], panel: int, wanted: int
) -> int:
    """About COLUMNS points over the loops of the side in whole panels, fewer for `wanted` tiles."""
    inner = 1
    for other in side:
        if other > loop:
            inner *= DYNAMIC_GUESS if sizes[other] < 0 else max(1, sizes[other])
    size = sizes[loop]
    tile = max(1, COLUMNS // inner)
    if size < 0:
        return -(-tile // panel) * panel if inner == 1 else tile
    pieces = max(1, -(-size // tile), min(wanted, -(-size * inner // (2 * panel))))
    tile = -(-size // pieces)
    if inner == 1:
        tile = -(-tile // panel) * panel
    return 0 if tile >= size else tile


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
                if isinstance(m.op, linalg.GenericOp) and is_contraction(m.op)
            ),
            None,
        )
        block = None
        if heavy is None:
            tiles = chunk_tiles(group)
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = Machine(self.threads, self.vector_bytes, self.registers)
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                # Tiling takes the configs off the ops; reports read them here.
                executable.attributes["configs"] = ArrayAttr(configure(function, machine))
