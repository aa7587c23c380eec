"""
Lowers scans to one thread, all threads of a workgroup, or many workgroups per row.

One thread per row is slow for few long rows. A combiner that is associative permits more: threads
scan tiles of a row together (`block_scan.py`).

    iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x) outs(%y, %s : memref<1x1000xf32>, ...)
  =>
    scf.forall (%t) in (128) {
      scf.for %tile = 0 to 1000 step 512 iter_args(%carry = -0.0) {
        ... %before = elements of earlier threads, combined by gpu.shuffle and shared memory ...
        store %carry + %before + %x[4 * %t], ..., %y
      }
    }

A longer row gets many workgroups (`wide_scan.py`): two kernels, each of which reads the row once.
Other ops of the workgroup stay in their loop, before these kernels. The estimates of
`utils/scan_costs.py` choose the variant; `irees-gpu-select-strategy` uses them to tile the rows.

Rounding depends on the variant, so with `fp=strict` one thread scans each row of floats in order.
One thread also scans each row if the region is not a single associative op, or if adjacent rows are
contiguous in memory (a scan of columns), so that adjacent threads' accesses are coalesced.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import gpu_of, is_strict
from irees.dialects.storage import is_allocation
from irees.dialects.upstream.gpu import BarrierOp, BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.accumulating import scan_row
from irees.transforms.codegen.common.utils.rows import other_dims, rows
from irees.transforms.codegen.gpu.gpu_lower_scans.block_scan import BlockScan
from irees.transforms.codegen.gpu.gpu_lower_scans.wide_scan import WideScan
from irees.transforms.codegen.gpu.utils.scan_costs import (
    Scanned,
    elements_per_thread,
    scanned,
    why_in_order,
)
from irees.transforms.codegen.gpu.utils.segments import (
    for_each_point,
    is_free,
    is_mapped,
    structured_ops,
    threads,
    threads_per_workgroup,
)
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


def why_not_together(op: ext.ScanOp, loop: ForallOp, work: Scanned) -> str | None:
    """Returns why the threads of a workgroup do not scan a row together, or None."""
    reason = why_in_order(op, not is_strict(op))
    if reason is None and any(LoweringConfigAttr.on(o).ints("block") for o in structured_ops(loop)):
        reason = "what else the workgroup does says how many threads it has"
    if reason is None and work.threads % WARP:
        reason = f"{work.threads} threads are no warps"
    if reason is None and work.prefers_order():
        reason = f"{work.in_order()} ns by a thread per row, {work.by_workgroup()} by a workgroup"
    return reason


def why_not_in_parts(op: ext.ScanOp, loop: ForallOp, work: Scanned) -> str | None:
    """Returns why a row is not scanned by many workgroups, or None."""
    if not work.prefers_parts():
        return f"predicted {work.by_workgroup()} ns, and {work.by_parts()} ns by many workgroups"
    if work.rows != prod(counts_of(loop)):
        return "a workgroup has more than one row"
    if any(is_allocation(inner) for inner in loop.walk()):
        return "the workgroup allocates memory"
    ops = list(loop.region.block.ops)
    if not all(is_free(o) for o in ops[ops.index(op) + 1 : -1]):
        return "the workgroup uses the results"
    if any(o.results and not is_free(o) for o in ops if o is not op):
        return "the workgroup reads values that views may depend on"
    return None


def counts_of(loop: ForallOp) -> list[int]:
    """Returns the workgroups of a loop per dim; -1 is a dynamic number."""
    found: tuple[int, ...] = loop.properties["staticUpperBound"].get_values()  # type: ignore
    return [max(-1, count) for count in found]


def in_parts(op: ext.ScanOp, loop: ForallOp, work: Scanned) -> None:
    """scan  =>  two kernels of many workgroups per row, after the loop around it"""
    at = IndexBuilder(InsertPoint.after(loop))
    size = op.input.type.get_shape()[op.dimension.value.data]  # type: ignore[attr-defined]
    if size < 0:
        size = size_outside(op, loop, at)
    tile = NVIDIA.wide_scan_threads * elements_per_thread(work.bits)
    WideScan(op, loop, counts_of(loop), work.most_parts, size, tile, at).lower()
    Rewriter.erase_op(op)
    if all(is_free(o) or isinstance(o, BarrierOp) for o in list(loop.region.block.ops)[:-1]):
        Rewriter.erase_op(loop)


def size_outside(op: ext.ScanOp, loop: ForallOp, at: IndexBuilder) -> Size:
    """Returns the length of the rows, from the views of workgroup 0 outside the loop."""
    known = {a: at.value(0) for a in loop.region.block.args}
    for inner in loop.region.block.ops:
        if is_free(inner):
            at.insert(inner.clone(value_mapper=known))
    return buffer_dim(known.get(op.input, op.input), op.dimension.value.data, at)


def together(op: ext.ScanOp, count: int) -> None:
    """scan  =>  a loop over the threads of the workgroup, which scan each row in tiles"""
    at = IndexBuilder(InsertPoint.before(op))
    scan = BlockScan(op, count, at)
    close, scan.thread, b = threads(at, count)

    def row(ivs: dict[int, Size], c: IndexBuilder) -> None:
        scan.row(ivs, (0, scan.size), scan.start(ivs, c), c)

    rows(op.input, scan.other_dims, b, row)
    close()
    Rewriter.replace_op(op, BarrierOp())


def apart(op: ext.ScanOp) -> None:
    """scan  =>  a loop over the threads of the workgroup, each of which scans a row in order"""
    dims, at = other_dims(op.input, op.dimension.value.data), IndexBuilder(InsertPoint.before(op))
    for_each_point(op.input, dims, at, lambda ivs, b: scan_row(op, ivs, b))
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class GpuLowerScansPass(ModulePass):
    """Lowers scans of rows to many threads per row, or to one."""

    name = "irees-gpu-lower-scans"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            found: list[Operation] = [o for o in loop.region.block.ops if isinstance(o, ext.ScanOp)]
            for inner in found:
                assert isinstance(inner, ext.ScanOp)
                counts = counts_of(loop)
                count = -1 if min(counts) < 0 else prod(counts)
                busy = gpu_of(op).multiprocessors
                work = scanned(inner, count, busy, threads_per_workgroup(loop))
                reason = why_not_together(inner, loop, work)
                if reason is not None:
                    remark("missed", self.name, inner, f"one thread per row: {reason}")
                if not may_rewrite(self.name, inner, "by many threads"):
                    return
                if reason is not None:
                    apart(inner)
                    continue
                reason = why_not_in_parts(inner, loop, work)
                if reason is None:
                    in_parts(inner, loop, work)
                    break
                remark("missed", self.name, inner, f"one workgroup per row: {reason}")
                together(inner, work.threads)
