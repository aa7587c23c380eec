"""
Chooses tile sizes of dispatch groups so that every thread of a workgroup has work. Part of
`irees-gpu-select-strategy` and `irees-gpu-lower-reductions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irees.analysis.distribution import Group, Loops
from irees.dialects import iree_linalg_ext as ext
from irees.interfaces import loops_model_of
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.folds import folds_of
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES
from irees.transforms.codegen.gpu.utils.scan_costs import scanned, why_in_order
from irees.transforms.utils.shapes import element_bytes
from irees.transforms.utils.structured import iterators, maps, static_ranges

WARP = 32
"""Threads that run in lockstep."""

SQUARE = WARP
"""Side of a transposed tile: a warp reads one row and writes one column."""


LINE = 128
"""Minimum contiguous bytes that a warp should read."""


def guess(size: int) -> int:
    """Returns the trip count, or an assumed one if it is dynamic."""
    return NVIDIA.assumed_trip_count if size < 0 else max(1, size)


def points_inside(group: Group, member: Loops, number: int) -> int:
    """Returns the parallel iterations of a member per iteration of the tiled loops."""
    tiled = {c[number] for c in group.classes}
    return prod(
        guess(size)
        for loop, (kind, size) in enumerate(zip(member.kinds, member.sizes, strict=True))
        if kind == "parallel" and loop not in tiled
    )


def is_by_threads(member: Loops) -> bool:
    """Whether all threads of a workgroup run a member; one row is enough work for them."""
    return hasattr(loops_model_of(member.op), "to_threads")


def is_scan_of_rows(member: Loops, reassociate: bool, workgroups: int) -> bool:
    """Whether a member is a scan that gets at least one workgroup per row."""
    op = member.op
    if not isinstance(op, ext.ScanOp) or why_in_order(op, reassociate) is not None:
        return False
    return not scanned(op, 1, workgroups, NVIDIA.threads).prefers_order()


def is_along_rows(op: linalg.GenericOp) -> bool:
    """
    Whether an op reduces contiguous elements, so that a warp should read them together.

    Windows do not count, since adjacent results read the same elements, nor do operands that all
    results share.
    """
    parallel = {i for i, kind in enumerate(iterators(op)) if kind == "parallel"}
    for indexing in maps(op)[: len(op.inputs)]:
        used = {d for e in indexing.results for d in e.used_dims()}
        last = indexing.results[-1].used_dims() if indexing.results else set[int]()
        if last and not last & parallel and (used & parallel or not parallel):
            return True
    return False


def column_loop(op: linalg.GenericOp) -> int | None:
    """
    Returns the parallel loop along which the output and all inputs that depend on it are
    contiguous, so that a warp can read along it, or None.
    """
    indexing = maps(op)
    output = indexing[-1].results[-1:]
    if is_along_rows(op) or not output or not isinstance(output[0], AffineDimExpr):
        return None
    axis = output[0].position
    moving = [m.results for m in indexing if any(axis in e.used_dims() for e in m.results)]
    if len(moving) <= len(op.outputs) or static_ranges(op)[axis] < 0:
        return None
    if axis != max(i for i, kind in enumerate(iterators(op)) if kind == "parallel"):
        return None
    return axis if all(_is_contiguous_along(axis, exprs) for exprs in moving) else None


def _is_contiguous_along(loop: int, exprs: Sequence[AffineExpr]) -> bool:
    """Whether a loop indexes the last dim of an operand plainly, and no other dim."""
    using = [i for i, e in enumerate(exprs) if loop in e.used_dims()]
    return using == [len(exprs) - 1] and isinstance(exprs[-1], AffineDimExpr)


def _is_foldable(member: Loops, reassociate: bool) -> bool:
    """Whether a reduction may be split over threads, as `irees-gpu-lower-reductions` does."""
    op = member.op
    found = folds_of(op) if isinstance(op, linalg.GenericOp) else None
    return found is not None and (reassociate or found.is_exact)


def is_for_warps(member: Loops, reassociate: bool) -> bool:
    """Whether a warp may reduce each row of a reduction together."""
    op = member.op
    if not isinstance(op, linalg.GenericOp) or not is_along_rows(op):
        return False
    return _is_foldable(member, reassociate)


def columns_wanted(member: Loops, reassociate: bool, workgroups: int) -> int | None:
    """Returns how many columns a workgroup should reduce (whole 128-byte lines), or None."""
    op = member.op
    if not isinstance(op, linalg.GenericOp) or not _is_foldable(member, reassociate):
        return None
    sides = {"parallel": 1, "reduction": 1}
    for size, kind in zip(member.sizes, member.kinds, strict=True):
        sides["parallel" if kind == "parallel" else "reduction"] *= guess(size)
    if column_loop(op) is None or sides["reduction"] < NVIDIA.short_reduction:
        return None
    if sides["parallel"] >= workgroups * NVIDIA.threads * NVIDIA.elements_per_thread:
        return None
    widest = max(element_bytes(o.type) for o in op.inputs if isinstance(o.type, MemRefType))
    least = max(1, LINE // widest)
    wanted = 2 * least if sides["parallel"] >= 2 * least * workgroups else least
    return min(wanted, NVIDIA.threads // 2)


def _widest(group: Group) -> int:
    """Returns the bytes of the largest element of a group's buffers."""
    kinds = [o.type for m in group.members for o in m.op.operands]
    return max((element_bytes(kind) for kind in kinds if isinstance(kind, MemRefType)), default=4)


