"""Builds formulas on scalars or vectors of f32 or f64 as IR."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    VectorType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from irees.dialects.irees import LdexpOp, LookupOp, ScalefOp
from irees.transforms.utils.shapes import insert_located

EQUAL, LESS, UNORDERED = 1, 4, 14
"""Predicates of `arith.cmpf`: `oeq`, `olt`, and `uno`, which is true if an operand is NaN."""


class Formula:
    """
    Builds arithmetic on scalars or vectors of f32 or f64, as is the first operand of the op in
    front of which it is inserted, or of another `element` type in as many lanes. `lookups`: whether
    the target has an instruction that looks up lanes in a vector.
    """

    def __init__(self, op: Operation, lookups: bool = False, element: Attribute | None = None):
        self.lookups = lookups
        self.point = InsertPoint.before(op)
        kind = op.operands[0].type
        self.lanes = kind.get_shape()[0] if isinstance(kind, VectorType) else 0
        element = element or (kind.element_type if isinstance(kind, VectorType) else kind)
        self.double = isinstance(element, Float64Type)
        self.float_type: Attribute = f64 if self.double else f32
        self.int_type: Attribute = i64 if self.double else i32
        self.sign_bit = -(1 << (63 if self.double else 31))

    def kind(self, element: Attribute) -> Attribute:
        """Returns the scalar or vector type of this formula with that element type."""
        return VectorType(element, [self.lanes]) if self.lanes else element

    def insert(self, op: Operation) -> SSAValue:
        """Inserts an op; returns its first result."""
        insert_located(op, self.point)
        return op.results[0]

    def number(self, value: float) -> SSAValue:
        """A float constant."""
        if not self.lanes:
            return self.insert(arith.ConstantOp(FloatAttr(value, self.float_type)))
        data = DenseIntOrFPElementsAttr.from_list(self.kind(self.float_type), [value])
        return self.insert(arith.ConstantOp(data))

    def integer(self, value: int) -> SSAValue:
        """An integer constant as wide as the floats."""
        if not self.lanes:
            return self.insert(arith.ConstantOp(IntegerAttr(value, self.int_type)))
        data = DenseIntOrFPElementsAttr.from_list(self.kind(self.int_type), [value])
        return self.insert(arith.ConstantOp(data))

    def _binary(self, op: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        properties = {}
        if op in (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp):
            properties = {"fastmath": arith.FastMathFlagsAttr("none")}
        return self.insert(op.create(operands=[a, b], result_types=[a.type], properties=properties))

    def add(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        """a + b"""
        return self._binary(arith.AddfOp, a, b if isinstance(b, SSAValue) else self.number(b))

    def sub(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        """a - b"""
        return self._binary(arith.SubfOp, a, b if isinstance(b, SSAValue) else self.number(b))

    def mul(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        """a * b"""
        return self._binary(arith.MulfOp, a, b if isinstance(b, SSAValue) else self.number(b))

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a / b"""
        return self._binary(arith.DivfOp, a, b)

    def int_op(self, op: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """An op on integers as wide as the floats."""
        return self._binary(op, a, b)

    def _compare(self, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.insert(
            arith.CmpfOp.create(
                operands=[a, b],
                result_types=[self.kind(i1)],
                properties={
                    "predicate": IntegerAttr(predicate, 64),
                    "fastmath": arith.FastMathFlagsAttr("none"),
                },
            )
        )

    def less(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        """a < b"""
        return self._compare(LESS, a, b if isinstance(b, SSAValue) else self.number(b))

    def equal(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        """a == b"""
        return self._compare(EQUAL, a, b if isinstance(b, SSAValue) else self.number(b))

    def is_nan(self, a: SSAValue) -> SSAValue:
        """a != a"""
        return self._compare(UNORDERED, a, a)

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """condition ? a : b"""
        return self.insert(arith.SelectOp.create(operands=[condition, a, b], result_types=[a.type]))

    def bits(self, a: SSAValue) -> SSAValue:
        """Bitcasts floats to integers."""
        kind = self.kind(self.int_type)
        return self.insert(arith.BitcastOp.create(operands=[a], result_types=[kind]))

    def from_bits(self, a: SSAValue) -> SSAValue:
        """Bitcasts integers to floats."""
        kind = self.kind(self.float_type)
        return self.insert(arith.BitcastOp.create(operands=[a], result_types=[kind]))

    def to_float(self, a: SSAValue) -> SSAValue:
        """Converts a signed i32 to f32."""
        return self.insert(arith.SIToFPOp.create(operands=[a], result_types=[self.kind(f32)]))

    def _unary(self, op: type[Operation], a: SSAValue) -> SSAValue:
        properties = {"fastmath": arith.FastMathFlagsAttr("none")}
        return self.insert(op.create(operands=[a], result_types=[a.type], properties=properties))

    def sqrt(self, a: SSAValue) -> SSAValue:
        """sqrt(a)"""
        return self._unary(math.SqrtOp, a)

    def trunc(self, a: SSAValue) -> SSAValue:
        """a, rounded to a whole number towards zero"""
        return self._unary(math.TruncOp, a)

    def ldexp(self, a: SSAValue, exponent: SSAValue) -> SSAValue:
        """a * 2^exponent"""
        return self.insert(LdexpOp(a, exponent))

    def scalef(self, a: SSAValue, exponent: SSAValue) -> SSAValue:
        """a * 2^floor(exponent)"""
        return self.insert(ScalefOp(a, exponent))

    def lookup(self, table: Sequence[float], number: SSAValue) -> SSAValue:
        """table[number % 16], for a table of 16 elements"""
        data = DenseIntOrFPElementsAttr.from_list(VectorType(f32, [len(table)]), table)
        return self.insert(LookupOp(self.insert(arith.ConstantOp(data)), number))

    def fma(self, a: SSAValue, b: SSAValue | float, c: SSAValue | float) -> SSAValue:
        """a * b + c, rounded once"""
        b, c = (x if isinstance(x, SSAValue) else self.number(x) for x in (b, c))
        return self.insert(
            math.FmaOp.create(
                operands=[a, b, c],
                result_types=[a.type],
                properties={"fastmath": arith.FastMathFlagsAttr("none")},
            )
        )

    def clamp(self, a: SSAValue, low: float, high: float) -> SSAValue:
        """min(max(a, low), high), NaN kept"""
        lowest, highest = self.number(low), self.number(high)
        a = self.select(self.less(a, lowest), lowest, a)
        return self.select(self.less(highest, a), highest, a)

    def horner(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """Returns the polynomial of x with these coefficients, highest power first."""
        total = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.add(self.mul(total, x), coefficient)
        return total

    def two_chains(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """
        Returns the polynomial of x with these coefficients, highest power first, as the sum of its
        even and its odd part. The latency of a long polynomial is halved.
        """
        square = self.mul(x, x)
        last, before = coefficients[::-2][::-1], coefficients[-2::-2][::-1]
        return self.add(self.mul(self.horner(square, before), x), self.horner(square, last))

    def absolute(self, a: SSAValue) -> SSAValue:
        """|a|"""
        rest = self.integer(~self.sign_bit)
        return self.from_bits(self.int_op(arith.AndIOp, self.bits(a), rest))

    def minus(self, a: SSAValue) -> SSAValue:
        """-|a|"""
        sign = self.integer(self.sign_bit)
        return self.from_bits(self.int_op(arith.OrIOp, self.bits(a), sign))

    def with_sign(self, a: SSAValue, sign: SSAValue) -> SSAValue:
        """a >= 0 with the sign of another float"""
        bit = self.int_op(arith.AndIOp, self.bits(sign), self.integer(self.sign_bit))
        return self.from_bits(self.int_op(arith.OrIOp, self.bits(a), bit))
