"""
Splits rows of sort and topk that are too long for one workgroup into runs, and merges the runs.

A workgroup of a GPU sorts a row in shared memory. A row that does not fit would be sorted by one
workgroup in global memory while the others are idle. So each run becomes a row:

    %r:2 = iree_linalg_ext.sort dimension(0) outs(%x, %i : tensor<8192xf32>, tensor<8192xi64>)
  =>
    %s:2 = iree_linalg_ext.sort dimension(1) outs(tensor<2x4096xf32>, tensor<2x4096xi64>)
    %r:2 = linalg.generic outs(tensor<8192xf32>, tensor<8192xi64>) { element of two merged runs }

    %v, %w = iree_linalg_ext.topk_v2 dimension(0) ins(%x : tensor<8192xf32>) outs(8xf32, 8xi32)
  =>
    %p, %q = iree_linalg_ext.topk_v2 dimension(1) ins(tensor<2x4096xf32>) outs(2x8xf32, 2x8xi32)
    %n = %q + 4096 * run
    %v, %w = iree_linalg_ext.topk_v2 dimension(0) ins(tensor<16xf32>, tensor<16xi32>: %p, %n)

Runs are merged pairwise. Each element of the result is computed independently: a binary search
finds how many of the first n results come from the first run (merge path: Odeh et al., 2012). Among
equal elements, those of the first run come first. So the order is that of a stable sort, and the
result is bit-identical.

A topk with k above a quarter of a run becomes a sort and a slice.

The pass skips rows of dynamic length, lengths without a suitable divisor, and comparators that are
not a plain comparison of numbers. It also skips a topk with at least one row per multiprocessor: a
workgroup selects the top k of a row by radix select without a copy of the row, at any length. It
also skips radix sorts: several workgroups sort a long row together (`irees-gpu-lower-sorts`), with
five memory accesses per element and digit. A merge needs two per element and doubling of the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, UnitAttr, i64
from xdsl.ir import Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import target_of
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.nvidia import NVIDIA
from irees.transforms.global_opt.utils.slices import cut, join
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, is_static

DIGITS = (8, 16, 32, 64)
"""Key widths, in bits, that radix sort and radix select support."""


def run_of(length: int, longest: int) -> int | None:
    """Returns the longest run that divides a row, or None if all divisors are too short."""
    for run in range(longest, longest // NVIDIA.shortest_run_ratio, -1):
        if length % run == 0:
            return run
    return None


def is_enough(op: ext.TopkV2Op, workgroups: int) -> bool:
    """Whether a topk has a row for each workgroup, and keys that radix select supports."""
    kind = op.values.type
    assert isinstance(kind, TensorType)
    rows = prod(s for d, s in enumerate(kind.get_shape()) if d != op.dimension.value.data)
    return rows >= workgroups and getattr(kind.element_type, "bitwidth", 0) in DIGITS


def has_digits(op: ext.SortOp) -> bool:
    """Whether radix sort supports the keys; it sorts rows of any length."""
    key = op.outputs[Order.of(op.body.block).operand or 0].type
    assert isinstance(key, TensorType)
    return getattr(key.element_type, "bitwidth", 0) in DIGITS


def why_not(op: ext.SortOp | ext.TopkV2Op, longest: int, workgroups: int) -> str | None:
    """Returns why rows cannot be split; "" if they need not be split, None if they are split."""
    kind, dim = op.operands[0].type, op.dimension.value.data
    if not isinstance(kind, TensorType):
        return ""
    length = kind.get_shape()[dim]
    if 0 <= length <= longest:
        return ""
    if not all(is_static(v) for v in op.operands if isinstance(v.type, TensorType)):
        return "rows of dynamic length"
    if Order.of(op.body.block).operand is None:
        return "the comparator is not a plain comparison of numbers"
    if isinstance(op, ext.TopkV2Op) and is_enough(op, workgroups):
        return ""
    if isinstance(op, ext.SortOp) and has_digits(op):
        return ""
    if run_of(length, longest) is None:
        return f"{length} has no divisor from {longest // NVIDIA.shortest_run_ratio} to {longest}"
    if isinstance(op, ext.TopkV2Op) and not op.is_sorted:
        return "the topk is not sorted"
    return None


def split_topk(op: ext.TopkV2Op, longest: int, b: TensorBuilder) -> list[SSAValue]:
    """topk(x)  =>  topk(topk of each run of x)"""
    dim, best, order = op.dimension.value.data, op.output_values, op.body
    assert isinstance(best.type, TensorType)
    shape, values, where = list(best.type.get_shape()), op.values, op.indices
    numbers = op.output_indices
    kind = i64 if numbers is None else element_type(numbers)
    while (run := _run_of_topk(values, dim, shape[dim], longest)) is not None:
        runs = values.type.get_shape()[dim] // run  # type: ignore[attr-defined]
        wider = [*shape[:dim], runs, *shape[dim:]]
        inits = [b.empty(e, wider) for e in (best.type.element_type, kind)]
        ins = [cut(v, dim, runs, b) for v in (values, where) if v is not None]
        found = b.insert(_topk(ins, inits, dim + 1, order)).results

        def place(s: ScalarBuilder, v: list[SSAValue], run: int = run) -> list[SSAValue]:
            return [s.op(arith.AddiOp, v[0], s.cast(s.value(s.mul(s.index(dim), run)), kind))]

        places = found[1]
        if where is None:
            identity = AffineMap.identity(len(wider))
            (places,) = b.compute([places], [b.empty(kind, wider)], [identity] * 2, place)
        values, where = join(found[0], dim, b), join(places, dim, b)
    if where is None:
        return _first_of_sorted(op, longest, b)
    outs = [best, b.empty(kind, shape) if numbers is None else numbers]
    return list(b.insert(_topk([values, where], outs, dim, order)).results)


def _first_of_sorted(op: ext.TopkV2Op, longest: int, b: TensorBuilder) -> list[SSAValue]:
    """topk  =>  the first k of the sorted values and of their positions"""
    dim, rank = op.dimension.value.data, op.values.type.get_num_dims()  # type: ignore[attr-defined]
    kind = i64 if op.output_indices is None else element_type(op.output_indices)
    shape = list(op.values.type.get_shape())  # type: ignore[attr-defined]
    where = op.indices
    if where is None:
        identity = AffineMap.identity(rank)
        inits = [b.empty(kind, shape)]
        (where,) = b.compute([], inits, [identity], lambda s, v: [s.cast(s.index(dim), kind)])
    order = op.body.clone()
    for _ in range(2):
        order.block.insert_arg(kind, len(order.block.args))
    results = sorted_runs([op.values, where], order, dim, longest, b)
    sizes = list(op.output_values.type.get_shape())  # type: ignore[attr-defined]
    return [b.extract_slice(v, [0] * rank, sizes) for v in results]


def _run_of_topk(values: SSAValue, dim: int, k: int, longest: int) -> int | None:
    """Returns the run length for a topk, or None if rows are short or k is too large for runs."""
    assert isinstance(values.type, TensorType)
    length = values.type.get_shape()[dim]
    run = None if length <= longest else run_of(length, longest)
    return None if run is None or k > run // NVIDIA.run_to_k_ratio else run


def _topk(ins: Sequence[SSAValue], outs: Sequence[SSAValue], dim: int, order: Region):
    properties = {"dimension": IntegerAttr(dim, i64), "is_sorted": UnitAttr()}
    return ext.TopkV2Op.of(ins, outs, properties, order.clone())


def split_sort(op: ext.SortOp, longest: int, b: TensorBuilder) -> list[SSAValue]:
    """sort(x)  =>  merges of the sorted runs of x"""
    sources = list(op.inputs) or list(op.outputs)
    return sorted_runs(sources, op.body, op.dimension.value.data, longest, b)


def sorted_runs(
    sources: Sequence[SSAValue], order: Region, dim: int, longest: int, b: TensorBuilder
) -> list[SSAValue]:
    """Returns sorted rows: sorts each run, then merges runs pairwise."""
    kind = sources[0].type
    assert isinstance(kind, TensorType)
    length = kind.get_shape()[dim]
    width = run_of(length, longest)
    assert width is not None
    runs = [cut(v, dim, length // width, b) for v in sources]
    inner = ext.SortOp.of([], runs, {"dimension": IntegerAttr(dim + 1, i64)}, order.clone())
    b.insert(inner)
    current = [join(v, dim, b) for v in inner.results]
    while width < length:
        current = merged(current, Order.of(order.block), dim, width, length, b)
        width *= 2
    return current


def merged(
    rows: Sequence[SSAValue], order: Order, dim: int, width: int, length: int, b: TensorBuilder
) -> list[SSAValue]:
    """rows with sorted runs of `width`  =>  rows with sorted runs of 2 * width"""
    key = rows[order.operand or 0]
    kind = key.type
    assert isinstance(kind, TensorType)
    rank = kind.get_num_dims()

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        ivs: list[Size] = [s.index(d) for d in range(rank)]

        def at(source: SSAValue, index: Size, c: IndexBuilder) -> SSAValue:
            where = [c.value(index if d == dim else i) for d, i in enumerate(ivs)]
            return c.insert(tensor.ExtractOp(source, where, element_type(source))).results[0]

        def stays(i: Size, j: Size, c: IndexBuilder) -> SSAValue:
            left, right = ([at(key, x, c)] * ((order.operand or 0) + 1) for x in (i, j))
            return order.first_stays(left, right, c)

        point = ivs[dim]
        start = s.mul(s.floordiv(point, 2 * width), 2 * width)
        middle = s.minimum(s.add(start, width), length)
        end = s.minimum(s.add(start, 2 * width), length)
        first, second = s.sub(middle, start), s.sub(end, middle)
        number = s.sub(point, start)
        low = s.maximum(0, s.sub(number, second))
        high = s.minimum(number, first)
        # Binary search: how many of the first `number` results come from the first run.
        steps = (2 * width).bit_length()
        loop, _, c = for_loop(s, 0, steps, 1, [s.value(low), s.value(high)])
        low, high = loop.arguments
        half = c.floordiv(c.add(low, high), 2)
        mine = c.add(start, half)
        theirs = c.add(middle, c.sub(c.sub(number, half), 1))
        open_ = c.insert(arith.CmpiOp(low, high, "slt")).results[0]
        more = c.insert(arith.AndIOp(open_, stays(mine, theirs, c))).results[0]
        not_more = c.insert(arith.XOrIOp(more, _true(c))).results[0]
        less = c.insert(arith.AndIOp(open_, not_more)).results[0]
        above = c.value(c.add(half, 1))
        low, _ = loop(
            [
                c.insert(arith.SelectOp(more, above, low)).results[0],
                c.insert(arith.SelectOp(less, c.value(half), high)).results[0],
            ]
        )
        mine, theirs = s.add(start, low), s.add(middle, s.sub(number, low))
        some = s.compare(mine, middle, "slt")
        none = s.compare(theirs, end, "sge")
        taken = s.op(arith.OrIOp, none, stays(mine, theirs, s))
        source = s.select(s.op(arith.AndIOp, some, taken), s.value(mine), s.value(theirs))
        return [at(row, source, s) for row in rows]

    inits = [b.empty(element_type(v), list(kind.get_shape())) for v in rows]
    return b.compute([], inits, [AffineMap.identity(rank)] * len(rows), body)


def _true(at: IndexBuilder) -> SSAValue:
    return at.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]


@dataclass(frozen=True)
class SplitSortsPass(ModulePass):
    """Splits long rows of sort and topk into runs, and merges these."""

    name = "irees-split-sorts"

    longest: int = NVIDIA.sorted_row
    """Maximum elements of a row that one workgroup sorts."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = target_of(op).gpu
        if gpu is None:
            return
        for inner in [o for o in op.walk() if isinstance(o, ext.SortOp | ext.TopkV2Op)]:
            reason = why_not(inner, self.longest, gpu.multiprocessors)
            if reason:
                remark("missed", self.name, inner, reason)
            if reason is not None:
                continue
            if not may_rewrite(self.name, inner, f"in runs of at most {self.longest}"):
                return
            b = TensorBuilder(inner)
            split = split_sort if isinstance(inner, ext.SortOp) else split_topk
            results = split(inner, self.longest, b)  # type: ignore[arg-type]
            Rewriter.replace_op(inner, [], results[: len(inner.results)])
