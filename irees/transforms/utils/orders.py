"""
The order that a comparator region defines.

torch and JAX emit a single compare (<, <=, > or >=) of a pair of elements. Such comparators are
recognized, made total (NaN is greater than every number, as in PyTorch) and evaluated without
branches. Other comparators are inlined unchanged. Elements that compare the same both ways are
equal, and equal elements keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from irees.transforms.utils.shapes import IndexBuilder

DESCENDING = {"ogt", "oge", "ugt", "uge", "sgt", "sge"}
ASCENDING = {"olt", "ole", "ult", "ule", "slt", "sle"}

FLOAT = arith.CMPF_COMPARISON_OPERATIONS
INTEGER = arith.CMPI_COMPARISON_OPERATIONS


@dataclass(frozen=True)
class Order:
    """A total order of tuples of elements."""

    block: Block
    operand: int | None
    """The compared operand of a recognized comparator, else None."""
    predicate: str

    @staticmethod
    def of(block: Block) -> Order:
        """Returns the order of a comparator body with interleaved (lhs, rhs) arguments."""
        ops = list(block.ops)
        if len(ops) == 2 and isinstance(ops[0], arith.CmpfOp | arith.CmpiOp):
            compare = ops[0]
            names = FLOAT if isinstance(compare, arith.CmpfOp) else INTEGER
            predicate = names[compare.predicate.value.data]
            pair = [a.index if a in block.args else -1 for a in compare.operands]
            if (
                pair[0] >= 0
                and pair[0] % 2 == 0
                and pair[1] == pair[0] + 1
                and predicate in DESCENDING | ASCENDING
            ):
                return Order(block, pair[0] // 2, predicate)
        return Order(block, None, "")

    def first_stays(
        self, lhs: Sequence[SSAValue], rhs: Sequence[SSAValue], b: IndexBuilder
    ) -> SSAValue:
        """Returns an i1: whether lhs may precede rhs; true for equal elements."""
        if self.operand is None:
            either = self._call(lhs, rhs, b)
            back = self._call(rhs, lhs, b)
            one = b.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]
            not_back = b.insert(arith.XOrIOp(back, one)).results[0]
            return b.insert(arith.OrIOp(either, not_back)).results[0]
        left, right = lhs[self.operand], rhs[self.operand]
        descending = self.predicate in DESCENDING
        if self.predicate[0] in "su" and not self._is_float(left):
            sign = self.predicate[0]
            return b.insert(
                arith.CmpiOp(left, right, sign + ("ge" if descending else "le"))
            ).results[0]
        ordered = b.insert(arith.CmpfOp(left, right, "oge" if descending else "ole")).results[0]
        greatest = left if descending else right
        nan = b.insert(arith.CmpfOp(greatest, greatest, "uno")).results[0]
        return b.insert(arith.OrIOp(ordered, nan)).results[0]

    def strictly_first(
        self, lhs: Sequence[SSAValue], rhs: Sequence[SSAValue], b: IndexBuilder
    ) -> SSAValue:
        """Returns an i1: whether lhs must precede rhs."""
        back = self.first_stays(rhs, lhs, b)
        one = b.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]
        return b.insert(arith.XOrIOp(back, one)).results[0]

    @staticmethod
    def _is_float(value: SSAValue) -> bool:
        return not hasattr(value.type, "signedness") and str(value.type) != "index"

    def _call(self, lhs: Sequence[SSAValue], rhs: Sequence[SSAValue], b: IndexBuilder) -> SSAValue:
        arguments = [v for pair in zip(lhs, rhs, strict=True) for v in pair]
        return inline_region(self.block, arguments, b)[0]


def inline_region(block: Block, arguments: Sequence[SSAValue], b: IndexBuilder) -> list[SSAValue]:
    """Inlines a copy of a scalar body; returns the yielded values."""
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    terminator: Operation | None = block.last_op
    assert terminator is not None
    for op in block.ops:
        if op is terminator:
            break
        b.insert(op.clone(value_mapper=mapping))
    return [mapping.get(v, v) for v in terminator.operands]
