"""
Prefetches the cache lines of a large output before they are written.

A store to an uncached line first reads the line. The loop that writes a tile does little else (a
softmax divides), so it waits for memory, which was idle during the compute-bound loop before it
(the exponentials). So that earlier loop prefetches, beside each of its loads from a tile of the
same shape, the line of the output at the same indices.

    scf.for %j { %x = vector.load %tile[%i, %j] : memref<2x1024xf32, ...>; math.exp ... }
    scf.for %j { ... vector.store %q, %out[%i, %j] : memref<2x1024xf32, ...> }
  =>
    scf.for %j { %x = vector.load %tile[%i, %j]; ...
                 memref.prefetch %out[%i, %j], write, locality<3>, data : memref<2x1024xf32, ...> }
    scf.for %j { ... vector.store %q, %out[%i, %j] : memref<2x1024xf32, ...> }

The memory traffic is the same, but earlier. Left unchanged: outputs that the L2 cache holds; tiles
larger than the L1 cache, whose lines would be evicted before the store; nontemporal stores, which
read no line; and outputs that the kernel also reads. MLIR: `memref.prefetch`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import vector
from xdsl.dialects.builtin import BoolAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees_target import target_of
from irees.dialects.storage import slice_of
from irees.dialects.upstream.memref import PrefetchOp
from irees.rewrites import may_rewrite
from irees.transforms.codegen.cpu.use_nontemporal_stores import written_only
from irees.transforms.codegen.cpu.utils.large_buffers import (
    bytes_of,
    large_buffers,
    one_per_line,
    place_in,
)
from irees.transforms.utils.shapes import element_bytes


def loads_before(view: Operation, last: Operation) -> list[vector.LoadOp]:
    """Returns the loads from tiles of a view's shape in the last loop before `last` with any."""
    kind = view.results[0].type
    assert isinstance(kind, MemRefType)
    shape, width = kind.get_shape(), element_bytes(kind)
    loop = last.prev_op
    while loop is not None:
        loads = [
            load
            for load in loop.walk()
            if isinstance(load, vector.LoadOp)
            and isinstance(each := load.base.type, MemRefType)
            and (each.get_shape(), element_bytes(each)) == (shape, width)
        ]
        if loads:
            return loads
        loop = loop.prev_op
    return []


def written_tile(stores: list[vector.StoreOp], body: Block, most: int) -> Operation | None:
    """
    Returns the view that all stores write. None for a view from outside of the loop, for one of
    more than `most` bytes, and if a store is nontemporal.
    """
    views = {store.base for store in stores}
    if len(views) != 1 or BoolAttr.from_bool(True) in {s.nontemporal for s in stores}:
        return None
    (tile,) = views
    view = tile.owner
    if not isinstance(view, Operation) or slice_of(view) is None or view.parent is not body:
        return None
    return view if 0 < bytes_of(tile.type) <= most else None


def can_precede(view: Operation, loop: Operation) -> bool:
    """Whether all operands of a view dominate a loop of its block."""
    return all(
        not isinstance(owner := operand.owner, Operation)
        or owner.parent is not view.parent
        or owner.is_before_in_block(loop)
        for operand in view.operands
    )


@dataclass(frozen=True)
class PrefetchOutputsPass(ModulePass):
    """Prefetches the lines of large outputs in the loop before the one that writes them."""

    name = "irees-prefetch-outputs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for output, body in large_buffers(op, target.l2_bytes):
            stores = [s for s in written_only(output) or () if body.is_ancestor(s)]
            self.prefetch_tile(stores, body, target.l1_bytes)

    def prefetch_tile(self, stores: list[vector.StoreOp], body: Block, most: int) -> None:
        """Prefetches the tile of one output, if all stores of a parallel loop are to one tile."""
        view = written_tile(stores, body, most)
        if view is None:
            return
        writers = {place_in(body, store) for store in stores}
        loads = loads_before(view, next(o for o in body.ops if o in writers))
        if not loads or not can_precede(view, loop := place_in(body, loads[0])):
            return
        for load in one_per_line(loads):
            if not may_rewrite(self.name, load, "a prefetch of what will be written"):
                continue
            if not view.is_before_in_block(loop):
                view.detach()
                Rewriter.insert_op(view, InsertPoint.before(loop))
            hint = PrefetchOp(view.results[0], load.indices, is_write=True)
            Rewriter.insert_op(hint, InsertPoint.after(load))
