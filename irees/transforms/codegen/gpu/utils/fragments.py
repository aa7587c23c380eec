"""
Accumulators of a contraction in the fragments of matrix instructions. Part of
`irees-gpu-lower-contractions` and `irees-gpu-lower-warpgroup-contractions`.

`mma.sync` and `wgmma` distribute a block of 16 x 8 sums over the lanes of a warp in the same way:
lane n holds two adjacent columns of row n / 4 and of the row eight below.
"""

from __future__ import annotations

from xdsl.dialects.linalg import ops as linalg

from irees.analysis.contractions import element_kinds
from irees.transforms.codegen.gpu.utils.blocking import MatrixBlocking
from irees.transforms.codegen.gpu.utils.operands import Side
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES, Points
from irees.transforms.codegen.gpu.utils.shares import Share
from irees.transforms.codegen.gpu.utils.staged_contraction import StagedContraction
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.lanes import lane_bytes
from irees.transforms.utils.shapes import IndexBuilder, Size

ROWS, COLUMNS = 16, 8
"""Shape of the sums of one fragment."""

MATRIX = 8
"""Rows per matrix of a fragment, each of 16 bytes along the reduction."""


class FragmentContraction(StagedContraction):
    """The lowering of one contraction whose accumulators are fragments."""

    blocking: MatrixBlocking  # type: ignore[assignment]

    def __init__(self, op: linalg.GenericOp, blocking: MatrixBlocking, share: Share | None = None):
        super().__init__(op, blocking, share)  # type: ignore[arg-type]
        self.narrow, *_ = element_kinds(op, self.parts)
        self.bytes = getattr(self.narrow, "bitwidth", 16) // 8
        self.across = blocking.warp_columns // COLUMNS

    def _lanes_of_sums(self) -> int:
        return ROWS * COLUMNS // WARP

    def lower(self) -> int:
        super().lower()
        return self.blocking.shared_bytes(self.bytes)

    def _is_turned(self, side: Side) -> bool:
        """Whether tile rows are steps of the reduction, so that fragments are transposed."""
        return not side.along_depth

    def _in_pairs(self, side: Side) -> bool:
        """Whether a lane's fragments hold pairs of adjacent rows (columns): transposed bytes."""
        return self.bytes == 1 and self._is_turned(side)

    def _access_bytes(self, side: Side) -> int | None:
        return self.bytes

    def _find_place(self, at: IndexBuilder) -> None:
        blocking = self.blocking
        warp, lane = at.floordiv(self.thread, WARP), at.rem(self.thread, WARP)
        warps = blocking.columns // blocking.warp_columns
        self.warp_row = at.mul(at.floordiv(warp, warps), blocking.warp_rows)
        self.warp_column = at.mul(at.rem(warp, warps), blocking.warp_columns)
        self.lane, self.group, self.step_of_lane = lane, at.floordiv(lane, 4), at.rem(lane, 4)
        self.pair = at.mul(self.step_of_lane, 2)
        # The matrix row whose address this lane passes to ldmatrix, and which of the four matrices.
        self.line, number = at.rem(lane, MATRIX), at.floordiv(lane, MATRIX)
        self.low, self.high = at.rem(number, 2), at.floordiv(number, 2)

    def _my_points(
        self, row: Size, column: Size, at: IndexBuilder
    ) -> tuple[list[Size], list[Size]]:
        # The number of adjacent rows of a lane, and of adjacent pairs of its columns.
        high, wide = (2 if self._in_pairs(side) else 1 for side in self.sides)
        first = at.add(at.add(row, self.warp_row), at.mul(self.group, high))
        steps = range(0, self.blocking.warp_rows, MATRIX * high)
        rows = [at.add(first, i + j) for i in steps for j in range(high)]
        first = at.add(at.add(column, self.warp_column), at.mul(self.pair, wide))
        steps = range(0, self.blocking.warp_columns, COLUMNS * wide)
        columns = [at.add(first, i + j) for i in steps for j in range(2 * wide)]
        return rows, columns

    def _sum_of(self, row: int, column: int) -> tuple[int, int]:
        fragment, place = divmod(column, 2)
        if self._in_pairs(self.columns):
            # Even columns of 16 are one fragment, odd ones the next.
            fragment, place = column // 4 * 2 + column % 2, column % 4 // 2
        return row // 2 * self.across + fragment, row % 2 * 2 + place

    def _whole_vectors(self) -> bool:
        """Returns False: the four accumulators of an instruction belong to two rows."""
        return False

    def _stored_together(self) -> int:
        """Returns how many adjacent results of a lane fit one aligned store."""
        axis, written = self.columns.loops[-1], list[tuple[Points, int, int]]()
        if self.consumer is None or self.consumer.keeps_source:
            written.append((self.points, self.points.inputs, axis))
        if self.consumer is not None:
            after = Points(self.consumer.op)
            ours = self._axis_of(self.consumer)
            outputs = range(after.inputs, len(after.maps))
            written += [(after, position, ours) for position in outputs]
        for count in (4, 2) if self._in_pairs(self.columns) else (2,):
            if isinstance(self.sizes[axis], int) and all(
                points.moves(position, loop)
                and points.aligned(position, loop, count)
                and str(points.block.args[position].type) != "i1"
                and count * lane_bytes(points.block.args[position].type) <= ACCESS_BYTES
                for points, position, loop in written
            ):
                return count
        return 1
