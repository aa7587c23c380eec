"""
Expands casts of floats that processors lack into arithmetic and other casts.

Processors cast vectors of f32 to i32, but no instruction saturates as these casts do here; only
AVX-512 casts to integers of 64 bits. Halves are cast from and to f32 only. What stays is one cast
per lane.

| op | method |
|---|---|
| fptosi, fptoui of vectors of f32 to what i32 holds | a cast of clamp(x) to i32 |
| fptosi, fptoui of other vectors | the low bits of x + 1.5 * 2^23 or 2^52, in one or two parts |
| extf, truncf between halves and f64 | through f32, rounded to odd |

PyTorch casts what is out of range and NaN to the least integer, as x86 does; frontends write a
select for it. Before the cast, the select needs lanes of floats only, and the cast no other clamp:

    select (x < 2^63), (fptosi x), -2^63  =>  fptosi (select (x < 2^63), x, -2^63)

    %y = arith.fptosi %x : vector<8xf32> to vector<8xi8>
  =>
    %n = arith.select (isnan %x), 0.0, %x ; %c = clamp %n, -128.0, 127.0
    %i = arith.fptosi %c : vector<8xf32> to vector<8xi32> ; arith.trunci %i

All are exact. On GPUs, whose threads cast scalars, casts between floats stay. MLIR: `arith-expand`.
"""

from __future__ import annotations

import math as python_math
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    ModuleOp,
    VectorType,
    f32,
    f64,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees_target import target_of
from irees.transforms.utils.constants import constant_number
from irees.transforms.utils.formula import Formula
from irees.transforms.utils.lanes import HALVES

DEEPEST = 8
"""Maximum length of a chain of ops that is followed."""

ROUNDING = (math.RoundEvenOp, math.RoundOp, math.FloorOp, math.CeilOp, math.TruncOp)
CLAMPING = (arith.MaximumfOp, arith.MinimumfOp)
"""The result is NaN if an operand is."""
ABOVE, BELOW = (2, 3), (4, 5)
"""Predicates of `arith.cmpf`: `ogt` and `oge`, `olt` and `ole`. They do not hold for NaN."""
EVERYTHING = -python_math.inf, python_math.inf
I32 = -(1 << 31), (1 << 31) - 1
"""The least and the largest number of an i32."""


def bounds(value: SSAValue, depth: int = DEEPEST) -> tuple[float, float]:
    """Returns the least and the largest number that a float may be, where it is not NaN."""
    known, owner = constant_number(value), value.owner
    if known is not None:
        return EVERYTHING if known != known else (known, known)
    if depth == 0:
        return EVERYTHING
    if isinstance(owner, CLAMPING):
        choose = max if isinstance(owner, arith.MaximumfOp) else min
        (a, b), (c, d) = (bounds(x, depth - 1) for x in owner.operands)
        return choose(a, c), choose(b, d)
    if isinstance(owner, arith.SelectOp):
        (a, b), (c, d) = _where(owner, depth), bounds(owner.rhs, depth - 1)
        return min(a, c), max(b, d)
    if isinstance(owner, ROUNDING):
        low, high = bounds(owner.operands[0], depth - 1)
        whole = -python_math.inf < low and high < python_math.inf
        return (python_math.floor(low), python_math.ceil(high)) if whole else (low, high)
    return EVERYTHING


def _where(op: arith.SelectOp, depth: int) -> tuple[float, float]:
    """Returns the bounds of the first choice of a select, where the condition holds."""
    low, high = bounds(op.lhs, depth - 1)
    for predicate, limit in _limits_of_choice(op):
        if predicate in ABOVE:
            low = max(low, limit)
        if predicate in BELOW:
            strict = predicate == BELOW[0]
            high = min(high, _next_below(limit, op.lhs.type) if strict else limit)
    return low, high


