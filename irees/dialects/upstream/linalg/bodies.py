"""
Scalar bodies of the named linalg ops, the hidden regions that MLIR builds for them.

A body takes one argument per operand, casts its inputs to the accumulator type and yields. Casts
are `cast_signed` unless the op says otherwise: integers are sign-extended, floats are extended, and
so on. `BODIES` has the bodies by name. MLIR: `LinalgOps.cpp`, `RegionBuilderHelper`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, complex, math
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
)
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.type import get_element_type_or_self

Body = Callable[[Sequence[SSAValue], bool], SSAValue]
"""Builds a body from the block arguments and whether casts are unsigned; returns the result."""


def element_types(operands: Sequence[SSAValue]) -> list[Attribute]:
    """Returns the body's argument types: element types of shaped operands, scalars as they are."""
    return [
        get_element_type_or_self(value.type) if isinstance(value.type, ShapedType) else value.type
        for value in operands
    ]


_KINDS = {IndexType: "index", IntegerType: "integer", AnyFloat: "float"}
_CASTS = {
    ("index", "integer", 0): (arith.IndexCastOp, arith.IndexCastOp),
    ("integer", "index", 0): (arith.IndexCastOp, arith.IndexCastOp),
    ("integer", "integer", -1): (arith.TruncIOp, arith.TruncIOp),
    ("integer", "integer", 0): (arith.ExtSIOp, arith.ExtUIOp),
    ("integer", "integer", 1): (arith.ExtSIOp, arith.ExtUIOp),
    ("integer", "float", 0): (arith.SIToFPOp, arith.UIToFPOp),
    ("float", "integer", 0): (arith.FPToSIOp, arith.FPToUIOp),
    ("float", "float", -1): (arith.TruncFOp, arith.TruncFOp),
    ("float", "float", 1): (arith.ExtFOp, arith.ExtFOp),
}
"""
The ops of signed and unsigned casts, by the kinds of the types; of types of one kind also by
whether the result is narrower (-1) or wider (1).
"""


def _kind(type_: Attribute) -> str:
    return next((name for kind, name in _KINDS.items() if isinstance(type_, kind)), "other")


def cast(value: SSAValue, to: Attribute, unsigned: bool = False) -> SSAValue:
    """Casts `value` to `to` like linalg's `cast_signed` and `cast_unsigned`. Raises ValueError."""
    source = value.type
    if source == to:
        return value
    kinds, wider = (_kind(source), _kind(to)), 0
    if kinds in (("integer", "integer"), ("float", "float")):
        before, after = (type_.bitwidth for type_ in (source, to))  # type: ignore[attr-defined]
        wider = (after > before) - (after < before)
    ops = _CASTS.get((*kinds, wider))
    if ops is None:
        raise ValueError(f"linalg has no cast from {source} to {to}")
    return ops[unsigned](value, to).result


def _pick(value: SSAValue, of_float, of_int, of_bool=None, of_complex=None):
    type_ = value.type
    if isinstance(type_, AnyFloat):
        return of_float
    if isinstance(type_, ComplexType):
        return of_complex
    if of_bool is not None and isinstance(type_, IntegerType) and type_.width.data == 1:
        return of_bool
    return of_int


