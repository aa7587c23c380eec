"""
Lowers sort, topk and ops of plug-ins to loops over all threads of a workgroup.

An op is lowered by its interface (`to_threads` of `irees/interfaces.py`). Those of sort and topk
are here. They sort or select by digits (`utils/block_radix.py`, `block_select.py`), which is stable
and linear in the row length, or by a sorting network (`block_sort.py`), whose compare-exchanges of
one step run in parallel. Both move keys with their original indices, which break ties and permute
the other operands.

A cost model (`utils/block_costs.py`) picks the variant. It counts the sequential memory accesses of
a thread and has not been validated by measurement. For a row of n keys of b bits, with 256 threads:

* a network has log(n) * (log(n) + 1) / 2 steps, each with a barrier and n / 2 exchanges of eight
  accesses. For topk it sorts runs of k, then keeps the better half of two until one is left. In its
  flipped form every exchange puts the smaller key first, so padding past the end, which compares
  as largest, never moves, and rows may have any length (Batcher's bitonic sort; Knuth, TAOCP 3,
  5.3.4);
* a radix sort has b / 8 passes with five barriers each. A pass reads n keys, then reads and writes
  n keys and origins, with two votes per 32 of them. It is cheaper from about 64 f32 keys on;
* a radix selection has b / 8 + 2 passes that read the n keys in place, then sorts k. It needs no
  shared memory for the row, which makes it the cheapest for long rows.

50 f64 keys therefore take a network of 21 steps instead of eight radix passes:

    iree_linalg_ext.sort dimension(0) outs(%x : memref<50xf64>) { ole }
  =>
    scf.forall (%t) in (50) { store %x[%t], %keys[%t] ; store %t, %origins[%t] } ; gpu.barrier
    scf.for %stage = 0 to 6 {
      scf.forall (%t) in (32) { compare-exchange } ; gpu.barrier
      scf.for %step = 0 to %stage { scf.forall (%t) in (32) { compare-exchange } ; gpu.barrier }
    }
    scf.forall (%t) in (50) { store %keys[%t], %x[%t] }

Radix sort needs keys of 8, 16, 32 or 64 bits and 256 threads; other keys, and workgroups whose
other ops fix another number of threads, use the network. If radix sort is cheaper, the sort is left
to `irees-gpu-lower-sorts`, which keeps the row in registers or uses many workgroups. This pass
radix-sorts only long rows of a workgroup that also has other work, in device memory.

Left to `irees-lower-linalg-ext-to-loops`: comparators that do not compare numbers, which need not
be an order at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import gpu_of
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.interfaces import building, loops_model_of
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.radix_keys import radix_key
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    load,
    load_or_position,
    other_dims,
    outside,
    place,
    rows,
    scratch,
    store,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_sort import (
    Keys,
    select_keys,
    sort_keys,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.radix_rows import (
    sort_by_digits,
    topk_by_digits,
    why_no_select,
    why_no_sort,
)
from irees.transforms.codegen.gpu.utils.block_radix import THREADS, why_no_digits
from irees.transforms.codegen.gpu.utils.segments import (
    for_each,
    has_its_threads,
    is_mapped,
    set_threads,
)
from irees.transforms.codegen.gpu.utils.sort_tiles import Plan
from irees.transforms.utils.footprint import shared_memory
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


def is_by_digits(op: Operation, reason: str | None) -> bool:
    """Whether radix sort is used; if not, emits a remark that says why."""
    reason = why_no_digits(op, reason)
    if reason is not None:
        remark("missed", GpuLowerLinalgExtPass.name, op, f"using a sorting network: {reason}")
    return reason is None


def lower_sort(op: ext.SortOp, at: IndexBuilder, room: int) -> str | None:
    """sort  =>  keys sorted with their origins, then all other operands permuted; or why not"""
    order, targets = Order.of(op.body.block), list(op.outputs)
    if order.operand is None or order.operand in op.generated:
        return "the comparator does not compare numbers"
    key = radix_key(order, targets)
    if is_by_digits(op, why_no_sort(op, key, room)):
        assert key is not None
        sort_by_digits(op, key, room, at)
        return None
    dim, sources = op.dimension.value.data, op.sources
    size = buffer_dim(targets[0], dim, outside(op))
    keys = Keys.allocate(targets[order.operand].type.element_type, size, order, at)
    others = [i for i in range(len(targets)) if i != order.operand]
    copies = {i: scratch(targets[i].type.element_type, size, at) for i in others}

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        def take(i: SSAValue, c: IndexBuilder) -> None:
            def get(number: int) -> SSAValue:
                kind = targets[number].type.element_type  # type: ignore[attr-defined]
                return load_or_position(sources[number], kind, ivs, dim, i, c)

            keys.put(i, get(keys.operand), c)
            for number, copy in copies.items():
                store(get(number), copy, [i], c)

        def give(i: SSAValue, c: IndexBuilder) -> None:
            store(load(keys.keys, [i], c), targets[keys.operand], place(ivs, dim, i), c)
            if not copies:
                return
            origin = keys.origin(i, c)
            for number, copy in copies.items():
                store(load(copy, [origin], c), targets[number], place(ivs, dim, i), c)

        for_each(b, size, take)
        sort_keys(keys, b)
        for_each(b, size, give)

    rows(targets[0], other_dims(targets[0], dim), at, row)
    return None


def lower_topk(op: ext.TopkV2Op, at: IndexBuilder, room: int) -> str | None:
    """topk  =>  the first k keys in order, with their origins; or why not"""
    order = Order.of(op.body.block)
    if order.operand is None:
        return "the comparator does not compare numbers"
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
        select_keys(keys, k, b)
        for_each(b, b.minimum(k, size), give)

    rows(source, other_dims(source, dim), at, row)
    return None


def by_threads(op: Operation, loop: Operation) -> str | None:
    """op  =>  loops over the threads of the workgroup, as its interface builds them; or why not"""
    at = IndexBuilder(InsertPoint.before(op))
    room = gpu_of(op).matrix_shared_bytes - shared_memory(loop).known
    with building(op, "to_threads"):
        reason: str | None = loops_model_of(op).to_threads(op, at, room)
    return reason


def is_for_tiles(op: Operation, loop: ForallOp) -> bool:
    """Whether a sort is left to `irees-gpu-lower-sorts`: radix sort is cheaper than a network."""
    if not isinstance(op, ext.SortOp):
        return False
    plan = Plan.of(op, loop)
    return not isinstance(plan, str) and (
        plan.size < 0 or why_no_sort(op, plan.key, gpu_of(op).matrix_shared_bytes) is None
    )


def takes_all_threads(op: Operation, loop: Operation) -> bool:
    """Whether the row of a sort or topk is long enough for all threads of a workgroup."""
    if not isinstance(op, ext.SortOp | ext.TopkV2Op) or has_its_threads(loop, THREADS):
        return False
    shape = op.operands[0].type.get_shape()  # type: ignore[attr-defined]
    size = shape[op.dimension.value.data]
    return size < 0 or size >= NVIDIA.network_row


@dataclass(frozen=True)
class GpuLowerLinalgExtPass(ModulePass):
    """Lowers ops with loops of their own to loops over all threads of a workgroup."""

    name = "irees-gpu-lower-linalg-ext"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            for inner in list(loop.regions[0].block.ops):
                if not hasattr(loops_model_of(inner), "to_threads") or is_for_tiles(inner, loop):
                    continue
                if not may_rewrite(self.name, inner, "by all threads"):
                    return
                reason = by_threads(inner, loop)
                if reason is not None:
                    remark("missed", self.name, inner, reason)
                    continue
                if takes_all_threads(inner, loop):
                    set_threads(loop, THREADS)
                Rewriter.erase_op(inner)
