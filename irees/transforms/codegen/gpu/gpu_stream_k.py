"""
Shares out the tiles of a contraction that would keep only a part of a GPU busy.

Workgroups that do a tile each run in waves. With a tile for each multiprocessor the GPU is busy;
with one tile more it takes twice as long, and half of the time all but one are idle. Stream-K
(Osama et al., "Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication
on the GPU", 2023) gives every workgroup an equal part of the steps along K of all tiles, and those
that share a tile add up what they have. This is the paper's hybrid: as many tiles as make whole
waves are a workgroup's each, the steps of the others are dealt out to one wave of workgroups.
Nobody waits: who comes last adds up. `irees-gpu-lower-contractions` does it (`utils/shares.py`);
here it is decided, and said in the config:

    linalg.generic {lowering_config = #iree_codegen.lowering_config<{block = [128, 128, ...]}>}
  =>
    linalg.generic {lowering_config =
        #iree_codegen.lowering_config<{block = [128, 128, ...], stream_k = [110, 108]}>}

Of all ways to keep some waves whole, and to deal out the rest to some workgroups, the one of the
fewest steps is taken. A step is one along K of a tile: a wave has as many as a tile has, a part as
many as its workgroup has, and so is what is left there by those that share a tile, and read by one
of them: a workgroup moves a fact of the target meanwhile, and what is in the L2 cache more quickly.
A way that does not save an eighth is none. Split-K in slices (`irees-split-reductions`) stays the
way of a product that has hardly any tiles. Parts are fixed and added up in the order of K, so two
runs give the same bits.

Left alone: sums whose order is kept (`reassociate=false`), sizes that are not known, operands that
are computed in the tile. Nothing of this was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerType, MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from irees.analysis.contractions import multiply_add, roles
from irees.analysis.distribution import root
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common.utils.surroundings import fill_of
from irees.transforms.codegen.gpu.utils.blocking import blocking_of, sides, why_no_blocks
from irees.transforms.codegen.gpu.utils.segments import is_free, is_mapped
from irees.transforms.codegen.gpu.utils.shares import STREAM_K, counts_of, depth_of, is_inside
from irees.transforms.utils.shapes import constant_value, element_bytes, mixed
from irees.transforms.utils.structured import iterators, loop_sources, static_ranges

LAUNCH = 16
"""Steps of a tile, of 0.1 us, while a workgroup moves what the target says of a launch."""

FROM_CACHE = 3
"""How many times more it moves of what is in the L2 cache: 5 TB/s to 1.6 on an A100."""

MOST_SHARES = 16
"""Workgroups that share a tile, at most: one of them reads what all have left."""

LEAST_STEPS = 4
"""Of a tile for a workgroup: as many as there are parts of the operands on their way."""


@dataclass(frozen=True)
class Way:
    """How many tiles are shared by how many workgroups."""

    steps: int
    tiles: int
    workgroups: int


@dataclass(frozen=True)
class Waves:
    """Tiles of some steps along K each, and what multiprocessors do with them."""

    tiles: int
    depth: int
    tile_bytes: int
    workgroups: int
    launch_bytes: int

    def whole(self) -> int:
        """Steps of all tiles where each is a workgroup's."""
        return -(-self.tiles // self.workgroups) * self.depth

    def shared(self, tiles: int, workgroups: int) -> int | None:
        """Steps of tiles that are shared, with what sharing costs; None where that is too much."""
        share = tiles * self.depth // workgroups
        sharing = min(workgroups, -(-self.depth // max(1, share)) + 1)
        if share < LEAST_STEPS or sharing > MOST_SHARES:
            return None
        # A workgroup leaves what it has at its first and last tile, and reads what all have left.
        moved = (2 + sharing) * self.tile_bytes
        cost = -(-moved * LAUNCH // (FROM_CACHE * self.launch_bytes))
        return -(-tiles * self.depth // workgroups) + cost

    def best(self) -> Way | None:
        """The way of the fewest steps, or None where the tiles are as well as they are."""
        waves, best = self.tiles // self.workgroups, None
        for before in (waves, waves - 1):
            rest = self.tiles - before * self.workgroups
            if before < 0 or not rest:
                continue
            for workgroups in range(self.workgroups, 1, -1):
                steps = self.shared(rest, workgroups)
                if steps is None:
                    continue
                way = Way(before * self.depth + steps, rest, workgroups)
                best = way if best is None or way.steps < best.steps else best
        return best if best is not None and best.steps <= self.whole() * 7 // 8 else None


def most_points(op: linalg.GenericOp) -> list[int]:
    """The length of each loop, at most; -1 where nobody knows."""
    found: list[int] = []
    for size, source in zip(static_ranges(op), loop_sources(op), strict=True):
        if size < 0 and source is not None:
            size = _bound(op.operands[source[0]], source[1])
        found.append(size)
    return found


def _bound(value: SSAValue, axis: int) -> int:
    """How long a tile is along an axis, at most: the last one is cut to what is left."""
    view = value.owner
    if not isinstance(view, memref.SubviewOp):
        return -1
    size = mixed(view.static_sizes.get_values(), view.sizes)[axis]
    if isinstance(size, int) or not isinstance(size.owner, arith.MinSIOp):
        return -1
    return max(constant_value(o) or -1 for o in size.owner.operands)


def why_not(loop: ForallOp, op: linalg.GenericOp) -> str | None:
    """Why the tiles of a contraction cannot be shared, or None."""
    parts = multiply_add(op)
    assert parts is not None
    sizes, found, blocking = most_points(op), roles(op, parts), blocking_of(op)
    if min(*sizes, *counts_of(loop)) < 0:
        return "sizes are not known"
    (_, rows), (_, columns) = sides(op)
    points = (prod(sizes[x] for x in loops) for loops in (found.batch, rows, columns))
    limits = 1, blocking.rows, blocking.columns
    if any(count > limit for count, limit in zip(points, limits, strict=True)):
        return "a tile is more than a block"
    fill = fill_of(op)
    for other in loop.region.block.ops:
        if other is op:
            break
        if isinstance(other, memref.AllocOp) and other.operands:
            return "sizes are not known"
        if is_free(other) or (fill is not None and other is fill[0]):
            continue
        written = {root(o) for o in other.outputs} if isinstance(other, linalg.GenericOp) else set()
        if not written or len({is_inside(buffer, loop) for buffer in written}) > 1:
            return f"{other.name} is done first in its tile"
        if written & {root(value) for value in op.inputs}:
            return "what it multiplies is computed in its tile"
    return None


def is_blocked(op: object) -> bool:
    """Whether an op is a contraction that is computed in blocks."""
    return (
        isinstance(op, linalg.GenericOp)
        and "reduction" in iterators(op)
        and why_no_blocks(op) is None
        and LoweringConfigAttr.on(op).ints("block") is not None
    )


@dataclass(frozen=True)
class GpuStreamKPass(ModulePass):
    """Contractions say whether workgroups share their tiles."""

    name = "irees-gpu-stream-k"

    workgroups: int = 108
    """How many workgroups keep the whole GPU busy."""
    reassociate: bool = True
    small_tile: int = 32 << 10
    """Bytes of a workgroup that it moves while another kernel would be launched."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            found = [o for o in loop.region.block.ops if is_blocked(o)]
            if len(found) == 1 and not self._share(loop, found[0]):
                return

    def _share(self, loop: ForallOp, op: linalg.GenericOp) -> bool:
        """Shares tiles where that is the less; False when no rewrite may be applied any more."""
        reason = why_not(loop, op)
        kind = op.outputs[0].type
        assert isinstance(kind, MemRefType)
        if (
            reason is None
            and not self.reassociate
            and not isinstance(kind.element_type, IntegerType)
        ):
            reason = "strict floating point keeps the order of a sum"
        if reason is not None:
            remark("missed", self.name, op, reason)
            return True
        blocking = blocking_of(op)
        size = blocking.rows * blocking.columns * element_bytes(kind)
        depth = -(-depth_of(op) // blocking.depth)
        tiles = prod(counts_of(loop))
        waves = Waves(tiles, depth, size, self.workgroups, self.small_tile)
        way = waves.best()
        if way is None:
            return True
        text = f"{way.tiles} of {tiles} tiles shared by {way.workgroups} workgroups"
        if not may_rewrite(self.name, op, text):
            return False
        remark("passed", self.name, op, f"{text}: {way.steps} steps, and {waves.whole()} alone")
        entries = LoweringConfigAttr.on(op).as_data() | {STREAM_K: [way.tiles, way.workgroups]}
        op.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
        return True
