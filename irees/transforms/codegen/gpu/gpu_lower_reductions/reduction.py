"""
Lowers one reduction to loops over all threads of a workgroup. Part of `irees-gpu-lower-reductions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BarrierOp, ShuffleOp
from irees.remarks import remark
from irees.transforms.codegen.gpu.utils.folds import Folds
from irees.transforms.codegen.gpu.utils.points import Points
from irees.transforms.codegen.gpu.utils.segments import threads
from irees.transforms.codegen.gpu.utils.tiles import WARP, column_loop
from irees.transforms.utils.combiners import COMBINERS
from irees.transforms.utils.lanes import Kind, Lane, NotVectorizableError, materialize, vector_of
from irees.transforms.utils.loops import LoopBody, for_loop, if_both, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size, delinearize

Ivs = dict[int, Size]


@dataclass
class Reduction:
    """The lowering of one op that all threads of a workgroup reduce cooperatively."""

    op: linalg.GenericOp
    count: int
    folds: Folds

    def lower(self) -> None:
        """linalg.generic  =>  loops over threads with shuffles"""
        self.points = points = Points(self.op)
        at = IndexBuilder(InsertPoint.before(self.op))
        self.sizes = points.sizes(at)
        self.folds.open(self.sizes, at)
        self.serial, points.block = Points(self.op), self.folds.block
        if not self.folds.is_selection:
            ignore_signed_zeros(self.folds.combiners)
        results = at.product([self.sizes[loop] for loop in points.parallel])
        columns = column_loop(self.op)
        if not isinstance(results, int) or (columns is None and results >= self.count // WARP):
            self._by_warps(results, at)
        elif columns is None:
            self._by_all(results, at)
        else:
            self._by_columns(columns, results, at)
        self.folds.close()
        Rewriter.replace_op(self.op, BarrierOp())

    # --- along rows: a warp reads contiguous elements ------------------------------------------

    def _by_warps(self, results: Size, at: IndexBuilder) -> None:
        """Assigns results to warps round-robin; lane 0 stores."""
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
        """All warps reduce each result; partial results are combined in shared memory."""
        parts = self.count // WARP
        places = self._meeting([results, parts], at)
        close, thread, b = threads(at, self.count)
        warp, lane = b.floordiv(thread, WARP), b.rem(thread, WARP)
        body, number, inner = for_loop(b, 0, results, 1)
        ivs = delinearize(number, self.points.parallel, self.sizes, inner)
        folded = self._fold_warp(self._partial(ivs, thread, self.count, inner), inner)
        end, first = if_else(inner, _is_zero(lane, inner))
        for value, place in zip(folded, places, strict=True):
            first.insert(memref.StoreOp.get(value, place, [number, first.value(warp)]))
        end()
        body()
        close()
        self._meet(places, results, parts, at, lambda number, part: [number, part])

    def _partial(self, ivs: Ivs, first: Size, step: int, at: IndexBuilder) -> list[SSAValue]:
        """Returns a lane's partial result: every `step`th access of the reduction loops."""
        axis = self.points.reduction[-1]
        lanes = 1 if self.folds.is_selection else self.points.widest(axis)
        if lanes > 1:
            try:
                return self._vectors(lanes, ivs, first, step, at)
            except NotVectorizableError as reason:
                remark("missed", "irees-gpu-lower-reductions", self.op, f"scalar loads: {reason}")
        lanes = self.points.packed(axis, inputs=True)
        loops, whole, neutral = self.points.reduction, list(self.sizes), self.folds.neutral(at)
        whole[axis] = at.floordiv(whole[axis], lanes)
        total = at.product([whole[x] for x in loops])
        body, number, b = strided_loop(at, first, total, step, neutral)
        place = {**ivs, **delinearize(number, loops, whole, b)}
        place[axis] = b.mul(place[axis], lanes)
        return body(self._one_by_one(body.arguments, place, axis, lanes, b))

    def _one_by_one(
        self, values: Sequence[SSAValue], place: Ivs, axis: int, lanes: int, at: IndexBuilder
    ) -> list[SSAValue]:
        """Combines `lanes` adjacent elements of one vector load into one partial result."""
        found = [Lane(v, Kind.UNIFORM) for v in values]
        for each in self.points.unpacked(place, at, lanes, axis):
            found = each(found)
        return [lane.value for lane in found]

    def _vectors(
        self, lanes: int, ivs: Ivs, first: Size, step: int, at: IndexBuilder
    ) -> list[SSAValue]:
        """Reduces into one partial result per vector lane, then reduces the lanes."""
        assert not self.folds.is_selection
        points = self.points
        loops, axis = points.reduction, points.reduction[-1]
        whole = list(self.sizes)
        whole[axis] = at.floordiv(whole[axis], lanes)
        neutral = [
            at.insert(vector.BroadcastOp(n, vector_of(n.type, lanes))).results[0]
            for n in self.folds.neutral(at)
        ]
        total = at.product([whole[x] for x in loops])
        body, number, b = strided_loop(at, first, total, step, neutral)
        try:
            place = {**ivs, **delinearize(number, loops, whole, b)}
            place[axis] = b.mul(place[axis], lanes)
            carried = [Lane(a, Kind.VECTOR) for a in body.arguments]
            folded = points.apply(carried, place, b, lanes, axis)
        except NotVectorizableError:
            Rewriter.erase_op(body.loop)
            raise
        results = body([materialize(v, lanes, b.insert) for v in folded])
        kinds = [vector.CombiningKindFlag(COMBINERS[c.name]) for c in self.folds.combiners]
        return [
            at.insert(
                vector.ReductionOp.create(
                    operands=[value],
                    result_types=[kind],
                    properties={"kind": vector.CombiningKindAttr(flag)},
                )
            ).results[0]
            for value, kind, flag in zip(results, self.folds.kinds, kinds, strict=True)
        ]

    def _fold_warp(self, values: Sequence[SSAValue], at: IndexBuilder) -> list[SSAValue]:
        """Combines the values of all lanes of a warp; every lane gets the result."""
        found = list(values)
        for offset in (16, 8, 4, 2, 1):
            theirs: list[SSAValue] = []
            for mine in found:
                distance, width = (
                    at.insert(arith.ConstantOp(IntegerAttr(n, i32))).results[0]
                    for n in (offset, WARP)
                )
                theirs.append(at.insert(ShuffleOp(mine, distance, width)).results[0])
            found = self.folds.combined(found, theirs, at)
        return found

    # --- across columns: adjacent threads read adjacent results' elements -----------------------

    def _by_columns(self, axis: int, results: int, at: IndexBuilder) -> None:
        """
        Each thread reduces adjacent results over every `parts`th step; the partial results are
        combined in shared memory.
        """
        points = self.points
        lanes = points.packed(axis, inputs=True)
        across = 1
        while across < min(self.count, results // lanes):
            across *= 2
        parts = self.count // across
        places = self._meeting([parts, results], at)
        close, thread, b = threads(at, self.count)
        part, column = b.floordiv(thread, across), b.rem(thread, across)
        body, number, inner = for_loop(b, column, results // lanes, across)
        whole = list(self.sizes)
        assert isinstance(whole[axis], int)
        whole[axis] //= lanes
        ivs = delinearize(number, points.parallel, whole, inner)
        ivs[axis] = inner.mul(ivs[axis], lanes)
        neutral = self.folds.neutral(inner)
        total = inner.product([self.sizes[x] for x in points.reduction])
        loop, step, c = for_loop(inner, part, total, parts, neutral * lanes)
        place = {**ivs, **delinearize(step, points.reduction, self.sizes, c)}
        found: list[SSAValue] = []
        for lane, each in enumerate(points.unpacked(place, c, lanes, axis)):
            mine = loop.arguments[lane * len(neutral) : (lane + 1) * len(neutral)]
            found += [value.value for value in each([Lane(v, Kind.UNIFORM) for v in mine])]
        folded = loop(found)
        for position, value in enumerate(folded):
            lane, fold = divmod(position, len(neutral))
            where = [inner.value(part), inner.value(inner.add(inner.mul(number, lanes), lane))]
            inner.insert(memref.StoreOp.get(value, places[fold], where))
        body()
        close()
        self._meet(places, results, parts, at, lambda number, part: [part, number])

    # --- shared by both -------------------------------------------------------------------------

    def _meeting(self, shape: Sequence[int], at: IndexBuilder) -> list[SSAValue]:
        """Allocates shared memory for partial results."""
        space = AddressSpaceAttr(AddressSpace.WORKGROUP)
        return [
            at.insert(memref.AllocOp([], [], MemRefType(kind, shape, memory_space=space))).results[
                0
            ]
            for kind in self.folds.kinds
        ]

    def _meet(self, places: list[SSAValue], results: int, parts: int, at: IndexBuilder, where):
        """Combines the partial results in shared memory, one result per thread."""
        at.insert(BarrierOp())
        close, number, b = threads(at, results)
        ivs = delinearize(number, self.points.parallel, self.sizes, b)
        total: list[SSAValue] = []
        for part in range(parts):
            mine = [
                b.insert(memref.LoadOp.get(place, where(number, b.value(part)))).results[0]
                for place in places
            ]
            total = self.folds.combined(total, mine, b) if total else mine
        self._store(ivs, total, b)
        close()

    def _store(self, ivs: Ivs, values: Sequence[SSAValue], at: IndexBuilder) -> None:
        """Combines the results with the initial outputs, and stores them."""
        in_order = self.folds.needs_order(values, at)
        if in_order is not None:
            close, ordered, at = if_both(at, in_order)
            self.serial.point(ivs, self.sizes, ordered)
        points = self.serial
        before = [
            points.read(points.inputs + n, ivs, at, 1, None).value
            for n in range(len(self.op.outputs))
        ]
        for number, value in enumerate(self.folds.finished(before, values, at)):
            points.write(number, value, ivs, at)
        if in_order is not None:
            close()


def ignore_signed_zeros(combiners: Sequence[Operation]) -> None:
    """
    Sets `nsz` on maxima and minima: of 0 and -0 the result is the one that comes first, and the
    order of the elements is changed.
    """
    for op in combiners:
        if isinstance(op, arith.MaxnumfOp | arith.MinnumfOp):
            op.properties["fastmath"] = arith.FastMathFlagsAttr(
                [arith.FastMathFlag.NO_SIGNED_ZEROS]
            )


def strided_loop(
    at: IndexBuilder, first: Size, total: Size, step: int, carried: Sequence[SSAValue]
) -> tuple[LoopBody, Size, IndexBuilder]:
    """
    Opens a loop over every `step`th number from `first`, which is less than `step`, to `total`;
    returns its body, the number, and a builder. Its trip count is a constant where that is known:
    the compiler then unrolls it and moves its loads up.
    """
    if not isinstance(total, int) or total % step:
        return for_loop(at, first, total, step, carried)
    body, turn, b = for_loop(at, 0, total // step, 1, carried)
    return body, b.add(b.mul(turn, step), first), b


def _is_zero(value: Size, at: IndexBuilder) -> SSAValue:
    return at.insert(arith.CmpiOp(at.value(value), at.value(0), "eq")).results[0]