def _reduced_elements(member: Loops) -> int:
    """Returns the elements that are reduced to one, as far as known."""
    pairs = zip(member.sizes, member.kinds, strict=True)
    return prod(guess(size) for size, kind in pairs if kind != "parallel")


def points_wanted(group: Group, reassociate: bool, workgroups: int) -> int:
    """Returns how many output elements a workgroup should compute."""
    reductions = [m for m in group.members if "reduction" in m.kinds]
    if not reductions:
        return NVIDIA.threads * max(NVIDIA.elements_per_thread, ACCESS_BYTES // _widest(group))
    rows = [m for m in reductions if is_for_warps(m, reassociate)]
    if not rows:
        wanted = [columns_wanted(m, reassociate, workgroups) for m in reductions]
        return max((w or NVIDIA.threads) for w in wanted)
    longest = max(_reduced_elements(m) for m in rows)
    if longest < WARP // 2:
        return NVIDIA.threads
    return NVIDIA.threads // WARP if longest <= NVIDIA.warp_row else 1


def attention_tiles(group: Group, number: int, m: int, rows: int) -> list[int]:
    """Returns tiles of `rows` queries of one batch; member `number` is the attention op."""
    tiles: list[int] = []
    for group_class, extent in zip(group.classes, group.extents(), strict=True):
        wanted = rows if group_class[number] == m else 1
        tiles.append(0 if 0 <= extent <= wanted else wanted)
    return tiles


def row_tiles(group: Group, reassociate: bool, workgroups: int) -> list[int]:
    """Chooses tiles from the innermost loop class outwards until every thread has work."""
    extents = group.extents()
    if any(is_by_threads(m) or is_scan_of_rows(m, reassociate, workgroups) for m in group.members):
        return [1] * len(extents)
    inner = max(points_inside(group, m, i) for i, m in enumerate(group.members))
    wanted = points_wanted(group, reassociate, workgroups)
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


def threads_wanted(group: Group, tiles: Sequence[int], reassociate: bool) -> int:
    """Returns the threads per workgroup: more for long rows that warps reduce."""
    if not any("reduction" in m.kinds and is_for_warps(m, reassociate) for m in group.members):
        return NVIDIA.threads
    longest = 0
    for number, member in enumerate(group.members):
        inside = dict(enumerate(member.sizes))
        inside |= {c[number]: t for c, t in zip(group.classes, tiles, strict=True) if t}
        longest = max(longest, prod(guess(size) for size in inside.values()))
    count, each = NVIDIA.threads, NVIDIA.elements_per_thread * NVIDIA.accesses_per_thread
    while count < NVIDIA.most_threads and longest > count * each:
        count *= 2
    return count


def square_tiles(group: Group, across: int, along: int) -> list[int]:
    """Returns the tiles of a transpose: square in the loops it reads and writes along."""
    tiles: list[int] = []
    for group_class, extent in zip(group.classes, group.extents(), strict=True):
        wanted = SQUARE if group_class[0] in (across, along) else 1
        tiles.append(0 if 0 <= extent <= wanted else wanted)
    return tiles


def even(extent: int, tile: int) -> int:
    """Returns a divisor of the extent near `tile`, or else `tile` rounded to whole accesses."""
    for candidate in range(tile, tile // 2, -1):
        if extent % candidate == 0:
            return candidate
    each = NVIDIA.elements_per_thread
    return max(1, tile // each * each) if tile >= each else tile
