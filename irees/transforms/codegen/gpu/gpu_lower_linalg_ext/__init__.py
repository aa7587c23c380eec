"""
Lowers sort, topk, scan and scatter to loops in which all threads of a workgroup have something to
do.

* sort, topk: by the digits of their keys (`block_radix.py`), which is linear in the length of a
  row and stable, or by a network of comparisons, of which all of one step are done at once. Both
  work on keys and where each came from, by which equal keys keep their order and the rest follows;
* scan: a row for each thread;
* scatter: where no two updates meet, a thread for each point of each update. Of those that may
  meet, few are done in their order, by a thread for each point of a slice; many are sorted by
  their places, and those that meet are done in their order by one thread for each point
  (`scatter_rows.py`). So a sum is rounded as a loop rounds it: atomic additions of floats would
  give other bits each time, and are not used, whatever `fp` is. That nothing meets is taken from
  `unique_indices`, as IREE takes it.

Which one is decided by turns (`block_costs.py`): accesses that a thread makes one after another.
Of n numbers of b bits, with 256 threads:

* a network has log(n) * (log(n) + 1) / 2 steps of a barrier and n / 2 exchanges, of eight accesses
  each. Of a topk it sorts runs of k, and keeps the better half of two until one is left. Its
  flipped form has every comparison put the smaller number first, so what is past the end of a row,
  which counts as largest, never moves, and rows may be of any length (Batcher's bitonic sort;
  Knuth, TAOCP 3, 5.3.4);
* a radix sort has b / 8 passes of five barriers; each reads n keys, then reads and writes n keys
  and origins, with two votes for each 32 of them. That is the less for 64 numbers of f32 already;
* a radix selection has b / 8 passes that read n keys where they are, and two such readings more,
  then sorts k. It needs no memory for the row: that is what makes it the less for long ones.

So 1000 numbers of f32 take four digits, and not 55 steps:

    iree_linalg_ext.sort dimension(0) outs(%x : memref<1000xf32>) { ole }
  =>
    scf.forall (%t) in (1000) { store key(%x[%t]), %keys[%t] ; store %t, %origins[%t] }
    gpu.barrier
    scf.for %digit = 0 to 4 iter_args(%half) {
      scf.forall (%t) in (256) { clear } ; gpu.barrier
      scf.forall (%t) in (256) { scf.for { nvvm.match.sync any ; tally } } ; gpu.barrier
      scf.forall (%t) in (256) { scan } ; gpu.barrier
      scf.forall (%t) in (256) { scf.for { nvvm.match.sync any ; move to the other half } }
    }
    scf.forall (%t) in (1000) { store %copy[%origins[%t]], %x[%t] }

A key that is not of 8, 16, 32 or 64 bits has no digits, and where something else in the workgroup
needs another number of threads there are none for them: then it is a network. A row of unknown
length may be a long one, and takes digits. One row that is so long that a workgroup would be the
only one for a while is sorted by many (`wide_sort.py`), and a scatter is done by many where one
would take more turns (`wide_scatter.py`). Nothing of this was measured.

A comparator that is not one of numbers, which need not be an order at all, is left to
`irees-lower-linalg-ext-to-loops`, and so is a scatter of so few elements that one thread does them
in fewer turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common.utils.radix_sort import radix_key
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    load,
    other_dims,
    outside,
    place,
    rows,
    scratch,
    store,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.accumulating_rows import (
    lower_scan,
    lower_scatter,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_radix import THREADS
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_sort import (
    Keys,
    select_keys,
    sort_keys,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.radix_rows import (
    for_each,
    has_its_threads,
    sort_by_digits,
    topk_by_digits,
    why_no_digits,
    why_no_select,
    why_no_sort,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.wide_scatter import scatter_widely
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.wide_sort import lower_widely
from irees.transforms.codegen.gpu.utils.segments import (
    is_mapped,
    set_threads,
)
from irees.transforms.utils.footprint import footprint
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim

LONG = 512
"""From so many numbers on more threads have something to compare."""


def is_by_digits(op: Operation, reason: str | None) -> bool:
    """Whether digits are taken; if not, it says why."""
    reason = why_no_digits(op, reason)
    if reason is not None:
        remark("missed", GpuLowerLinalgExtPass.name, op, f"a network: {reason}")
    return reason is None


def lower_sort(op: ext.SortOp, at: IndexBuilder, room: int) -> str | None:
    """sort  =>  keys and their origins sorted, by which the rest follows; or why not"""
    order, targets = Order.of(op.body.block), list(op.outputs)
    if order.operand is None:
        return "the comparator is not one of numbers"
    key = radix_key(order, targets)
    if is_by_digits(op, why_no_sort(op, key, room)):
        assert key is not None
        sort_by_digits(op, key, room, at)
        return None
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


def lower_topk(op: ext.TopkV2Op, at: IndexBuilder, room: int) -> str | None:
    """topk  =>  the first keys of those in order; or why not"""
    order = Order.of(op.body.block)
    if order.operand is None:
        return "the comparator is not one of numbers"
    key = radix_key(order, [op.values])
    if is_by_digits(op, why_no_select(op, key, room)):
        assert key is not None
        topk_by_digits(op, key, room, at)
        return None
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

    shared_bytes: int = 48 << 10
    """What a workgroup may have of shared memory where it asks for more than it gets by itself."""

    workgroups: int = 0
    """How many workgroups keep the whole GPU busy; 0 where each row is for one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            for inner in [o for o in loop.regions[0].block.ops if type(o) in LOWERINGS]:
                if not may_rewrite(self.name, inner, "by all threads"):
                    return
                reason = ""
                if isinstance(inner, ext.SortOp):
                    reason = lower_widely(inner, loop, self.workgroups)
                if isinstance(inner, ext.ScatterOp):
                    reason = scatter_widely(inner, loop, self.workgroups, self.shared_bytes)
                if reason is None:
                    break
                if reason:
                    remark("missed", self.name, inner, f"by one workgroup: {reason}")
                at = IndexBuilder(InsertPoint.before(inner))
                taken = footprint(loop, memref.AllocOp, "workgroup").known
                reason = LOWERINGS[type(inner)](inner, at, self.shared_bytes - taken)
                if reason is not None:
                    remark("missed", self.name, inner, reason)
                    continue
                if isinstance(inner, ext.SortOp | ext.TopkV2Op) and not has_its_threads(loop):
                    shape = inner.operands[0].type.get_shape()  # type: ignore[attr-defined]
                    size = shape[inner.dimension.value.data]
                    if size < 0 or size >= LONG:
                        set_threads(loop, THREADS)
                Rewriter.erase_op(inner)
