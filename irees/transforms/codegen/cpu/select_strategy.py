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
from xdsl.dialects import func, linalg
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.analysis.contractions import is_contraction, multiply_add, roles
from irees.analysis.distribution import Group, groups_of, loops_of
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr

CHUNK = 16384
"""Points of an elementwise or reduction op that are worth handing to a thread."""

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


def contraction_tiles(group: Group, number: int) -> list[int]:
    """Tiles of a contraction's M and N loops: enough workgroups, panels that fit the L2 cache."""
    member = group.members[number]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    parts = multiply_add(op)
    assert parts is not None
    found = roles(op, parts)
    tiles: list[int] = []
    loops = [c[number] for c in group.classes]
    n_side = _vector_side(op, found.m, found.n)
    for loop in loops:
        size = member.sizes[loop]
        if loop in found.batch:
            tiles.append(1)
        elif loop in n_side:
            tiles.append(_n_tile(member.sizes, loop, n_side))
        else:
            tiles.append(even(size, 64) if size < 0 or size > 64 else 0)
    return tiles


def _vector_side(op: linalg.GenericOp, m: tuple[int, ...], n: tuple[int, ...]) -> tuple[int, ...]:
    """The loops of the operand that moves along the output's last dim."""
    output = op.indexing_maps.data[-1].data
    last = output.results[-1].used_dims() if output.results else set()
    return m if last & set(m) else n


def _n_tile(sizes: tuple[int, ...], loop: int, side: tuple[int, ...]) -> int:
    """Columns per workgroup: about 512 points over the loops of the side."""
    inner = 1
    for other in side:
        if other > loop:
            inner *= max(1, sizes[other])
    size = sizes[loop]
    tile = max(1, 480 // inner)
    if 0 <= size <= tile:
        return 0
    return tile if inner == 1 else even(size, tile)


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
        tiles = chunk_tiles(group) if heavy is None else contraction_tiles(group, heavy)
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
