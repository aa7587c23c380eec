"""
Chooses how each kernel runs: which ops share a tile loop, and the tiles.

The ops of a kernel are cut into groups (`analysis/distribution.py`); each op gets a
`#iree_codegen.lowering_config` with the number of its group and a tile size for each of
its loops, 0 for a loop that is not tiled. A group with a contraction is tiled for its
packed panels; any other is cut into chunks of rows that are worth a thread's while. A
group without a tileable loop keeps zeros and runs as it is: that is the total fallback.

    linalg.generic {...}   =>   linalg.generic {..., lowering_config =
                                    #iree_codegen.lowering_config<{group = 0, workgroup = [1, 0]}>}

IREE: `KernelDispatch.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from irees.analysis.contractions import is_contraction, multiply_add, roles
from irees.analysis.distribution import Group, groups_of, loops_of
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr

CHUNK = 16384
"""Points of an elementwise or reduction op that are worth handing to a thread."""

ROWS = 256
COLUMNS = 480
PANEL = 48
"""Largest tile of a contraction, and the columns of a packed panel, which tiles do not cut."""

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


def contraction_tiles(group: Group, number: int, threads: int) -> list[int]:
    """
    Tiles of a contraction's loops: whole batches, panels of columns, blocks of rows.

    Columns are cut first, because each block of rows packs the columns again; rows are cut
    to 256, and further while there are too few workgroups for the threads.
    """
    member = group.members[number]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    parts = multiply_add(op)
    assert parts is not None
    found = roles(op, parts)
    loops = [c[number] for c in group.classes]
    columns = _vector_side(op, found.m, found.n)
    tiles = {loop: 1 if loop in found.batch else 0 for loop in loops}
    wanted = 2 * threads
    count = 1
    for loop in found.batch:
        count *= DYNAMIC_GUESS if member.sizes[loop] < 0 else max(1, member.sizes[loop])
    for loop in loops:
        if loop in columns:
            tiles[loop] = _column_tile(member.sizes, loop, columns, -(-wanted // count))
            count *= _tiles_in(member.sizes[loop], tiles[loop])
    for loop in loops:
        if loop not in columns and loop not in found.batch:
            size = member.sizes[loop]
            limit = ROWS if count >= wanted else max(16, min(ROWS, -(-size * count // wanted)))
            tiles[loop] = limit if size < 0 else 0 if size <= limit else even(size, limit)
            count *= _tiles_in(size, tiles[loop])
    return [tiles[loop] for loop in loops]


def _tiles_in(size: int, tile: int) -> int:
    return 1 if tile == 0 else DYNAMIC_GUESS if size < 0 else -(-size // tile)


def _vector_side(op: linalg.GenericOp, m: tuple[int, ...], n: tuple[int, ...]) -> tuple[int, ...]:
    """The loops of the operand that moves along the output's last dim."""
    output = op.indexing_maps.data[-1].data
    last = output.results[-1].used_dims() if output.results else set()
    return m if last & set(m) else n


def _column_tile(sizes: tuple[int, ...], loop: int, side: tuple[int, ...], wanted: int) -> int:
    """About COLUMNS points over the loops of the side in whole panels, fewer for `wanted` tiles."""
    inner = 1
    for other in side:
        if other > loop:
            inner *= max(1, sizes[other])
    size = sizes[loop]
    tile = max(1, COLUMNS // inner)
    if size < 0:
        return tile
    pieces = max(-(-size // tile), min(wanted, -(-size * inner // (2 * PANEL))))
    tile = -(-size // pieces)
    if inner == 1:
        tile = -(-tile // PANEL) * PANEL
    return 0 if tile >= size else tile


def configure(function: func.FuncOp, threads: int) -> None:
    """Writes the config of every op of one kernel."""
    ops = [o for o in function.body.block.ops if loops_of(o) is not None]
    for number, group in enumerate(groups_of(ops, enough=4 * threads)):
        heavy = next(
            (
                i
                for i, m in enumerate(group.members)
                if isinstance(m.op, linalg.GenericOp) and is_contraction(m.op)
            ),
            None,
        )
        tiles = chunk_tiles(group) if heavy is None else contraction_tiles(group, heavy, threads)
        for position, member in enumerate(group.members):
            workgroup = [0] * len(member.kinds)
            for group_class, tile in zip(group.classes, tiles, strict=True):
                workgroup[group_class[position]] = tile
            member.op.attributes["lowering_config"] = LoweringConfigAttr.of(
                group=number, workgroup=workgroup
            )


@dataclass(frozen=True)
class SelectStrategyPass(ModulePass):
    """Every op of a kernel gets a lowering config."""

    name = "irees-select-strategy"

    threads: int = 2

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                configure(function, self.threads)
