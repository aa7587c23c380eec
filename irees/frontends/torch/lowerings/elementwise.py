"""Elementwise operators: arithmetic, comparison, bits, conversion, activations."""

from __future__ import annotations

import math
from typing import Any

import torch
from xdsl.ir import SSAValue

from ...builder import Scalar, Tensor
from ...builder.dtypes import BOOL, INDEX
from ..calls import Call, lowers, lowers_named
from ..dtypes import dtype_of
from ..operators import aten

# --- unary float functions ---

_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "erf",
    "erfc", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
    "atanh", "sigmoid",
)  # fmt: skip


def _of_complex(name: str, z: Scalar) -> Scalar:
    """Expresses functions that the complex dialect lacks with those that it has."""
    one = z._other(1.0)
    i = z._other(1j)
    rules: dict[str, Any] = {
        "exp2": lambda: (z * math.log(2)).exp(),
        "log2": lambda: z.log() * (1 / math.log(2)),
        "log10": lambda: z.log() * (1 / math.log(10)),
        "sinh": lambda: -i * (i * z).sin(),
        "cosh": lambda: (i * z).cos(),
        "asinh": lambda: _complex_asinh(z, one),
        "acosh": lambda: (z + (z + one).sqrt() * (z - one).sqrt()).log(),
        "atanh": lambda: ((one + z).log() - (one - z).log()) * 0.5,
        "asin": lambda: -i * (i * z + (one - z * z).sqrt()).log(),
        "acos": lambda: -i * (z + i * (one - z * z).sqrt()).log(),
        "atan": lambda: ((one - i * z).log() - (one + i * z).log()) * 0.5j,
        "sigmoid": lambda: one / (one + (-z).exp()),
    }
    return rules[name]() if name in rules else z.call(name)


def _complex_asinh(z: Scalar, one: Scalar) -> Scalar:
    """log(z + sqrt(z^2 + 1)), computed in the right half-plane to avoid cancellation."""
    left = z.re() < 0
    right = left.where(-z, z)
    found = (right + (right * right + one).sqrt()).log()
    return left.where(-found, found)


def _unary(name: str) -> Any:
    def lower(call: Call, x: Any) -> Tensor:
        return call.elementwise(
            lambda v: _of_complex(name, v) if v.dtype.is_complex else getattr(v, name)(), x
        )

    return lower


for _name in _FUNCTIONS:
    lowers(getattr(aten, _name).default)(_unary(_name))
lowers(aten.special_erf.default)(_unary("erf"))
lowers(aten.special_erfc.default)(_unary("erfc"))
lowers(aten.special_exp2.default)(_unary("exp2"))
lowers(aten.special_expm1.default)(_unary("expm1"))
lowers(aten.special_log1p.default)(_unary("log1p"))
lowers(aten.special_expit.default)(_unary("sigmoid"))
for _short, _long in (
    ("acos", "arccos"), ("acosh", "arccosh"), ("asin", "arcsin"), ("asinh", "arcsinh"),
    ("atan", "arctan"), ("atanh", "arctanh"),
):  # fmt: skip
    lowers(getattr(aten, _long).default)(_unary(_short))

_WHOLE = {"floor": aten.floor, "ceil": aten.ceil, "trunc": aten.trunc, "round": aten.round}


def _rounding(name: str) -> Any:
    def lower(call: Call, x: Tensor) -> Tensor:
        return call.elementwise(lambda v: v if v.dtype.is_integer else v.call(name), x)

    return lower


for _name, _op in _WHOLE.items():
    lowers(_op.default)(_rounding(_name))
lowers(aten.fix.default)(_rounding("trunc"))
lowers(aten.special_round.default)(_rounding("round"))


@lowers(aten.round.decimals)
def round_decimals(call: Call, x: Tensor, *, decimals: int) -> Tensor:
    """round(x * 10^n) / 10^n"""
    scale = 10.0 ** abs(decimals)
    if decimals >= 0:
        return call.elementwise(lambda v: (v * scale).round() / scale, x)
    return call.elementwise(lambda v: (v / scale).round() * scale, x)


@lowers(aten.abs.default, aten.absolute.default)
def abs_(call: Call, x: Tensor) -> Tensor:
    """|x|"""
    return call.b.map(lambda v: v.to(v.dtype.computed).abs(), x, dtype=call.dtype())


@lowers(aten.neg.default, aten.negative.default)
def neg(call: Call, x: Tensor) -> Tensor:
    """-x"""
    return call.elementwise(lambda v: -v, x)


