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

That is another order of the sum. With `reassociate=false` (fp=strict) only integers are folded
so, whose order nobody sees. An op whose combiner is not known (an argmax, say), that has a
result for every thread, or that reduces windows of so many results that one thread for each is
quicker, is left for `irees-gpu-distribute-to-threads`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    i32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import is_contraction
from irees.dialects.upstream.gpu import (
    AddressSpace,
    AddressSpaceAttr,
    BarrierOp,
    BlockMappingAttr,
    ShuffleOp,
)
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu._points import Points
from irees.transforms.codegen.gpu._segments import is_mapped, threads, threads_per_workgroup
from irees.transforms.codegen.gpu._threads import delinearize
from irees.transforms.codegen.gpu._tiles import WARP, is_along_rows
from irees.transforms.utils.combiners import COMBINERS, combine, combiners, neutral_element
from irees.transforms.utils.lanes import Kind, Lane, NotVectorizableError, materialize, vector_of
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import static_ranges

FEW = 16
"""A reduction of fewer points is as quick on one thread."""

SHUFFLES = 5
"""So many fold a warp; each costs about what a point does."""


def why_not(op: linalg.GenericOp, points: Points, count: int, reassociate: bool) -> str | None:
    """Why one thread has to do each result, or None."""
    folds = combiners(op)
    if folds is None:
        return "the reduction has no known combiner"
    kinds = [fold.results[0].type for fold in folds]
    if not all(isinstance(k, IntegerType | IndexType | AnyFloat) for k in kinds):
        return "an element type has no shuffles"
    if not reassociate and any(isinstance(k, AnyFloat) for k in kinds):
        return "strict floating point keeps the order of a reduction"
    static = static_ranges(op)
    results = prod(static[loop] for loop in points.parallel)
    if any(static[loop] < 0 for loop in points.parallel):
        return "the number of results is not known"
    if results >= count:
        return f"{results} results are enough for {count} threads"
    size = [static[loop] for loop in points.reduction]
    if all(s >= 0 for s in size):
        if prod(size) < FEW:
            return "the reduction is short"
        turns = -(-results // (count // WARP)) * (-(-prod(size) // WARP) + SHUFFLES)
        if not is_along_rows(op) and prod(size) <= turns:
            return f"{prod(size)} points are quicker on one thread than {turns} turns of a warp"
    return None


@dataclass
class Reduction:
    """One op that all threads of a workgroup reduce together."""

    op: linalg.GenericOp
    count: int

    def __post_init__(self) -> None:
        self.points = Points(self.op)
        folds = combiners(self.op)
        assert folds is not None
        self.combiners = folds

    def lower(self) -> None:
        """linalg.generic  =>  loops over threads with shuffles"""
        points, at = self.points, IndexBuilder(InsertPoint.before(self.op))
        self.sizes = points.sizes(at)
        self.lanes = points.widest(points.reduction[-1])
        results = prod(s for i, s in enumerate(self.sizes) if i in points.parallel)
        if results >= self.count // WARP:
            self._by_warps(results, at)
        else:
            self._by_all(results, at)
        Rewriter.replace_op(self.op, BarrierOp())

    def _by_warps(self, results: int, at: IndexBuilder) -> None:
        """Warps take results in turn; the first lane stores."""
        close, thread, b = threads(at, self.count)
        warp, lane = b.floordiv(thread, WARP), b.rem(thread, WARP)
        body, number, inner = for_loop(b, warp, results, self.count // WARP)
        ivs = delinearize(number, self.points.parallel, self.sizes, inner)
        folded = self._fold_warp(self._partial(ivs, lane, WARP, inner), inner)
        end, first = if_else(inner, _is_zero(lane, inner))
        self._store(ivs, folded, first)
        end()
        body()
        close()

    def _by_all(self, results: int, at: IndexBuilder) -> None:
        """All warps work on each result; what each folds meets in shared memory."""
        warps = self.count // WARP
        space = AddressSpaceAttr(AddressSpace.WORKGROUP)
        partial = [
            at.insert(
                memref.AllocOp(
                    [], [], MemRefType(c.results[0].type, [results, warps], memory_space=space)
                )
            ).results[0]
            for c in self.combiners
        ]
        close, thread, b = threads(at, self.count)
        warp, lane = b.floordiv(thread, WARP), b.rem(thread, WARP)
        body, number, inner = for_loop(b, 0, results, 1)
        ivs = delinearize(number, self.points.parallel, self.sizes, inner)
        folded = self._fold_warp(self._partial(ivs, thread, self.count, inner), inner)
        end, first = if_else(inner, _is_zero(lane, inner))
        for value, place in zip(folded, partial, strict=True):
            first.insert(memref.StoreOp.get(value, place, [number, first.value(warp)]))
        end()
        body()
        close()
        at.insert(BarrierOp())
        close, number, b = threads(at, results)
        ivs = delinearize(number, self.points.parallel, self.sizes, b)
        totals: list[SSAValue] = []
        for combiner, place in zip(self.combiners, partial, strict=True):
            total: SSAValue | None = None
            for warp_number in range(warps):
                where = [number, b.value(warp_number)]
                part = b.insert(memref.LoadOp.get(place, where)).results[0]
                total = part if total is None else _combined(combiner, total, part, b)
            assert total is not None
            totals.append(total)
        self._store(ivs, totals, b)
        close()

    def _partial(
        self, ivs: dict[int, Size], first: Size, step: int, at: IndexBuilder
    ) -> list[SSAValue]:
        """What one lane folds: every `step`th access of the reduction loops."""
        try:
            return self._partial_by(self.lanes, ivs, first, step, at)
        except NotVectorizableError as reason:
            remark("missed", "irees-gpu-lower-reductions", self.op, f"one by one: {reason}")
            self.lanes = 1
            return self._partial_by(1, ivs, first, step, at)

    def _partial_by(
        self, lanes: int, ivs: dict[int, Size], first: Size, step: int, at: IndexBuilder
    ) -> list[SSAValue]:
        points = self.points
        loops, axis = points.reduction, points.reduction[-1]
        whole = list(self.sizes)
        whole[axis] = at.floordiv(whole[axis], lanes)
        neutral = [at.insert(neutral_element(c)).results[0] for c in self.combiners]
        if lanes > 1:
            neutral = [
                at.insert(vector.BroadcastOp(n, vector_of(n.type, lanes))).results[0]
                for n in neutral
            ]
        total = at.product([whole[x] for x in loops])
        body, number, b = for_loop(at, first, total, step, neutral)
        try:
            place = {**ivs, **delinearize(number, loops, whole, b)}
            place[axis] = b.mul(place[axis], lanes)
            kind = Kind.VECTOR if lanes > 1 else Kind.UNIFORM
            carried = [Lane(a, kind) for a in body.arguments]
            folded = points.apply(carried, place, b, lanes, axis)
        except NotVectorizableError:
            Rewriter.erase_op(body.loop)
            raise
        values = [materialize(v, lanes, b.insert) if lanes > 1 else v.value for v in folded]
        results = body(values)
        if lanes == 1:
            return results
        kinds = [vector.CombiningKindFlag(COMBINERS[c.name]) for c in self.combiners]
        return [
            at.insert(
                vector.ReductionOp.create(
                    operands=[value],
                    result_types=[combiner.results[0].type],
                    properties={"kind": vector.CombiningKindAttr(kind)},
                )
            ).results[0]
            for value, combiner, kind in zip(results, self.combiners, kinds, strict=True)
        ]

    def _fold_warp(self, values: Sequence[SSAValue], at: IndexBuilder) -> list[SSAValue]:
        """What all lanes of a warp have together, in each of them."""
        found = list(values)
        for offset in (16, 8, 4, 2, 1):
            for number, combiner in enumerate(self.combiners):
                mine = found[number]
                distance, width = (
                    at.insert(arith.ConstantOp(IntegerAttr(n, i32))).results[0]
                    for n in (offset, WARP)
                )
                theirs = at.insert(ShuffleOp(mine, distance, width)).results[0]
                found[number] = _combined(combiner, mine, theirs, at)
        return found

    def _store(self, ivs: dict[int, Size], values: Sequence[SSAValue], at: IndexBuilder) -> None:
        """Folds the results with what the outputs hold."""
        for number, (value, combiner) in enumerate(zip(values, self.combiners, strict=True)):
            before = self.points.read(self.points.inputs + number, ivs, at, 1, None).value
            self.points.write(number, _combined(combiner, before, value, at), ivs, at)


def _combined(combiner: Operation, lhs: SSAValue, rhs: SSAValue, at: IndexBuilder) -> SSAValue:
    return at.insert(combine(combiner, lhs, rhs)).results[0]


def _is_zero(value: Size, at: IndexBuilder) -> SSAValue:
    return at.insert(arith.CmpiOp(at.value(value), at.value(0), "eq")).results[0]


@dataclass(frozen=True)
class GpuLowerReductionsPass(ModulePass):
    """Reductions of few results become work of all threads."""

    name = "irees-gpu-lower-reductions"

    reassociate: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            count = threads_per_workgroup(loop)
            for inner in list(loop.regions[0].block.ops):
                if not isinstance(inner, linalg.GenericOp):
                    continue
                points = Points(inner)
                if not points.reduction or not points.writes_apart() or is_contraction(inner):
                    continue
                reason = why_not(inner, points, count, self.reassociate)
                if reason is None and not may_rewrite(self.name, inner, "by all threads"):
                    return
                if reason is None:
                    Reduction(inner, count).lower()
                else:
                    remark("missed", self.name, inner, reason)
