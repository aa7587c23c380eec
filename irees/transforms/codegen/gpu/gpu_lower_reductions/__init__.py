"""
Lowers reductions with fewer results than threads to cooperative loops over all threads.

A warp computes each result; with fewer results than warps, all warps do together. Lanes read
contiguous elements, 16 bytes at a time if all inputs are aligned. Five shuffles combine the lanes
of a warp; partial results of several warps are combined in shared memory.

    linalg.generic ins(%x : memref<4x1024xf32>) outs(%s : memref<4xf32>) { addf }
  =>
    scf.forall (%t) in (128) {
      scf.for %p = %t / 32 to 4 step 4 {
        %v = scf.for %i = 0 to 8 step 1 iter_args(%a = 0) {
          addf %a, %x[%p, 4 * (32 * %i + %t mod 32)]
        }
        %0 = vector.reduction <add>, %v
        %1 = addf %0, (gpu.shuffle xor %0, 16) ; ...
        scf.if (%t mod 32 == 0) { store addf(%s[%p], %5), %s[%p] }
      }
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier

A trip count that is known is a constant, so that the compiler unrolls the loop and moves its loads
up. Maxima and minima may return either of 0 and -0 (`nsz`), since their order changes.

If results, not reduced elements, are contiguous (a column sum, a vector-matrix product), adjacent
threads reduce adjacent results, so their reads are coalesced. Groups of threads take the steps of
the reduction in turn, and their partial results are combined in shared memory.

An argmax also carries the index of the winner, so that ties resolve to the first element. A row
with a NaN, where order matters, is reduced again in order; results are thus bit-exact. Reordered
float sums are not, so `fp=strict` permits only reductions whose order cannot be observed.

Left to `irees-gpu-distribute-to-threads`: reductions without a known combiner, those with a result
for every thread, and short or windowed ones for which one thread per result is faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from irees.dialects.irees_target import is_strict
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.gpu_lower_reductions.reduction import Reduction
from irees.transforms.codegen.gpu.utils.folds import Folds, folds_of
from irees.transforms.codegen.gpu.utils.points import Points
from irees.transforms.codegen.gpu.utils.segments import (
    is_mapped,
    structured_ops,
    threads_per_workgroup,
)
from irees.transforms.codegen.gpu.utils.tiles import WARP, column_loop, is_along_rows
from irees.transforms.utils.structured import static_ranges

SHUFFLES = WARP.bit_length() - 1
"""Shuffles that reduce a warp: log2(WARP). Each costs about one iteration."""


def why_impossible(folds: Folds | None, *, reassociate: bool) -> str | None:
    """Returns why threads cannot share a reduction, or None."""
    if folds is None:
        return "the reduction has no known combiner"
    if not all(isinstance(k, IntegerType | IndexType | AnyFloat) for k in folds.kinds):
        return "an element type cannot be shuffled"
    if not reassociate and not folds.is_exact:
        return "fp=strict keeps the order of a reduction"
    return None


def why_slower(op: linalg.GenericOp, points: Points, count: int) -> str | None:
    """Returns why one of `count` threads per result is faster than sharing, or None."""
    static = static_ranges(op)
    results = prod(static[loop] for loop in points.parallel)
    size = [static[loop] for loop in points.reduction]
    short = min(size) >= 0 and prod(size) < NVIDIA.short_reduction
    if any(static[loop] < 0 for loop in points.parallel):
        return None if is_along_rows(op) else "the number of results is dynamic"
    if column_loop(op) is not None and 2 * results <= count:
        return "the reduction is short" if short else None
    if results >= count:
        return f"{results} results are enough for {count} threads"
    if short:
        return "the reduction is short"
    if min(size) < 0 or is_along_rows(op):
        return None
    turns = -(-results // (count // WARP)) * (-(-prod(size) // WARP) + SHUFFLES)
    if prod(size) > turns:
        return None
    return f"{prod(size)} iterations of one thread are faster than {turns} of a warp"


@dataclass(frozen=True)
class GpuLowerReductionsPass(ModulePass):
    """Lowers reductions with fewer results than threads to loops over all threads."""

    name = "irees-gpu-lower-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            count = threads_per_workgroup(loop)
            for inner in structured_ops(loop):
                points = Points(inner)
                if not points.reduction or not points.writes_apart():
                    continue
                folds = folds_of(inner)
                reason = why_impossible(folds, reassociate=not is_strict(op))
                reason = reason or why_slower(inner, points, count)
                if reason is None and not may_rewrite(self.name, inner, "by all threads"):
                    return
                if reason is None:
                    assert folds is not None
                    Reduction(inner, count, folds).lower()
                else:
                    remark("missed", self.name, inner, reason)