@lowers(aten.positive.default)
def positive(call: Call, x: Tensor) -> Tensor:
    """x"""
    return x


@lowers(aten.reciprocal.default)
def reciprocal(call: Call, x: Tensor) -> Tensor:
    """1 / x"""
    return call.elementwise(lambda v: 1 / v, x)


@lowers(aten.sign.default, aten.sgn.default)
def sign(call: Call, x: Tensor) -> Tensor:
    """-1, 0 or 1; z / |z|"""
    return call.elementwise(lambda v: v.sign(), x)


@lowers(aten.square.default)
def square(call: Call, x: Tensor) -> Tensor:
    """x * x"""
    return call.elementwise(lambda v: v * v, x)


@lowers(aten.isnan.default)
def isnan(call: Call, x: Tensor) -> Tensor:
    """Whether x is NaN"""
    if x.dtype.is_integer:
        return call.b.full(0, BOOL, x.shape)
    return call.b.map(lambda v: v.isnan(), x, dtype=BOOL)


@lowers(aten.isinf.default)
def isinf(call: Call, x: Tensor) -> Tensor:
    """Whether x is infinite"""
    if x.dtype.is_integer:
        return call.b.full(0, BOOL, x.shape)
    return call.b.map(lambda v: v.isinf(), x, dtype=BOOL)


@lowers(aten.isfinite.default)
def isfinite(call: Call, x: Tensor) -> Tensor:
    """Whether x is a finite number"""
    if x.dtype.is_integer:
        return call.b.full(1, BOOL, x.shape)
    return call.b.map(lambda v: v.isfinite(), x, dtype=BOOL)


@lowers(aten.isposinf.default)
def isposinf(call: Call, x: Tensor) -> Tensor:
    """x == inf"""
    if x.dtype.is_integer:
        return call.b.full(0, BOOL, x.shape)
    return call.b.map(lambda v: v == math.inf, x, dtype=BOOL)


@lowers(aten.isneginf.default)
def isneginf(call: Call, x: Tensor) -> Tensor:
    """x == -inf"""
    if x.dtype.is_integer:
        return call.b.full(0, BOOL, x.shape)
    return call.b.map(lambda v: v == -math.inf, x, dtype=BOOL)


@lowers(aten.signbit.default)
def signbit(call: Call, x: Tensor) -> Tensor:
    """Whether the sign bit is set"""
    return call.b.map(lambda v: v.signbit(), x, dtype=BOOL)


# --- binary arithmetic ---


@lowers(aten.add.Tensor, aten.add.Scalar)
def add(call: Call, x: Any, y: Any, alpha: Any = 1) -> Tensor:
    """x + alpha * y"""
    return _scaled_sum(call, x, y, alpha)


@lowers(aten.sub.Tensor, aten.sub.Scalar, aten.subtract.Tensor, aten.subtract.Scalar)
def sub(call: Call, x: Any, y: Any, alpha: Any = 1) -> Tensor:
    """x - alpha * y"""
    return _scaled_sum(call, x, y, alpha, subtract=True)


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(call: Call, x: Any, y: Any, alpha: Any = 1) -> Tensor:
    """y - alpha * x"""
    return _scaled_sum(call, y, x, alpha, subtract=True)


def _scaled_sum(call: Call, x: Any, y: Any, alpha: Any, subtract: bool = False) -> Tensor:
    x, y = call.rounded(x), call.rounded(y)
    if alpha == 1 and not isinstance(alpha, Tensor):
        return call.elementwise((lambda u, v: u - v) if subtract else (lambda u, v: u + v), x, y)
    return call.elementwise(
        (lambda u, v, a: u - a * v) if subtract else (lambda u, v, a: u + a * v),
        x, y, call.rounded(alpha),
    )  # fmt: skip


@lowers(aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor, aten.multiply.Scalar)
def mul(call: Call, x: Any, y: Any) -> Tensor:
    """x * y"""
    return call.elementwise(lambda u, v: u * v, x, y)


@lowers(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor, aten.divide.Tensor)
def div(call: Call, x: Any, y: Any) -> Tensor:
    """x / y"""
    return call.elementwise(lambda u, v: u / v, x, y)


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode, aten.divide.Tensor_mode)
def div_mode(call: Call, x: Any, y: Any, *, rounding_mode: str | None) -> Tensor:
    """x / y, floored, truncated or unrounded"""
    if rounding_mode is None:
        return div(call, x, y)
    if rounding_mode == "floor":
        return floor_divide(call, x, y)
    return _divided(
        call, lambda u, v: u.truncdiv(v) if u.dtype.is_integer else (u / v).trunc(), x, y
    )