def _limits_of_choice(op: arith.SelectOp) -> list[tuple[int, float]]:
    """The comparisons of a select's first choice with constants: predicate and constant."""
    found: list[tuple[int, float]] = []
    conditions = [op.cond]
    while conditions:
        owner = conditions.pop().owner
        if isinstance(owner, arith.AndIOp):
            conditions += owner.operands
        elif isinstance(owner, arith.CmpfOp) and owner.lhs is op.lhs:
            limit = constant_number(owner.rhs)
            if limit is not None and limit == limit:
                found.append((owner.predicate.value.data, limit))
    return found


def _next_below(limit: float, kind: Attribute) -> float:
    """The largest number of a float type below a limit."""
    element = kind.element_type if isinstance(kind, VectorType) else kind
    dtype = np.float32 if isinstance(element, Float32Type) else np.float64
    return float(np.nextafter(dtype(limit), dtype(-np.inf)))


def may_be_nan(value: SSAValue) -> bool:
    """Whether a float may be NaN; constants and what was compared are known."""
    known, owner = constant_number(value), value.owner
    if known is not None:
        return known != known
    if not isinstance(owner, arith.SelectOp):
        return True
    compared = any(predicate in ABOVE + BELOW for predicate, _ in _limits_of_choice(owner))
    return not compared or may_be_nan(owner.rhs)


def cast_of_choice(op: arith.FPToSIOp) -> arith.FPToSIOp | None:
    """
    select(x < 2^(n - 1), fptosi(x), -2^(n - 1))  =>  fptosi(select(x < 2^(n - 1), x, -2^(n - 1)))

    Returns the new cast, or None if nothing else uses the result than such a select. An x that is
    known to be below the limit needs no select.
    """
    choice, kind = op.result.get_user_of_unique_use(), op.result.type
    if not isinstance(choice, arith.SelectOp) or choice.lhs is not op.result:
        return None
    condition = choice.cond.owner
    if not isinstance(condition, arith.CmpfOp) or condition.lhs is not op.input:
        return None
    assert isinstance(kind, VectorType)
    bound = 2.0 ** (kind.element_type.width.data - 1)
    limits = constant_number(condition.rhs), constant_number(choice.rhs)
    if condition.predicate.value.data != BELOW[0] or limits != (bound, -bound):
        return None
    f = Formula(op)
    f.point = InsertPoint.before(choice)
    inside = op.input
    if may_be_nan(inside) or bounds(inside)[1] >= bound:
        inside = f.select(condition.result, inside, f.number(-bound))
    cast = arith.FPToSIOp(inside, kind)
    Rewriter.replace_op(choice, cast)
    Rewriter.erase_op(op)
    return cast


def is_whole(value: SSAValue, depth: int = DEEPEST) -> bool:
    """Whether a float is known to be a whole number, infinite or NaN."""
    known, owner = constant_number(value), value.owner
    if known is not None:
        return known != known or float(known).is_integer()
    if isinstance(owner, (*CLAMPING, arith.AddfOp)):
        # A sum of whole numbers is whole, and rounded it stays so.
        return depth > 0 and all(is_whole(x, depth - 1) for x in owner.operands)
    if isinstance(owner, arith.SelectOp):
        return depth > 0 and all(is_whole(x, depth - 1) for x in (owner.lhs, owner.rhs))
    return isinstance(owner, ROUNDING)


@dataclass(frozen=True)
class Mantissa:
    """
    What the mantissa of a float type holds. The bits of a sum with `magic` less those of `magic`
    are the other addend, for whole numbers of a magnitude up to `small`. `half` bits of an integer
    as wide as the float are a whole number in this range, and `clipped` are the bits that the type
    lacks for the largest integers of that width.
    """

    magic: float
    bits: int
    small: int
    half: int
    clipped: int


F32 = Mantissa(1.5 * 2.0**23, 0x4B400000, (1 << 22) - 1, 16, 8)
F64 = Mantissa(1.5 * 2.0**52, 0x4338000000000000, (1 << 51) - 1, 32, 11)


def has_formula(op: Operation) -> bool:
    """Whether an op casts a vector of f32 or f64 to integers that have lanes."""
    source, target = (x.type for x in (op.operands[0], op.results[0]))
    if not isinstance(source, VectorType) or not isinstance(target, VectorType):
        return False
    kind = target.element_type
    has_lanes = isinstance(kind, IntegerType) and kind.width.data in (1, 8, 16, 32, 64)
    return has_lanes and isinstance(source.element_type, Float32Type | Float64Type)


