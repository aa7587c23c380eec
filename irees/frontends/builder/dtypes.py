"""
Element types of the frontends: signed and unsigned integers are distinct types here.

linalg uses signless integers, so `u8` and `i8` share the MLIR element type `i8`; the builder picks
the signed or the unsigned op from the `DType`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute

Kind = Literal["bool", "int", "uint", "float", "complex", "float8", "index"]


@dataclass(frozen=True)
class DType:
    """An element type: unique `name`, storage size in `bits`, and MLIR type `element`."""

    name: str
    kind: Kind
    bits: int
    element: Attribute

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def is_float(self) -> bool:
        """Whether this is a real float type with its own arithmetic (not float8)."""
        return self.kind == "float"

    @cached_property
    def is_complex(self) -> bool:
        """Whether this is a complex type."""
        return self.kind == "complex"

    @cached_property
    def is_integer(self) -> bool:
        """Whether this is an integer type; includes bool and index."""
        return self.kind in ("bool", "int", "uint", "index")

    @cached_property
    def is_unsigned(self) -> bool:
        """Whether integer ops use their unsigned variant."""
        return self.kind in ("bool", "uint")

    @cached_property
    def computed(self) -> DType:
        """The type used for arithmetic: f32 for f16, bf16 and f8, otherwise this type."""
        return F32 if self.kind == "float8" or (self.is_float and self.bits < 32) else self

    @cached_property
    def part(self) -> DType:
        """The type of the real part of a complex type; otherwise this type."""
        return {"c64": F32, "c128": F64}.get(self.name, self)

    @cached_property
    def complex(self) -> DType:
        """The complex type whose parts have this type."""
        return C128 if self.name in ("f64", "c128") else C64

    @cached_property
    def lowest(self) -> float | int:
        """The lowest value: -inf for floats, the minimum for integers, 0 for bool."""
        if self.is_float:
            return float("-inf")
        return 0 if self.is_unsigned else -(1 << (self.bits - 1))

    @cached_property
    def highest(self) -> float | int:
        """The highest value: inf for floats, the maximum for integers, 1 for bool."""
        if self.is_float:
            return float("inf")
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - (not self.is_unsigned))) - 1

    def wrap(self, value: int) -> int:
        """Reduces an integer modulo 2^bits into the range of this type; 0 or 1 for bool."""
        if self.kind == "bool":
            return int(value != 0)
        value &= (1 << self.bits) - 1
        signed = not self.is_unsigned and value >> (self.bits - 1)
        return value - (1 << self.bits) if signed else value

    def attribute(self, value: float | bool) -> Attribute:
        """
        The attribute of a number. Integers wrap; floats round to nearest even, those of 16 bits
        through f32, as in PyTorch and C. Raises TypeError for complex types.
        """
        if self.is_complex:
            raise TypeError(f"{self} has no attribute")
        if self.is_integer:
            data = int(value) if self.kind == "index" else self.wrap(int(value))
            return IntegerAttr(data, self.element)  # pyright: ignore
        if self.bits == 16:
            with np.errstate(over="ignore"):
                value = np.float32(value)
        return FloatAttr(float(value), self.element)  # pyright: ignore


@dataclass(frozen=True, repr=False)
class Float8(DType):
    """
    An 8-bit float, named after its MLIR type.

    Elements are stored as `i8` codes, and conversions are integer arithmetic (`float8.py`).
    """

    def code(self, value: float) -> int:
        """The code nearest to a number that the format can represent, as an i8."""
        kind = getattr(ml_dtypes, f"float8_{self.name[2:].lower()}")
        return int(np.array(value, kind).view(np.int8))

    def attribute(self, value: float | bool) -> Attribute:
        """The attribute of the code of a number."""
        return IntegerAttr(self.code(float(value)), self.element)  # pyright: ignore


def _integer(name: str, kind: Kind, bits: int, width: int | None = None) -> DType:
    return DType(name, kind, bits, IntegerType(width or bits))


BOOL = _integer("bool", "bool", 8, 1)
I8, I16, I32, I64 = (_integer(f"i{n}", "int", n) for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (_integer(f"u{n}", "uint", n) for n in (8, 16, 32, 64))
INDEX = DType("index", "index", 64, IndexType())
F16 = DType("f16", "float", 16, Float16Type())
BF16 = DType("bf16", "float", 16, BFloat16Type())
F32 = DType("f32", "float", 32, Float32Type())
F64 = DType("f64", "float", 64, Float64Type())
C64 = DType("c64", "complex", 64, ComplexType(Float32Type()))
C128 = DType("c128", "complex", 128, ComplexType(Float64Type()))

F8E4M3FN = Float8("f8E4M3FN", "float8", 8, IntegerType(8))
F8E5M2 = Float8("f8E5M2", "float8", 8, IntegerType(8))
F8E4M3FNUZ = Float8("f8E4M3FNUZ", "float8", 8, IntegerType(8))
F8E5M2FNUZ = Float8("f8E5M2FNUZ", "float8", 8, IntegerType(8))

ALL = (
    BOOL,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    INDEX,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
    F8E4M3FN,
    F8E5M2,
    F8E4M3FNUZ,
    F8E5M2FNUZ,
)
BY_NAME = {dtype.name: dtype for dtype in ALL}

LONGEST_I32 = (1 << 31) - 1
"""Largest number of elements whose indices fit into i32."""
