"""Functions of the bits of floats: their parts, their neighbours, a checksum."""

from __future__ import annotations

from typing import Any

import torch

from ...builder import DType, Scalar, Tensor, shapes
from ...builder.dtypes import F32, F64, I8, I16, I32, I64, U64
from ..calls import Call, lowers

aten, prims = torch.ops.aten, torch.ops.prims
_INTEGERS = {8: I8, 16: I16, 32: I32, 64: I64}


def _bits(dtype: DType) -> DType:
    return _INTEGERS[dtype.bits]


def _exponent(v: Scalar) -> tuple[Scalar, Scalar]:
    """The bits of the fraction, and the exponent, of a normal f32 or f64."""
    fraction, bias = (23, 126) if v.dtype is F32 else (52, 1022)
    bits = v.bitcast(_bits(v.dtype))
    mask = (1 << (31 if v.dtype is F32 else 63)) - 1
    exponent = (bits & mask).shift_right(fraction) - bias
    return bits, exponent


def _parts(v: Scalar) -> tuple[Scalar, Scalar]:
    """m and e with v = m * 2^e and 0.5 <= |m| < 1; itself and 0 for 0, NaN and infinities."""
    fraction, bias = (23, 126) if v.dtype is F32 else (52, 1022)
    odd = (v == 0) | ~v.isfinite()
    tiny = v.abs() < 2.0 ** (1 - bias)
    bits, exponent = _exponent(tiny.where(v * 2.0 ** (fraction + 1), v))
    keep = ~(((1 << (31 - fraction if v.dtype is F32 else 63 - fraction)) - 1) << fraction)
    mantissa = ((bits & keep) | (bias << fraction)).bitcast(v.dtype)
    exponent = tiny.where(exponent - (fraction + 1), exponent)
    return odd.where(v, mantissa), odd.where(0, exponent)


@lowers(aten.frexp.Tensor, prims.frexp.default)
def frexp(call: Call, x: Tensor) -> tuple[Tensor, Tensor]:
    """m and e with x = m * 2^e and 0.5 <= |m| < 1"""
    wide = x.dtype.computed
    mantissa = call.b.map(lambda v: _parts(v.to(wide))[0], x, dtype=x.dtype)
    exponent = call.b.map(lambda v: _parts(v.to(wide))[1], x, dtype=I32)
    return mantissa, exponent


def _next(v: Scalar, to: Scalar) -> Scalar:
    bits = v.bitcast(_bits(v.dtype))
    # Away from zero the bits count up, whatever the sign.
    away = (to > v) ^ (v < 0)
    moved = away.where(bits + 1, bits - 1)
    smallest = v._other(1.0).copysign(to).bitcast(bits.dtype)
    one = (v._other(1.0).bitcast(bits.dtype) ^ smallest) | 1
    moved = (v == 0).where(one, moved)
    result = (v == to).where(to, moved.bitcast(v.dtype))
    return (v.isnan() | to.isnan()).where(v + to, result)


@lowers(aten.nextafter.default, prims.nextafter.default)
def nextafter(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The float next to x in the direction of y"""
    return call.elementwise(_next, x, y, wide=call.dtype())


@lowers(aten.hash_tensor.default)
def hash_tensor(call: Call, x: Tensor, dim: Any, *, keepdim: bool, mode: int) -> Tensor:
    """The exclusive or of all bits, those of floats as f64, along dims"""
    if mode or x.dtype.is_complex:
        raise call.unsupported("this kind of checksum")
    b, axes = call.b, call.axes(dim, x.rank)

    def bits(v: Scalar) -> Scalar:
        return v.to(F64).bitcast(I64) if v.dtype.is_float else v.to(I64)

    words = b.map(bits, x, dtype=I64)
    if axes:
        (words,) = b.reduce(lambda s, v, acc: acc ^ v, [words], axes, [(0, I64)])
    return shapes.reshape(b, b.map(lambda v: v.bitcast(U64), words, dtype=U64), call.shape())
