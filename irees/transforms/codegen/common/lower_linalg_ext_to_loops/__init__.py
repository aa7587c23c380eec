"""
Lowers sort, topk, scan and scatter on buffers to loops.

* sort: stable, row by row in scratch memory: radix sort if a canonical comparator orders numbers,
  else a bottom-up merge sort, O(n log n);
* topk: one pass that keeps the best K in order, ties to the smaller index. On a CPU, one vectorized
  op first compares a group of elements with the worst kept one, so most are skipped; a large K is
  selected by a bound that is halved until few more than K elements meet it;
* scan: one running value per row; the last one is the accumulator result;
* scatter: updates in order; an out-of-range index is skipped.

Rows are independent: `irees-tile-and-distribute` has distributed them over workgroups. No buffer is
on the stack, so rows may have any length, static or dynamic.

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
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.interfaces import building, loops_model_of
from irees.transforms.codegen.common.utils.accumulating import scan_row, scatter_point
from irees.transforms.codegen.common.utils.rows import other_dims, rows
from irees.transforms.utils.shapes import IndexBuilder


def lower_scan(op: ext.ScanOp, at: IndexBuilder) -> None:
    """scan  =>  a loop along the dim that carries the running value"""
    dims = other_dims(op.input, op.dimension.value.data)
    rows(op.input, dims, at, lambda ivs, b: scan_row(op, ivs, b))


def lower_scatter(op: ext.ScatterOp, at: IndexBuilder) -> None:
    """scatter  =>  a loop over the updates, in order"""
    assert isinstance(op.updates.type, MemRefType)
    dims = list(range(op.updates.type.get_num_dims()))
    rows(op.updates, dims, at, lambda ivs, b: scatter_point(op, ivs, b))


def lower(op: Operation) -> None:
    """
    op  =>  the loops that its interface builds, if it has `to_loops`

    Raises PluginError if a plug-in's interface fails.
    """
    to_loops: Callable[..., Any] | None = getattr(loops_model_of(op), "to_loops", None)
    if to_loops is None or op.results:
        return
    with building(op, "to_loops"):
        to_loops(op, IndexBuilder(InsertPoint.before(op)))
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class LowerLinalgExtToLoopsPass(ModulePass):
    """Lowers sort, topk, scan, scatter and ops of plug-ins on buffers to their own loops."""

    name = "irees-lower-linalg-ext-to-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            lower(inner)
