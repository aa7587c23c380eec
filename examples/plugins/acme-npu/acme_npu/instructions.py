"""What the instructions access, how they are printed, and what they mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from irees.interfaces import Place

SIDE = 8
HEADER = (Path(__file__).parent / "npu.h").read_text()

SLOTS = np.full((3, SIDE, SIDE), np.nan, np.float32)
"""The scratchpad of the interpreter, which runs one program at a time."""


class Move:
    """A copy of a block between memory and a slot."""

    @staticmethod
    def _sides(op):
        return zip(
            (op.row.get_values(), op.column.get_values()), (op.rows, op.columns), strict=True
        )

    @classmethod
    def _place(cls, op, number, writes):
        counts = [1] * len(op.indices)
        for (axis, step), size in cls._sides(op):
            counts[axis] = (number(size) - 1) * step + 1
        return [Place(op.memory, [number(each) for each in op.indices], counts, writes)]

    @classmethod
    def _print(cls, op, printer, function):
        printer.include(HEADER)
        buffer = printer.buffer(op.memory)
        address = printer.address(buffer, [printer.name(each) for each in op.indices])
        sizes = [printer.name(size) for _, size in cls._sides(op)]
        strides = [f"{buffer.strides[axis]} * {step}" for (axis, step), _ in cls._sides(op)]
        words = ", ".join([str(op.slot.value.data), address, *sizes, *strides])
        printer.line(f"{function}(&npu, {words});")

    @classmethod
    def _block(cls, op, indices, rows, columns):
        """Returns the indices of the elements of the block, by row and column."""
        i, j = np.ogrid[: int(rows), : int(columns)]
        where = [np.int64(index) + 0 * i for index in indices]
        for (axis, step), number in zip((side for side, _ in cls._sides(op)), (i, j), strict=True):
            where[axis] = where[axis] + step * number
        return tuple(where)


class Load(Move):
    """memory  =>  slot, with zeros around it"""

    @classmethod
    def places(cls, op, number):
        return cls._place(op, number, False)

    @classmethod
    def to_c(cls, op, printer):
        cls._print(op, printer, "npu_load")

    @classmethod
    def evaluate(cls, op, *operands):
        *indices, rows, columns, memory = operands
        slot = SLOTS[op.slot.value.data]
        slot[...] = 0
        slot[: int(rows), : int(columns)] = memory[cls._block(op, indices, rows, columns)]
        return []


class Store(Move):
    """slot  =>  memory"""

    @classmethod
    def places(cls, op, number):
        return cls._place(op, number, True)

    @classmethod
    def to_c(cls, op, printer):
        cls._print(op, printer, "npu_store")

    @classmethod
    def evaluate(cls, op, *operands):
        *indices, rows, columns, memory = operands
        memory = memory.copy()
        block = cls._block(op, indices, rows, columns)
        memory[block] = SLOTS[op.slot.value.data][: int(rows), : int(columns)]
        return [memory]


class Multiply:
    """slot 2 += slot 0 * slot 1"""

    @staticmethod
    def places(op, number):
        return []

    @staticmethod
    def to_c(op, printer):
        printer.include(HEADER)
        printer.line("npu_multiply(&npu, 2, 0, 1);")

    @staticmethod
    def evaluate(op):
        SLOTS[2] += SLOTS[0] @ SLOTS[1]
        return []
