"""
Lowers scans on buffers to loops in which adjacent rows are scanned together.

A running value depends on the one before it, so one row alone waits for the latency of the combiner
at each element. Adjacent rows do not depend on each other. If they are contiguous in memory, a scan
along the other dim is a loop over structured ops, which `irees-vectorize-structured-ops` turns into
loops over vectors; the accumulator is the row of running values.

    iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x) outs(%y, %a) {addf}
  =>
    linalg.generic ins(%x[0, :]) outs(%a, %y[0, :]) { (x) -> x, x }
    scf.for %i = 1 to %n {
      linalg.generic ins(%x[%i, :]) outs(%a, %y[%i, :]) { (x, a) -> addf(a, x), addf(a, x) }
    }

If elements of a row are contiguous, a loop carries the running values of several rows.

    iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x) outs(%y, %a) {addf}
  =>
    scf.for %r = 0 to %m step 4 {
      scf.for %i = 1 to %n iter_args(%p = %x[%r, 0], ..., %s = %x[%r + 3, 0]) { ... }
    }

The running values are the lanes of a vector if the combiner calls math functions. If it is the
logarithm of a sum of exponentials, elements of a chunk share a shift: their exponentials and
logarithms are structured ops, and only a sum is a chain. Rounding differs, so not with `fp=strict`.

    iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x) outs(%y, %a) {log(exp(l) + exp(r))}
  =>
    scf.for %i = 0 to %n step 128 {
      %t = max(%a, %x[%r, %i : %i + 128])
      %e = exp(%x - %t) ; %s = sums of %e, after exp(%a - %t) ; %y[%i : %i + 128] = %t + log(%s)
    }

A combiner that selects an operand, as a maximum does, is associative and idempotent. Lanes of a
vector are then elements of one row, and each is combined with lanes before it, 1, 2, 4, 8 away.

An elementwise op that makes the input or reads the output is fused, if all reads and writes between
them stay in order: a sum of f32 in f64 needs no buffers of f64. The order of additions is that of
the scan, so results are the same bits.

The GPU's pass is `irees-gpu-lower-scans`. IREE: `LinalgExtToLoops`, one row at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import is_strict, target_of
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.cpu.cpu_lower_scans.columns import scan_columns
from irees.transforms.codegen.cpu.cpu_lower_scans.log_sums import scan_log_sums, takes_log_sums
from irees.transforms.codegen.cpu.cpu_lower_scans.neighbours import Scan
from irees.transforms.codegen.cpu.cpu_lower_scans.prefixes import scan_prefixes, takes_prefixes
from irees.transforms.codegen.cpu.cpu_lower_scans.rows import scan_rows
from irees.transforms.utils.shapes import IndexBuilder


@dataclass(frozen=True)
class CpuLowerScansPass(ModulePass):
    """Lowers scans to loops in which adjacent rows are scanned together."""

    name = "irees-cpu-lower-scans"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        if target.gpu is not None:
            return
        for inner in [o for o in op.walk() if isinstance(o, ext.ScanOp)]:
            if inner.results or not may_rewrite(self.name, inner, "scan adjacent rows together"):
                continue
            at = IndexBuilder(InsertPoint.before(inner))
            if not is_strict(op) and takes_log_sums(plain := Scan(inner)):
                scan_log_sums(plain, target.vector_bytes, at)
                plain.erase()
                continue
            if takes_prefixes(plain := Scan(inner), target.vector_bytes):
                scan_prefixes(plain, target.vector_bytes, at)
                plain.erase()
                continue
            scan = Scan.of(inner)
            for reason in scan.reasons:
                remark("missed", self.name, inner, reason)
            if scan.is_innermost:
                scan_rows(scan, target.vector_bytes, at)
            else:
                scan_columns(scan, at)
            scan.erase()
