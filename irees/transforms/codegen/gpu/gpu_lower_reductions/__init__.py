"""
Reduces with all threads of a workgroup where there are more of them than results.

A result is computed by a warp, or where there are fewer results than warps by all warps together:
each lane folds what it reads, neighbours reading neighbours, 16 bytes at a time where all that is
read is aligned to it. The lanes of a warp are folded by five shuffles, the warps through shared
memory.

    linalg.generic ins(%x : memref<4x1024xf32>) outs(%s : memref<4xf32>) { addf }
  =>
    scf.forall (%t) in (128) {
      scf.for %p = %t / 32 to 4 step 4 {
        %v = scf.for %r = %t mod 32 to 256 step 32 iter_args(%a = 0) { addf %a, %x[%p, 4 * %r] }
        %0 = vector.reduction <add>, %v
        %1 = addf %0, (gpu.shuffle xor %0, 16) ; ...
        scf.if (%t mod 32 == 0) { store addf(%s[%p], %5), %s[%p] }
      }
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier

Where neighbours in memory are neighbouring results (a sum of columns, a vector times a matrix), a
warp reads rows of them, and the warps take every fourth row: what they have meets in shared memory.

An argmax is folded so too, with the number of the point that won, so that of equal ones the first
stays; a row that turns out to have a NaN, after which order matters, is done again in order. That
keeps every bit. A sum in another order does not: with `reassociate=false` (fp=strict) only
what nobody sees the order of is folded so. An op of which partial results cannot be folded, that
has a result for every thread, or that reduces windows of so many results that one thread for
each is quicker, is left for `irees-gpu-distribute-to-threads`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu.gpu_lower_reductions.reduction import Reduction
from irees.transforms.codegen.gpu.utils.folds import Folds, folds_of
from irees.transforms.codegen.gpu.utils.points import Points
from irees.transforms.codegen.gpu.utils.segments import (
    is_mapped,
    structured_ops,
    threads_per_workgroup,
)
from irees.transforms.codegen.gpu.utils.tiles import FEW, WARP, column_loop, is_along_rows
from irees.transforms.utils.structured import static_ranges

SHUFFLES = 5
"""So many fold a warp; each costs about what a point does."""


def why_not(
    op: linalg.GenericOp, points: Points, folds: Folds | None, count: int, reassociate: bool
) -> str | None:
    """Why one thread has to do each result, or None."""
    if folds is None:
        return "the reduction has no known combiner"
    if not all(isinstance(k, IntegerType | IndexType | AnyFloat) for k in folds.kinds):
        return "an element type has no shuffles"
    if not reassociate and not folds.is_exact:
        return "strict floating point keeps the order of a reduction"
    static = static_ranges(op)
    results = prod(static[loop] for loop in points.parallel)
    size = [static[loop] for loop in points.reduction]
    if any(static[loop] < 0 for loop in points.parallel):
        return None if is_along_rows(op) else "the number of results is not known"
    if column_loop(op) is not None and 2 * results <= count:
        return "the reduction is short" if 0 <= min(size) and prod(size) < FEW else None
    if results >= count:
        return f"{results} results are enough for {count} threads"
    if all(s >= 0 for s in size):
        if prod(size) < FEW:
            return "the reduction is short"
        turns = -(-results // (count // WARP)) * (-(-prod(size) // WARP) + SHUFFLES)
        if not is_along_rows(op) and prod(size) <= turns:
            return f"{prod(size)} points are quicker on one thread than {turns} turns of a warp"
    return None


@dataclass(frozen=True)
class GpuLowerReductionsPass(ModulePass):
    """Reductions of few results become work of all threads."""

    name = "irees-gpu-lower-reductions"

    reassociate: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            count = threads_per_workgroup(loop)
            for inner in structured_ops(loop):
                points = Points(inner)
                if not points.reduction or not points.writes_apart():
                    continue
                folds = folds_of(inner)
                reason = why_not(inner, points, folds, count, self.reassociate)
                if reason is None and not may_rewrite(self.name, inner, "by all threads"):
                    return
                if reason is None:
                    assert folds is not None
                    Reduction(inner, count, folds).lower()
                else:
                    remark("missed", self.name, inner, reason)
