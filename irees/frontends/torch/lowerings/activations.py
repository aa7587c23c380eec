"""Activations and other composite elementwise functions."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...builder import Scalar, Tensor
from ..calls import Call, lowers
from ..operators import aten


def _activation(fn: Any) -> Any:
    def lower(call: Call, x: Tensor, *parameters: Any) -> Tensor:
        return call.elementwise(lambda v: fn(v, *call.numbers_in(v, parameters)), x)

    return lower


_ACTIVATIONS: dict[Any, Any] = {
    aten.silu.default: lambda v: v * v.sigmoid(),
    aten.hardtanh.default: lambda v, low, high: v.clamp(low, high),
    aten.hardsigmoid.default: lambda v: (v + 3).clamp(0.0, 6.0) / 6,
    aten.hardswish.default: lambda v: v * (v + 3).clamp(0.0, 6.0) / 6,
    aten.mish.default: lambda v: v * _softplus(v, 1.0, 20.0).tanh(),
    aten.softplus.default: lambda v, beta, threshold: _softplus(v, beta, threshold),
    aten.elu.default: lambda v, alpha, scale, inner: _elu(v, alpha, scale, inner),
    aten.selu.default: lambda v: _elu(v, 1.6732632423543772, 1.0507009873554805, 1.0),
    aten.celu.default: lambda v, alpha: _elu(v, alpha, 1.0, 1.0 / alpha),
    aten.leaky_relu.default: lambda v, slope: (v > 0).where(v, v * slope),
    aten.threshold.default: lambda v, bound, value: (v <= bound).where(value, v),
    aten.softshrink.default: lambda v, bound: _softshrink(v, bound),
    aten.hardshrink.default: lambda v, bound: ((v >= -bound) & (v <= bound)).where(0.0, v),
    aten.logit.default: lambda v, eps: _logit(v, eps),
    aten.special_logit.default: lambda v, eps: _logit(v, eps),
    aten.sinc.default: lambda v: _sinc(v),
    aten.special_sinc.default: lambda v: _sinc(v),
    aten.deg2rad.default: lambda v: v * (math.pi / 180),
    aten.rad2deg.default: lambda v: v * (180 / math.pi),
    aten.special_entr.default: lambda v: _entropy(v),
    aten.frac.default: lambda v: v - v.trunc(),
}


def _softplus(v: Scalar, beta: float, threshold: float) -> Scalar:
    scaled = v * beta
    return (scaled > threshold).where(v, scaled.exp().log1p() / beta)


def _elu(v: Scalar, alpha: float, scale: float, inner: float) -> Scalar:
    return (v > 0).where(v * scale, (v * inner).expm1() * (alpha * scale))


def _softshrink(v: Scalar, bound: float) -> Scalar:
    return (v > bound).where(v - bound, (v < -bound).where(v + bound, v * 0.0))


def _logit(v: Scalar, eps: float | None) -> Scalar:
    if eps is not None:
        v = v.clamp(eps, 1 - eps)
    return (v / (1 - v)).log()


def _sinc(v: Scalar) -> Scalar:
    if v.dtype.is_complex:
        w = v * math.pi
        return (v == 0).where(1.0, w.sin() / w)
    w = v * math.pi
    return (v == 0).where(1.0, w.sin() / w)


def _entropy(v: Scalar) -> Scalar:
    inside = (v > 0).where(-v * v.log(), (v == 0).where(0.0, v._other(-math.inf)))
    return v.isnan().where(v, inside)


for _op, _fn in _ACTIVATIONS.items():
    if _fn is not None:
        lowers(_op)(_activation(_fn))


@lowers(aten.relu.default)
def relu(call: Call, x: Tensor) -> Tensor:
    """max(x, 0)"""
    return call.elementwise(lambda v: v.maximum(0), x)


@lowers(aten.relu6.default)
def relu6(call: Call, x: Tensor) -> Tensor:
    """min(max(x, 0), 6)"""
    return call.elementwise(lambda v: v.clamp(0, 6), x)


@lowers(aten.gelu.default)
def gelu(call: Call, x: Tensor, *, approximate: str) -> Tensor:
    """x Phi(x), with Phi by erf or by tanh"""

    def exact(v: Scalar) -> Scalar:
        return v * 0.5 * ((v * math.sqrt(0.5)).erf() + 1)

    def by_tanh(v: Scalar) -> Scalar:
        inner = (v + v * v * v * 0.044715) * math.sqrt(2 / math.pi)
        return v * 0.5 * (inner.tanh() + 1)

    return call.elementwise(by_tanh if approximate == "tanh" else exact, x)


@lowers(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(call: Call, x: Tensor) -> tuple[Tensor, Tensor]:
    """min(x, 0) - log1p(exp(-|x|)); the second result is empty on CPUs"""
    result = call.elementwise(lambda v: v.minimum(0.0) - (-v.abs()).exp().log1p(), x)
    return result, call.b.empty(call.dtype(1), call.shape(1))


@lowers(aten.log_sigmoid.default)
def log_sigmoid(call: Call, x: Tensor) -> Tensor:
    """min(x, 0) - log1p(exp(-|x|))"""
    return call.elementwise(lambda v: v.minimum(0.0) - (-v.abs()).exp().log1p(), x)


@lowers(aten.prelu.default, aten._prelu_kernel.default)
def prelu(call: Call, x: Tensor, weight: Tensor) -> Tensor:
    """x > 0 ? x : weight[channel] x"""
    from ...builder.shapes import reshape

    if weight.rank == 1 and x.rank > 1:
        shape = [1, weight.shape[0], *[1] * (x.rank - 2)]
        weight = reshape(call.b, weight, shape)
    if not x.rank:
        weight = reshape(call.b, weight, ())
    return call.elementwise(lambda v, w: (v > 0).where(v, v * w), x, weight)


@lowers(aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other)
def xlogy(call: Call, x: Any, y: Any) -> Tensor:
    """x log(y); 0 if x is 0"""

    def body(u: Scalar, v: Scalar) -> Scalar:
        return v.isnan().where(v, (u == 0).where(0.0, u * v.log()))

    return call.elementwise(body, x, y)


@lowers(aten.special_xlog1py.default)
def xlog1py(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """x log1p(y); 0 if x is 0"""

    def body(u: Scalar, v: Scalar) -> Scalar:
        return v.isnan().where(v, (u == 0).where(0.0, u * v.log1p()))

    return call.elementwise(body, x, y)


@lowers(aten.logaddexp.default)
def logaddexp(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """log(exp(x) + exp(y)), shifted by the larger operand"""

    return call.elementwise(log_add, x, y)


def log_add(u: Scalar, v: Scalar) -> Scalar:
    """log(exp(u) + exp(v)), shifted by the operand with the larger (real part of the) value."""
    if u.dtype.is_complex:
        first = u.re() >= v.re()
        top, low = first.where(u, v), first.where(v, u)
        none = (top.re() == -math.inf) | ((u.re() == v.re()) & u.re().isinf())
        return none.where(u, top + ((low - top).exp() + 1.0).log())
    top, equal = u.maximum(v), u == v
    near = (-(u - v).abs()).exp().log1p()
    # The difference of equal infinities is NaN.
    return (equal & u.isinf()).where(u, top + near)


@lowers(aten.logaddexp2.default)
def logaddexp2(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """log2(2^x + 2^y), shifted by the larger operand"""

    def body(u: Scalar, v: Scalar) -> Scalar:
        top, equal = u.maximum(v), u == v
        near = ((-(u - v).abs()).exp2() + 1).log2()
        return (equal & u.isinf()).where(u, top + near)

    return call.elementwise(body, x, y)


@lowers(aten.heaviside.default)
def heaviside(call: Call, x: Tensor, values: Tensor) -> Tensor:
    """1 for x > 0, `values` for x = 0, else 0 (also for NaN)"""
    return call.elementwise(
        lambda v, at: (v == 0).where(at, (v > 0).where(1, v._other(0))), x, values
    )


@lowers(aten.nan_to_num.default)
def nan_to_num(call: Call, x: Tensor, nan: Any, high: Any, low: Any) -> Tensor:
    """x with NaN and the infinities replaced by finite numbers"""
    if x.dtype.is_integer:
        return x
    info = torch.finfo(call.fake().dtype)
    top = info.max if high is None else high
    bottom = info.min if low is None else low

    def fix(v: Scalar) -> Scalar:
        v = v.isnan().where(nan or 0.0, v)
        return (v == math.inf).where(top, (v == -math.inf).where(bottom, v))

    def body(v: Scalar) -> Scalar:
        return fix(v.re()).with_imaginary(fix(v.im())) if v.dtype.is_complex else fix(v)

    return call.elementwise(body, x)
