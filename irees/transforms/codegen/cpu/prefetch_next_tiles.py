"""
Prefetches the next tile of a large input during the last loop over the current one.

A kernel with several loops over one tile (a softmax: the maximum of a row, then exponentials, then
divisions) reads the tile from memory in its first loop and from the cache in the others, while
memory is idle. The first loop of the next tile then waits for memory: hardware prefetchers stop at
the end of a page. So the last loop that reads a tile prefetches, once per cache line, the element
one tile further.

    %x = vector.load %tile[%i, %j] : memref<2x1024xf32, ...>, vector<16xf32>
  =>
    %x = vector.load %tile[%i, %j] : memref<2x1024xf32, ...>, vector<16xf32>
    %n = arith.addi %i, %c2 : index
    memref.prefetch %tile[%n, %j], read, locality<3>, data : memref<2x1024xf32, ...>

Each thread runs a contiguous range of workgroups, so the next tile has the next value of the last
induction variable. Prefetches past the end of the input are harmless. Left unchanged: inputs that
the L2 cache holds; tiles larger than the L1 cache, which the next tile would evict; and tiles that
a single loop reads, which is bandwidth-bound already. After Mowry, Lam and Gupta, "Design and
Evaluation of a Compiler Algorithm for Prefetching" (1992); MLIR: `memref.prefetch`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.dialects.irees_target import target_of
from irees.dialects.storage import Slice, slice_of
from irees.dialects.upstream.memref import PrefetchOp
from irees.rewrites import may_rewrite
from irees.transforms.codegen.cpu.utils.large_buffers import (
    bytes_of,
    large_buffers,
    one_per_line,
    place_in,
)
from irees.transforms.utils.shapes import IndexBuilder, constant_value


def tiled_dim(view: Slice, iv: SSAValue) -> int | None:
    """Returns the dim along which `iv` numbers adjacent tiles, or None."""
    for dim, offset in enumerate(view.offsets):
        if offset is iv and view.sizes[dim] == 1:
            return dim
        if isinstance(offset, int) or not isinstance(offset.owner, arith.MuliOp):
            continue
        of_iv, step = offset.owner.operands
        if of_iv is iv and constant_value(step) == view.sizes[dim]:
            return dim
    return None


def last_loads(views: list[SSAValue], body: Block) -> list[vector.LoadOp]:
    """Returns the loads of the last loop that reads a tile; none if only one loop reads it."""
    loads = [
        use.operation
        for view in views
        for use in view.uses
        if isinstance(use.operation, vector.LoadOp)
    ]
    readers = {place_in(body, load) for load in loads}
    if len(readers) < 2:
        return []
    last = next(op for op in reversed(list(body.ops)) if op in readers)
    return [load for load in loads if place_in(body, load) is last]


def prefetch(load: vector.LoadOp, dim: int) -> None:
    """vector.load %t[%i]  =>  vector.load %t[%i]; memref.prefetch %t[%i + size of %t]"""
    assert isinstance(load.base.type, MemRefType)
    at = IndexBuilder(InsertPoint.after(load))
    indices = list(load.indices)
    indices[dim] = at.value(at.add(indices[dim], load.base.type.get_shape()[dim]))
    at.insert(PrefetchOp(load.base, indices))


@dataclass(frozen=True)
class PrefetchNextTilesPass(ModulePass):
    """Prefetches the next tile of large inputs whose tiles are read by several loops."""

    name = "irees-prefetch-next-tiles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for source, body in large_buffers(op, target.l2_bytes):
            self.prefetch_tiles(source, body, target.l1_bytes)

    def prefetch_tiles(self, source: SSAValue, body: Block, most: int) -> None:
        """Prefetches the tiles of one input in one parallel loop; equal views are one tile."""
        tiles: dict[tuple[object, ...], list[SSAValue]] = {}
        for op in body.ops:
            view = slice_of(op)
            if view is None or view.source is not source or len(view.kept) < len(view.sizes):
                continue
            tile = op.results[0]
            if 0 < bytes_of(tile.type) <= most:
                tiles.setdefault((*view.offsets, tile.type), []).append(tile)
        for views in tiles.values():
            first = slice_of(views[0].owner)
            assert first is not None
            dim = tiled_dim(first, body.args[-1])
            if dim is None:
                continue
            for load in one_per_line(last_loads(views, body)):
                if may_rewrite(self.name, load, "a prefetch of the next tile"):
                    prefetch(load, dim)
