"""
Lowers sort, topk, scan and scatter on buffers to loops.

* sort: each row in scratch memory, stable: by radix where a canonical comparator orders
  numbers, else bottom-up merges, n log n;
* topk: one pass that keeps the best K in order, ties to the smaller index; `together` neighbours
  are first compared with the worst that is kept by one op that can be vectorized, then parts of
  those of which one is better;
* scan: one running value per row, whose last is the accumulator result;
* scatter: the updates in order; an index out of range is skipped.

Rows are independent: `irees-tile-and-distribute` has spread them over workgroups before.
No buffer is on the stack here, so a row may be of any length, static or dynamic.

    iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x) outs(%y, %acc) {addf}
  =>
    store %x[0], %y[0]
    %r = scf.for %i = 1 to %n iter_args(%a = %x[0]) {
      %s = addf(%a, %x[%i]) ; store %s, %y[%i] ; yield %s }
    store %r, %acc[]

IREE: `LinalgExtToLoops` (its sort is a bubble sort).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common.lower_linalg_ext_to_loops.selection import lower_topk
from irees.transforms.codegen.common.lower_linalg_ext_to_loops.sorting import lower_sort
from irees.transforms.codegen.common.utils.accumulating import scan_row, scatter_point
from irees.transforms.codegen.common.utils.rows import other_dims, rows
from irees.transforms.utils.shapes import IndexBuilder


def lower_scan(op: ext.ScanOp, at: IndexBuilder) -> None:
    """scan  =>  a running value along the dim"""
    dims = other_dims(op.input, op.dimension.value.data)
    rows(op.input, dims, at, lambda ivs, b: scan_row(op, ivs, b))


def lower_scatter(op: ext.ScatterOp, at: IndexBuilder) -> None:
    """scatter  =>  the updates one after another"""
    assert isinstance(op.updates.type, MemRefType)
    dims = list(range(op.updates.type.get_num_dims()))
    rows(op.updates, dims, at, lambda ivs, b: scatter_point(op, ivs, b))


LOWERINGS: dict[type[Operation], Callable[[Any, IndexBuilder], None]] = {
    ext.SortOp: lower_sort,
    ext.ScanOp: lower_scan,
    ext.ScatterOp: lower_scatter,
}


@dataclass(frozen=True)
class LowerLinalgExtToLoopsPass(ModulePass):
    """sort, topk, scan and scatter on buffers become loops."""

    name = "irees-lower-linalg-ext-to-loops"

    together: tuple[int, ...] = ()
    """How many elements a topk compares with the worst it keeps at once, and how many where one of
    those is better, before it looks at them one by one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        topk = partial(lower_topk, together=self.together)
        lowerings = {**LOWERINGS, ext.TopkV2Op: topk}
        for inner in [o for o in op.walk() if type(o) in lowerings]:
            if inner.results:
                continue
            lowerings[type(inner)](inner, IndexBuilder(InsertPoint.before(inner)))
            Rewriter.erase_op(inner)
