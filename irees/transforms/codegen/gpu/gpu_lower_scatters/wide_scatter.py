"""
Lowers a scatter to many workgroups. Part of `irees-gpu-lower-scatters`.

* `unique_indices(true)`: updates do not collide, or their order is unspecified, as in IREE. Each
  element of each update gets its own thread.
* Few updates of large slices: one slice element per thread, which applies all updates in order.
  Threads never collide, and accesses are coalesced.
* Many updates: a stable sort with the target index as key (`irees-gpu-lower-sorts`). Then a thread
  per update element checks whether its update is the first of its target, and if so applies all
  updates of that target in order (`scatter_rows.py`).

    iree_linalg_ext.scatter ins(%u, %i : memref<65536xf32>, memref<65536x1xi32>) outs(%t)
  =>
    scf.forall (%w) in (256) { store number of place of update, %keys }
    iree_linalg_ext.sort {irees.bits = 11} positions([1]) ins(%keys) outs(%ordered, %origins)
    scf.forall (%w) in (256) { if first update of its target { while same target { ... } } }

An alternative without a sort: each workgroup owns a range of targets, reads all indices and keeps
those in its range. With n updates, w workgroups read w * n indices: for 2^20 i32 indices and 264
workgroups, 1.1 GB from L2, and each workgroup must still sort what it kept. The global sort moves
20 bytes per update and digit: 63 MB for the three digits of 2^20 targets. It therefore moves less
data, and shares its code with row sorts. 2^16 updates into 2^10 targets take two digits.

In all variants, one thread applies the updates of one target in order: a histogram with few bins is
as slow as its fullest bin.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.scf import ForallOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.accumulating import batch_rank, scatter_point
from irees.transforms.codegen.common.utils.rows import as_type, compare, load, rows, scratch, store
from irees.transforms.codegen.gpu.gpu_lower_scatters.scatter_costs import Meeting
from irees.transforms.codegen.gpu.gpu_lower_scatters.scatter_rows import (
    SortedUpdates,
    Updates,
    place_bits,
)
from irees.transforms.codegen.gpu.utils.block_radix import THREADS
from irees.transforms.codegen.gpu.utils.segments import (
    for_each,
    kernel,
    views_outside,
    why_not_alone,
    workgroups,
)
from irees.transforms.codegen.gpu.utils.sort_tiles import SORTED_BITS
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.codegen.gpu.utils.warps import count_type_for
from irees.transforms.utils.loops import if_both
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
        return f"predicted cost {alone}, {many} by many" + (f": {reason}" if reason else "")
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
    count = updates.count
    keys, ordered = (scratch(updates.kind, count, at) for _ in range(2))
    origins = scratch(count_type_for(count), count, at)
    each(at, count, lambda i, b: store(updates.key(i, b), keys, [i], b))
    if isinstance(updates.nowhere, int):
        sort_keys(keys, ordered, origins, place_bits(op), at)
    else:
        few = compare(updates.nowhere, 1 << NVIDIA.scatter_bits, "slt", at)
        close, yes, no = if_both(at, few)
        sort_keys(keys, ordered, origins, NVIDIA.scatter_bits, yes)
        sort_keys(keys, ordered, origins, place_bits(op), no)
        close()

    def origin(i: Size, b: IndexBuilder) -> SSAValue:
        return as_type(load(origins, [i], b), IndexType(), b)

    done = SortedUpdates(updates, ordered, origin, 0)
    each(at, at.mul(count, updates.points), done.do)


def sort_keys(
    keys: SSAValue, ordered: SSAValue, origins: SSAValue, bits: int, at: IndexBuilder
) -> None:
    """Emits a sort of keys that differ only in their low bits, for `irees-gpu-lower-sorts`."""
    kinds = [v.type.element_type for v in (ordered, origins)]  # type: ignore[attr-defined]
    body = Block(arg_types=[kind for kind in kinds for _ in range(2)])
    less = arith.CmpiOp(body.args[0], body.args[1], "ule")
    body.add_ops([less, ext.YieldOp(less.results[0])])
    properties = {
        "dimension": IntegerAttr(0, i64),
        "positions": DenseArrayBase.from_list(i64, [1]),
    }
    sort = ext.SortOp.of([keys], [ordered, origins], properties, body)
    sort.attributes[SORTED_BITS] = IntegerAttr(bits, i64)
    block = Block(arg_types=[IndexType()])
    loop = workgroups(block, [1])
    Rewriter.insert_op(sort, InsertPoint.at_start(block))
    at.insert(loop)


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
