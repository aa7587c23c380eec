"""
Lowers sort, topk, scan and scatter on buffers to loops.

* sort: a bottom-up merge sort of each row in scratch memory, n log n and stable;
* topk: one pass that keeps the best K in order, ties to the smaller index;
* scan: one running value per row;
* scatter: the updates in order; an index out of range is skipped.

Rows are independent: `irees-tile-and-distribute` has spread them over workgroups before.
No buffer is on the stack here, so a row may be of any length, static or dynamic.

    iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x) outs(%y, %acc) {addf}
  =>
    %r = scf.for %i = 0 to %n iter_args(%a = %acc[]) {
      %s = addf(%a, %x[%i]) ; store %s, %y[%i] ; yield %s }

IREE: `LinalgExtToLoops` (its sort is a bubble sort).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.loops import for_loop, if_else, while_loop
from irees.transforms.utils.orders import Order, inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


def load(buffer: SSAValue, indices: Sequence[Size], b: IndexBuilder) -> SSAValue:
    """buffer[indices]"""
    return b.insert(memref.LoadOp.get(buffer, [b.value(i) for i in indices])).results[0]


def store(value: SSAValue, buffer: SSAValue, indices: Sequence[Size], b: IndexBuilder) -> None:
    """buffer[indices] = value"""
    b.insert(memref.StoreOp.get(value, buffer, [b.value(i) for i in indices]))


def select(condition: SSAValue, yes: Size, no: Size, b: IndexBuilder) -> SSAValue:
    """condition ? yes : no"""
    return b.insert(arith.SelectOp(condition, b.value(yes), b.value(no))).results[0]


def compare(lhs: Size, rhs: Size, predicate: str, b: IndexBuilder) -> SSAValue:
    """Index comparison."""
    return b.insert(arith.CmpiOp(b.value(lhs), b.value(rhs), predicate)).results[0]


def rows(
    buffer: SSAValue, dims: Sequence[int], at: IndexBuilder,
    inside: Callable[[dict[int, Size], IndexBuilder], None],
) -> None:  # fmt: skip
    """Loops over some dims of a buffer."""
    if not dims:
        inside({}, at)
        return
    close, iv, b = for_loop(at, 0, buffer_dim(buffer, dims[0], at), 1)
    rows(buffer, dims[1:], b, lambda ivs, c: inside({dims[0]: iv, **ivs}, c))
    close()


def place(ivs: dict[int, Size], dim: int, index: Size) -> list[Size]:
    """The indices of point `index` of the row at `ivs`."""
    return [index if d == dim else ivs[d] for d in range(len(ivs) + 1)]


def other_dims(buffer: SSAValue, dim: int) -> list[int]:
    """All dims of a buffer but one."""
    assert isinstance(buffer.type, MemRefType)
    return [d for d in range(buffer.type.get_num_dims()) if d != dim]


def scratch(element: Attribute, size: Size, at: IndexBuilder) -> SSAValue:
    """A 1-D buffer."""
    static = size if isinstance(size, int) else DYNAMIC_INDEX
    dynamic = [] if isinstance(size, int) else [size]
    return at.insert(memref.AllocOp(dynamic, [], MemRefType(element, [static]))).results[0]


def outside(op: Operation) -> IndexBuilder:
    """In front of the tile loop around an op: sizes of scratch memory must be known there."""
    parent = op.parent_op()
    inside = parent is not None and parent.name == "scf.forall"
    return IndexBuilder(InsertPoint.before(parent if inside else op))


def lower_sort(op: ext.SortOp, at: IndexBuilder) -> None:
    """sort  =>  merge sort of every row"""
    dim = op.dimension.value.data
    targets = list(op.outputs)
    sources = list(op.inputs) or targets
    size = buffer_dim(targets[0], dim, outside(op))
    order = Order.of(op.body.block)
    double = outside(op).mul(size, 2)
    halves = [scratch(t.type.element_type, double, at) for t in targets]

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        close, i, c = for_loop(b, 0, size, 1)
        for source, half in zip(sources, halves, strict=True):
            store(load(source, place(ivs, dim, i), c), half, [i], c)
        close()
        final = merge_sort(halves, size, order, b)
        close, i, c = for_loop(b, 0, size, 1)
        for target, half in zip(targets, halves, strict=True):
            store(load(half, [c.add(final, i)], c), target, place(ivs, dim, i), c)
        close()

    rows(targets[0], other_dims(targets[0], dim), at, row)


def merge_sort(halves: Sequence[SSAValue], size: Size, order: Order, at: IndexBuilder) -> SSAValue:
    """Sorts the first half of each buffer; returns where the result starts (0 or size)."""
    close, (width, start), b = while_loop(
        at, [at.value(1), at.value(0)], lambda values, c: compare(values[0], size, "slt", c)
    )
    target = b.sub(size, start)
    double = b.mul(width, 2)
    close_runs, low, c = for_loop(b, 0, size, double)
    middle = c.minimum(c.add(low, width), size)
    high = c.minimum(c.add(low, double), size)
    merge(halves, start, target, low, middle, high, size, order, c)
    close_runs()
    return close([b.value(double), b.value(target)])[1]


def merge(
    halves: Sequence[SSAValue], start: Size, target: Size, low: Size, middle: Size, high: Size,
    size: Size, order: Order, at: IndexBuilder,
) -> None:  # fmt: skip
    """Merges two neighbouring runs of one half into the other."""
    last = at.sub(size, 1)
    close, out, b = for_loop(at, low, high, 1, [at.value(low), at.value(middle)])
    i, j = close.arguments
    left = [load(h, [b.add(start, b.minimum(i, last))], b) for h in halves]
    right = [load(h, [b.add(start, b.minimum(j, last))], b) for h in halves]
    in_left = compare(i, middle, "slt", b)
    right_done = compare(j, high, "sge", b)
    stays = order.first_stays(left, right, b)
    either = b.insert(arith.OrIOp(right_done, stays)).results[0]
    take = b.insert(arith.AndIOp(in_left, either)).results[0]
    for h, x, y in zip(halves, left, right, strict=True):
        store(b.insert(arith.SelectOp(take, x, y)).results[0], h, [b.add(target, out)], b)
    step = b.insert(arith.ExtUIOp(take, i64)).results[0]
    step = b.insert(arith.IndexCastOp(step, IndexType())).results[0]
    next_i = b.insert(arith.AddiOp(i, step)).results[0]
    next_j = b.insert(arith.SubiOp(b.value(b.add(j, 1)), step)).results[0]
    close([next_i, next_j])


def lower_topk(op: ext.TopkV2Op, at: IndexBuilder) -> None:
    """topk  =>  one pass that inserts what beats the worst kept"""
    dim = op.dimension.value.data
    source, best = op.values, op.output_values
    size, k = buffer_dim(source, dim, at), buffer_dim(best, dim, outside(op))
    order = Order.of(op.body.block)
    kept = scratch(best.type.element_type, k, at)
    wanted = op.output_indices
    numbers = scratch(IndexType(), k, at) if wanted is not None else None
    last = at.sub(k, 1)
    # Where nothing is kept there is no worst to beat.
    seen = size if isinstance(k, int) else select(compare(k, 0, "sgt", at), size, 0, at)

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        close, i, c = for_loop(b, 0, seen, 1)
        value = load(source, place(ivs, dim, i), c)
        filling = compare(i, k, "slt", c)
        worst = load(kept, [c.minimum(c.value(i), last)], c)
        beats = order.strictly_first([value], [worst], c)
        enters = c.insert(arith.OrIOp(filling, beats)).results[0]
        close_if, d = if_else(c, enters)
        hole = insertion_point(kept, numbers, value, d.minimum(i, last), order, d)
        store(value, kept, [hole], d)
        if numbers is not None:
            store(i, numbers, [hole], d)
        close_if()
        close()
        close, i, c = for_loop(b, 0, k, 1)
        store(load(kept, [i], c), best, place(ivs, dim, i), c)
        if numbers is not None and wanted is not None:
            number: Size = load(numbers, [i], c)
            if op.indices is not None:
                value = load(op.indices, place(ivs, dim, number), c)
            else:
                value = as_type(number, wanted.type.element_type, c)
            store(value, wanted, place(ivs, dim, i), c)
        close()

    rows(source, other_dims(source, dim), at, row)


def insertion_point(
    kept: SSAValue,
    numbers: SSAValue | None,
    value: SSAValue,
    end: Size,
    order: Order,
    at: IndexBuilder,
) -> SSAValue:
    """Moves what `value` beats one place back, from `end` on; returns the place that is free."""

    def goes_on(values: Sequence[SSAValue], b: IndexBuilder) -> SSAValue:
        (hole,) = values
        above = load(kept, [b.maximum(b.sub(hole, 1), 0)], b)
        beats = order.strictly_first([value], [above], b)
        return b.insert(arith.AndIOp(compare(hole, 0, "sgt", b), beats)).results[0]

    close, (hole,), b = while_loop(at, [at.value(end)], goes_on)
    above = b.value(b.sub(hole, 1))
    store(load(kept, [above], b), kept, [hole], b)
    if numbers is not None:
        store(load(numbers, [above], b), numbers, [hole], b)
    return close([above])[0]


def as_type(value: SSAValue, kind: Attribute, b: IndexBuilder) -> SSAValue:
    """An index as another integer type, or the reverse."""
    if value.type == kind:
        return value
    return b.insert(arith.IndexCastOp(value, kind)).results[0]


def lower_scan(op: ext.ScanOp, at: IndexBuilder) -> None:
    """scan  =>  a running value along the dim"""
    dim = op.dimension.value.data
    inclusive = bool(op.inclusive.value.data)
    size = buffer_dim(op.input, dim, at)

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        where = [ivs[d] for d in sorted(ivs)]
        close, i, c = for_loop(b, 0, size, 1, [load(op.accumulator, where, b)])
        (running,) = close.arguments
        value = load(op.input, place(ivs, dim, i), c)
        following = inline_region(op.body.block, [running, value], c)[0]
        store(following if inclusive else running, op.output, place(ivs, dim, i), c)
        store(close([following])[0], op.accumulator, where, b)

    rows(op.input, other_dims(op.input, dim), at, row)


def lower_scatter(op: ext.ScatterOp, at: IndexBuilder) -> None:
    """scatter  =>  the updates one after another"""
    target, updates, indices = op.original, op.updates, op.indices
    dimension_map = list(op.dimension_map.get_values())
    assert isinstance(indices.type, MemRefType)
    assert isinstance(updates.type, MemRefType)
    assert isinstance(target.type, MemRefType)
    rank = updates.type.get_num_dims()
    indexed = len(dimension_map)
    batch = rank - (target.type.get_num_dims() - indexed)
    has_depth = indices.type.get_num_dims() > batch

    def point(ivs: dict[int, Size], b: IndexBuilder) -> None:
        lead = [ivs[d] for d in range(batch)]
        found: dict[int, Size] = {}
        valid: SSAValue | None = None
        for position, dim in enumerate(dimension_map):
            raw = load(indices, [*lead, position] if has_depth else lead, b)
            index = as_type(raw, IndexType(), b)
            inside = compare(index, buffer_dim(target, dim, b), "ult", b)
            valid = inside if valid is None else b.insert(arith.AndIOp(valid, inside)).results[0]
            found[dim] = index
        if op.mask is not None:
            allowed = load(op.mask, lead, b)
            valid = allowed if valid is None else b.insert(arith.AndIOp(valid, allowed)).results[0]
        rest = iter(range(batch, rank))
        where = [
            found[d] if d in found else ivs[next(rest)] for d in range(target.type.get_num_dims())
        ]

        def write(c: IndexBuilder) -> None:
            new = load(updates, [ivs[d] for d in range(rank)], c)
            store(
                inline_region(op.body.block, [new, load(target, where, c)], c)[0], target, where, c
            )

        if valid is None:
            write(b)
            return
        close, c = if_else(b, valid)
        write(c)
        close()

    rows(updates, list(range(rank)), at, point)


LOWERINGS: dict[type[Operation], Callable[..., None]] = {
    ext.SortOp: lower_sort,
    ext.TopkV2Op: lower_topk,
    ext.ScanOp: lower_scan,
    ext.ScatterOp: lower_scatter,
}


@dataclass(frozen=True)
class LowerLinalgExtToLoopsPass(ModulePass):
    """sort, topk, scan and scatter on buffers become loops."""

    name = "irees-lower-linalg-ext-to-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if type(o) in LOWERINGS]:
            if inner.results:
                continue
            LOWERINGS[type(inner)](inner, IndexBuilder(InsertPoint.before(inner)))
            Rewriter.erase_op(inner)