def to_int(op: Operation, wide: bool) -> SSAValue | None:
    """
    fptosi(x : vector of floats), fptoui  =>  trunc(clamp(x)) as an integer

    A number out of range becomes the nearest integer, NaN becomes 0. Scalars stay. A number that is
    known to be in range is not clamped again, and one that is known to be whole is not rounded.
    f32 are cast to i32 by the processor. Integers of 64 bits are computed in f64, unless the
    processor casts `wide` ones.
    """
    (x,), kind = op.operands, op.results[0].type
    if not has_formula(op):
        return None
    assert isinstance(kind, VectorType)
    width, low, high = _limits(op, kind)
    known, whole = bounds(x), is_whole(x)
    most = max(-known[0], known[1])
    f = Formula(op)
    if width > F64.half and most > F32.small:
        if wide and low < 0:
            return _in_range(f, x, kind, known)
        if not f.double:
            f = Formula(op, element=f64)
            x = f.insert(arith.ExtFOp(x, f.kind(f64)))
    number = f.select(f.is_nan(x), f.number(0.0), x) if may_be_nan(x) else x
    if not f.double and min(high, most) <= I32[1]:
        low, high = max(low, I32[0]), min(high, I32[1])
        return _resized(f, _to_i32(f, number, known, low, high), kind)
    has = F64 if f.double else F32
    if min(high, most) > has.small:
        return _resized(f, _large(f, has, number, low, high), kind)
    low, high = max(low, -F64.small), min(high, F64.small)
    inside = _clamped(f, number, known, low, high)
    return _resized(f, _small(f, F64, inside if whole else f.trunc(inside)), kind)


def _limits(op: Operation, kind: VectorType) -> tuple[int, int, int]:
    """Returns the width of the integers that an op casts to, and the least and the largest one."""
    width: int = kind.element_type.width.data
    signed = isinstance(op, arith.FPToSIOp)
    return width, -(1 << width - 1) if signed else 0, (1 << width - signed) - 1


def _in_range(f: Formula, x: SSAValue, kind: VectorType, known: tuple[float, float]) -> SSAValue:
    """fptosi(x : vector of floats) : i64  =>  fptosi(clamp(x)), which the processor casts"""
    low, high = -(1 << 63), (1 << 63) - 1
    has = F64 if f.double else F32
    # A float lacks the more bits of an integer of 64 than of one as wide as itself.
    clipped = has.clipped + 2 * (F64.half - has.half)
    below = float(high + 1 - (1 << clipped - 1))
    number = f.select(f.is_nan(x), f.number(0.0), x) if may_be_nan(x) else x
    cast = f.insert(arith.FPToSIOp(_clamped(f, number, known, low, below), kind))
    if known[1] <= below:
        return cast
    largest = f.insert(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [high])))
    return f.select(f.less(f.number(below), number), largest, cast)


def _clamped(
    f: Formula, number: SSAValue, known: tuple[float, float], low: float, high: float
) -> SSAValue:
    """clamp(number, low, high), of which a side that is known to hold is left out"""
    if known[0] < low:
        lowest = f.number(low)
        number = f.select(f.less(number, lowest), lowest, number)
    if known[1] > high:
        highest = f.number(high)
        number = f.select(f.less(highest, number), highest, number)
    return number


def _to_i32(
    f: Formula, number: SSAValue, known: tuple[float, float], low: int, high: int
) -> SSAValue:
    """clamp(number : f32) as i32, which the processor casts; i32 has more bits than f32"""
    most = min(high, I32[1] + 1 - (1 << F32.clipped - 1))
    cast = f.insert(arith.FPToSIOp(_clamped(f, number, known, low, most), f.kind(i32)))
    if known[1] <= most or most == high:
        return cast
    return f.select(f.less(f.number(most), number), f.integer(high), cast)


