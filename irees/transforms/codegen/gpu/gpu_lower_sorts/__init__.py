"""
Lowers sorts of numbers to radix sorts: of rows in registers, or of long rows by many workgroups.

`irees-gpu-lower-linalg-ext` leaves the sorts for which a radix sort is cheaper than a network, and
`irees-gpu-lower-scatters` turns some scatters into sorts. Both variants here sort a tile of
elements by one digit at a time, in the registers and the shared memory of a workgroup (`ranks.py`).
They differ in the tile:

* a row that fits is one tile, and stays in registers for all digits (`register_rows.py`):

    scf.forall (%b) in (64) { iree_linalg_ext.sort ins(%row : memref<4096xf32>) outs(...) }
  =>
    scf.forall (%b) in (64) {
      load ; scf.for %digit = 0 to 4 { count ; scan ; exchange through shared memory } ; store
    } {threads = 256}

* a longer row, or one of unknown length, has many tiles, and each digit takes three kernels
  (`wide_rows.py`, `grid.py`):

    scf.forall (%b) in (1) { iree_linalg_ext.sort ins(%row : memref<4194304xf32>) outs(...) }
  =>
    scf.forall (%w) in (1024) { count } ; scf.forall (%d) in (256) { scan }
    scf.forall (%w) in (1024) { rank, exchange, move } ; and so on, for each digit

`utils/sort_tiles.py` chooses the tile. A sort of 4 M elements moves 12 bytes per element and digit,
and issues about 100 instructions per 32 elements and digit; both take about as long on an H200.

Left to `irees-lower-linalg-ext-to-loops`: keys of other widths, and long rows of workgroups that
also have other work.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import gpu_of
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common.utils.rows import other_dims, outside, place, rows
from irees.transforms.codegen.gpu.gpu_lower_sorts.register_rows import RegisterRow
from irees.transforms.codegen.gpu.gpu_lower_sorts.wide_rows import WideSort, counts_of
from irees.transforms.codegen.gpu.utils.predictions import add_cycles
from irees.transforms.codegen.gpu.utils.segments import (
    is_mapped,
    set_fewest_workgroups,
    set_threads,
)
from irees.transforms.codegen.gpu.utils.sort_tiles import Plan, Tile, tile_cycles
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


def lower_rows(op: ext.SortOp, loop: ForallOp, plan: Plan, tile: Tile) -> None:
    """sort  =>  each row of the workgroup in registers"""
    dim, at = op.dimension.value.data, IndexBuilder(InsertPoint.before(op))
    set_threads(loop, tile.threads)
    set_fewest_workgroups(loop, 1)
    row = RegisterRow.allocate(op, plan, tile, at)

    def sort(ivs: dict[int, Size], b: IndexBuilder) -> None:
        row.sort(lambda i: place(ivs, dim, i), b)

    rows(op.outputs[0], other_dims(op.outputs[0], dim), at, sort)
    if isinstance(count := at.product(counts_of(loop)), int):
        waves = -(-count // gpu_of(op).multiprocessors)
        add_cycles(op, plan.passes * waves * tile_cycles(tile))
    Rewriter.erase_op(op)


def lower_widely(op: ext.SortOp, loop: ForallOp, plan: Plan) -> None:
    """sort  =>  kernels of many workgroups that replace the loop around it"""
    size = buffer_dim(op.outputs[0], op.dimension.value.data, outside(op))
    WideSort(op, loop, plan, size).lower(IndexBuilder(InsertPoint.before(loop)))
    Rewriter.erase_op(loop)


@dataclass(frozen=True)
class GpuLowerSortsPass(ModulePass):
    """Sorts rows by digits, in registers or by many workgroups."""

    name = "irees-gpu-lower-sorts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            for inner in [o for o in loop.regions[0].block.ops if isinstance(o, ext.SortOp)]:
                plan = Plan.of(inner, loop)
                if isinstance(plan, str):
                    remark("missed", self.name, inner, plan)
                    continue
                if not may_rewrite(self.name, inner, "by digits"):
                    return
                if plan.row is not None:
                    lower_rows(inner, loop, plan, plan.row)
                    continue
                lower_widely(inner, loop, plan)
                break
