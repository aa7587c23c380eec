"""
Lowers one contraction to loops over shared-memory tiles. Part of `irees-gpu-lower-contractions` and
`irees-gpu-lower-warpgroup-contractions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import MemRefType, UnitAttr, VectorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import element_kinds, multiply_add, roles
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BarrierOp
from irees.dialects.upstream.scf import UNROLL
from irees.transforms.codegen.common.utils.rows import load
from irees.transforms.codegen.common.utils.surroundings import (
    Neighbour,
    erase_with_buffer,
    fill_of,
    find_consumer,
    has_vector_form,
)
from irees.transforms.codegen.gpu.utils.blocking import (
    PADDING_BYTES,
    WIDE_CANDIDATE,
    Blocking,
    sides,
)
from irees.transforms.codegen.gpu.utils.operands import Side, choose_access
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES, Points
from irees.transforms.codegen.gpu.utils.segments import threads
from irees.transforms.codegen.gpu.utils.shares import Share
from irees.transforms.utils.combiners import neutral_element
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.lanes import Kind, Lane, has_lanes, lane_bytes, lane_of, vector_of
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size, delinearize

Indices = dict[int, Size]


@dataclass
class Access:
    """One load of a thread: its place in the tile, and the loop indices outside the reduction."""

    depth: Size
    place: Size
    point: Indices


class Contraction:
    """The lowering of one contraction."""

    def __init__(self, op: linalg.GenericOp, blocking: Blocking, share: Share | None = None):
        self.op, self.blocking, self.share = op, blocking, share
        self.points = Points(op)
        parts = multiply_add(op)
        assert parts is not None
        self.parts = parts
        found = roles(op, parts)
        self.batch, self.depth = found.batch, found.k
        *_, self.element = element_kinds(op, parts)
        self.lanes = self._lanes_of_sums()
        fill = fill_of(op)
        self.fill = None if fill is None else fill[0]
        self.start = None if fill is None else fill[1]
        self.consumer: Neighbour | None = None

    def lower(self) -> int:
        """Replaces the op with its loops; returns their shared memory in bytes."""
        # Only here: find_consumer moves IR, so the op must be certain to be lowered.
        if len(self.op.outputs) == 1:
            self.consumer = find_consumer(self.op, converts=True)
        at, blocking = IndexBuilder(InsertPoint.before(self.op)), self.blocking
        self.sizes = self.points.sizes(at)
        (rows, row_loops), (columns, column_loops) = sides(self.op)
        widen = {self.parts.lhs: self.parts.widen_lhs, self.parts.rhs: self.parts.widen_rhs}
        self.rows = Side(rows, row_loops, blocking.rows, widen[rows])
        self.columns = Side(columns, column_loops, blocking.columns, widen[columns])
        self.sides = self.rows, self.columns
        for side in self.sides:
            size = self._access_bytes(side)
            choose_access(side, self.points, self.depth, self.sizes, size, blocking)
        self.stages, self.slot = self._choose_stages(), 0
        for side in self.sides:
            side.tile = self._tile(side, at)
        self.row_count = at.product([self.sizes[x] for x in row_loops])
        self.column_count = at.product([self.sizes[x] for x in column_loops])
        self.total = at.product([self.sizes[x] for x in self.depth])
        self.first, self.end = self._points_of_share(at)
        if self.start is not None:
            self.start = self.start.clone()
            at.insert(self.start)
        close, self.thread, b = threads(at, blocking.threads)
        self._find_place(b)
        self._batches(list(self.batch), {}, b)
        close()
        output = self.op.outputs[0]
        Rewriter.replace_op(self.op, BarrierOp())
        if self.fill is not None:
            Rewriter.erase_op(self.fill)
        if self.consumer is not None:
            erase_with_buffer(self.consumer, output)
        return blocking.shared_bytes(lane_bytes(self.element))

    def _points_of_share(self, at: IndexBuilder) -> tuple[Size, Size]:
        """Returns the range of the reduction that this workgroup computes of a tile."""
        if self.share is None:
            return 0, self.total
        depth = self.blocking.depth
        last = at.mul(self.share.last, depth)
        whole = isinstance(self.total, int) and self.total % depth == 0
        return at.mul(self.share.first, depth), last if whole else at.minimum(last, self.total)

    # --- overridden for staged copies and matrix instructions ----------------------------------

    def _choose_stages(self) -> int:
        """Returns the number of shared-memory stages per operand."""
        return 1

    def _lanes_of_sums(self) -> int:
        """Returns the number of accumulators per vector."""
        return max(1, min(self.blocking.thread_columns, ACCESS_BYTES // lane_bytes(self.element)))

    def _find_place(self, at: IndexBuilder) -> None:
        """
        Computes where this thread's elements begin in a block. Vectors of adjacent threads are
        contiguous and those of one thread are strided, which avoids bank conflicts within a warp.
        """
        blocking = self.blocking
        across = blocking.columns // blocking.thread_columns
        self.my_row = at.mul(at.floordiv(self.thread, across), blocking.thread_rows)
        self.my_column = at.mul(at.rem(self.thread, across), self.lanes)
        self.apart = across * self.lanes

    def _my_points(
        self, row: Size, column: Size, at: IndexBuilder
    ) -> tuple[list[Size], list[Size]]:
        """Returns the rows and columns of this thread in the block at (`row`, `column`)."""
        my_row, my_column = at.add(row, self.my_row), at.add(column, self.my_column)
        rows = [at.add(my_row, i) for i in range(self.blocking.thread_rows)]
        columns = [
            at.add(my_column, i // self.lanes * self.apart + i % self.lanes)
            for i in range(self.blocking.thread_columns)
        ]
        return rows, columns

    def _sum_of(self, row: int, column: int) -> tuple[int, int]:
        """Returns the accumulator vector and the lane that hold an element of this thread."""
        number = row * self.blocking.thread_columns + column
        return number // self.lanes, number % self.lanes

    def _access_bytes(self, side: Side) -> int | None:
        """Returns the element size in bytes, or None where loads cannot be vectorized."""
        element = self.op.body.block.args[side.operand].type
        return None if side.widen or not has_lanes(element) else lane_bytes(element)

    def _multiplied(
        self, sums: Sequence[SSAValue], first: SSAValue, at: IndexBuilder
    ) -> list[SSAValue]:
        """Returns the accumulators plus the product of the current tiles."""
        blocking = self.blocking
        whole = isinstance(self.total, int) and self.total % blocking.depth == 0
        depth = blocking.depth if whole else at.minimum(blocking.depth, at.sub(self.total, first))
        inner, step, c = for_loop(at, 0, depth, 1, sums)
        if blocking == WIDE_CANDIDATE:
            # Few warps are resident: the loads of the next step must overlap this step's products.
            inner.loop.attributes[UNROLL] = UnitAttr()
        return inner(self._multiply(inner.arguments, step, c))

    def _tile(self, side: Side, at: IndexBuilder) -> SSAValue:
        padded = side.extent + PADDING_BYTES // lane_bytes(self.element)
        kind = MemRefType(
            self.element,
            [self.stages, self.blocking.depth, padded],
            memory_space=AddressSpaceAttr(AddressSpace.WORKGROUP),
        )
        return at.insert(memref.AllocOp([], [], kind)).results[0]

    # --- loops that all threads run uniformly --------------------------------------------

    def _batches(self, loops: list[int], ivs: Indices, at: IndexBuilder) -> None:
        if not loops:
            self._blocks(ivs, at)
            return
        self._each(
            self.sizes[loops[0]], 1, at,
            lambda iv, b: self._batches(loops[1:], {**ivs, loops[0]: iv}, b),
        )  # fmt: skip

    def _blocks(self, ivs: Indices, at: IndexBuilder) -> None:
        """Loops over the blocks of the workgroup's tile; a single block needs no loop."""
        blocking = self.blocking
        self._each(
            self.row_count, blocking.rows, at,
            lambda row, b: self._each(
                self.column_count, blocking.columns, b,
                lambda column, c: self._block(ivs, row, column, c),
            ),
        )  # fmt: skip

    @staticmethod
    def _each(
        size: Size, step: int, at: IndexBuilder, inside: Callable[[Size, IndexBuilder], None]
    ) -> None:
        if isinstance(size, int) and 0 < size <= step:
            inside(0, at)
            return
        body, iv, b = for_loop(at, 0, size, step)
        inside(iv, b)
        body()

    # --- one block --------------------------------------------------------------------------

    def _block(self, ivs: Indices, row: Size, column: Size, at: IndexBuilder) -> None:
        """
        Software-pipelines the loads: the next slice of the operands is loaded into registers while
        the current one is multiplied. With a dynamic or single trip, slices are loaded on demand.
        """
        blocking, sides = self.blocking, self.sides
        rows, columns = self._my_points(row, column, at)
        sums = self._first_sums(ivs, rows, columns, at)
        accesses = self._all_accesses(ivs, row, column, at)
        ahead = isinstance(self.total, int) and self.total > blocking.depth
        fetched = self._fetch(accesses, self.first, at) if ahead else []
        body, first, b = for_loop(at, self.first, self.end, blocking.depth, [*sums, *fetched])
        carried = body.arguments
        now = carried[len(sums) :] if ahead else self._fetch(accesses, first, b)
        for side, mine in zip(sides, accesses, strict=True):
            for access in mine:
                self._put(side, access, now.pop(0), b)
        b.insert(BarrierOp())
        following = self._fetch(accesses, b.add(first, blocking.depth), b) if ahead else []
        results = self._multiplied(carried[: len(sums)], first, b)
        b.insert(BarrierOp())
        self._close(body([*results, *following])[: len(sums)], ivs, rows, columns, at)

    def _all_accesses(
        self, ivs: Indices, row: Size, column: Size, at: IndexBuilder
    ) -> list[list[Access]]:
        """Returns the accesses of this thread per step of the reduction, for both operands."""
        counts, bases = (self.row_count, self.column_count), (row, column)
        return [
            self._accesses(side, count, ivs, base, at)
            for side, count, base in zip(self.sides, counts, bases, strict=True)
        ]

    def _clamped(
        self, index: Size, count: Size, extent: int, at: IndexBuilder, width: int = 1
    ) -> Size:
        """Clamps the index to the last valid one: values past the end are loaded but not used."""
        if isinstance(count, int) and count % extent == 0:
            return index
        return at.minimum(index, at.sub(count, width))

    def _accesses(
        self, side: Side, count: Size, ivs: Indices, base: Size, at: IndexBuilder
    ) -> list[Access]:
        """Returns the accesses of this thread to one tile per step of the reduction."""
        blocking, lanes = self.blocking, side.lanes
        found: list[Access] = []
        for number in range(side.extent * blocking.depth // lanes // blocking.threads):
            index = at.add(self.thread, number * blocking.threads)
            fast = (blocking.depth if side.along_depth else side.extent) // lanes
            inner, outer = at.mul(at.rem(index, fast), lanes), at.floordiv(index, fast)
            depth, place = (inner, outer) if side.along_depth else (outer, inner)
            width = 1 if side.along_depth else lanes
            point = self._clamped(at.add(base, place), count, side.extent, at, width)
            where = delinearize(at.value(point), side.loops, self.sizes, at)
            found.append(Access(depth, place, {**ivs, **where}))
        return found

    def _fetch(self, accesses: list[list[Access]], first: Size, at: IndexBuilder) -> list[SSAValue]:
        """Loads this thread's elements of both operands from `first` on, clamped to the end."""
        found: list[SSAValue] = []
        for side, mine in zip(self.sides, accesses, strict=True):
            axis = self.depth[-1] if side.along_depth else side.loops[-1]
            for access in mine:
                where = self._source(side, access, first, at)
                value = self.points.read(side.operand, where, at, side.lanes, axis).value
                for op in side.widen[::-1]:
                    value = at.insert(op.clone(value_mapper={op.operands[0]: value})).results[0]
                found.append(value)
        return found

    def _source(self, side: Side, access: Access, first: Size, at: IndexBuilder) -> Indices:
        """Returns the loop indices of an access at step `first`, clamped to the operand."""
        width = side.lanes if side.along_depth else 1
        step = at.minimum(at.add(first, access.depth), at.sub(self.total, width))
        return {**access.point, **delinearize(at.value(step), self.depth, self.sizes, at)}

    def _put(self, side: Side, access: Access, value: SSAValue, at: IndexBuilder) -> None:
        """Stores a loaded value to the tile, whose rows are steps of the reduction."""
        if side.lanes == 1 or not side.along_depth:
            self._put_whole(side, access, value, at)
            return
        for lane in range(side.lanes):
            further = Access(at.add(access.depth, lane), access.place, {})
            self._put_whole(side, further, lane_of(value, lane, at.insert), at)

    def _put_whole(self, side: Side, access: Access, value: SSAValue, at: IndexBuilder) -> None:
        """Stores a loaded element or vector to adjacent elements of the tile."""
        where = self._place_of(side, access, 0, at)
        whole = isinstance(value.type, VectorType)
        tile = side.tile
        at.insert(
            vector.StoreOp(value, tile, where) if whole else memref.StoreOp.get(value, tile, where)
        )

    def _place_of(self, side: Side, access: Access, slot: Size, at: IndexBuilder) -> list[SSAValue]:
        """Returns the indices of an access in a tile."""
        return [at.value(i) for i in (slot, access.depth, access.place)]

    # --- products -------------------------------------------------------------------------------

    def _vectors(self, side: Side, step: SSAValue, places: Sequence[Size], at: IndexBuilder):
        """Loads one vector of a tile row at each place."""
        kind, slot = vector_of(self.element, self.lanes), at.value(self.slot)
        return [
            at.insert(vector.LoadOp(side.tile, [slot, step, at.value(place)], kind)).results[0]
            for place in places
        ]

    def _multiply(
        self, sums: Sequence[SSAValue], step: SSAValue, at: IndexBuilder
    ) -> list[SSAValue]:
        """Multiplies and accumulates the outer product of this thread's rows and columns."""
        blocking = self.blocking
        if blocking.thread_rows % self.lanes == 0:
            places = [at.add(self.my_row, i) for i in range(0, blocking.thread_rows, self.lanes)]
            parts = self._vectors(self.rows, step, places, at)
            scalars = [lane_of(part, i, at.insert) for part in parts for i in range(self.lanes)]
        else:
            places = [at.add(self.my_row, i) for i in range(blocking.thread_rows)]
            scalars = [load(self.rows.tile, [self.slot, step, place], at) for place in places]
        vectors = range(blocking.thread_columns // self.lanes)
        places = [at.add(self.my_column, i * self.apart) for i in vectors]
        columns = self._vectors(self.columns, step, places, at)
        kind = vector_of(self.element, self.lanes)
        found: list[SSAValue] = []
        for i, scalar in enumerate(scalars):
            row = at.insert(vector.BroadcastOp(scalar, kind)).results[0]
            for j, column in enumerate(columns):
                product = at.insert(
                    same_op(self.parts.multiply, [row, column], [row.type])
                ).results[0]
                total = sums[i * len(columns) + j]
                new = same_op(self.parts.add, [total, product], [total.type])
                found.append(at.insert(new).results[0])
        return found

    # --- the output -------------------------------------------------------------------------

    def _first_sums(
        self, ivs: Indices, rows: list[Size], columns: list[Size], at: IndexBuilder
    ) -> list[SSAValue]:
        """Returns the initial accumulators: neutral elements if the tile is shared (stream-K)."""
        if self.share is None:
            return self._start(ivs, rows, columns, at)
        nothing = at.insert(neutral_element(self.parts.add)).results[0]
        kind = vector_of(self.element, self.lanes)
        value = at.insert(vector.BroadcastOp(nothing, kind)).results[0]
        return [value] * (len(rows) * len(columns) // self.lanes)

    def _close(
        self, sums: list[SSAValue], ivs: Indices, rows: list[Size], columns: list[Size],
        at: IndexBuilder,
    ) -> None:  # fmt: skip
        """Stores the accumulators, after adding the partial sums of a shared tile."""
        if self.share is None:
            self._finish(sums, ivs, rows, columns, at)
            return
        close, totals, b = self.share.collect(
            sums, lambda c: self._start(ivs, rows, columns, c), self.parts.add, self.thread, at
        )
        self._finish(totals, ivs, rows, columns, b)
        close()

    def _start(
        self, ivs: Indices, rows: list[Size], columns: list[Size], at: IndexBuilder
    ) -> list[SSAValue]:
        """Returns the initial values of the output: the fill constant, or loads from the output."""
        kind = vector_of(self.element, self.lanes)
        vectors = len(rows) * len(columns) // self.lanes
        if self.start is not None:
            value = at.insert(vector.BroadcastOp(self.start.result, kind)).results[0]
            return [value] * vectors
        places = self._places(ivs, rows, columns, at, self.lanes if self._whole_vectors() else 1)
        output, axis = self.points.inputs, self.columns.loops[-1]
        held = {
            self._sum_of(i, j): place for i, row in enumerate(places) for j, place in enumerate(row)
        }
        found: list[SSAValue] = []
        for number in range(vectors):
            if self._whole_vectors():
                lane = self.points.read(output, held[number, 0], at, self.lanes, axis)
                found.append(lane.value)
                continue
            values = [
                self.points.read(output, held[number, i], at, 1, None).value
                for i in range(self.lanes)
            ]
            total = at.insert(vector.BroadcastOp(values[0], kind)).results[0]
            for i, value in enumerate(values[1:], 1):
                total = at.insert(vector.InsertOp(value, total, [i])).results[0]
            found.append(total)
        return found

    def _whole_vectors(self) -> bool:
        """Whether the vectors of a thread are contiguous in the output and never cross its edge."""
        axis = self.columns.loops[-1]
        size = self.sizes[axis]
        if self.lanes == 1 or not isinstance(size, int) or size % self.lanes:
            return False
        return self.points.aligned(self.points.inputs, axis, self.lanes)

    def _stores_vectors(self) -> bool:
        """Whether results are stored as whole vectors, the fused consumer's accesses included."""
        consumer = self.consumer
        if consumer is None or not self._whole_vectors():
            return self._whole_vectors()
        after = Points(consumer.op)
        axis = self._axis_of(consumer)
        return has_vector_form(consumer.op, self.lanes) and all(
            after.aligned(position, axis, self.lanes)
            and (position < after.inputs or after.moves(position, axis))
            for position in range(len(after.maps))
        )

    def _axis_of(self, consumer: Neighbour) -> int:
        """Returns the consumer's loop that corresponds to the columns."""
        return next(t for t, ours in consumer.rename.items() if ours == self.columns.loops[-1])

    def _places(
        self, ivs: Indices, rows: list[Size], columns: list[Size], at: IndexBuilder, width: int = 1
    ) -> list[list[Indices]]:
        """Returns the loop indices of each element of a thread, clamped for `width` columns."""
        extents = self.blocking.rows, self.blocking.columns
        row_places = [
            delinearize(
                at.value(self._clamped(r, self.row_count, extents[0], at)),
                self.rows.loops, self.sizes, at,
            )
            for r in rows
        ]  # fmt: skip
        column_places = [
            delinearize(
                at.value(self._clamped(c, self.column_count, extents[1], at, width)),
                self.columns.loops, self.sizes, at,
            )
            for c in columns
        ]  # fmt: skip
        return [[{**ivs, **r, **c} for c in column_places] for r in row_places]

    def _finish(
        self, sums: list[SSAValue], ivs: Indices, rows: list[Size], columns: list[Size],
        at: IndexBuilder,
    ) -> None:  # fmt: skip
        """Stores the in-bounds accumulators, or the results of the fused consumer."""
        places = self._places(ivs, rows, columns, at)
        inside_row = [self._inside(r, self.row_count, self.blocking.rows, at) for r in rows]
        inside_column = [
            self._inside(c, self.column_count, self.blocking.columns, at) for c in columns
        ]
        vectors = self._stores_vectors()
        step = self.lanes if vectors else self._stored_together()
        for i, row in enumerate(places):
            for j in range(0, len(columns), step):
                value = sums[self._sum_of(i, j)[0]]
                tests = [t for t in (inside_row[i], inside_column[j]) if t is not None]
                close, b = (lambda: None), at
                if tests:
                    test = tests[0]
                    if len(tests) == 2:
                        test = at.insert(arith.AndIOp(*tests)).results[0]
                    close, b = if_else(at, test)
                if vectors:
                    self._store(value, row[j], step, b)
                else:
                    found = [self._sum_of(i, j + n) for n in range(step)]
                    values = [lane_of(sums[n], lane, b.insert) for n, lane in found]
                    self._store_together(values, row[j : j + step], b)
                close()

    def _inside(self, index: Size, count: Size, extent: int, at: IndexBuilder) -> SSAValue | None:
        if isinstance(count, int) and count % extent == 0:
            return None
        return at.insert(arith.CmpiOp(at.value(index), at.value(count), "slt")).results[0]

    def _stored_together(self) -> int:
        """Returns how many adjacent results, from separate accumulators, one store writes."""
        return 1

    def _store(self, value: SSAValue, place: Indices, lanes: int, at: IndexBuilder) -> None:
        """Stores one result (scalar or vector), or the results of the fused consumer."""
        for points, number, result, where in self._results(value, place, lanes, at):
            points.write(number, result, where, at)

    def _store_together(
        self, values: list[SSAValue], places: list[Indices], at: IndexBuilder
    ) -> None:
        """Stores adjacent results, or those of the fused consumer, with one store."""
        each = [self._results(v, p, 1, at) for v, p in zip(values, places, strict=True)]
        for (points, number, result, where), *others in zip(*each, strict=True):
            if others:
                kind = vector_of(result.type, len(each))
                result = at.insert(vector.BroadcastOp(result, kind)).results[0]
            for lane, other in enumerate(others, 1):
                result = at.insert(vector.InsertOp(other[2], result, [lane])).results[0]
            points.write(number, result, where, at)

    def _results(
        self, value: SSAValue, place: Indices, lanes: int, at: IndexBuilder
    ) -> list[tuple[Points, int, SSAValue, Indices]]:
        """Returns the stores for a result (scalar or vector): the op, output, value and indices."""
        consumer = self.consumer
        found: list[tuple[Points, int, SSAValue, Indices]] = []
        if consumer is None or consumer.keeps_source:
            found.append((self.points, 0, value, place))
        if consumer is None:
            return found
        after = Points(consumer.op)
        axis = self._axis_of(consumer) if lanes > 1 else None
        theirs = {loop: place.get(ours, 0) for loop, ours in consumer.rename.items()}
        arguments = [
            Lane(value, Kind.VECTOR if lanes > 1 else Kind.UNIFORM)
            if number == consumer.source
            else after.read(number, theirs, at, lanes, axis)
            if after.block.args[number].uses
            else Lane(operand, Kind.UNIFORM)
            for number, operand in enumerate(consumer.op.operands)
        ]
        results = consumer.values(arguments, lanes, at)
        return [*found, *((after, n, result, theirs) for n, result in enumerate(results))]
