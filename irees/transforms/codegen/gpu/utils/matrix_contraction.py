"""
Lowers one contraction to matrix instructions (`mma.sync`). Part of `irees-gpu-lower-contractions`.

Tiles hold the operands unconverted and in memory order; `ldmatrix` transposes fragments when they
are loaded. It transposes 16-bit units, so f32 is loaded word by word, and i8 in pairs of adjacent
rows (columns) whose bytes are then separated (`_turned_bytes`). Rows of tiles are padded by 16
bytes, so that the eight rows of a matrix are in different banks, or by 32 bytes where fragments are
loaded word by word (four steps of eight adjacent elements). Elements past the end of the reduction
are 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from irees.analysis.contractions import element_kinds
from irees.dialects.irees import MmaSyncOp
from irees.dialects.nvgpu import LdMatrixOp
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr
from irees.transforms.codegen.gpu.utils.blocking import PADDING_BYTES, MatrixBlocking
from irees.transforms.codegen.gpu.utils.contraction import Access, Side
from irees.transforms.codegen.gpu.utils.operands import is_outside
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES, Points
from irees.transforms.codegen.gpu.utils.shares import Share
from irees.transforms.codegen.gpu.utils.staged_contraction import COPIED_BYTES, StagedContraction
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.accesses import zero
from irees.transforms.utils.lanes import lane_bytes, vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

ROWS, COLUMNS, DEPTH_BYTES = 16, 8, 32
"""Shape of one `mma.sync`: 16 rows x 8 columns x 32 bytes of the reduction."""

MATRIX = 8
"""Rows per `ldmatrix` matrix, each of 16 bytes."""


class MatrixContraction(StagedContraction):
    """The lowering of one contraction to matrix instructions."""

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

    def _choose_stages(self) -> int:
        copied = all(
            side.lanes * self.bytes in COPIED_BYTES and is_outside(self.op, side)
            for side in self.sides
        )
        return self.blocking.stages if copied else 1

    def _tile(self, side: Side, at: IndexBuilder) -> SSAValue:
        space = AddressSpaceAttr(AddressSpace.WORKGROUP)
        lines, line, padding = side.extent, self.blocking.depth, PADDING_BYTES
        if self._is_turned(side):
            lines, line = line, lines
            padding *= max(1, self.bytes // 2)
        shape = [self.stages, lines, line + padding // self.bytes]
        kind = MemRefType(self.narrow, shape, memory_space=space)
        return at.insert(memref.AllocOp([], [], kind)).results[0]

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

    def _fetch(self, accesses: list[list[Access]], first: Size, at: IndexBuilder) -> list[SSAValue]:
        self.rows.widen = self.columns.widen = ()
        found = super()._fetch(accesses, first, at)
        if isinstance(self.total, int) and self.total % self.blocking.depth == 0:
            return found
        places = [access for mine in accesses for access in mine]
        for number, (access, value) in enumerate(zip(places, found, strict=True)):
            # Accesses never straddle the end of the reduction: test the first element only.
            step = at.value(at.add(first, access.depth))
            inside = at.insert(arith.CmpiOp(step, at.value(self.total), "slt")).results[0]
            nothing = at.insert(zero(value.type)).results[0]
            found[number] = at.insert(arith.SelectOp(inside, value, nothing)).results[0]
        return found

    def _put(self, side: Side, access: Access, value: SSAValue, at: IndexBuilder) -> None:
        self._put_whole(side, access, value, at)

    def _place_of(self, side: Side, access: Access, slot: Size, at: IndexBuilder) -> list[SSAValue]:
        if not self._is_turned(side):
            return [at.value(i) for i in (slot, access.place, access.depth)]
        line = access.depth
        if self._in_pairs(side):
            # The remainder changes nothing, but `irees-verify-accesses` needs the bound.
            line = at.rem(_line_of_bytes(line, at), self.blocking.depth)
        return [at.value(i) for i in (slot, line, access.place)]

    # --- products -------------------------------------------------------------------------------

    def _multiplied(
        self, sums: Sequence[SSAValue], first: SSAValue, at: IndexBuilder
    ) -> list[SSAValue]:
        inner, step, b = for_loop(at, 0, self.blocking.depth, DEPTH_BYTES // self.bytes, sums)
        return inner(self._multiply(inner.arguments, step, b))

    def _multiply(
        self, sums: Sequence[SSAValue], step: SSAValue, at: IndexBuilder
    ) -> list[SSAValue]:
        """Multiplies every 16-row fragment of the warp with every 8-column fragment."""
        right: list[SSAValue] = []
        for n in range(0, self.blocking.warp_columns, 2 * COLUMNS):
            first = at.add(self.warp_column, n)
            right += self._words(self.columns, first, step, self.high, self.low, at)
        found: list[SSAValue] = []
        for m in range(0, self.blocking.warp_rows, ROWS):
            first = at.add(self.warp_row, m)
            left = self._words(self.rows, first, step, self.low, self.high, at)
            for n in range(self.across):
                op = MmaSyncOp(left, right[2 * n : 2 * n + 2], sums[len(found)])
                found.append(at.insert(op).results[0])
        return found

    def _words(
        self, side: Side, first: Size, step: Size, along: Size, deep: Size, at: IndexBuilder
    ) -> list[SSAValue]:
        """
        Loads a lane's four words of 16 rows (or columns) of a side, as four 8x8 matrices. `along`
        and `deep` offset this lane's matrix by 8 rows and by 16 bytes along the reduction.
        """
        further, kind = at.mul(along, MATRIX), vector_of(self.narrow, 4 // self.bytes)
        if self._is_turned(side) and self.bytes == 4:
            return self._turned_words(side, first, step, along is self.low, at)
        if self._in_pairs(side):
            return self._turned_bytes(side, first, step, along is self.low, at)
        if self._is_turned(side):
            line, column = at.add(step, at.mul(deep, MATRIX)), at.add(first, further)
        else:
            line = at.add(first, further)
            column = at.add(step, at.mul(deep, 16 // self.bytes))
        where = [at.value(i) for i in (self.slot, at.add(line, self.line), column)]
        turned = self._is_turned(side)
        words = at.insert(LdMatrixOp(side.tile, where, transpose=turned)).results[0]
        return [at.insert(vector.ExtractOp(words, [i], kind)).results[0] for i in range(4)]

    def _turned_words(
        self, side: Side, first: Size, step: Size, along_first: bool, at: IndexBuilder
    ) -> list[SSAValue]:
        """Loads the same words with scalar loads; bits of 0..3 are `along` and `deep`."""
        kind, found = vector_of(self.narrow, 1), list[SSAValue]()
        for number in range(4):
            along, deep = (number % 2, number // 2) if along_first else (number // 2, number % 2)
            line = at.add(at.add(step, 4 * deep), self.step_of_lane)
            column = at.add(at.add(first, MATRIX * along), self.group)
            where = [at.value(i) for i in (self.slot, line, column)]
            found.append(at.insert(vector.LoadOp(side.tile, where, kind)).results[0])
        return found

    def _turned_bytes(
        self, side: Side, first: Size, step: Size, along_first: bool, at: IndexBuilder
    ) -> list[SSAValue]:
        """
        Loads the same words as four transposed matrices of pairs of bytes: a lane receives two
        steps of two adjacent rows (columns) from each. The bytes of two matrices are the words of
        both. Even rows (columns) of 16 are thus a fragment's first eight, odd ones the others.
        """
        where = [at.value(i) for i in (self.slot, at.add(step, self.lane), first)]
        words = at.insert(LdMatrixOp(side.tile, where, transpose=True)).results[0]
        kind, found = vector_of(self.narrow, 4), list[SSAValue]()
        parts = [at.insert(vector.ExtractOp(words, [i], kind)).results[0] for i in range(4)]
        for number in range(4):
            along, deep = (number % 2, number // 2) if along_first else (number // 2, number % 2)
            low, high = parts[2 * deep : 2 * deep + 2]
            mask = DenseArrayBase.from_list(i64, range(along, 8, 2))
            found.append(at.insert(vector.ShuffleOp(low, high, mask, result_type=kind)).results[0])
        return found


def _line_of_bytes(step: Size, at: IndexBuilder) -> Size:
    """
    Returns the tile row of a step of the reduction. `mma.sync` reads steps 4 * t to 4 * t + 3 from
    lane t of four, which has rows 2 * t and 2 * t + 1 of two transposed matrices. The order of 16
    steps is thus 0, 1, 4, 5, 8, 9, 12, 13, then 2, 3, 6, 7, ...
    """
    second = at.mul(at.rem(at.floordiv(step, 2), 2), MATRIX)
    lane = at.mul(at.rem(at.floordiv(step, 4), 4), 2)
    sixteen = at.mul(at.floordiv(step, 16), 16)
    return at.add(at.add(sixteen, second), at.add(lane, at.rem(step, 2)))