def _divided(call: Call, fn: Any, x: Any, y: Any) -> Tensor:
    """fn(x, y); aborts a run in which an integer divisor is 0, as PyTorch does"""
    kind, message = call.dtype().computed, "an integer is divided by zero"
    if not kind.is_integer:
        return call.elementwise(fn, x, y)
    if isinstance(y, SSAValue):
        # Checked once: a check in the body would keep the op from being fused into a broadcast.
        count = (call.b.value(call.b.product(call.shape())), INDEX)
        fine = call.b.compute(lambda v, n: (v.to(kind) != 0) | (n == 0), (y, INDEX), count)
        call.b.check(fine.value, message)

    def element(u: Scalar, v: Scalar) -> Scalar:
        if isinstance(y, Tensor) or (isinstance(y, int | float) and kind.wrap(int(y)) == 0):
            v.body.check(v != 0, message)
        return fn(u, v)

    return call.elementwise(element, x, y)


@lowers(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(call: Call, x: Any, y: Any) -> Tensor:
    """floor(x / y)"""
    return _divided(call, lambda u, v: u.floordiv(v), x, y)


@lowers(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(call: Call, x: Any, y: Any) -> Tensor:
    """x - floor(x / y) * y"""
    return _divided(call, lambda u, v: u.mod(v), x, y)


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(call: Call, x: Any, y: Any) -> Tensor:
    """x - trunc(x / y) * y"""
    return _divided(call, lambda u, v: u.rem(v), x, y)


@lowers(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar)
def pow_(call: Call, x: Any, y: Any) -> Tensor:
    """x^y; small integer powers are products"""
    if isinstance(y, float) and y.is_integer() and abs(y) <= 3:
        y = int(y)
    if isinstance(y, int) and not isinstance(y, bool) and not isinstance(x, int | float):
        return _whole_power(call, x, y)
    if y in (0.5, -0.5) and not isinstance(y, Tensor) and not call.dtype().is_complex:
        return call.elementwise(lambda v: v.sqrt() if y == 0.5 else 1 / v.sqrt(), x)
    return call.elementwise(lambda u, v: u.pow(v), x, y)


def _whole_power(call: Call, x: Any, y: int) -> Tensor:
    def power(v: Scalar) -> Scalar:
        if y == 0:
            return v._other(1)
        result = v
        for _ in range(abs(y) - 1):
            result = result * v
        return 1 / result if y < 0 else result

    if abs(y) > 3 or (y < 0 and call.dtype().is_integer):
        return call.elementwise(
            lambda u, v: u.pow(v), x, y if call.dtype().is_integer else float(y)
        )
    return call.elementwise(power, x)


@lowers(aten.float_power.Tensor_Tensor, aten.float_power.Tensor_Scalar, aten.float_power.Scalar)
def float_power(call: Call, x: Any, y: Any) -> Tensor:
    """x^y in f64"""
    return call.elementwise(lambda u, v: u.pow(v), x, y)


@lowers(aten.atan2.default, aten.arctan2.default)
def atan2(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """atan(x / y) with the correct quadrant"""
    return call.elementwise(lambda u, v: u.atan2(v), x, y)


@lowers(aten.hypot.default)
def hypot(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """sqrt(x^2 + y^2), scaled by the larger operand to avoid overflow"""

    def body(u: Scalar, v: Scalar) -> Scalar:
        u, v = u.abs(), v.abs()
        big, small = u.maximum(v), u.minimum(v)
        ratio = small / (big == 0).where(1.0, big)
        result = big * (ratio * ratio + 1).sqrt()
        return (u.isinf() | v.isinf()).where(math.inf, result)

    return call.elementwise(body, x, y)


@lowers(aten.maximum.default, aten.max.other)
def maximum(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The larger operand; NaN if either is NaN"""
    return call.elementwise(lambda u, v: u.maximum(v), x, y)


@lowers(aten.minimum.default, aten.min.other)
def minimum(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The smaller operand; NaN if either is NaN"""
    return call.elementwise(lambda u, v: u.minimum(v), x, y)


@lowers(aten.fmax.default)
def fmax(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The larger operand; if one is NaN, the other"""
    return call.elementwise(lambda u, v: u.fmax(v), x, y)


@lowers(aten.fmin.default)
def fmin(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The smaller operand; if one is NaN, the other"""
    return call.elementwise(lambda u, v: u.fmin(v), x, y)


@lowers(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(call: Call, x: Any, y: Any) -> Tensor:
    """|x| with the sign of y"""
    return call.elementwise(lambda u, v: u.copysign(v), x, y)


@lowers(aten.addcmul.default)
def addcmul(call: Call, x: Tensor, t1: Tensor, t2: Tensor, *, value: Any) -> Tensor:
    """x + value * t1 * t2"""
    return call.elementwise(lambda x, u, v, a: x + a * u * v, x, t1, t2, value)


@lowers_named("prims::fma")
def fma(call: Call, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x * y + z; Inductor defines it, and Dynamo emits it for `add_` with a tensor alpha"""
    return call.elementwise(lambda u, v, w: u * v + w, x, y, z)


@lowers(aten.addcdiv.default)
def addcdiv(call: Call, x: Tensor, t1: Tensor, t2: Tensor, *, value: Any) -> Tensor:
    """x + value * (t1 / t2)"""
    return call.elementwise(lambda x, u, v, a: x + a * (u / v), x, t1, t2, value)


@lowers(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(call: Call, x: Tensor, y: Tensor, weight: Any) -> Tensor:
    """x + w (y - x), computed from the nearer end"""

    def body(u: Scalar, v: Scalar, w: Scalar) -> Scalar:
        near = w.abs() < 0.5
        return near.where(u + w * (v - u), v - (v - u) * (1 - w))

    return call.elementwise(body, x, y, weight)


@lowers(aten.clamp.default, aten.clamp.Tensor, aten.clip.default, aten.clip.Tensor)
def clamp(call: Call, x: Any, low: Any, high: Any) -> Tensor:
    """min(max(x, low), high)"""
    given = [call.rounded(v) for v in (low, high) if v is not None]

    def body(v: Scalar, *bounds: Scalar) -> Scalar:
        left = list(bounds)
        return v.clamp(
            left.pop(0) if low is not None else None, left.pop(0) if high is not None else None
        )

    return call.elementwise(body, x, *given)


@lowers(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(call: Call, x: Any, low: Any) -> Tensor:
    """max(x, low)"""
    return call.elementwise(lambda v, m: v.maximum(m), x, call.rounded(low))


@lowers(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(call: Call, x: Any, high: Any) -> Tensor:
    """min(x, high)"""
    return call.elementwise(lambda v, m: v.minimum(m), x, call.rounded(high))


# --- comparisons and logic ---

_COMPARISONS = {
    "eq": lambda u, v: u == v, "ne": lambda u, v: u != v, "lt": lambda u, v: u < v,
    "le": lambda u, v: u <= v, "gt": lambda u, v: u > v, "ge": lambda u, v: u >= v,
}  # fmt: skip


def _comparison(fn: Any) -> Any:
    def lower(call: Call, x: Any, y: Any) -> Tensor:
        kind = next(a.dtype for a in call.raw if isinstance(a, torch.Tensor))
        return call.compare(fn, call.rounded(x, kind), call.rounded(y, kind))

    return lower


for _name, _fn in _COMPARISONS.items():
    _packet = getattr(aten, _name)
    lowers(_packet.Tensor, _packet.Scalar)(_comparison(_fn))
for _name, _alias in (
    ("eq", None), ("ne", aten.not_equal), ("lt", aten.less), ("le", aten.less_equal),
    ("gt", aten.greater), ("ge", aten.greater_equal),
):  # fmt: skip
    if _alias is not None:
        lowers(_alias.Tensor, _alias.Scalar)(_comparison(_COMPARISONS[_name]))


def _logical(fn: Any) -> Any:
    def lower(call: Call, *operands: Any) -> Tensor:
        return call.b.map(
            lambda *v: fn(*(each.to(BOOL) for each in v)),
            *(call.tensor(o) for o in operands),
            dtype=BOOL,
        )

    return lower


lowers(aten.logical_and.default)(_logical(lambda u, v: u & v))
lowers(aten.logical_or.default)(_logical(lambda u, v: u | v))
lowers(aten.logical_xor.default)(_logical(lambda u, v: u ^ v))
lowers(aten.logical_not.default)(_logical(lambda v: ~v))

_BITS = {
    "bitwise_and": (lambda u, v: u & v, "__and__"),
    "bitwise_or": (lambda u, v: u | v, "__or__"),
    "bitwise_xor": (lambda u, v: u ^ v, "__xor__"),
    "bitwise_left_shift": (lambda u, v: u.shift_left(v), None),
    "bitwise_right_shift": (lambda u, v: u.shift_right(v), None),
}


def _bits(fn: Any) -> Any:
    def lower(call: Call, x: Any, y: Any) -> Tensor:
        return call.elementwise(fn, x, y)

    return lower


for _name, (_fn, _alias) in _BITS.items():
    _packet = getattr(aten, _name)
    _ops = [_packet.Tensor]
    _ops.append(_packet.Scalar if _alias else _packet.Tensor_Scalar)
    _ops.append(_packet.Scalar_Tensor)
    if _alias:
        _ops += [getattr(aten, _alias).Tensor, getattr(aten, _alias).Scalar]
    lowers(*_ops)(_bits(_fn))
lowers(aten.__lshift__.Tensor, aten.__lshift__.Scalar)(_bits(_BITS["bitwise_left_shift"][0]))
lowers(aten.__rshift__.Tensor, aten.__rshift__.Scalar)(_bits(_BITS["bitwise_right_shift"][0]))


@lowers(aten.bitwise_not.default)
def bitwise_not(call: Call, x: Tensor) -> Tensor:
    """~x"""
    return call.elementwise(lambda v: ~v, x)


@lowers(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)
def where(call: Call, condition: Tensor, x: Any, y: Any) -> Tensor:
    """condition ? x : y"""
    dtype = call.dtype()
    operands = [call.b.is_true(condition)]
    operands += [call.tensor(v, dtype) for v in (x, y)]
    return call.b.map(lambda c, u, v: c.where(u, v), *operands, dtype=dtype)


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(call: Call, x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """mask ? value : x"""
    operands = [call.b.is_true(mask), call.tensor(value, x.dtype), x]
    return call.b.map(lambda c, u, v: c.where(u, v), *operands, dtype=x.dtype)


# --- conversion ---


def _identity(call: Call, x: Any, *_: Any) -> Tensor:
    if not isinstance(x, Tensor):  # a number of a function that `vmap` has traced
        return call.tensor(x, call.dtype())
    return x if x.dtype is call.dtype() else call.b.cast(x, call.dtype())


lowers(
    aten._to_copy.default, aten.to.dtype, aten.to.dtype_layout, aten.to.device, aten.to.other,
    aten.type_as.default, aten.clone.default, aten.alias.default, aten.detach.default,
    aten.detach_.default, aten.lift_fresh_copy.default, aten.lift_fresh.default, aten.lift.default,
    aten.contiguous.default, aten.alias_copy.default, aten.detach_copy.default,
    aten._conj_copy.default, aten.resolve_conj.default, aten.resolve_neg.default,
)(_identity)  # fmt: skip


@lowers(
    aten._conj.default, aten._conj_physical.default, aten.conj.default, aten.conj_physical.default
)
def conj(call: Call, x: Tensor) -> Tensor:
    """The complex conjugate"""
    return call.b.map(lambda v: v.conj(), x) if x.dtype.is_complex else x


@lowers(aten._neg_view.default)
def neg_view(call: Call, x: Tensor) -> Tensor:
    """-x"""
    return call.elementwise(lambda v: -v, x)


@lowers(aten.real.default)
def real(call: Call, x: Tensor) -> Tensor:
    """The real part"""
    return call.b.map(lambda v: v.re(), x, dtype=call.dtype())


@lowers(aten.imag.default)
def imag(call: Call, x: Tensor) -> Tensor:
    """The imaginary part"""
    return call.b.map(lambda v: v.im(), x, dtype=call.dtype())


@lowers(aten.complex.default)
def complex_(call: Call, re: Tensor, im: Tensor) -> Tensor:
    """re + i im"""
    part = call.dtype().part
    return call.b.map(
        lambda u, v: u.to(part).with_imaginary(v.to(part)), re, im, dtype=call.dtype()
    )


@lowers(aten.polar.default)
def polar(call: Call, size: Tensor, angle: Tensor) -> Tensor:
    """size (cos(angle) + i sin(angle))"""
    return call.b.map(
        lambda r, a: (r * a.cos()).with_imaginary(r * a.sin()), size, angle, dtype=call.dtype()
    )


@lowers(aten.angle.default)
def angle(call: Call, x: Tensor) -> Tensor:
    """The argument of a complex number; 0 or pi for a real number"""
    part = call.dtype().computed
    return call.b.map(
        lambda v: (v if v.dtype.is_complex else v.to(part)).angle(), x, dtype=call.dtype()
    )


@lowers(torch.ops.prims.convert_element_type.default)
def convert_element_type(call: Call, x: Any, dtype: torch.dtype) -> Tensor:
    """x converted to another dtype"""
    return call.tensor(x, dtype_of(dtype))
