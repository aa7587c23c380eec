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
from xdsl.ir import SSAValue

from irees.dialects.irees import MmaSyncOp
from irees.dialects.nvgpu import LdMatrixOp
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr
from irees.transforms.codegen.gpu.utils.blocking import PADDING_BYTES
from irees.transforms.codegen.gpu.utils.contraction import Access
from irees.transforms.codegen.gpu.utils.fragments import (
    COLUMNS,
    MATRIX,
    ROWS,
    FragmentContraction,
)
from irees.transforms.codegen.gpu.utils.operands import Side, is_outside
from irees.transforms.codegen.gpu.utils.staged_contraction import COPIED_BYTES
from irees.transforms.utils.accesses import zero
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

DEPTH_BYTES = 32
"""Bytes of the reduction that one `mma.sync` multiplies: its shape is 16 x 8 x 32 bytes."""


class MatrixContraction(FragmentContraction):
    """The lowering of one contraction to `mma.sync`."""

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
