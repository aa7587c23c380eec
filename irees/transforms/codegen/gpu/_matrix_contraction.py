"""
One contraction by matrix instructions. Part of `irees-gpu-lower-contractions`.

Tiles hold what the operands hold, not widened, and neighbours along the reduction lie side by
side in them, because two of them are a register of an instruction. What is past the end of the
reduction is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue

from irees.analysis.contractions import element_kinds
from irees.dialects.irees import MmaSyncOp
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr
from irees.transforms.codegen.gpu._blocking import PADDING_BYTES, MatrixBlocking
from irees.transforms.codegen.gpu._contraction import Access, Contraction, Side
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

ROWS, COLUMNS, DEPTH = 16, 8, 16
"""What one instruction multiplies: 16 x 16 by 16 x 8."""

BYTES = 2


class MatrixContraction(Contraction):
    """One op being lowered to matrix instructions."""

    blocking: MatrixBlocking  # type: ignore[assignment]

    def __init__(self, op: linalg.GenericOp, blocking: MatrixBlocking):
        super().__init__(op, blocking)  # type: ignore[arg-type]
        self.narrow, *_ = element_kinds(op, self.parts)
        self.across = blocking.warp_columns // COLUMNS

    def _lanes_of_sums(self) -> int:
        return ROWS * COLUMNS // 32

    def lower(self) -> int:
        super().lower()
        return self.blocking.shared_bytes(BYTES)

    def _tile(self, extent: int, at: IndexBuilder) -> SSAValue:
        space = AddressSpaceAttr(AddressSpace.WORKGROUP)
        shape = [extent, self.blocking.depth + PADDING_BYTES // BYTES]
        kind = MemRefType(self.narrow, shape, memory_space=space)
        return at.insert(memref.AllocOp([], [], kind)).results[0]

    def _access_bytes(self, side: Side) -> int | None:
        return BYTES

    def _find_place(self, at: IndexBuilder) -> None:
        blocking = self.blocking
        warp, lane = at.floordiv(self.thread, 32), at.rem(self.thread, 32)
        warps = blocking.columns // blocking.warp_columns
        self.warp_row = at.mul(at.floordiv(warp, warps), blocking.warp_rows)
        self.warp_column = at.mul(at.rem(warp, warps), blocking.warp_columns)
        self.group, self.pair = at.floordiv(lane, 4), at.mul(at.rem(lane, 4), 2)

    def _my_points(
        self, row: Size, column: Size, at: IndexBuilder
    ) -> tuple[list[Size], list[Size]]:
        first = at.add(at.add(row, self.warp_row), self.group)
        rows = [at.add(first, i) for i in range(0, self.blocking.warp_rows, 8)]
        first = at.add(at.add(column, self.warp_column), self.pair)
        columns = [
            at.add(first, i + j)
            for i in range(0, self.blocking.warp_columns, COLUMNS)
            for j in (0, 1)
        ]
        return rows, columns

    def _sum_of(self, row: int, column: int) -> tuple[int, int]:
        return row // 2 * self.across + column // 2, row % 2 * 2 + column % 2

    def _whole_vectors(self) -> bool:
        """The four sums of an instruction are of two rows."""
        return False

    def _fetch(self, accesses: list[list[Access]], first: Size, at: IndexBuilder) -> list[SSAValue]:
        self._unwidened()
        found = super()._fetch(accesses, first, at)
        if isinstance(self.total, int) and self.total % self.blocking.depth == 0:
            return found
        places = [access for mine in accesses for access in mine]
        for number, (access, value) in enumerate(zip(places, found, strict=True)):
            # An access is within a whole number of them, so its first element tells for all.
            step = at.value(at.add(first, access.depth))
            inside = at.insert(arith.CmpiOp(step, at.value(self.total), "slt")).results[0]
            zero = at.insert(arith.ConstantOp(_zero(value.type))).results[0]
            found[number] = at.insert(arith.SelectOp(inside, value, zero)).results[0]
        return found

    def _unwidened(self) -> None:
        self.rows.widen = self.columns.widen = ()

    def _put(self, side: Side, access: Access, value: SSAValue, at: IndexBuilder) -> None:
        depth, place = at.value(access.depth), at.value(access.place)
        if side.lanes == 1:
            at.insert(memref.StoreOp.get(value, side.tile, [place, depth]))
        elif side.along_depth:
            at.insert(vector.StoreOp(value, side.tile, [place, depth]))
        else:
            for lane in range(side.lanes):
                part = at.insert(vector.ExtractOp(value, [lane], self.narrow)).results[0]
                where = [at.value(at.add(access.place, lane)), depth]
                at.insert(memref.StoreOp.get(part, side.tile, where))

    def _multiplied(
        self, sums: Sequence[SSAValue], first: SSAValue, at: IndexBuilder
    ) -> list[SSAValue]:
        inner, step, b = for_loop(at, 0, self.blocking.depth, DEPTH, sums)
        return inner(self._multiply(inner.arguments, step, b))

    def _multiply(
        self, sums: Sequence[SSAValue], step: SSAValue, at: IndexBuilder
    ) -> list[SSAValue]:
        """Each 16 rows of a warp with each 8 of its columns."""
        depth = at.add(step, self.pair)
        kind = vector_of(self.narrow, 2)

        def words(side: Side, first: Size, points: Sequence[int]) -> list[SSAValue]:
            found: list[SSAValue] = []
            for further in (0, 8):
                for point in points:
                    where = [at.value(at.add(first, point)), at.value(at.add(depth, further))]
                    found.append(at.insert(vector.LoadOp(side.tile, where, kind)).results[0])
            return found

        row, column = at.add(self.warp_row, self.group), at.add(self.warp_column, self.group)
        columns = [words(self.columns, column, (n * COLUMNS,)) for n in range(self.across)]
        found: list[SSAValue] = []
        for m in range(self.blocking.warp_rows // ROWS):
            lhs = words(self.rows, row, (m * ROWS, m * ROWS + 8))
            for n, rhs in enumerate(columns):
                op = MmaSyncOp(lhs, rhs, sums[m * self.across + n])
                found.append(at.insert(op).results[0])
        return found


def _zero(kind: Attribute) -> Attribute:
    element = getattr(kind, "element_type", kind)
    if element is kind:
        return FloatAttr(0.0, element)
    return DenseIntOrFPElementsAttr.from_list(kind, [0.0])  # type: ignore[arg-type]
