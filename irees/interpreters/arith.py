"""
arith: wrapping integers, floats rounded after every op, and a defined result for every input.

Division by zero gives all ones, and the dividend as remainder. MIN / -1 wraps. A shift by the width
or more shifts out all bits. A float out of range saturates to the integer type, and NaN becomes 0.
All functions take numpy scalars and arrays alike. numpy and ml_dtypes compute f16 and bf16 in f32
and round, like the compiled program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation

from irees.interpreters.machine import Machine
from irees.interpreters.registry import Prepared, implements, pure
from irees.interpreters.values import constant, dtype_of, element_type, is_array


@dataclass(frozen=True)
class Width:
    """An integer type: its bits, and the numpy types that hold it."""

    bits: int
    signed_type: np.dtype[Any]
    unsigned_type: np.dtype[Any]

    @staticmethod
    def of(kind: Attribute) -> Width:
        """The width of an integer type, of index, or of the elements of a shaped type."""
        kind = element_type(kind)
        bits = kind.width.data if isinstance(kind, IntegerType) else 64
        size = next(n for n in (1, 2, 4, 8) if 8 * n >= bits)
        return Width(bits, np.dtype(f"i{size}"), np.dtype(f"u{size}"))

    @property
    def exact(self) -> bool:
        """Whether the numpy type has the same width, and thus the same wrapping."""
        return self.bits == 8 * self.signed_type.itemsize

    def signed(self, x: Any) -> Any:
        """The value as a signed number; true is -1."""
        if self.bits == 1:
            return -x.astype(np.int8)
        return x.view(self.signed_type) if x.dtype.kind == "u" else x

    def unsigned(self, x: Any) -> Any:
        """The value as an unsigned number."""
        if self.bits == 1:
            return x.astype(np.uint8)
        x = x.view(self.unsigned_type)
        return x if self.exact else x & self.unsigned_type.type((1 << self.bits) - 1)

    def wrap(self, x: Any) -> Any:
        """Wraps a number of the signed or unsigned numpy type to this type."""
        if self.bits == 1:
            return (x & x.dtype.type(1)).astype(np.bool_)
        x = (
            x.view(self.signed_type)
            if x.dtype == self.unsigned_type
            else x.astype(self.signed_type)
        )
        if self.exact:
            return x
        shift = self.signed_type.type(8 * self.signed_type.itemsize - self.bits)
        return (x << shift) >> shift

    def python(self, number: int) -> Any:
        """Wraps a Python integer to this type."""
        number &= (1 << self.bits) - 1
        if self.bits == 1:
            return np.bool_(number)
        return self.signed_type.type(
            number - (1 << self.bits) if number >> (self.bits - 1) else number
        )


def truncated_division(a: int, b: int) -> int:
    """a / b towards zero; -1 for b = 0."""
    if b == 0:
        return -1
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _floor_division(a: int, b: int) -> int:
    return a // b if b else -1


def _ceil_division(a: int, b: int) -> int:
    return -(-a // b) if b else -1


def _remainder(a: int, b: int) -> int:
    return a - b * truncated_division(a, b) if b else a


def _divide(a: Any, b: Any, mode: str) -> Any:
    """Divides arrays of one integer type; mode is truncate, floor, ceil or rem."""
    zero, minus = b == 0, (b == -1) if a.dtype.kind == "i" else np.zeros_like(b, bool)
    divisor = np.where(zero | minus, b.dtype.type(1), b)
    floor = a // divisor
    rest = a - floor * divisor
    inexact = rest != 0
    opposite = (a < 0) != (divisor < 0)
    quotient = floor
    if mode in ("truncate", "rem"):
        quotient = floor + (inexact & opposite)
    elif mode == "ceil":
        quotient = floor + inexact
    if mode == "rem":
        return np.where(zero, a, np.where(minus, a.dtype.type(0), a - quotient * divisor))
    ones = ~b.dtype.type(0)
    return np.where(zero, ones, np.where(minus, a.dtype.type(0) - a, quotient)).astype(a.dtype)


_DIVISIONS: dict[str, tuple[bool, str, Callable[[int, int], int]]] = {
    "arith.divsi": (True, "truncate", truncated_division),
    "arith.divui": (False, "truncate", truncated_division),
    "arith.remsi": (True, "rem", _remainder),
    "arith.remui": (False, "rem", _remainder),
    "arith.floordivsi": (True, "floor", _floor_division),
    "arith.ceildivsi": (True, "ceil", _ceil_division),
    "arith.ceildivui": (False, "ceil", _ceil_division),
}


@implements(*_DIVISIONS, elementwise=True)
def _division(machine: Machine, op: Operation) -> Prepared:
    """a / b, defined for all inputs"""
    w = Width.of(op.operands[0].type)
    signed, mode, scalar = _DIVISIONS[op.name]
    convert = w.signed if signed else w.unsigned

    def run(a: Any, b: Any):
        a, b = convert(a), convert(b)
        if is_array(a) or is_array(b):
            return (w.wrap(_divide(np.asarray(a), np.asarray(b), mode)),)
        return (w.python(scalar(int(a), int(b))),)

    return run


def _shift(a: Any, b: Any, w: Width, left: bool) -> Any:
    limit = w.unsigned_type.type(w.bits)
    amount = w.unsigned(b)
    over = amount >= limit
    small = np.minimum(amount, limit - limit.dtype.type(1)).astype(a.dtype)
    if left:
        return np.where(over, a.dtype.type(0), a << small)
    fill = (
        a.dtype.type(0)
        if a.dtype.kind == "u"
        else np.where(a < 0, a.dtype.type(-1), a.dtype.type(0))
    )
    return np.where(over, fill, a >> small).astype(a.dtype)


@implements("arith.shli", "arith.shrsi", "arith.shrui", elementwise=True)
def _shifts(machine: Machine, op: Operation) -> Prepared:
    """Shifts; an amount of the width or more shifts out all bits."""
    w = Width.of(op.operands[0].type)
    name = op.name
    convert = w.signed if name == "arith.shrsi" else w.unsigned

    def run(a: Any, b: Any):
        result = w.wrap(_shift(convert(a), b, w, name == "arith.shli"))
        return (result if is_array(a) or is_array(b) else result[()],)

    return run


def _ring(name: str, f: Callable[[Any, Any], Any]) -> None:
    @implements(name, elementwise=True)
    def prepare(machine: Machine, op: Operation) -> Prepared:
        w = Width.of(op.operands[0].type)
        if w.exact:
            return lambda a, b: (f(a, b),)
        return lambda a, b: (w.wrap(f(w.signed(a), w.signed(b))),)


_ring("arith.addi", lambda a, b: a + b)
_ring("arith.subi", lambda a, b: a - b)
_ring("arith.muli", lambda a, b: a * b)
pure("arith.andi", lambda a, b: a & b)
pure("arith.ori", lambda a, b: a | b)
pure("arith.xori", lambda a, b: a ^ b)

_EXTREMES = {
    "arith.maxsi": (True, np.maximum),
    "arith.minsi": (True, np.minimum),
    "arith.maxui": (False, np.maximum),
    "arith.minui": (False, np.minimum),
}


@implements(*_EXTREMES, elementwise=True)
def _extreme(machine: Machine, op: Operation) -> Prepared:
    """The maximum or minimum of two integers."""
    w = Width.of(op.operands[0].type)
    signed, f = _EXTREMES[op.name]
    convert = w.signed if signed else w.unsigned
    return lambda a, b: (w.wrap(f(convert(a), convert(b))),)


@implements(
    "arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended", elementwise=True
)
def _extended(machine: Machine, op: Operation) -> Prepared:
    """The sum and its carry, or the low and high half of the full product."""
    w = Width.of(op.operands[0].type)
    convert = w.signed if op.name == "arith.mulsi_extended" else w.unsigned
    adds = op.name == "arith.addui_extended"
    exact = np.frompyfunc(lambda a, b: int(a) + int(b) if adds else int(a) * int(b), 2, 1)
    low = np.frompyfunc(w.python, 1, 1)
    high = np.frompyfunc(lambda x: w.python(x >> w.bits), 1, 1)
    low_type, high_type = (dtype_of(r.type) for r in op.results)

    def run(a: Any, b: Any):
        whole = exact(convert(a), convert(b))
        pair = np.asarray(low(whole)).astype(low_type), np.asarray(high(whole)).astype(high_type)
        return pair if is_array(a) or is_array(b) else (pair[0][()], pair[1][()])

    return run


_CMPI: tuple[tuple[bool, Callable[[Any, Any], Any]], ...] = (
    (True, lambda a, b: a == b), (True, lambda a, b: a != b),
    (True, lambda a, b: a < b), (True, lambda a, b: a <= b),
    (True, lambda a, b: a > b), (True, lambda a, b: a >= b),
    (False, lambda a, b: a < b), (False, lambda a, b: a <= b),
    (False, lambda a, b: a > b), (False, lambda a, b: a >= b),
)  # fmt: skip


@implements("arith.cmpi", elementwise=True)
def _cmpi(machine: Machine, op: Operation) -> Prepared:
    """Compares two integers."""
    w = Width.of(op.operands[0].type)
    signed, f = _CMPI[op.properties["predicate"].value.data]  # pyright: ignore
    if signed and w.bits > 1:
        return lambda a, b: (f(a, b),)
    convert = w.signed if signed else w.unsigned
    return lambda a, b: (f(convert(a), convert(b)),)


# --- floats ------------------------------------------------------------------------------

pure("arith.addf", lambda a, b: a + b)
pure("arith.subf", lambda a, b: a - b)
pure("arith.mulf", lambda a, b: a * b)
pure("arith.divf", lambda a, b: a / b)
pure("arith.remf", np.fmod)
pure("arith.negf", lambda a: -a)


def _choose(condition: Any, a: Any, b: Any) -> Any:
    if is_array(condition):
        return np.where(condition, a, b)
    return a if condition else b


def maximum(a: Any, b: Any) -> Any:
    """The maximum; NaN if either is NaN; -0 < +0."""
    return _choose(a == b, _choose(a == 0, a + b, a), _choose((a > b) | (a != a), a, b))


def minimum(a: Any, b: Any) -> Any:
    """The minimum; NaN if either is NaN; -0 < +0."""
    return _choose(a == b, _choose(a == 0, -(-a - b), a), _choose((a < b) | (a != a), a, b))


pure("arith.maximumf", maximum)
pure("arith.minimumf", minimum)
pure("arith.maxnumf", lambda a, b: _choose((a > b) | (b != b), a, b))
pure("arith.minnumf", lambda a, b: _choose((a < b) | (b != b), a, b))
pure("arith.maximumnumf", lambda a, b: _choose(b != b, a, _choose(a != a, b, maximum(a, b))))
pure("arith.minimumnumf", lambda a, b: _choose(b != b, a, _choose(a != a, b, minimum(a, b))))


def _false(a: Any, b: Any) -> Any:
    return (a != a) & (a == a) & (b != b)


_CMPF: tuple[Callable[[Any, Any], Any], ...] = (
    _false,
    lambda a, b: a == b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: (a < b) | (a > b),
    lambda a, b: (a == a) & (b == b),
    lambda a, b: ~((a < b) | (a > b)),
    lambda a, b: ~(a <= b),
    lambda a, b: ~(a < b),
    lambda a, b: ~(a >= b),
    lambda a, b: ~(a > b),
    lambda a, b: a != b,
    lambda a, b: (a != a) | (b != b),
    lambda a, b: ~_false(a, b),
)


@implements("arith.cmpf", elementwise=True)
def _cmpf(machine: Machine, op: Operation) -> Prepared:
    """Compares two floats."""
    f = _CMPF[op.properties["predicate"].value.data]  # pyright: ignore

    def run(a: Any, b: Any):
        result = f(a, b)
        return (np.bool_(result) if isinstance(result, bool) else result,)

    return run


# --- choice, constants, casts ---------------------------------------------------------------


@implements("arith.constant")
def _constant(machine: Machine, op: Operation) -> Prepared:
    """A constant."""
    result = (constant(op.properties["value"]),)
    return lambda: result


@implements("arith.select", elementwise=True)
def _select(machine: Machine, op: Operation) -> Prepared:
    """One of two values."""
    return lambda condition, a, b: (_choose(condition, a, b),)


def _cast(*names: str):
    return implements(*names, elementwise=True)


@_cast("arith.extsi", "arith.index_cast", "arith.trunci")
def _signed_cast(machine: Machine, op: Operation) -> Prepared:
    """Converts a signed integer to another width."""
    source, target = Width.of(op.operands[0].type), Width.of(op.results[0].type)
    return lambda a: (target.wrap(source.signed(a)),)


@_cast("arith.extui", "arith.index_castui")
def _unsigned_cast(machine: Machine, op: Operation) -> Prepared:
    """Converts an unsigned integer to another width."""
    source, target = Width.of(op.operands[0].type), Width.of(op.results[0].type)
    return lambda a: (target.wrap(source.unsigned(a)),)


@_cast("arith.sitofp", "arith.uitofp")
def _int_to_float(machine: Machine, op: Operation) -> Prepared:
    """The float nearest to an integer (rounded to f32 first for smaller floats)."""
    source, target = Width.of(op.operands[0].type), dtype_of(op.results[0].type)
    convert = source.signed if op.name == "arith.sitofp" else source.unsigned
    if target.itemsize >= 4:
        return lambda a: (convert(a).astype(target),)
    return lambda a: (convert(a).astype(np.float32).astype(target),)


@_cast("arith.fptosi", "arith.fptoui")
def _float_to_int(machine: Machine, op: Operation) -> Prepared:
    """Rounds towards zero to an integer; saturates out of range, 0 for NaN."""
    w = Width.of(op.results[0].type)
    signed = op.name == "arith.fptosi"
    low = -(1 << (w.bits - 1)) if signed else 0
    high = (1 << (w.bits - 1)) - 1 if signed else (1 << w.bits) - 1
    container = w.signed_type if signed else w.unsigned_type

    def run(a: Any):
        x = np.trunc(np.asarray(a).astype(np.float64))
        inside = (x > low) & (x < float(high))
        whole = np.where(inside, x, 0.0).astype(container)
        whole = np.where(x <= low, container.type(low), whole)
        result = w.wrap(np.where(x >= float(high), container.type(high), whole))
        return (result if is_array(a) else result[()],)

    return run


@_cast("arith.scaling_extf", "arith.scaling_truncf")
def _scaling_cast(machine: Machine, op: Operation) -> Prepared:
    """Multiplies or divides a float by a power-of-two scale, and converts the type."""
    source, target = (dtype_of(v.type) for v in (op.operands[0], op.results[0]))
    exponent = np.dtype(ml_dtypes.float8_e8m0fnu)
    if op.name == "arith.scaling_extf":
        return lambda a, s: (a.astype(target) * s.astype(exponent).astype(target),)
    return lambda a, s: ((a / s.astype(exponent).astype(source)).astype(target),)


def _to_odd(a: Any) -> Any:
    """Rounds f64 to f32 with round-to-odd, so that a second rounding is correct."""
    x = np.asarray(a)
    near = x.astype(np.float32)
    bits, back = near.view(np.int32), near.astype(np.float64)
    bits = np.where(np.abs(back) > np.abs(x), bits - 1, bits)
    odd = np.where(back != x, bits | 1, bits).astype(np.int32).view(np.float32)
    return odd if is_array(a) else odd[()]


@_cast("arith.extf", "arith.truncf")
def _float_cast(machine: Machine, op: Operation) -> Prepared:
    """
    Converts a float to another type with a single rounding to nearest even; f64 to bf16 through
    f32, as PyTorch does.
    """
    source, target = (dtype_of(v.type) for v in (op.operands[0], op.results[0]))
    if source == np.float64 and target == ml_dtypes.bfloat16:
        return lambda a: (a.astype(np.float32).astype(target),)
    if source == np.float64 and target.itemsize == 1:
        # ml_dtypes would round to f32 first, which rounds twice.
        return lambda a: (_to_odd(a).astype(target),)
    return lambda a: (a.astype(target),)


@_cast("arith.bitcast", "tensor.bitcast")
def _bitcast(machine: Machine, op: Operation) -> Prepared:
    """Reinterprets the bits as another type."""
    kinds = [element_type(v.type) for v in (op.operands[0], op.results[0])]
    target = dtype_of(kinds[1])
    # In its byte, a float of fewer than 8 bits is zero-extended, an integer sign-extended.
    source, width = (Width.of(k) if isinstance(k, IntegerType) else None for k in kinds)

    def run(a: Any):
        if a.dtype.kind == "b" or target.kind == "b":
            return (a.astype(target),)
        if source is not None and width is None:
            a = source.unsigned(a)
        bits = (np.asarray(a, order="C") if is_array(a) else a).view(target)
        return (bits if width is None else width.wrap(bits),)

    return run
