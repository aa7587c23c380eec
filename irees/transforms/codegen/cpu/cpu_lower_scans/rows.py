"""
Scans along the innermost dim, several rows in one loop. Part of `irees-cpu-lower-scans`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from irees.targets.cpu import CPU
from irees.transforms.codegen.common.utils.rows import compare, load, store
from irees.transforms.codegen.common.utils.surroundings import body_has_vector_form
from irees.transforms.codegen.cpu.cpu_lower_scans.columns import consumed
from irees.transforms.codegen.cpu.cpu_lower_scans.neighbours import Scan
from irees.transforms.utils.lanes import (
    Kind,
    Lane,
    calls_math,
    evaluate,
    lane_bytes,
    lane_of,
    materialize,
    vector_of,
)
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.structured import affine_value


@dataclass
class Rows:
    """The lowering of one scan along the innermost dim."""

    scan: Scan
    vector_bytes: int
    in_lanes: bool = field(default=False, init=False)
    """Whether the rows of one loop are the lanes of a vector."""

    def _together(self, count: Size) -> int:
        """
        Returns how many rows are scanned in one loop: a vector of them if the combiner calls math
        functions, which cost more than moving each element into its lane and out of it.
        """
        block = self.scan.op.body.block
        if calls_math(block):
            lanes = self.vector_bytes // lane_bytes(block.args[0].type)
            while lanes > 1 and isinstance(count, int) and count < lanes:
                lanes //= 2
            if lanes > 1 and body_has_vector_form(block, lanes):
                self.in_lanes = True
                return lanes
        self.in_lanes = False
        return CPU.scanned_rows

    def build(self, at: IndexBuilder) -> None:
        """Emits the loops over rows; nothing is written for empty rows."""
        size = buffer_dim(self.scan.op.input, self.scan.dim, at)
        if isinstance(size, int):
            if size:
                self._outer([], size, at)
            return
        close, inner = if_else(at, compare(size, 1, "sge", at))
        self._outer([], size, inner)
        close()

    def _outer(self, place: list[Size], size: Size, at: IndexBuilder) -> None:
        left = self.scan.dim - len(place)
        if left == 0:
            self._rows([place], size, at)
            return
        count = buffer_dim(self.scan.op.input, len(place), at)
        if left > 1:
            close, iv, inner = for_loop(at, 0, count, 1)
            self._outer([*place, iv], size, inner)
            close()
            return
        together = self._together(count)
        main = at.mul(at.floordiv(count, together), together)
        for start, stop, step in ((0, main, together), (main, count, 1)):
            if start != stop:
                close, iv, inner = for_loop(at, start, stop, step)
                self._rows([[*place, inner.add(iv, k)] for k in range(step)], size, inner)
                close()

    def _rows(self, rows: Sequence[list[Size]], size: Size, at: IndexBuilder) -> None:
        """Scans some rows in one loop; the accumulator receives the final running values."""
        op, inclusive = self.scan.op, self.scan.is_inclusive
        end = at.sub(size, 1)
        start, stop = (1, size) if inclusive else (0, end)
        if inclusive:
            last = [self._element([*row, 0], at) for row in rows]
            self._write_all(last, rows, 0, at)
        else:
            last = [load(op.accumulator, row, at) for row in rows]
        if size != 1:
            carried = self._packed(last, at)
            close, i, b = for_loop(at, start, stop, 1, carried)
            values = self._packed([self._element([*row, i], b) for row in rows], b)
            sums = [
                self._combined(running, value, b)
                for running, value in zip(close.arguments, values, strict=True)
            ]
            self._write_all(self._apart(sums if inclusive else close.arguments, b), rows, i, b)
            last = self._apart(close(sums), at)
        if not inclusive:
            self._write_all(last, rows, end, at)
        for row, value in zip(rows, last, strict=True):
            store(value, op.accumulator, row, at)

    def _packed(self, values: Sequence[SSAValue], b: IndexBuilder) -> list[SSAValue]:
        """Returns the values of some rows as one vector, if the rows are scanned in lanes."""
        if not self.in_lanes or len(values) == 1:
            return list(values)
        kind = vector_of(values[0].type, len(values))
        result = b.insert(vector.BroadcastOp(values[0], kind)).results[0]
        for lane, value in enumerate(values[1:], 1):
            result = b.insert(vector.InsertOp(value, result, [lane])).results[0]
        return [result]

    def _apart(self, values: Sequence[SSAValue], b: IndexBuilder) -> list[SSAValue]:
        """Returns the values of some rows one by one."""
        found: list[SSAValue] = []
        for value in values:
            lanes = value.type.get_shape()[0] if isinstance(value.type, VectorType) else 0
            found += [lane_of(value, n, b.insert) for n in range(lanes)] or [value]
        return found

    def _combined(self, running: SSAValue, value: SSAValue, b: IndexBuilder) -> SSAValue:
        """Returns the next running value, or a vector of those."""
        block = self.scan.op.body.block
        if not isinstance(running.type, VectorType):
            return inline_region(block, [running, value], b)[0]
        (lanes,) = running.type.get_shape()
        both = [Lane(x, Kind.VECTOR) for x in (running, value)]

        def no_index(loop: int) -> Lane:
            raise AssertionError("a combiner has no linalg.index")

        (result,) = evaluate(block, both, lanes, b.insert, no_index, {})
        return materialize(result, lanes, b.insert)

    def _write_all(
        self, values: Sequence[SSAValue], rows: Sequence[list[Size]], i: Size, b: IndexBuilder
    ) -> None:
        for row, value in zip(rows, values, strict=True):
            self._write(value, [*row, i], b)

    def _read(
        self, value: SSAValue, indexing: AffineMap, place: list[Size], b: IndexBuilder
    ) -> SSAValue:
        if not isinstance(value.type, MemRefType):
            return value
        return load(value, [affine_value(e, place, b) for e in indexing.results], b)

    def _element(self, place: list[Size], b: IndexBuilder) -> SSAValue:
        """Returns an element of the input."""
        producer = self.scan.producer
        values = [self._read(v, m, place, b) for v, m in self.scan.inputs]
        if producer is None:
            return values[0]
        # The block argument of the output is unused.
        return inline_region(producer.body.block, [*values, values[0]], b)[0]

    def _write(self, value: SSAValue, place: list[Size], b: IndexBuilder) -> None:
        """Stores an element of the output, and what the consumer makes of it."""
        if self.scan.keeps_output:
            store(value, self.scan.op.output, place, b)
        if self.scan.consumer is not None:
            rest = [self._read(v, m, place, b) for v, m in self.scan.others]
            made = consumed(self.scan, value, rest, b)
            store(made, self.scan.consumer.outputs[0], place, b)


def scan_rows(scan: Scan, vector_bytes: int, at: IndexBuilder) -> None:
    """scan along the innermost dim  =>  loops over several rows"""
    Rows(scan, vector_bytes).build(at)
