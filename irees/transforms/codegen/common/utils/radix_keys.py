"""
The keys of radix sorts: unsigned integers with the order of the numbers of a comparator.

The order of floats is that of `Order`: -0 equals 0, and NaN is greater than every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    MemRefType,
)
from xdsl.ir import Attribute, SSAValue

from irees.transforms.codegen.common.utils.rows import compare
from irees.transforms.utils.orders import DESCENDING, Order
from irees.transforms.utils.shapes import IndexBuilder

INFINITY: dict[type[Attribute], int] = {
    Float64Type: 0x7FF0000000000000,
    Float32Type: 0x7F800000,
    Float16Type: 0x7C00,
    BFloat16Type: 0x7F80,
}
"""Bit patterns of infinity; larger patterns, without the sign, are NaN."""


@dataclass(frozen=True)
class RadixKey:
    """The sort key of a comparator."""

    operand: int
    element: Attribute
    width: int
    descending: bool
    signed: bool


def radix_key(order: Order, targets: Sequence[SSAValue]) -> RadixKey | None:
    """Returns the key of a canonical comparator, or None."""
    if order.operand is None:
        return None
    kind = targets[order.operand].type
    assert isinstance(kind, MemRefType)
    element = kind.element_type
    descending = order.predicate in DESCENDING
    if type(element) in INFINITY:
        width = element.bitwidth
        return RadixKey(order.operand, element, width, descending, True)
    if isinstance(element, IntegerType) and element.width.data in (8, 16, 32, 64):
        signed = order.predicate[0] == "s"
        return RadixKey(order.operand, element, element.width.data, descending, signed)
    return None


def as_key(key: RadixKey, value: SSAValue, b: IndexBuilder) -> SSAValue:
    """Maps a value to an unsigned integer of the same order."""
    return key_of_bits(key, bits_of(key, value, b), b)


def bits_of(key: RadixKey, value: SSAValue, b: IndexBuilder) -> SSAValue:
    """Returns the bits of a value as an integer."""
    if type(key.element) not in INFINITY:
        return value
    return b.insert(arith.BitcastOp(value, IntegerType(key.width))).results[0]


def value_of_bits(key: RadixKey, bits: SSAValue, b: IndexBuilder) -> SSAValue:
    """Returns the value that has these bits."""
    if type(key.element) not in INFINITY:
        return bits
    return b.insert(arith.BitcastOp(bits, key.element)).results[0]


def key_of_bits(key: RadixKey, bits: SSAValue, b: IndexBuilder) -> SSAValue:
    """Maps the bits of a value to an unsigned integer of the same order."""
    kind = IntegerType(key.width)

    def number(bits: int) -> SSAValue:
        return b.insert(arith.ConstantOp(IntegerAttr(bits, kind, truncate_bits=True))).results[0]

    def both(op: type, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return b.insert(op(lhs, rhs)).results[0]

    sign = number(1 << (key.width - 1))
    ones = number((1 << key.width) - 1)
    if type(key.element) in INFINITY:
        size = both(arith.AndIOp, bits, number((1 << (key.width - 1)) - 1))
        nan = compare(size, number(INFINITY[type(key.element)]), "ugt", b)
        zero = compare(size, number(0), "eq", b)
        bits = b.insert(arith.SelectOp(zero, number(0), bits)).results[0]
        negative = both(arith.ShRSIOp, bits, number(key.width - 1))
        flip = both(arith.OrIOp, negative, sign)
        bits = both(arith.XOrIOp, bits, flip)
        bits = b.insert(arith.SelectOp(nan, ones, bits)).results[0]
    elif key.signed:
        bits = both(arith.XOrIOp, bits, sign)
    return both(arith.XOrIOp, bits, ones) if key.descending else bits
