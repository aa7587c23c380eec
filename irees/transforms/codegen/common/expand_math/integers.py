"""Casts of vectors of f32 to integers."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerType, VectorType
from xdsl.ir import Operation, SSAValue

from irees.transforms.codegen.common.expand_math.exponentials import MAGIC
from irees.transforms.codegen.common.expand_math.float_facts import bounds, is_whole
from irees.transforms.utils.formula import Formula

MAGIC_BITS = 0x4B400000
"""The bits of MAGIC, which count whole numbers near to it."""

MOST_NARROW = 16
"""The largest width of integers that fit into the mantissa beside MAGIC."""

SMALL = (1 << 22) - 1
"""The largest magnitude of a whole number that is read from the mantissa beside MAGIC."""

INT_BITS = 32
"""Width of the integers that hold the bits of an f32."""

BELOW_2_31 = 2147483520.0
"""The largest f32 below 2^31."""


def has_formula(op: Operation) -> bool:
    """Whether an op casts a vector of f32 to integers of at most 32 bits, unsigned ones of 16."""
    source, target = (x.type for x in (op.operands[0], op.results[0]))
    if not isinstance(source, VectorType) or not isinstance(target, VectorType):
        return False
    kind, widest = target.element_type, INT_BITS if isinstance(op, arith.FPToSIOp) else MOST_NARROW
    is_int = isinstance(kind, IntegerType) and 1 < kind.width.data <= widest
    return is_int and isinstance(source.element_type, Float32Type)


def to_int(op: Operation) -> SSAValue | None:
    """
    fptosi(x : vector of f32), fptoui  =>  trunc(clamp(x)) as an integer

    A number out of range becomes the nearest integer, NaN becomes 0. Scalars, unsigned integers of
    32 bits and integers of 64 bits stay. A number that is known to be in range is not clamped
    again, and one that is known to be whole is not rounded.
    """
    (x,), kind = op.operands, op.results[0].type
    if not has_formula(op):
        return None
    assert isinstance(kind, VectorType)
    width, signed = kind.element_type.width.data, isinstance(op, arith.FPToSIOp)
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    f, known = Formula(op), bounds(x)
    if width > MOST_NARROW and -SMALL <= known[0] and known[1] <= SMALL:
        low, high = -SMALL, SMALL
    number = f.select(f.is_nan(x), f.number(0.0), x)
    if high > SMALL:
        return _large_int(f, number, low, high)
    inside = number if low <= known[0] and known[1] <= high else f.clamp(number, low, high)
    whole = _small_int(f, inside if is_whole(x) else f.trunc(inside))
    return whole if width == INT_BITS else f.insert(arith.TruncIOp(whole, kind))


def _large_int(f: Formula, number: SSAValue, low: int, high: int) -> SSAValue:
    """trunc(clamp(number)) in two halves of 16 bits"""
    whole = f.trunc(f.clamp(number, low, BELOW_2_31))
    upper = f.trunc(f.mul(whole, 2.0**-16))
    lower = _small_int(f, f.sub(whole, f.mul(upper, 2.0**16)))
    upper = f.int_op(arith.ShLIOp, _small_int(f, upper), f.integer(16))
    return f.select(
        f.less(f.number(BELOW_2_31), number), f.integer(high), f.int_op(arith.AddiOp, upper, lower)
    )


def _small_int(f: Formula, whole: SSAValue) -> SSAValue:
    """whole : f32  =>  bits(whole + 1.5 * 2^23) - bits(1.5 * 2^23), for magnitudes below 2^22"""
    return f.int_op(arith.SubiOp, f.bits(f.add(whole, MAGIC)), f.integer(MAGIC_BITS))
