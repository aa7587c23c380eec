"""
Tiles of groups that keep the threads of a workgroup busy. Part of `irees-gpu-select-strategy` and
`irees-gpu-lower-reductions`.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.linalg import ops as linalg

from irees.analysis.distribution import Group, Loops
from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.combiners import combiners
from irees.transforms.utils.structured import iterators, maps

THREADS = 128
"""Threads of a workgroup: four warps, so that a few workgroups fit onto a multiprocessor."""

EACH = 4
"""Points of an elementwise op for each thread: 16 bytes of f32."""

WARP = 32
SQUARE = 32
"""Side of a tile that is turned: a warp reads a row of it, and writes a column."""

LONG = 1024
"""A row of more points is for a whole workgroup, not for a warp."""

DYNAMIC_GUESS = 256
"""What a dynamic trip count is taken for when tiles are chosen."""


def guess(size: int) -> int:
    """A trip count, also where it is not known."""
    return DYNAMIC_GUESS if size < 0 else max(1, size)


def points_inside(group: Group, member: Loops, number: int) -> int:
    """Parallel points of one member at one point of the loops that are tiled."""
    tiled = {c[number] for c in group.classes}
    return prod(
        guess(size)
        for loop, (kind, size) in enumerate(zip(member.kinds, member.sizes, strict=True))
        if kind == "parallel" and loop not in tiled
    )


def is_sort(member: Loops) -> bool:
    """Whether a member is an op on rows of which a workgroup has enough to do with one."""
    return isinstance(member.op, ext.SortOp | ext.TopkV2Op)


def is_along_rows(op: linalg.GenericOp) -> bool:
    """
    Whether an op reduces what lies side by side, so that a warp should read it together.

    A window is no row: its neighbours are read by the next results too. Nor is what all results
    read alike.
    """
    parallel = {i for i, kind in enumerate(iterators(op)) if kind == "parallel"}
    for indexing in maps(op)[: len(op.inputs)]:
        used = {d for e in indexing.results for d in e.used_dims()}
        last = indexing.results[-1].used_dims() if indexing.results else set[int]()
        if last and not last & parallel and (used & parallel or not parallel):
            return True
    return False


def is_for_warps(member: Loops, reassociate: bool) -> bool:
    """Whether warps may share the rows of a reduction, as `irees-gpu-lower-reductions` does."""
    op = member.op
    if not isinstance(op, linalg.GenericOp) or not is_along_rows(op):
        return False
    found = combiners(op)
    if found is None:
        return False
    return reassociate or not any(isinstance(c.results[0].type, AnyFloat) for c in found)


def points_wanted(group: Group, reassociate: bool) -> int:
    """Points of the output that a workgroup should have."""
    reductions = [m for m in group.members if "reduction" in m.kinds]
    if not reductions:
        return THREADS * EACH
    rows = [m for m in reductions if is_for_warps(m, reassociate)]
    if not rows:
        return THREADS
    longest = max(
        prod(guess(s) for s, k in zip(m.sizes, m.kinds, strict=True) if k != "parallel")
        for m in rows
    )
    return THREADS if longest < WARP // 2 else THREADS // WARP if longest <= LONG else 1


def row_tiles(group: Group, reassociate: bool) -> list[int]:
    """Tiles from the innermost class outwards, until there are points for every thread."""
    extents = group.extents()
    if any(is_sort(m) for m in group.members):
        return [1] * len(extents)
    inner = max(points_inside(group, m, i) for i, m in enumerate(group.members))
    wanted = points_wanted(group, reassociate)
    tiles = [0] * len(extents)
    for position in reversed(range(len(extents))):
        extent = guess(extents[position])
        if inner >= wanted:
            tiles[position] = 1
            continue
        tile = max(1, wanted // inner)
        if tile >= extent and extents[position] >= 0:
            inner *= extent
            continue
        tiles[position] = tile if extents[position] < 0 else even(extents[position], tile)
        inner *= tiles[position]
    return tiles


def square_tiles(group: Group, across: int, along: int) -> list[int]:
    """Tiles of an op that reads along one loop and writes along another: square in those two."""
    tiles: list[int] = []
    for group_class, extent in zip(group.classes, group.extents(), strict=True):
        wanted = SQUARE if group_class[0] in (across, along) else 1
        tiles.append(0 if 0 <= extent <= wanted else wanted)
    return tiles


def even(extent: int, tile: int) -> int:
    """A tile of about that size that divides the extent, or else a multiple of four."""
    for candidate in range(tile, tile // 2, -1):
        if extent % candidate == 0:
            return candidate
    return max(1, tile // EACH * EACH) if tile >= EACH else tile
