"""
Tile sizes that give each thread enough work and fit into the cache. Part of
`irees-select-strategy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irees.analysis.distribution import Group, Loops
from irees.analysis.transposes import crossing_loops
from irees.dialects.storage import loaded
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.utils.invariants import invariants, sharing_loop
from irees.transforms.utils.structured import is_parallel


def chunk_tiles(group: Group) -> list[int]:
    """
    Chooses row tiles: inner loops are whole, the next one is tiled, outer ones get size 1. A loop
    whose iterations share much arithmetic is whole, too, if that leaves enough tiles.
    """
    plain, shared = _row_tiles(group, None), _shared(group)
    if shared is None:
        return plain
    tiles = _row_tiles(group, shared)
    enough = min(_count(group, plain), CPU.few_tiles)
    return tiles if _count(group, tiles) >= enough else plain


def _shared(group: Group) -> int | None:
    """Returns the class of the loop whose iterations share arithmetic, if there is one."""
    op = group.members[0].op
    if len(group.members) > 1 or not isinstance(op, linalg.GenericOp) or not is_parallel(op):
        return None
    loops = [c[0] for c in group.classes]
    loop = sharing_loop(op, sorted(loops))
    if loop is None or len(invariants(op, {loop})[1]) < CPU.whole_shared_ops:
        return None
    return loops.index(loop)


def _count(group: Group, tiles: Sequence[int]) -> int:
    """Returns the number of tiles."""
    sized = zip(group.extents(), tiles, strict=True)
    return prod(_pieces(_assumed(e), t) for e, t in sized if t)


def _row_tiles(group: Group, shared: int | None) -> list[int]:
    """Chooses row tiles, where loops of class `shared` are whole."""
    extents = group.extents()
    reads = [m for m in group.members if m.anywhere or any(not a.writes for a in m.accesses)]
    # A fill is fused with the op that it initializes, and needs no memory of its own.
    chunk = CPU.chunk if len(reads) == 1 else CPU.fused_chunk
    inner = _whole_iterations(group, shared)
    tiles = [0] * len(extents)
    for position in reversed(range(len(extents))):
        extent = _assumed(extents[position])
        if position == shared:
            continue
        if inner >= chunk:
            tiles[position] = _tile(group, position, 1)
        elif inner * extent > chunk or position == 0:
            tile = max(1, chunk // max(1, inner))
            tiles[position] = _tile(group, position, tile)
            inner *= max(1, tile)
        else:
            inner *= extent
    return tiles


def _whole_iterations(group: Group, shared: int | None) -> int:
    """Returns the iterations of the loops that are not tiled, and of class `shared`."""
    member = max(group.members, key=lambda m: len(m.kinds))
    number = group.members.index(member)
    windows = {d for a in member.accesses for e in a.map.results for d in _moving(e)}
    tiled = {c[number] for position, c in enumerate(group.classes) if position != shared}
    # Overlapping window reads hit the cache, so they do not count.
    whole = (loop for loop in range(len(member.sizes)) if loop not in windows | tiled)
    return prod(_assumed(member.sizes[loop]) for loop in whole)


def _assumed(size: int) -> int:
    """Returns a trip count, or what is assumed for a dynamic one."""
    return CPU.assumed_trip_count if size < 0 else size


def _tile(group: Group, position: int, tile: int) -> int:
    """Returns the tile of a loop that should be about `tile`, 0 for all of the loop."""
    extent = group.extents()[position]
    if tile <= CPU.least_columns and _reduces_columns(group, position):
        if any(_transposes(m) for m in group.members):
            # The rows of the transposed copy are aligned, and need not be longer than a block.
            return CPU.least_columns if not 0 <= extent <= CPU.least_columns else 0
        return _columns(extent)
    if tile < CPU.jammed_results and _shares_rows(group, position):
        tile = CPU.jammed_results
    return even(extent, tile if extent < 0 or tile < extent else 0)


def _reduces_columns(group: Group, position: int) -> bool:
    """Whether a tile of this loop splits the rows of an operand that is reduced by columns."""
    for number, loop in group.classes[position].items():
        member = group.members[number]
        if "reduction" not in member.kinds:
            continue
        # Elements at computed indices have no map: their rows count as those of the result.
        computed = any(loaded(inner) is not None for inner in member.op.walk())
        rows = [
            a.map.results for a in member.accesses if a.map.results and (not a.writes or computed)
        ]
        if any(e[-1] == AffineDimExpr(loop) and len(e) > 1 for e in rows):
            return True
    return False


def _transposes(member: Loops) -> bool:
    """Whether an op is elementwise and has a transposed input."""
    return isinstance(member.op, linalg.GenericOp) and crossing_loops(member.op) is not None


def _shares_rows(group: Group, position: int) -> bool:
    """
    Whether this loop is over rows of results of a reduction along columns, and some input has no
    such rows: several rows are then reduced together, and share the vectors of that input.
    """
    return any(
        "reduction" in group.members[number].kinds
        and isinstance(group.members[number].op, linalg.GenericOp)
        and _shares(group.members[number], loop)
        for number, loop in group.classes[position].items()
    )


def _shares(member: Loops, row: int) -> bool:
    """Whether the results of a loop over rows share an input that is contiguous along columns."""
    ends = {a.map.results[-1:] for a in member.accesses if a.writes}
    columns = {e.position for end in ends for e in end if isinstance(e, AffineDimExpr)}
    if len(ends) != 1 or len(columns) != 1 or row in columns:
        return False
    reads = [a.map for a in member.accesses if not a.writes and columns & a.map.used_dims()]
    if any(m.results[-1:] not in ends for m in reads):
        return False
    return any(row not in m.used_dims() for m in reads)


def _columns(extent: int) -> int:
    """Returns the tile of columns: a divisor that is a multiple of few elements, 0 for all."""
    low, high = CPU.least_columns, CPU.most_columns
    if 0 <= extent <= high:
        return 0
    divisors = [n for n in range(low, high + 1) if extent > 0 and extent % n == 0]
    return max(divisors, key=lambda n: (gcd(n, low), n), default=high)


def _moving(expr: AffineExpr) -> set[int]:
    """Returns the loops of an index expression that is not a plain loop (a window)."""
    return set() if isinstance(expr, AffineDimExpr) else set(expr.used_dims())


def crossing_member(group: Group) -> tuple[int, int, int] | None:
    """
    Returns the number of the op that transposes, and its loops `across` and `along`, if the tiles
    of a group of elementwise ops are those of that op.
    """
    ops = [m.op for m in group.members if isinstance(m.op, linalg.GenericOp) and is_parallel(m.op)]
    if len(ops) < len(group.members):
        return None
    found = [(n, *loops) for n, op in enumerate(ops) if (loops := crossing_loops(op)) is not None]
    if len(found) != 1 or any(found[0][0] not in each for each in group.classes):
        return None
    return found[0]


def crossing_tiles(group: Group, number: int, across: int, along: int) -> list[int]:
    """
    Returns the tiles of a group of which op `number` reads along its loop `across` and writes along
    its loop `along`.
    """
    extents = [max(1, _assumed(e)) for e in group.extents()]
    loops = [c[number] for c in group.classes]
    tiles = [1] * len(loops)
    if along in loops:
        position = loops.index(along)
        runs = extents[position] // CPU.balanced_tiles // CPU.written_tile
        run = CPU.written_tile * max(1, min(CPU.written_runs, runs))
        tiles[position] = min(extents[position], run)
    if across in loops:
        position = loops.index(across)
        few = prod(map(_pieces, extents, tiles)) // extents[position] < CPU.few_tiles
        pieces = _pieces(extents[position], CPU.short_read_tile if few else CPU.read_tile)
        # A small partial tile costs as much load balance as a whole one.
        whole = _pieces(_pieces(extents[position], pieces), CPU.written_tile) * CPU.written_tile
        tiles[position] = min(extents[position], whole)
    # Several small transposes make a tile large enough for a thread.
    enough = CPU.written_tile * CPU.short_read_tile
    # What ops of the group pass on is in the cache.
    left = max(1, (enough if len(group.members) == 1 else CPU.fused_chunk) // prod(tiles))
    for position in reversed(range(len(loops))):
        if loops[position] not in (along, across):
            tiles[position] = min(extents[position], left)
            left = max(1, left // tiles[position])
    return [0 if t == e else t for t, e in zip(tiles, group.extents(), strict=True)]


def _pieces(extent: int, tile: int) -> int:
    """Returns the number of tiles of a loop; at least 1."""
    return max(1, -(-extent // tile))


def even(extent: int, tile: int) -> int:
    """Returns a divisor of the extent between tile / 2 and `tile`, or else `tile`."""
    if extent <= 0 or tile <= 0:
        return tile
    for candidate in range(tile, max(tile // 2, 1) - 1, -1):
        if extent % candidate == 0:
            return candidate
    return tile