def _large(f: Formula, has: Mantissa, number: SSAValue, low: int, high: int) -> SSAValue:
    """trunc(clamp(number)) in two halves of the integer"""
    below = float(high + 1 - (1 << has.clipped - (low < 0)))
    whole = f.trunc(f.clamp(number, low, below))
    upper = f.trunc(f.mul(whole, 2.0**-has.half))
    lower = _small(f, has, f.sub(whole, f.mul(upper, 2.0**has.half)))
    upper = f.int_op(arith.ShLIOp, _small(f, has, upper), f.integer(has.half))
    largest = f.integer(high if low < 0 else -1)
    return f.select(f.less(f.number(below), number), largest, f.int_op(arith.AddiOp, upper, lower))


def _small(f: Formula, has: Mantissa, whole: SSAValue) -> SSAValue:
    """whole  =>  bits(whole + magic) - bits(magic), for magnitudes up to `has.small`"""
    return f.int_op(arith.SubiOp, f.bits(f.add(whole, has.magic)), f.integer(has.bits))


def _resized(f: Formula, number: SSAValue, kind: VectorType) -> SSAValue:
    """A signed integer as wide as the floats, in the bits of another type."""
    have, want = (x.element_type.width.data for x in (number.type, kind))
    if have == want:
        return number
    return f.insert((arith.TruncIOp if want < have else arith.ExtSIOp)(number, kind))


def cast_half(op: Operation) -> SSAValue | None:
    """
    extf(x : f16 or bf16) : f64  =>  extf(extf(x) : f32)
    truncf(x : f64) : f16  =>  truncf(odd(x) : f32)
    truncf(x : f64) : bf16  =>  truncf(truncf(x) : f32)

    Processors convert halves from and to f32. odd(x) is x if that is an f32, else the neighbour
    whose last bit is 1: rounded again, it gives what x rounded once does (Boldo and Melquiond,
    "Emulation of a FMA and correctly rounded sums", 2008). bf16 is rounded twice, as in PyTorch.
    """
    x, kind, f = op.operands[0], op.results[0].type, Formula(op, element=f32)
    ends = [v.element_type if isinstance(v, VectorType) else v for v in (x.type, kind)]
    if not isinstance(ends[op.name == "arith.extf"], Float64Type):
        return None
    if isinstance(op, arith.ExtFOp):
        wide = isinstance(ends[0], HALVES)
        return (
            f.insert(arith.ExtFOp(f.insert(arith.ExtFOp(x, f.kind(f32))), kind)) if wide else None
        )
    if not isinstance(ends[1], HALVES):
        return None
    near = f.insert(arith.TruncFOp(x, f.kind(f32)))
    odd = _odd(f, Formula(op), x, near) if isinstance(ends[1], Float16Type) else near
    return f.insert(arith.TruncFOp(odd, kind))


def _odd(f: Formula, double: Formula, x: SSAValue, near: SSAValue) -> SSAValue:
    """x : f64 as an f32, rounded to odd; `near` is x, rounded to nearest."""
    back, bits, one = f.insert(arith.ExtFOp(near, x.type)), f.bits(near), f.integer(1)
    sizes = [double.absolute(v) for v in (x, back)]
    odd = f.int_op(arith.OrIOp, bits, one)
    below = f.int_op(arith.OrIOp, f.int_op(arith.SubiOp, bits, one), one)
    beyond, short = double.less(*sizes), double.less(*sizes[::-1])
    return f.from_bits(f.select(beyond, below, f.select(short, odd, bits)))


@dataclass(frozen=True)
class ExpandCastsPass(ModulePass):
    """Expands casts between floats, and of vectors of floats to integers."""

    name = "irees-expand-casts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for inner in list(op.walk()):
            result = None
            if isinstance(inner, arith.FPToSIOp) and has_formula(inner):
                inner = cast_of_choice(inner) or inner
            if isinstance(inner, arith.FPToSIOp | arith.FPToUIOp):
                result = to_int(inner, target.casts_wide_integers)
            elif isinstance(inner, arith.ExtFOp | arith.TruncFOp) and target.gpu is None:
                result = cast_half(inner)
            if result is not None:
                Rewriter.replace_op(inner, [], [result])
