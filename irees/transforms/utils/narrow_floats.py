"""
Conversions of floats of at most 8 bits, as integer and f32 arithmetic on their codes.

A code is a sign bit above a magnitude: exponent bits, then mantissa bits. The magnitude, shifted so
that the mantissas align, is an f32 with the wrong exponent bias. Multiplying by a power of two
corrects the bias exactly, also for subnormals. Rounding to nearest even adds half an ulp.
`f8E8M0FNU` has only an exponent: no sign, no zero, and ties round up.

Results match `ml_dtypes` and LLVM's APFloat for every bit pattern. Overflow gives infinity, NaN in
formats without infinity, or the largest number in formats with neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, f32, f64, i8, i32, i64
from xdsl.ir import Attribute, SSAValue

from irees.transforms.utils.tensors import ScalarBuilder

F32_DIGITS, F32_BIAS = 23, 127
F32_SIGN, F32_INFINITY = 1 << 31, 0x7F800000
F32_SIZE = F32_SIGN - 1
F32_MANTISSA = (1 << F32_DIGITS) - 1

Specials = Literal["ieee", "nan", "unsigned-zero", "finite"]


@dataclass(frozen=True)
class NarrowFloat:
    """
    A format: total bits, mantissa bits, exponent bias, and special values.

    `ieee`: infinities and NaN. `nan`: only NaN, with the largest magnitude. `unsigned-zero`: only
    NaN, with the code of -0. `finite`: neither.
    """

    bits: int
    digits: int
    bias: int
    specials: Specials

    @property
    def sign(self) -> int:
        """The sign bit of a code."""
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        """The magnitude of infinity in an `ieee` format."""
        return (self.sign - 1) >> self.digits << self.digits

    @property
    def largest(self) -> int:
        """The magnitude of the largest number."""
        if self.specials == "ieee":
            return self.infinity - 1
        return self.sign - (2 if self.specials == "nan" else 1)

    @property
    def nan(self) -> int:
        """The magnitude of NaN."""
        if self.specials == "ieee":
            return self.infinity | 1 << (self.digits - 1)
        return {"nan": self.sign - 1, "unsigned-zero": self.sign, "finite": 0}[self.specials]

    @property
    def overflow(self) -> int:
        """The magnitude that overflow produces."""
        if self.specials == "finite":
            return self.largest
        return self.infinity if self.specials == "ieee" else self.nan


EXPONENT_ONLY = "f8E8M0FNU"
FORMATS: dict[str, NarrowFloat] = {
    "f8E5M2": NarrowFloat(8, 2, 15, "ieee"),
    "f8E4M3": NarrowFloat(8, 3, 7, "ieee"),
    "f8E3M4": NarrowFloat(8, 4, 3, "ieee"),
    "f8E4M3FN": NarrowFloat(8, 3, 7, "nan"),
    "f8E5M2FNUZ": NarrowFloat(8, 2, 16, "unsigned-zero"),
    "f8E4M3FNUZ": NarrowFloat(8, 3, 8, "unsigned-zero"),
    "f8E4M3B11FNUZ": NarrowFloat(8, 3, 11, "unsigned-zero"),
    "f6E2M3FN": NarrowFloat(6, 3, 1, "finite"),
    "f6E3M2FN": NarrowFloat(6, 2, 3, "finite"),
    "f4E2M1FN": NarrowFloat(4, 1, 1, "finite"),
}
"""The formats with a sign, by MLIR's names."""


@cache
def narrow_float(kind: Attribute) -> str | None:
    """Returns MLIR's name of a float type of at most 8 bits, or None for other types."""
    name = kind.name
    return name if name in FORMATS or name == EXPONENT_ONLY else None


