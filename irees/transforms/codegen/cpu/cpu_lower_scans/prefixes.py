"""
Scans along the innermost dim whose combiner selects an operand, a vector of a row at a time. Part
of `irees-cpu-lower-scans`.

    v = x[i : i + 16]
    for d in 1, 2, 4, 8:                       after each step, a lane has 2 d elements up to it
      v = combine(v[max(lane - d, 0)], v)
    y[i : i + 16] = v = combine(last lane of the vector before, v)

A lane whose neighbour is before the vector combines the first element again, which an idempotent
combiner allows. Only the last line is a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, i64
from xdsl.ir import SSAValue

from irees.targets.cpu import CPU
from irees.transforms.codegen.common.utils.rows import load, store
from irees.transforms.codegen.common.utils.surroundings import body_has_vector_form
from irees.transforms.codegen.cpu.cpu_lower_scans.neighbours import Scan
from irees.transforms.codegen.cpu.cpu_lower_scans.rows import Rows
from irees.transforms.codegen.cpu.cpu_lower_scans.selections import is_selection
from irees.transforms.utils.lanes import lane_bytes, lane_of, unit_stride, vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size


def lanes_of(scan: Scan, vector_bytes: int) -> int:
    """Returns the elements of a vector."""
    return vector_bytes // lane_bytes(scan.op.body.block.args[0].type)


def takes_prefixes(scan: Scan, vector_bytes: int) -> bool:
    """Whether a scan is along contiguous rows, at least a vector long, and selects operands."""
    op, block = scan.op, scan.op.body.block
    lanes = lanes_of(scan, vector_bytes)
    size = op.input.type.get_shape()[-1] if scan.rank else 0
    return (
        scan.is_innermost
        and scan.is_inclusive
        and (size == DYNAMIC_INDEX or size >= lanes > 1)
        and unit_stride(op.input.type)
        and unit_stride(op.output.type)
        and body_has_vector_form(block, lanes)
        and is_selection(block)
    )


@dataclass
class Prefixes(Rows):
    """The lowering of one scan with vectors of a row."""

    def _together(self, count: Size) -> int:
        return CPU.scanned_rows

    def _rows(self, rows: Sequence[list[Size]], size: Size, at: IndexBuilder) -> None:
        """Scans some rows in one loop; the accumulator receives the final running values."""
        op, lanes = self.scan.op, lanes_of(self.scan, self.vector_bytes)
        kind = vector_of(op.input.type.element_type, lanes)
        first = [load(op.input, [*row, 0], at) for row in rows]
        start = [at.insert(vector.BroadcastOp(v, kind)).results[0] for v in first]
        whole = at.mul(at.floordiv(size, lanes), lanes)
        close, i, b = for_loop(at, 0, whole, lanes, start)
        found: list[SSAValue] = []
        for running, row in zip(close.arguments, rows, strict=True):
            place = [b.value(n) for n in [*row, i]]
            own = b.insert(vector.LoadOp(op.input, place, kind)).results[0]
            total = self._combined(running, self._prefixes(own, lanes, b), b)
            b.insert(vector.StoreOp(total, op.output, place))
            found.append(_shuffled(total, [lanes - 1] * lanes, b))
        last = [lane_of(v, 0, at.insert) for v in close(found)]
        if whole != size:
            close, i, b = for_loop(at, whole, size, 1, last)
            found = []
            for running, row in zip(close.arguments, rows, strict=True):
                found.append(self._combined(running, load(op.input, [*row, i], b), b))
                store(found[-1], op.output, [*row, i], b)
            last = close(found)
        for row, value in zip(rows, last, strict=True):
            store(value, op.accumulator, row, at)

    def _prefixes(self, value: SSAValue, lanes: int, b: IndexBuilder) -> SSAValue:
        """Returns the running values of one vector."""
        step = 1
        while step < lanes:
            before = _shuffled(value, [max(lane - step, 0) for lane in range(lanes)], b)
            value = self._combined(before, value, b)
            step *= 2
        return value


def _shuffled(value: SSAValue, lanes: Sequence[int], b: IndexBuilder) -> SSAValue:
    mask = DenseArrayBase.from_list(i64, list(lanes))
    return b.insert(vector.ShuffleOp(value, value, mask, result_type=value.type)).results[0]


def scan_prefixes(scan: Scan, vector_bytes: int, at: IndexBuilder) -> None:
    """scan of selections along the innermost dim  =>  loops over vectors of several rows"""
    Prefixes(scan, vector_bytes).build(at)
