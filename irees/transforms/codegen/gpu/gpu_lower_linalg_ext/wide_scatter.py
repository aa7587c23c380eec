"""
Lowers a scatter to many workgroups. Part of `irees-gpu-lower-linalg-ext`.

* `unique_indices(true)`: updates do not collide, or their order is unspecified, as in IREE. Each
  element of each update gets its own thread.
* Few updates of large slices: one slice element per thread, which applies all updates in order.
  Threads never collide, and accesses are coalesced.
* Many updates: a stable sort by all workgroups (`wide_sort.py`) with the target index as key. Then
  a thread per update element checks whether its update is the first of its target, and if so
  applies all updates of that target in order (`scatter_rows.py`).

    iree_linalg_ext.scatter ins(%u, %i : memref<65536xf32>, memref<65536x1xi32>) outs(%t)
  =>
    scf.forall (%w) in (64) { store number of place of update, %keys ; store update, %origins }
    scf.for %digit = 0 to 2 { scf.forall (%w) in (64) { count } ; add up ; scf.forall { move } }
    scf.forall (%w) in (256) { if it is the first for its place { while it is the same { ... } } }

An alternative without a sort: each workgroup owns a range of targets, reads all indices and keeps
those in its range. With n updates, w workgroups read w * n indices: for 2^20 i32 indices and 264
workgroups, 1.1 GB from L2, and each workgroup must still sort what it kept. The global sort moves
24 bytes per update and digit: 75 MB for the three digits of 2^20 targets. It therefore moves less
data, and shares its code with row sorts. 2^16 updates into 2^10 targets take two digits.

In all variants, one thread applies the updates of one target in order: a histogram with few bins is
as slow as its fullest bin.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.scf import ForallOp
from irees.transforms.codegen.common.utils.accumulating import batch_rank, scatter_point
from irees.transforms.codegen.common.utils.rows import rows
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_radix import THREADS
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.radix_rows import for_each
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.scatter_costs import Meeting
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.scatter_rows import SortedUpdates, Updates
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.wide_sort import (
    Parts,
    WideKeys,
    kernel,
    views_outside,
    why_not_alone,
)
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.shapes import IndexBuilder, Size, delinearize

Way = Callable[[ext.ScatterOp, int, IndexBuilder], None]


def scatter_widely(op: ext.ScatterOp, loop: Operation, busy: int, room: int) -> str | None:
    """scatter  =>  kernels of many workgroups that replace the loop around it; or why not"""
    if busy < 2:
        return ""
    way = why_not_alone(op, loop) or way_for(op, busy, room)
    if isinstance(way, str):
        return way
    assert isinstance(loop, ForallOp)
    at = IndexBuilder(InsertPoint.before(loop))
    outer = op.clone(value_mapper=views_outside(loop, at))
    at.insert(outer)
    way(outer, busy, at)
    Rewriter.erase_op(outer)
    Rewriter.erase_op(loop)
    return None


def way_for(op: ext.ScatterOp, busy: int, room: int) -> Way | str:
    """Returns the cheapest variant, or why a single workgroup is cheaper."""
    if op.unique_indices.value.data:
        return apart
    work = Meeting.of(op, room)
    reason = work.why_no_digits()
    alone, points = work.in_order(), work.by_points(busy)
    many = points
    if reason is None:
        alone, many = min(alone, work.sorted()), min(points, work.by_parts(busy))
    if many >= alone:
        return f"{alone} turns, and {many} by many" + (f": {reason}" if reason else "")
    return by_points if many == points else by_parts


def apart(op: ext.ScatterOp, busy: int, at: IndexBuilder) -> None:
    """scatter  =>  one thread per element of each update"""
    updates = Updates.of(op, at)

    def visit(number: SSAValue, b: IndexBuilder) -> None:
        scatter_point(op, delinearize(number, list(updates.sizes), updates.sizes, b), b)

    each(at, at.mul(updates.count, updates.points), visit)


def by_points(op: ext.ScatterOp, busy: int, at: IndexBuilder) -> None:
    """scatter  =>  one thread per element of a slice, with the updates in order"""
    updates, lead = Updates.of(op, at), list(range(batch_rank(op)))

    def visit(number: SSAValue, b: IndexBuilder) -> None:
        point = updates.point(number, b)
        rows(op.updates, lead, b, lambda ivs, c: scatter_point(op, {**ivs, **point}, c))

    # Warp-sized workgroups: a warp reads whole lines, and more threads mean fewer workgroups.
    each(at, updates.points, visit, WARP)


def by_parts(op: ext.ScatterOp, busy: int, at: IndexBuilder) -> None:
    """scatter  =>  updates sorted by target, then one thread per target"""
    updates = Updates.of(op, at)
    parts = Parts.of(updates.count, busy, at)
    keys = WideKeys.allocate(updates.kind.width.data, parts, at)
    parts.each(at, lambda i, b: keys.put(i, updates.key(i, b), b))
    start = keys.sort(updates.digits(at), at)
    done = SortedUpdates(updates, keys.keys, keys.origin, start)
    each(at, at.mul(updates.count, updates.points), done.do)


def each(
    at: IndexBuilder,
    total: Size,
    visit: Callable[[SSAValue, IndexBuilder], None],
    threads: int = THREADS,
) -> None:
    """Emits a kernel with one thread per index below `total`."""

    def body(workgroup: SSAValue, b: IndexBuilder) -> None:
        offset = b.mul(workgroup, threads)
        length = b.minimum(threads, b.sub(total, offset))
        for_each(b, length, lambda i, c: visit(c.value(c.add(offset, i)), c))

    kernel(at, at.ceildiv(total, threads), body, threads)