class _Bits:
    """Builds i32 arithmetic."""

    def __init__(self, s: ScalarBuilder):
        self.s = s

    def number(self, value: int) -> SSAValue:
        """Returns an i32 constant, given as signed or unsigned number."""
        return self.s.number(value - (1 << 32) if value >> 31 else value, i32)

    def op(self, kind: type, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """Inserts a binary op; an int operand becomes a constant."""
        return self.s.op(kind, a, self.number(b) if isinstance(b, int) else b)

    def and_(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """a & b"""
        return self.op(arith.AndIOp, a, b)

    def or_(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """a | b"""
        return self.op(arith.OrIOp, a, b)

    def add(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """a + b"""
        return self.op(arith.AddiOp, a, b)

    def left(self, a: SSAValue, b: int) -> SSAValue:
        """a << b"""
        return self.op(arith.ShLIOp, a, b) if b else a

    def right(self, a: SSAValue, b: int) -> SSAValue:
        """a >> b, unsigned"""
        return self.op(arith.ShRUIOp, a, b) if b else a

    def where(
        self, predicate: str, pair: tuple[SSAValue, int], yes: SSAValue | int, no: SSAValue
    ) -> SSAValue:
        """pair[0] predicate pair[1] ? yes : no"""
        condition = self.s.insert(arith.CmpiOp(pair[0], self.number(pair[1]), predicate)).results[0]
        return self.s.select(condition, self.number(yes) if isinstance(yes, int) else yes, no)

    def of(self, value: SSAValue) -> SSAValue:
        """Bitcasts f32 to i32."""
        return self.s.insert(arith.BitcastOp(value, i32)).results[0]

    def float(self, value: SSAValue) -> SSAValue:
        """Bitcasts i32 to f32."""
        return self.s.insert(arith.BitcastOp(value, f32)).results[0]


F32_NAN = 0x7FC00000


def widened(s: ScalarBuilder, code: SSAValue, name: str) -> SSAValue:
    """Converts a code, an i8, to f32, exactly."""
    b = _Bits(s)
    code = s.op(arith.ExtUIOp, code, i32)
    if name == EXPONENT_ONLY:
        # Code 0 is 2^-127, which is subnormal in f32.
        bits = b.where("eq", (code, 0), 1 << (F32_DIGITS - 1), b.left(code, F32_DIGITS))
        return b.float(b.where("eq", (code, 0xFF), F32_NAN, bits))
    form = FORMATS[name]
    size, sign = b.and_(code, form.sign - 1), b.and_(code, form.sign)
    scale = s.number(2.0 ** (F32_BIAS - form.bias), f32)
    number = s.op(arith.MulfOp, b.float(b.left(size, F32_DIGITS - form.digits)), scale)
    bits = b.of(number)
    if form.specials == "ieee":
        bits = b.where("eq", (size, form.infinity), F32_INFINITY, bits)
        bits = b.where("sgt", (size, form.infinity), F32_NAN, bits)
    elif form.specials == "nan":
        bits = b.where("eq", (size, form.nan), F32_NAN, bits)
    bits = b.or_(bits, b.left(sign, 32 - form.bits))
    if form.specials == "unsigned-zero":
        bits = b.where("eq", (code, form.nan), F32_NAN | F32_SIGN, bits)
    return b.float(bits)


def rounded(s: ScalarBuilder, value: SSAValue, name: str, *, saturate: bool = False) -> SSAValue:
    """
    Rounds an f32 or f64 to the nearest code, an i8, ties to even. With `saturate`, numbers that
    overflow, infinities included, become the largest number.
    """
    b = _Bits(s)
    bits = b.of(value) if isinstance(value.type, Float32Type) else _to_odd(b, value)
    if name == EXPONENT_ONLY:
        return s.op(arith.TruncIOp, _exponent(b, bits), i8)
    form = FORMATS[name]
    size = b.and_(bits, F32_SIZE)
    sign = b.and_(b.right(bits, 32 - form.bits), form.sign)
    code = _magnitude(b, size, form)
    largest = form.largest if saturate else form.overflow
    code = b.where("sgt", (code, form.largest), largest, code)
    code = b.where("sgt", (size, F32_INFINITY), form.nan, code)
    signed = b.or_(code, sign)
    if form.specials == "unsigned-zero":
        # The format has no -0, and the code of NaN is the sign bit alone.
        signed = b.where("eq", (code, 0), code, signed)
    elif form.specials == "finite":
        # ml_dtypes converts NaN to the zero of opposite sign.
        other = b.op(arith.XOrIOp, sign, form.sign)
        signed = b.where("sgt", (size, F32_INFINITY), other, signed)
    return s.op(arith.TruncIOp, signed, i8)


def _magnitude(b: _Bits, size: SSAValue, form: NarrowFloat) -> SSAValue:
    """Rounds the magnitude of an f32 to a code, which may exceed the largest number."""
    dropped = F32_DIGITS - form.digits
    # Subnormals: adding a power of two rounds the code into the low bits of the mantissa.
    aligned = ((F32_BIAS - form.bias) + dropped + 1) << F32_DIGITS
    magic = b.float(b.number(aligned))
    small = b.add(b.of(b.s.op(arith.AddfOp, b.float(size), magic)), -aligned & 0xFFFFFFFF)
    odd = b.and_(b.right(size, dropped), 1)
    moved = ((form.bias - F32_BIAS) << F32_DIGITS) + (1 << (dropped - 1)) - 1
    normal = b.right(b.add(b.add(size, moved & 0xFFFFFFFF), odd), dropped)
    first_normal = (F32_BIAS - form.bias + 1) << F32_DIGITS
    return b.where("slt", (size, first_normal), small, normal)


def _exponent(b: _Bits, bits: SSAValue) -> SSAValue:
    """Returns the f8E8M0FNU code of an f32: ties round up; zero, inf, NaN and x < 0 are NaN."""
    # Subnormals below 1.5 * 2^-127 become 2^-127, code 0; these have no implicit one.
    code = b.right(b.add(bits, 1 << (F32_DIGITS - 1)), F32_DIGITS)
    code = b.where("slt", (bits, 3 << (F32_DIGITS - 2)), 0, code)
    code = b.where("sge", (bits, F32_INFINITY), 0xFF, code)
    return b.where("sle", (bits, 0), 0xFF, code)


def _to_odd(b: _Bits, value: SSAValue) -> SSAValue:
    """
    Rounds an f64 to the bits of an f32 with round-to-odd, so that rounding the result again is the
    same as rounding once.
    """
    s = b.s
    assert isinstance(value.type, Float64Type)
    near = s.op(arith.TruncFOp, value, f32)
    back, bits = s.op(arith.ExtFOp, near, f64), b.of(near)
    absolute = s.number((1 << 63) - 1, i64)
    wide = (s.insert(arith.BitcastOp(x, i64)).results[0] for x in (back, value))
    sizes = [s.op(arith.AndIOp, x, absolute) for x in wide]
    beyond = s.insert(arith.CmpiOp(sizes[0], sizes[1], "sgt")).results[0]
    bits = s.select(beyond, b.add(bits, 0xFFFFFFFF), bits)
    inexact = s.op(arith.CmpfOp, back, value, "une")
    return s.select(inexact, b.or_(bits, 1), bits)


def storage_width(width: int) -> int | None:
    """Returns the bits of the integer that stores one of that width; None beyond 64."""
    return next((size for size in (8, 16, 32, 64) if width <= size), None)


def stored(kind: Attribute) -> IntegerType | None:
    """
    Returns the integer type that stores elements of a type without arithmetic on any target: floats
    of at most 8 bits, and integers of other widths than 1, 8, 16, 32, 64. None for other types.
    """
    if narrow_float(kind) is not None:
        return i8
    if not isinstance(kind, IntegerType) or kind.width.data == 1:
        return None
    width = kind.width.data
    size = storage_width(width)
    if size is None or size == width:
        return None
    return IntegerType(size, kind.signedness)