def _binary(op: type[Operation] | None, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    if op is None:
        raise ValueError(f"linalg has no such computation on {lhs.type}")
    return op(lhs, rhs).results[0]  # type: ignore[call-arg]


def add(a: SSAValue, b: SSAValue) -> SSAValue:
    """a + b; `or` of booleans."""
    return _binary(_pick(a, arith.AddfOp, arith.AddiOp, arith.OrIOp, complex.AddOp), a, b)


def sub(a: SSAValue, b: SSAValue) -> SSAValue:
    """a - b."""
    return _binary(_pick(a, arith.SubfOp, arith.SubiOp, None, complex.SubOp), a, b)


def mul(a: SSAValue, b: SSAValue) -> SSAValue:
    """a * b; `and` of booleans."""
    return _binary(_pick(a, arith.MulfOp, arith.MuliOp, arith.AndIOp, complex.MulOp), a, b)


def div(a: SSAValue, b: SSAValue) -> SSAValue:
    """a / b, signed."""
    return _binary(_pick(a, arith.DivfOp, arith.DivSIOp, None, complex.DivOp), a, b)


def div_unsigned(a: SSAValue, b: SSAValue) -> SSAValue:
    """a / b of unsigned integers."""
    return _binary(_pick(a, None, arith.DivUIOp), a, b)


def max_signed(a: SSAValue, b: SSAValue) -> SSAValue:
    """max(a, b), signed; NaN if either is NaN."""
    return _binary(_pick(a, arith.MaximumfOp, arith.MaxSIOp), a, b)


def max_unsigned(a: SSAValue, b: SSAValue) -> SSAValue:
    """max(a, b) of unsigned integers."""
    return _binary(_pick(a, arith.MaximumfOp, arith.MaxUIOp), a, b)


def min_signed(a: SSAValue, b: SSAValue) -> SSAValue:
    """min(a, b), signed; NaN if either is NaN."""
    return _binary(_pick(a, arith.MinimumfOp, arith.MinSIOp), a, b)


def min_unsigned(a: SSAValue, b: SSAValue) -> SSAValue:
    """min(a, b) of unsigned integers."""
    return _binary(_pick(a, arith.MinimumfOp, arith.MinUIOp), a, b)


def powf(a: SSAValue, b: SSAValue) -> SSAValue:
    """a to the power of b."""
    return _binary(_pick(a, math.PowFOp, None), a, b)


def _unary(name: str) -> Callable[[SSAValue], SSAValue]:
    op = getattr(math, name)
    return lambda value: op(value).results[0]


def _constant(value: SSAValue, number: int) -> SSAValue:
    if isinstance(value.type, AnyFloat):
        return arith.ConstantOp(FloatAttr(float(number), value.type)).result
    assert isinstance(value.type, IntegerType | IndexType)
    return arith.ConstantOp(IntegerAttr(number, value.type)).result


UNARY: dict[str, Callable[[SSAValue], SSAValue]] = {
    "abs": _unary("AbsFOp"),
    "ceil": _unary("CeilOp"),
    "erf": _unary("ErfOp"),
    "exp": _unary("ExpOp"),
    "floor": _unary("FloorOp"),
    "log": _unary("LogOp"),
    "negf": lambda value: arith.NegfOp(value).result,
    "reciprocal": lambda value: arith.DivfOp(_constant(value, 1), value).result,
    "round": _unary("RoundOp"),
    "rsqrt": _unary("RsqrtOp"),
    "sqrt": _unary("SqrtOp"),
    "square": lambda value: mul(value, value),
    "tanh": _unary("TanhOp"),
}
"""Unary functions of `linalg.elementwise` and of the named elementwise ops."""

BINARY: dict[str, Callable[[SSAValue, SSAValue], SSAValue]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "div_unsigned": div_unsigned,
    "max": max_signed,
    "max_signed": max_signed,
    "max_unsigned": max_unsigned,
    "min": min_signed,
    "min_signed": min_signed,
    "min_unsigned": min_unsigned,
    "powf": powf,
}
"""Binary functions of `linalg.elementwise` and of the named elementwise ops."""


def contraction(args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
    """out + cast(a) * cast(b)."""
    a, b, out = args
    return add(out, mul(cast(a, out.type, unsigned), cast(b, out.type, unsigned)))


def quantized(args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
    """out + (cast(a) - a_zero_point) * (cast(b) - b_zero_point)."""
    a, b, a_zero, b_zero, out = args
    lhs = sub(cast(a, out.type, unsigned), cast(a_zero, out.type, unsigned))
    rhs = sub(cast(b, out.type, unsigned), cast(b_zero, out.type, unsigned))
    return add(out, mul(lhs, rhs))


def _pooling(combine: Callable[[SSAValue, SSAValue], SSAValue], is_unsigned: bool = False) -> Body:
    def body(args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        image, _window, out = args
        return combine(out, cast(image, out.type, unsigned or is_unsigned))

    return body


def copy(args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
    """cast(input)."""
    return cast(args[0], args[1].type, unsigned)


def elementwise(function: str) -> Body:
    """Returns the body that casts each input to the output type and applies `function`."""

    def body(args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        *inputs, out = args
        if function == "select":
            return arith.SelectOp(
                inputs[0], *(cast(v, out.type, unsigned) for v in inputs[1:])
            ).result
        values = [cast(value, out.type, unsigned) for value in inputs]
        if function in UNARY:
            if function == "abs" and isinstance(out.type, IntegerType):
                return math.AbsIOp(*values).result
            return UNARY[function](*values)
        return BINARY[function](*values)

    return body


def fill_rng_2d(args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
    """
    A pseudo-random number in [min, max] that depends only on the seed and the indices: two rounds
    of a 32-bit linear congruential generator, mapped to the interval in f64.
    """
    from xdsl.dialects.builtin import f64, i32
    from xdsl.dialects.linalg.ops import IndexOp

    low, high, seed, out = args

    def constant(number: int | float, type_: Attribute) -> SSAValue:
        attr = FloatAttr(number, f64) if type_ == f64 else IntegerAttr(number, i32)
        return arith.ConstantOp(attr).result

    def step(value: SSAValue) -> SSAValue:
        scaled = arith.MuliOp(value, constant(1103515245, i32)).result
        return arith.AddiOp(scaled, constant(12345, i32)).result

    row = cast(IndexOp(0).result, i32)
    column = cast(IndexOp(1).result, i32)
    state = step(arith.AddiOp(row, seed).result)
    state = step(arith.AddiOp(column, state).result)
    width = arith.MulfOp(
        arith.SubfOp(high, low).result, constant(2.3283063999999999e-10, f64)
    ).result
    value = arith.MulfOp(
        arith.AddfOp(arith.SIToFPOp(state, f64).result, constant(2147483647.0, f64)).result, width
    ).result
    return cast(arith.AddfOp(value, low).result, out.type)


BODIES: dict[str, Body] = {
    "contraction": contraction,
    "quantized": quantized,
    "copy": copy,
    "sum": _pooling(add),
    "max": _pooling(max_signed),
    "max_unsigned": _pooling(max_unsigned, is_unsigned=True),
    "min": _pooling(min_signed),
    "min_unsigned": _pooling(min_unsigned, is_unsigned=True),
    "fill_rng_2d": fill_rng_2d,
}


def hidden_region(
    body: Body, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], unsigned: bool = False
) -> Region:
    """
    Returns the region of a named op over these operands. Raises ValueError if the types do not fit.
    """
    block = Block(arg_types=element_types((*inputs, *outputs)))
    with ImplicitBuilder(block):
        YieldOp(body(block.args, unsigned))
    return Region(block)
