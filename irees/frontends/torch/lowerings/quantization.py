"""Quantization, dequantization, and integer matrix products."""

from __future__ import annotations

from typing import Any

import torch
import torch.ao.quantization.fx._decomposed

from ...builder import Scalar, Tensor, contractions, shapes
from ...builder.dtypes import BOOL, F32, I32
from ..calls import Call, lowers

aten, quantized = torch.ops.aten, torch.ops.quantized_decomposed


def _rounded(v: Scalar, scale: Scalar, zero: Scalar, low: int, high: int) -> Scalar:
    """clamp(round(v / scale) + zero, low, high), as a float."""
    return ((v * (1 / scale)).round() + zero).clamp(float(low), float(high))


@lowers(quantized.quantize_per_tensor.default, quantized.quantize_per_tensor.tensor)
def quantize(call: Call, x: Tensor, scale: Any, zero: Any, low: int, high: int, _: Any) -> Tensor:
    """clamp(round(x / scale) + zero, low, high)"""
    return call.elementwise(lambda v, s, z: _rounded(v, s, z, low, high), x, scale, zero, wide=F32)


@lowers(quantized.dequantize_per_tensor.default, quantized.dequantize_per_tensor.tensor)
def dequantize(call: Call, x: Tensor, scale: Any, zero: Any, *_: Any) -> Tensor:
    """(x - zero) * scale"""
    return call.elementwise(lambda v, s, z: (v - z) * s, x, scale, zero, wide=F32)


def _channels(call: Call, x: Tensor, t: Tensor, axis: int) -> Tensor:
    return shapes.reshape(call.b, t, [t.shape[0], *[1] * (x.rank - axis % x.rank - 1)])


@lowers(quantized.quantize_per_channel.default)
def quantize_channels(
    call: Call, x: Tensor, scales: Tensor, zeros: Tensor, axis: int, low: int, high: int, _: Any
) -> Tensor:
    """clamp(round(x / scale) + zero, low, high) with per-channel scales and zero points"""
    columns = [_channels(call, x, t, axis) for t in (scales, zeros)]
    return call.elementwise(lambda v, s, z: _rounded(v, s, z, low, high), x, *columns, wide=F32)


@lowers(quantized.dequantize_per_channel.default)
def dequantize_channels(
    call: Call, x: Tensor, scales: Tensor, zeros: Tensor | None, axis: int, *_: Any
) -> Tensor:
    """(x - zero) * scale with per-channel scales and zero points"""
    columns = [_channels(call, x, t, axis) for t in (scales, zeros) if t is not None]
    return call.elementwise(lambda v, s, *z: (v - z[0] if z else v) * s, x, *columns, wide=F32)


@lowers(
    aten.fake_quantize_per_tensor_affine.default,
    aten.fake_quantize_per_tensor_affine.tensor_qparams,
)  # fmt: skip
def fake_quantize(call: Call, x: Tensor, scale: Any, zero: Any, low: int, high: int) -> Tensor:
    """(clamp(round(x / scale) + zero, low, high) - zero) * scale"""
    return call.elementwise(
        lambda v, s, z: (_rounded(v, s, z, low, high) - z) * s, x, scale, zero, wide=F32
    )


@lowers(aten.fake_quantize_per_tensor_affine_cachemask.default)
def fake_quantize_mask(
    call: Call, x: Tensor, scale: Any, zero: Any, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """`fake_quantize`, and the mask of elements that were not clamped"""

    def inside(v: Scalar, s: Scalar, z: Scalar) -> Scalar:
        place = (v * (1 / s)).round() + z
        return (place >= float(low)) & (place <= float(high))

    result = call.elementwise(
        lambda v, s, z: (_rounded(v, s, z, low, high) - z) * s, x, scale, zero, wide=F32
    )
    return result, call.elementwise(inside, x, scale, zero, wide=F32, dtype=BOOL)


@lowers(aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default)
def fake_quantize_mask_by_tensors(
    call: Call, x: Tensor, scale: Tensor, zero: Tensor, enabled: Tensor, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """`fake_quantize_mask` if enabled, else x and a mask of ones; parameters have one element."""
    scale, zero, enabled = (shapes.reshape(call.b, t, ()) for t in (scale, zero, enabled))
    result, mask = fake_quantize_mask(call, x, scale, zero, low, high)
    return (
        call.elementwise(lambda v, q, on: (on != 0).where(q, v), x, result, enabled),
        call.b.map(lambda m, on: m | (on == 0), mask, enabled, dtype=BOOL),
    )


@lowers(aten._int_mm.default)
def int_mm(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """x @ y of 8-bit integers, accumulated in i32"""
    return contractions.matmul(call.b, x, y, I32)


@lowers(aten.conv_tbc.default)
def conv_tbc(call: Call, x: Tensor, weight: Tensor, bias: Tensor, padding: int) -> Tensor:
    """A convolution along dim 0 of [time, batch, channels] by [width, channels, features]"""
    from ...builder.windows import Windows, convolution

    b = call.b
    (width,) = call.static(weight.shape[:1], "kernel")
    image = shapes.transpose(b, x, [1, 2, 0])
    kernel = shapes.transpose(b, weight, [2, 1, 0])
    found = Windows((width,), (1,), (1,), (padding,), (padding,))
    result = shapes.transpose(b, convolution(b, image, kernel, found), [2, 0, 1])
    return b.map(lambda v, c: v + c.to(v.dtype), result, bias, dtype=call.dtype())
