"""
Tiles of kernels that are worth a thread's while and keep to the cache. Part of
`irees-select-strategy`.
"""

from __future__ import annotations

from math import prod

from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irees.analysis.distribution import Group

CHUNK = 16384
"""Points of an elementwise or reduction op that are worth handing to a thread."""

FUSED = 2048
"""The same for ops that hand tiles to one another: of f32, the tile that is read, what is kept
between the loops, and the next tile, asked for meanwhile, are three quarters of an L1 cache. With
two rows in a tile, the loop over one works while the sum of the other's lanes is waited for."""

ALONG, RUNS = 64, 4
"""Points along the loop that is written along, of a tile of an op that reads along another: at
least so many, and up to so many times as many where that leaves enough tiles. A thread then goes on
writing where it wrote."""

ACROSS, SHORT = 4096, 1024
"""Points at most along the loop that is read along, and where that would leave few tiles."""

ENOUGH, FEW = 16, 4
"""Tiles that threads can share, and tiles that are too few for that."""

CROSSING = ALONG * SHORT
"""Points of several small such arrays that are worth handing to a thread."""

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
    extents = [DYNAMIC_GUESS if e < 0 else max(1, e) for e in group.extents()]
    loops = [c[0] for c in group.classes]
    tiles = [1] * len(loops)
    if along in loops:
        position = loops.index(along)
        run = ALONG * max(1, min(RUNS, extents[position] // ENOUGH // ALONG))
        tiles[position] = min(extents[position], run)
    if across in loops:
        position = loops.index(across)
        few = prod(map(_pieces, extents, tiles)) // extents[position] < FEW
        pieces = _pieces(extents[position], SHORT if few else ACROSS)
        # A rest of a few points would count as much as a tile when threads share them.
        whole = _pieces(_pieces(extents[position], pieces), ALONG) * ALONG
        tiles[position] = min(extents[position], whole)
    left = max(1, CROSSING // prod(tiles))
    for position in reversed(range(len(loops))):
        if loops[position] not in (along, across):
            tiles[position] = min(extents[position], left)
            left = max(1, left // tiles[position])
    return [0 if t == e else t for t, e in zip(tiles, group.extents(), strict=True)]


def _pieces(extent: int, tile: int) -> int:
    """Tiles of a loop; at least 1."""
    return max(1, -(-extent // tile))


def even(extent: int, tile: int) -> int:
    """A tile of about that size that divides the extent, if one is near."""
    if extent <= 0 or tile <= 0:
        return tile
    for candidate in range(tile, max(tile // 2, 1) - 1, -1):
        if extent % candidate == 0:
            return candidate
    return tile
