"""
One contraction as loops over tiles in shared memory. Part of `irees-gpu-lower-contractions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import element_kinds, multiply_add, roles
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BarrierOp
from irees.transforms.codegen.common._surroundings import erase_with_buffer, fill_of, find_consumer
from irees.transforms.codegen.gpu._blocking import PADDING_BYTES, Blocking, sides
from irees.transforms.codegen.gpu._points import Points
from irees.transforms.codegen.gpu._segments import threads
from irees.transforms.codegen.gpu._threads import delinearize
from irees.transforms.utils.lanes import Kind, Lane, lane_bytes, vector_of
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size

Indices = dict[int, Size]


@dataclass
class Side:
    """One operand: the loops that only it has with the output, and its tile in shared memory."""

    operand: int
    loops: tuple[int, ...]
    extent: int
    """Points of the tile along the loops."""
    widen: tuple[Operation, ...]
    tile: SSAValue


class Contraction:
    """One op being lowered."""

    def __init__(self, op: linalg.GenericOp, blocking: Blocking):
        self.op, self.blocking = op, blocking
        self.points = Points(op)
        parts = multiply_add(op)
        assert parts is not None
        self.parts = parts
        found = roles(op, parts)
        self.batch, self.depth = found.batch, found.k
        *_, self.element = element_kinds(op, parts)
        self.lanes = max(1, min(blocking.thread_columns, 16 // lane_bytes(self.element)))
        fill = fill_of(op)
        self.fill = None if fill is None else fill[0]
        self.start = None if fill is None else fill[1]
        self.consumer = find_consumer(op) if len(op.outputs) == 1 else None

    def lower(self) -> int:
        """Replaces the op by its loops; returns the bytes of shared memory that they take."""
        at, blocking = IndexBuilder(InsertPoint.before(self.op)), self.blocking
        self.sizes = self.points.sizes(at)
        (rows, row_loops), (columns, column_loops) = sides(self.op)
        widen = {self.parts.lhs: self.parts.widen_lhs, self.parts.rhs: self.parts.widen_rhs}
        self.rows = Side(rows, row_loops, blocking.rows, widen[rows], self._tile(blocking.rows, at))
        self.columns = Side(
            columns, column_loops, blocking.columns, widen[columns],
            self._tile(blocking.columns, at),
        )  # fmt: skip
        self.row_count = at.product([self.sizes[x] for x in row_loops])
        self.column_count = at.product([self.sizes[x] for x in column_loops])
        self.total = at.product([self.sizes[x] for x in self.depth])
        if self.start is not None:
            self.start = self.start.clone()
            at.insert(self.start)
        close, self.thread, b = threads(at, blocking.threads)
        across = blocking.columns // blocking.thread_columns
        self.my_row = b.mul(b.floordiv(self.thread, across), blocking.thread_rows)
        self.my_column = b.mul(b.rem(self.thread, across), blocking.thread_columns)
        self._batches(list(self.batch), {}, b)
        close()
        output = self.op.outputs[0]
        Rewriter.replace_op(self.op, BarrierOp())
        if self.fill is not None:
            Rewriter.erase_op(self.fill)
        if self.consumer is not None:
            erase_with_buffer(self.consumer, output)
        return blocking.shared_bytes(lane_bytes(self.element))

    def _tile(self, extent: int, at: IndexBuilder) -> SSAValue:
        padded = extent + PADDING_BYTES // lane_bytes(self.element)
        kind = MemRefType(
            self.element,
            [self.blocking.depth, padded],
            memory_space=AddressSpaceAttr(AddressSpace.WORKGROUP),
        )
        return at.insert(memref.AllocOp([], [], kind)).results[0]

    # --- loops that all threads run alike ------------------------------------------------

    def _batches(self, loops: list[int], ivs: Indices, at: IndexBuilder) -> None:
        if not loops:
            self._blocks(ivs, at)
            return
        self._each(
            self.sizes[loops[0]], 1, at,
            lambda iv, b: self._batches(loops[1:], {**ivs, loops[0]: iv}, b),
        )  # fmt: skip

    def _blocks(self, ivs: Indices, at: IndexBuilder) -> None:
        """Over blocks of rows and columns, which is one where the workgroup's tile is no larger."""
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
        blocking = self.blocking
        my_row, my_column = at.add(row, self.my_row), at.add(column, self.my_column)
        rows = [at.add(my_row, i) for i in range(blocking.thread_rows)]
        columns = [at.add(my_column, i) for i in range(blocking.thread_columns)]
        start = self._start(ivs, rows, columns, at)
        body, first, b = for_loop(at, 0, self.total, blocking.depth, start)
        self._fetch(self.rows, self.row_count, ivs, row, first, b)
        self._fetch(self.columns, self.column_count, ivs, column, first, b)
        b.insert(BarrierOp())
        whole = isinstance(self.total, int) and self.total % blocking.depth == 0
        depth = blocking.depth if whole else b.minimum(blocking.depth, b.sub(self.total, first))
        inner, step, c = for_loop(b, 0, depth, 1, body.arguments)
        sums = inner(self._multiply(inner.arguments, step, c))
        b.insert(BarrierOp())
        self._finish(body(sums), ivs, rows, columns, at)

    def _clamped(self, index: Size, count: Size, extent: int, at: IndexBuilder) -> Size:
        """The index, or the last one: what is past the end is fetched and not used."""
        if isinstance(count, int) and count % extent == 0:
            return index
        return at.minimum(index, at.sub(count, 1))

    def _fetch(
        self, side: Side, count: Size, ivs: Indices, base: Size, first: Size, at: IndexBuilder
    ) -> None:
        """All threads copy the tile of an operand, in the order in which it lies in memory."""
        blocking = self.blocking
        indexing = self.points.maps[side.operand]
        last = indexing.results[-1].used_dims() if indexing.results else set[int]()
        along_depth = bool(last & set(self.depth))
        total = side.extent * blocking.depth
        body, start, b = for_loop(at, self.thread, total, blocking.threads)
        fast, slow = (blocking.depth, side.extent) if along_depth else (side.extent, blocking.depth)
        inner, outer = b.rem(start, fast), b.floordiv(start, fast)
        assert slow
        depth, place = (inner, outer) if along_depth else (outer, inner)
        step = self._clamped(b.add(first, depth), self.total, blocking.depth, b)
        point = self._clamped(b.add(base, place), count, side.extent, b)
        where = {
            **ivs,
            **delinearize(b.value(point), side.loops, self.sizes, b),
            **delinearize(b.value(step), self.depth, self.sizes, b),
        }
        value = self.points.read(side.operand, where, b, 1, None).value
        for op in side.widen[::-1]:
            value = b.insert(op.clone(value_mapper={op.operands[0]: value})).results[0]
        b.insert(memref.StoreOp.get(value, side.tile, [b.value(depth), b.value(place)]))
        body()

    def _vectors(self, side: Side, step: SSAValue, first: Size, count: int, at: IndexBuilder):
        """`count` neighbours of a row of a tile."""
        kind = vector_of(self.element, self.lanes)
        return [
            at.insert(vector.LoadOp(side.tile, [step, at.value(at.add(first, i))], kind)).results[0]
            for i in range(0, count, self.lanes)
        ]

    def _multiply(
        self, sums: Sequence[SSAValue], step: SSAValue, at: IndexBuilder
    ) -> list[SSAValue]:
        """Each row of a thread with all of its columns."""
        blocking = self.blocking
        if blocking.thread_rows % self.lanes == 0:
            parts = self._vectors(self.rows, step, self.my_row, blocking.thread_rows, at)
            scalars = [
                at.insert(vector.ExtractOp(part, [i], self.element)).results[0]
                for part in parts
                for i in range(self.lanes)
            ]
        else:
            scalars = [
                at.insert(
                    memref.LoadOp.get(self.rows.tile, [step, at.value(at.add(self.my_row, i))])
                ).results[0]
                for i in range(blocking.thread_rows)
            ]
        columns = self._vectors(self.columns, step, self.my_column, blocking.thread_columns, at)
        kind = vector_of(self.element, self.lanes)
        found: list[SSAValue] = []
        for i, scalar in enumerate(scalars):
            row = at.insert(vector.BroadcastOp(scalar, kind)).results[0]
            for j, column in enumerate(columns):
                product = _like(self.parts.multiply, row, column, at)
                found.append(_like(self.parts.add, sums[i * len(columns) + j], product, at))
        return found

    # --- the output -------------------------------------------------------------------------

    def _start(
        self, ivs: Indices, rows: list[Size], columns: list[Size], at: IndexBuilder
    ) -> list[SSAValue]:
        """What the sums of a thread begin with: the fill, or what the output holds."""
        kind = vector_of(self.element, self.lanes)
        vectors = len(rows) * len(columns) // self.lanes
        if self.start is not None:
            value = at.insert(vector.BroadcastOp(self.start.result, kind)).results[0]
            return [value] * vectors
        places = self._places(ivs, rows, columns, at)
        found: list[SSAValue] = []
        for row in places:
            for first in range(0, len(columns), self.lanes):
                values = [
                    self.points.read(self.points.inputs, row[first + i], at, 1, None).value
                    for i in range(self.lanes)
                ]
                total = at.insert(vector.BroadcastOp(values[0], kind)).results[0]
                for i, value in enumerate(values[1:], 1):
                    total = at.insert(vector.InsertOp(value, total, [i])).results[0]
                found.append(total)
        return found

    def _places(
        self, ivs: Indices, rows: list[Size], columns: list[Size], at: IndexBuilder
    ) -> list[list[Indices]]:
        """The loops at every point of a thread, inside the output."""
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
                at.value(self._clamped(c, self.column_count, extents[1], at)),
                self.columns.loops, self.sizes, at,
            )
            for c in columns
        ]  # fmt: skip
        return [[{**ivs, **r, **c} for c in column_places] for r in row_places]

    def _finish(
        self, sums: list[SSAValue], ivs: Indices, rows: list[Size], columns: list[Size],
        at: IndexBuilder,
    ) -> None:  # fmt: skip
        """Stores each sum that is inside, or what the consumer makes of it."""
        places = self._places(ivs, rows, columns, at)
        inside_row = [self._inside(r, self.row_count, self.blocking.rows, at) for r in rows]
        inside_column = [
            self._inside(c, self.column_count, self.blocking.columns, at) for c in columns
        ]
        for i, row in enumerate(places):
            for j, place in enumerate(row):
                total = sums[(i * len(columns) + j) // self.lanes]
                value = at.insert(vector.ExtractOp(total, [j % self.lanes], self.element)).results[
                    0
                ]
                tests = [t for t in (inside_row[i], inside_column[j]) if t is not None]
                if not tests:
                    self._store(value, place, at)
                    continue
                test = tests[0]
                if len(tests) == 2:
                    test = at.insert(arith.AndIOp(*tests)).results[0]
                close, b = if_else(at, test)
                self._store(value, place, b)
                close()

    def _inside(self, index: Size, count: Size, extent: int, at: IndexBuilder) -> SSAValue | None:
        if isinstance(count, int) and count % extent == 0:
            return None
        return at.insert(arith.CmpiOp(at.value(index), at.value(count), "slt")).results[0]

    def _store(self, value: SSAValue, place: Indices, at: IndexBuilder) -> None:
        consumer = self.consumer
        if consumer is None or consumer.keeps_source:
            self.points.write(0, value, place, at)
        if consumer is None:
            return
        after = Points(consumer.op)
        theirs = {loop: place.get(ours, 0) for loop, ours in consumer.rename.items()}
        arguments = [
            Lane(value, Kind.UNIFORM)
            if number == consumer.source
            else after.read(number, theirs, at, 1, None)
            if after.block.args[number].uses
            else Lane(operand, Kind.UNIFORM)
            for number, operand in enumerate(consumer.op.operands)
        ]
        for number, result in enumerate(consumer.values(arguments, 1, at)):
            after.write(number, result, theirs, at)


def _like(op: Operation, lhs: SSAValue, rhs: SSAValue, at: IndexBuilder) -> SSAValue:
    """The same op on other operands."""
    copy = type(op).create(
        operands=[lhs, rhs],
        result_types=[lhs.type],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    return at.insert(copy).results[0]
