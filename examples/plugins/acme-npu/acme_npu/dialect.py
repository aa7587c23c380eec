"""
The dialect `npu`: instructions of a unit that multiplies blocks of 8x8 f32.

    npu.load %a[%m, %k] rows %r columns %c {slot = 0, row = array<i64: 0, 1>, column = ...}
    npu.multiply                    slot 2 += slot 0 * slot 1
    npu.store %c[%m, %n] ...        the same, from a slot

`row` and `column` are the axis of the memref along which the rows (columns) of the block are, and
the step between them. A block has at most 8 rows and columns; a load fills the rest with zeros.
"""

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, MemRefType, f32, i64
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    eq,
    irdl_op_definition,
    operand_def,
    prop_def,
    var_operand_def,
)

AXIS = DenseArrayBase.constr(eq(i64))


class Move(IRDLOperation):
    """A copy of a block between memory and a slot."""

    indices = var_operand_def(IndexType)
    rows = operand_def(IndexType)
    columns = operand_def(IndexType)
    memory = operand_def(MemRefType.constr(f32))
    slot = prop_def(IntegerAttr.constr(i64))
    row = prop_def(AXIS)
    column = prop_def(AXIS)

    @classmethod
    def of(cls, memory, indices, rows, columns, slot, row, column):
        """Returns the copy; `row` and `column` are an axis and a step each."""
        return cls.build(
            operands=[list(indices), rows, columns, memory],
            properties={
                "slot": IntegerAttr(slot, i64),
                "row": DenseArrayBase.from_list(i64, row),
                "column": DenseArrayBase.from_list(i64, column),
            },
        )


@irdl_op_definition
class LoadOp(Move):
    name = "npu.load"


@irdl_op_definition
class StoreOp(Move):
    name = "npu.store"


@irdl_op_definition
class MultiplyOp(IRDLOperation):
    name = "npu.multiply"
    assembly_format = "attr-dict"


Npu = Dialect("npu", [LoadOp, StoreOp, MultiplyOp])
