"""
Tiles of kernels that are worth a thread's while and keep to the cache. Part of
`irees-select-strategy`.
"""

from __future__ import annotations

from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irees.analysis.distribution import Group

CHUNK = 16384
"""Points of an elementwise or reduction op that are worth handing to a thread."""

FUSED = 1024
"""The same for ops that hand tiles to one another: of f32, the tile that is read, the one that is
written, what is kept between the loops, and the next one, asked for meanwhile, fill half of an L1
cache."""

ALONG, ACROSS = 64, 1024
"""Sides of a tile that is written along one loop and read along another: runs of a page are read,
which the processor follows, and lines that lie side by side are written before others."""

DYNAMIC_GUESS = 256
"""What a dynamic trip count is taken for when tiles are chosen."""


def chunk_tiles(group: Group) -> list[int]:
    """Tiles of rows: outer loops one by one, the next in slices, inner loops whole."""
    member = max(group.members, key=lambda m: len(m.kinds))
    extents = group.extents()
    chunk = CHUNK if len(group.members) == 1 else FUSED
    windows = {d for a in member.accesses for e in a.map.results for d in _moving(e)}
    inner = 1
    for loop, size in enumerate(member.sizes):
        number = group.members.index(member)
        # What a window sees of its neighbours is in the cache already.
        if loop not in windows and not any(c[number] == loop for c in group.classes):
            inner *= DYNAMIC_GUESS if size < 0 else size
    tiles = [0] * len(extents)
    for position in reversed(range(len(extents))):
        extent = DYNAMIC_GUESS if extents[position] < 0 else extents[position]
        if inner >= chunk:
            tiles[position] = 1
        elif inner * extent > chunk or position == 0:
            tile = max(1, chunk // max(1, inner))
            tiles[position] = tile if extents[position] < 0 or tile < extents[position] else 0
            tiles[position] = even(extents[position], tiles[position])
            inner *= max(1, tile)
        else:
            inner *= extent
    return tiles


def _moving(expr: AffineExpr) -> set[int]:
    """The loops that move a window, which no plain loop indexes."""
    return set() if isinstance(expr, AffineDimExpr) else set(expr.used_dims())


def crossing_tiles(group: Group, across: int, along: int) -> list[int]:
    """Tiles of an op that reads along one loop and writes along another."""
    extents = [DYNAMIC_GUESS if e < 0 else e for e in group.extents()]
    loops = [c[0] for c in group.classes]
    tiles = [1] * len(loops)
    left = ALONG * ACROSS
    for loop, wanted in ((along, ALONG), (across, ACROSS), *((x, left) for x in loops[::-1])):
        if loop in loops and tiles[loops.index(loop)] == 1:
            position = loops.index(loop)
            tiles[position] = max(1, min(extents[position], wanted, left))
            left //= tiles[position]
    return [0 if t == e else t for t, e in zip(tiles, group.extents(), strict=True)]


def even(extent: int, tile: int) -> int:
    """A tile of about that size that divides the extent, if one is near."""
    if extent <= 0 or tile <= 0:
        return tile
    for candidate in range(tile, max(tile // 2, 1) - 1, -1):
        if extent % candidate == 0:
            return candidate
    return tile
