"""Lowers tensor bitcasts. Part of `irees-convert-flow-to-tensor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType, TensorType, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap

from irees.dialects import flow
from irees.transforms.utils.shapes import Size, mixed, static_shape
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, select_dims

BYTE = 8
"""Bits in a byte."""


def sizes_of(kind: Attribute, dynamic: Any) -> list[Size]:
    """Returns all sizes of a tensor type: static sizes as ints, dynamic ones from `dynamic`."""
    assert isinstance(kind, TensorType)
    return mixed(kind.get_shape(), list(dynamic))


def reshaped(value: SSAValue, sizes: list[Size], kind: TensorType, b: TensorBuilder) -> SSAValue:
    """Reshapes to `sizes`. Equal dynamic types still need the reshape: their sizes may differ."""
    if value.type == kind and kind.has_static_shape():
        return value
    shape = TensorType(IndexType(), [len(sizes)])
    dims = b.insert(tensor.FromElementsOp.build(
        operands=[[b.value(n) for n in sizes]], result_types=[shape])).results[0]  # fmt: skip
    return b.insert(tensor.ReshapeOp(value, dims, kind)).results[0]


def as_integer(value: SSAValue, bits: int, s: ScalarBuilder) -> SSAValue:
    """Returns the element as the integer that stores it, of `bits` bits."""
    if value.type == i1 and bits == BYTE:
        return s.op(arith.ExtUIOp, value, IntegerType(bits))
    if isinstance(value.type, IntegerType):
        return value
    return s.insert(arith.BitcastOp(value, IntegerType(bits))).results[0]


def as_element(value: SSAValue, kind: Attribute, s: ScalarBuilder) -> SSAValue:
    """Returns an integer as an element of type `kind`. An i1 is the lowest bit of its byte."""
    if value.type == kind:
        return value
    if isinstance(kind, IntegerType):
        return s.op(arith.TruncIOp, value, kind)
    return s.insert(arith.BitcastOp(value, kind)).results[0]


@dataclass
class Bits:
    """A bitcast from elements of `before` bits to elements of `after` bits."""

    op: flow.TensorBitCastOp
    b: TensorBuilder

    def __post_init__(self) -> None:
        source, result = self.op.source.type, self.op.result.type
        assert isinstance(source, TensorType)
        assert isinstance(result, TensorType)
        self.element = result.element_type
        before, after = flow.storage_bits(source), flow.storage_bits(result)
        assert before is not None
        assert after is not None
        self.before, self.after = before, after
        self.sizes = sizes_of(result, self.op.result_dims)
        given = self.b.product(sizes_of(source, self.op.source_dims))
        kind = TensorType(source.element_type, [given if isinstance(given, int) else DYNAMIC_INDEX])
        self.count: Size = given
        self.flat = reshaped(self.op.source, [given], kind, self.b)

    def lower(self) -> SSAValue:
        """bitcast  =>  elements that are split, combined, or reinterpreted"""
        if self.before > self.after:
            found = self._cut(self.before // self.after)
        elif self.before < self.after:
            found = self._joined(self.after // self.before)
        else:
            identity = [AffineMap.identity(1)] * 2
            found = self._compute(self.flat, [self.count], identity, self._seen)
        static = static_shape(self.sizes)
        return reshaped(found, self.sizes, TensorType(self.element, static), self.b)

    def _compute(
        self,
        source: SSAValue,
        sizes: list[Size],
        maps: list[AffineMap],
        body: Callable[[ScalarBuilder, SSAValue], SSAValue],
    ) -> SSAValue:
        init = self.b.empty(self.element, sizes)
        return self.b.compute([source], [init], maps, lambda s, v: [body(s, v[0])])[0]

    def _seen(self, s: ScalarBuilder, value: SSAValue) -> SSAValue:
        return as_element(as_integer(value, self.before, s), self.element, s)

    def _amount(self, s: ScalarBuilder, bits: int, width: int) -> SSAValue:
        """Returns the shift of a part, (index of loop 1) * `bits`, as a `width`-bit integer."""
        index = s.op(arith.IndexCastOp, s.index(1), i64)
        amount = s.op(arith.MuliOp, index, s.number(bits, i64))
        return s.cast(amount, IntegerType(width))

    def _cut(self, parts: int) -> SSAValue:
        """Splits each element into `parts` elements, lowest bits first."""

        def part(s: ScalarBuilder, value: SSAValue) -> SSAValue:
            whole = as_integer(value, self.before, s)
            moved = s.op(arith.ShRUIOp, whole, self._amount(s, self.after, self.before))
            if self.element == i1 and self.after == BYTE:
                return s.op(arith.TruncIOp, moved, i1)
            return as_element(s.op(arith.TruncIOp, moved, IntegerType(self.after)), self.element, s)

        maps = [select_dims(2, [0]), AffineMap.identity(2)]
        return self._compute(self.flat, [self.count, parts], maps, part)

    def _joined(self, parts: int) -> SSAValue:
        """Combines each `parts` elements into one, lowest bits first."""
        b, wide = self.b, IntegerType(self.after)
        count = b.floordiv(self.count, parts)
        assert isinstance(self.flat.type, TensorType)
        shape = [count if isinstance(count, int) else DYNAMIC_INDEX, parts]
        rows = reshaped(
            self.flat, [count, parts], TensorType(self.flat.type.element_type, shape), b
        )

        def join(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            part = s.op(arith.ExtUIOp, as_integer(v[0], self.before, s), wide)
            moved = s.op(arith.ShLIOp, part, self._amount(s, self.before, self.after))
            return [s.op(arith.OrIOp, v[1], moved)]

        maps = [AffineMap.identity(2), select_dims(2, [0])]
        (whole,) = b.compute([rows], [b.filled(0, wide, [count])], maps, join)
        identity = [AffineMap.identity(1)] * 2
        return self._compute(
            whole, [count], identity, lambda s, value: as_element(value, self.element, s)
        )


def lower_bitcast(op: flow.TensorBitCastOp, b: TensorBuilder) -> SSAValue:
    """bitcast  =>  the same bits as elements of the result type"""
    return Bits(op, b).lower()
