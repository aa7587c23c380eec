"""
Lowers sort, topk, scan and scatter to loops in which all threads of a workgroup have something to
do.

* sort, topk: a network of comparisons, of which all of one step are done at once; it sorts keys and
  where each came from, by which equal keys keep their order; of a topk it only sorts runs of k,
  and keeps the better half of two until one is left;
* scan: a row for each thread;
* scatter: a point of each slice for each thread, where the updates stay in their order.

A network of n numbers has log(n) * (log(n) + 1) / 2 steps. The flipped form has every comparison
put the smaller number first, so what is past the end of a row, which counts as largest, never
moves, and rows may be of any length (Batcher's bitonic sort; Knuth, TAOCP 3, 5.3.4).

    iree_linalg_ext.sort dimension(0) outs(%x : memref<1000xf32>) { ole }
  =>
    scf.forall (%t) in (1000) { store %x[%t], %keys[%t] ; store %t, %origins[%t] } {mapping = ...}
    gpu.barrier
    scf.for %s = 0 to 10 {
      scf.forall (%t) in (512) { exchange %keys[%i], %keys[%j] } {mapping = ...}  ; gpu.barrier
      scf.for %d = 0 to %s { ... }
    }
    scf.forall (%t) in (1000) { store %keys[%t], %x[%t] } {mapping = ...}

A comparator that is not one of numbers, which need not be an order at all, is left to
`irees-lower-linalg-ext-to-loops`, and so is a scatter of single elements that may meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.gpu import BarrierOp, BlockMappingAttr
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common._accumulating import batch_rank, scan_row, scatter_point
from irees.transforms.codegen.common._rows import (
    as_type,
    load,
    other_dims,
    outside,
    place,
    rows,
    scratch,
    store,
)
from irees.transforms.codegen.gpu._block_sort import Keys, select_keys, sort_keys
from irees.transforms.codegen.gpu._segments import is_mapped, set_threads, threads
from irees.transforms.codegen.gpu._threads import delinearize
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim

SORTING_THREADS = 256
LONG = 512
"""From so many numbers on more threads have something to compare."""


def for_each(at: IndexBuilder, count: Size, body: Callable[[SSAValue, IndexBuilder], None]) -> None:
    """A loop over threads, and a barrier."""
    close, index, inside = threads(at, count)
    body(index, inside)
    close()
    at.insert(BarrierOp())


def lower_sort(op: ext.SortOp, at: IndexBuilder) -> str | None:
    """sort  =>  keys and their origins sorted, by which the rest follows; or why not"""
    order, targets = Order.of(op.body.block), list(op.outputs)
    if order.operand is None:
        return "the comparator is not one of numbers"
    dim, sources = op.dimension.value.data, list(op.inputs) or targets
    size = buffer_dim(targets[0], dim, outside(op))
    keys = Keys.allocate(targets[order.operand].type.element_type, size, order, at)
    others = [i for i in range(len(targets)) if i != order.operand]
    copies = {i: scratch(targets[i].type.element_type, size, at) for i in others}

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        def take(i: SSAValue, c: IndexBuilder) -> None:
            keys.put(i, load(sources[keys.operand], place(ivs, dim, i), c), c)
            for number, copy in copies.items():
                store(load(sources[number], place(ivs, dim, i), c), copy, [i], c)

        def give(i: SSAValue, c: IndexBuilder) -> None:
            store(load(keys.keys, [i], c), targets[keys.operand], place(ivs, dim, i), c)
            if not copies:
                return
            origin = keys.origin(i, c)
            for number, copy in copies.items():
                store(load(copy, [origin], c), targets[number], place(ivs, dim, i), c)

        for_each(b, size, take)
        sort_keys(keys, b, for_each)
        for_each(b, size, give)

    rows(targets[0], other_dims(targets[0], dim), at, row)
    return None


def lower_topk(op: ext.TopkV2Op, at: IndexBuilder) -> str | None:
    """topk  =>  the first keys of those in order; or why not"""
    order = Order.of(op.body.block)
    if order.operand is None:
        return "the comparator is not one of numbers"
    dim, source, best = op.dimension.value.data, op.values, op.output_values
    wanted = op.output_indices
    size, k = buffer_dim(source, dim, outside(op)), buffer_dim(best, dim, outside(op))
    keys = Keys.allocate(source.type.element_type, size, order, at)

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        def take(i: SSAValue, c: IndexBuilder) -> None:
            keys.put(i, load(source, place(ivs, dim, i), c), c)

        def give(i: SSAValue, c: IndexBuilder) -> None:
            store(load(keys.keys, [i], c), best, place(ivs, dim, i), c)
            if wanted is None:
                return
            origin = keys.origin(i, c)
            if op.indices is not None:
                value = load(op.indices, place(ivs, dim, origin), c)
            else:
                value = as_type(origin, wanted.type.element_type, c)
            store(value, wanted, place(ivs, dim, i), c)

        for_each(b, size, take)
        select_keys(keys, k, b, for_each)
        for_each(b, b.minimum(k, size), give)

    rows(source, other_dims(source, dim), at, row)
    return None


def lower_scan(op: ext.ScanOp, at: IndexBuilder) -> str | None:
    """scan  =>  a row for each thread"""
    _spread(op.input, other_dims(op.input, op.dimension.value.data), at, lambda ivs, b: scan_row(
        op, ivs, b))  # fmt: skip
    return None


def lower_scatter(op: ext.ScatterOp, at: IndexBuilder) -> str | None:
    """scatter  =>  a point of each slice for each thread, the updates in their order; or why not"""
    assert isinstance(op.updates.type, MemRefType)
    rank, batch = op.updates.type.get_num_dims(), batch_rank(op)
    if batch == rank:
        # Frontends promise that indices are unique where they only hope so.
        return "updates of single elements may meet"

    def point(ivs: dict[int, Size], b: IndexBuilder) -> None:
        lead = list(range(batch))
        rows(op.updates, lead, b, lambda found, c: scatter_point(op, {**found, **ivs}, c))

    _spread(op.updates, list(range(batch, rank)), at, point)
    return None


def _spread(
    buffer: SSAValue,
    dims: list[int],
    at: IndexBuilder,
    body: Callable[[dict[int, Size], IndexBuilder], None],
) -> None:
    """All points of some dims of a buffer, one thread each."""
    sizes = {d: buffer_dim(buffer, d, at) for d in dims}

    def one(index: SSAValue, b: IndexBuilder) -> None:
        body(delinearize(index, dims, sizes, b), b)

    for_each(at, at.product(list(sizes.values())), one)


LOWERINGS: dict[type[Operation], Callable[..., str | None]] = {
    ext.SortOp: lower_sort,
    ext.TopkV2Op: lower_topk,
    ext.ScanOp: lower_scan,
    ext.ScatterOp: lower_scatter,
}


@dataclass(frozen=True)
class GpuLowerLinalgExtPass(ModulePass):
    """sort, topk, scan and scatter become work of all threads."""

    name = "irees-gpu-lower-linalg-ext"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            for inner in [o for o in loop.regions[0].block.ops if type(o) in LOWERINGS]:
                if not may_rewrite(self.name, inner, "by all threads"):
                    return
                at = IndexBuilder(InsertPoint.before(inner))
                reason = LOWERINGS[type(inner)](inner, at)
                if reason is not None:
                    remark("missed", self.name, inner, reason)
                    continue
                if isinstance(inner, ext.SortOp | ext.TopkV2Op):
                    shape = inner.operands[0].type.get_shape()  # type: ignore[attr-defined]
                    size = shape[inner.dimension.value.data]
                    if size < 0 or size >= LONG:
                        set_threads(loop, SORTING_THREADS)
                Rewriter.erase_op(inner)
