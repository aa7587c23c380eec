"""
Prefetches the streams of compute-bound loops 4 KiB ahead.

An out-of-order core has some two hundred instructions in flight. In a copy loop, many of them are
loads, so memory is always busy. In a loop with much arithmetic per load (a GELU: forty operations),
few of them are loads, so the core requests the next line late, and hardware prefetchers stop at the
end of a page. So each load prefetches the element 4 KiB further, and each store the line that it
will write 4 KiB further: a store to an uncached line first reads the line.

    scf.for %i { %x = vector.load %in[%i]; ...; vector.store %y, %out[%i] }
  =>
    scf.for %i { %x = vector.load %in[%i]; %n = arith.addi %i, %c1024
                 memref.prefetch %in[%n], read, locality<3>, data : memref<16384xf32, ...>
                 ...; vector.store %y, %out[%i]
                 memref.prefetch %out[%n], write, locality<3>, data : memref<16384xf32, ...> }

Reductions, which store nothing and accumulate in registers, prefetch their inputs too. In a kernel
that reads several tiles one after the other, each is prefetched.

Left unchanged: loops with at most 16 operations per store, which are bandwidth-bound; nontemporal
stores (`irees-use-nontemporal-stores`), which read no line; buffers that the L2 cache holds; and
tiles that a second loop reads, which `irees-prefetch-next-tiles` prefetches. After Mowry, Lam and
Gupta, "Design and Evaluation of a Compiler Algorithm for Prefetching" (1992); MLIR:
`memref.prefetch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import BoolAttr, MemRefType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.dialects.irees_target import target_of
from irees.dialects.storage import root, slice_of, stored
from irees.dialects.upstream.memref import PrefetchOp
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.use_nontemporal_stores import written_only
from irees.transforms.codegen.cpu.utils.large_buffers import (
    large_buffers,
    less_constant,
    one_per_line,
    place_in,
)
from irees.transforms.codegen.cpu.utils.loop_work import vector_work
from irees.transforms.utils.shapes import IndexBuilder, element_bytes


def is_heavy(block: Block) -> bool:
    """Whether a loop is compute-bound."""
    stores = sum(isinstance(o, vector.StoreOp) for o in block.ops)
    return vector_work(block.ops) > CPU.bandwidth_bound_ops * max(1, stores)


def runs_along(access: vector.LoadOp | vector.StoreOp) -> bool:
    """Whether the innermost loop moves an access along the last dim of its buffer."""
    block = access.parent
    if block is None or not isinstance(block.parent_op(), scf.ForOp) or not access.indices:
        return False
    return moves_with(access.indices[-1], block) and block.args[0] not in access.indices[:-1]


def moves_with(index: SSAValue, block: Block) -> bool:
    """Whether an index is the loop's induction variable plus a constant and an outer value."""
    value, _ = less_constant(index)
    if isinstance(value.owner, arith.AddiOp) and value.owner.rhs is block.args[0]:
        return isinstance(value.owner.lhs, BlockArgument) or not block.is_ancestor(
            value.owner.lhs.owner
        )
    return value is block.args[0]


def tile_of(access: vector.LoadOp | vector.StoreOp) -> tuple[object, ...]:
    """Returns the offsets of the view that is accessed; an empty tuple for a whole buffer."""
    view = slice_of(access.base.owner)
    return () if view is None else tuple(view.offsets)


def only_reads(block: Block) -> bool:
    """Whether a loop stores nothing and carries its results in registers, like a reduction."""
    loop = block.parent_op()
    return (
        isinstance(loop, scf.ForOp)
        and bool(loop.results)
        and not any(stored(o) for o in loop.walk())
    )


def prefetch(access: vector.LoadOp | vector.StoreOp) -> None:
    """vector.load %x[%i]  =>  vector.load %x[%i]; memref.prefetch %x[%i + 4 KiB]"""
    assert isinstance(access.base.type, MemRefType)
    at = IndexBuilder(InsertPoint.after(access))
    ahead = CPU.stream_prefetch_bytes // element_bytes(access.base.type)
    further = at.add(access.indices[-1], ahead)
    indices = [*access.indices[:-1], at.value(further)]
    at.insert(PrefetchOp(access.base, indices, is_write=isinstance(access, vector.StoreOp)))


def accesses(buffer: SSAValue, body: Block) -> list[vector.LoadOp] | list[vector.StoreOp]:
    """Returns the stores of `body` to a buffer that read its lines first, else the loads of it."""
    past = BoolAttr.from_bool(True)
    stores = [s for s in written_only(buffer) or () if body.is_ancestor(s)]
    return [s for s in stores if s.nontemporal != past] or [
        o for o in body.walk() if isinstance(o, vector.LoadOp) and root(o.base) is buffer
    ]


def is_stream(
    access: vector.LoadOp | vector.StoreOp, place: Sequence[vector.LoadOp | vector.StoreOp]
) -> bool:
    """
    Whether to prefetch for an access: its loop streams it, and is compute-bound, or is a reduction
    that has all accesses of `place`.
    """
    loop = access.parent
    if loop is None or not runs_along(access):
        return False
    return is_heavy(loop) or (only_reads(loop) and all(a.parent is loop for a in place))


@dataclass(frozen=True)
class PrefetchStreamsPass(ModulePass):
    """Prefetches the streams of compute-bound loops and of reductions 4 KiB ahead."""

    name = "irees-prefetch-streams"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for buffer, body in large_buffers(op, target_of(op).l2_bytes):
            for access in one_per_line(self.streams(buffer, body)):
                if may_rewrite(self.name, access, "a prefetch of what follows"):
                    prefetch(access)

    def streams(self, buffer: SSAValue, body: Block) -> list[vector.LoadOp] | list[vector.StoreOp]:
        """Returns the accesses to prefetch for: each tile is streamed by one loop of `body`."""
        places: dict[Operation, list[vector.LoadOp] | list[vector.StoreOp]] = {}
        for access in accesses(buffer, body):
            places.setdefault(place_in(body, access), []).append(access)
        tiles = [tile for place in places.values() for tile in {tile_of(a) for a in place}]
        if len(tiles) > len(set(tiles)):
            return []
        return [a for place in places.values() for a in place if is_stream(a, place)]
