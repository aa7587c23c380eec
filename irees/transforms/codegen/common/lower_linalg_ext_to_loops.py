"""
Lowers sort, topk, scan and scatter on buffers to loops.

* sort: each row in scratch memory, stable: by radix where a canonical comparator orders
  numbers, else bottom-up merges, n log n;
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

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common._rows import (
    as_type,
    compare,
    load,
    other_dims,
    place,
    rows,
    store,
)
from irees.transforms.codegen.common._selection import lower_topk
from irees.transforms.codegen.common._sorting import lower_sort
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


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
