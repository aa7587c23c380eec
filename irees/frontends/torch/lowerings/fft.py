"""Discrete Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ...builder import Size, Tensor, fft
from ...builder.dtypes import I64
from ..calls import Call, lowers

aten, prims = torch.ops.aten, torch.ops.prims
_NONE, _BY_ROOT, _BY_SIZE = range(3)


def _normalized(call: Call, x: Tensor, sizes: Sequence[Size], normalization: int) -> Tensor:
    """x / n or x / sqrt(n), for sizes that are not known before the program runs."""
    n = call.b.value(call.b.product(sizes))

    def body(v: Any) -> Any:
        count = v.body.scalar(n).to(I64).to(v.dtype.part)
        divisor = count if normalization == _BY_SIZE else count.sqrt()
        if v.dtype.is_complex:
            return (v.re() / divisor).with_imaginary(v.im() / divisor)
        return v / divisor

    return call.b.map(body, x)


def _scale(sizes: Sequence[Size], normalization: int) -> float | None:
    """The factor of a normalization; None for 1 and where a size is not known."""
    if normalization == _NONE or not all(isinstance(s, int) for s in sizes):
        return None
    n = math.prod(s for s in sizes if isinstance(s, int)) or 1
    return 1 / n if normalization == _BY_SIZE else 1 / math.sqrt(n)


def _chain(
    call: Call, x: Tensor, dims: Sequence[int], sizes: Sequence[Size], normalization: int, step: Any
) -> Tensor:
    """step(x, dim, scale) for each dim; the last one scales."""
    scale = _scale(sizes, normalization)
    for i, dim in enumerate(dims):
        x = step(x, dim % x.rank, scale if i == len(dims) - 1 else None)
    if normalization != _NONE and scale is None and dims:
        x = _normalized(call, x, sizes, normalization)
    return x


def _sizes(x: Tensor, dims: Sequence[int]) -> list[Size]:
    return [x.shape[d] for d in dims]


@lowers(aten._fft_c2c.default)
def fft_c2c(call: Call, x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """Complex to complex along dims"""

    def step(v: Tensor, axis: int, scale: float | None) -> Tensor:
        return fft.transform(call.b, v, axis, forward, scale=scale)

    return _chain(call, x, dim, _sizes(x, dim), normalization, step)


@lowers(aten._fft_r2c.default)
def fft_r2c(
    call: Call, x: Tensor, dim: Sequence[int], normalization: int, onesided: bool
) -> Tensor:
    """Real to complex: the last of the dims first, half of it where `onesided`"""

    def step(v: Tensor, axis: int, scale: float | None) -> Tensor:
        first = not v.dtype.is_complex
        return fft.transform(call.b, v, axis, True, half=first and onesided, scale=scale)

    x = call.b.cast(x, call.dtype().part)
    return _chain(call, x, list(dim)[::-1], _sizes(x, dim), normalization, step)


@lowers(aten._fft_c2r.default)
def fft_c2r(call: Call, x: Tensor, dim: Sequence[int], normalization: int, size: Any) -> Tensor:
    """Half a spectrum to real numbers: the last of the dims last, of this size"""
    last = dim[-1] % x.rank

    def step(v: Tensor, axis: int, scale: float | None) -> Tensor:
        if axis == last:
            return fft.to_real(call.b, v, axis, size, scale)
        return fft.transform(call.b, v, axis, False, scale=scale)

    sizes = [*_sizes(x, dim[:-1]), size]
    return _chain(call, x, dim, sizes, normalization, step)


@lowers(prims.fft_c2c.default)
def prims_fft_c2c(call: Call, x: Tensor, *, dim: Sequence[int], forward: bool) -> Tensor:
    """Complex to complex along dims"""
    return fft_c2c(call, x, dim, _NONE, forward)


@lowers(prims.fft_r2c.default)
def prims_fft_r2c(call: Call, x: Tensor, *, dim: Sequence[int], onesided: bool) -> Tensor:
    """Real to complex along dims"""
    return fft_r2c(call, x, dim, _NONE, onesided)


@lowers(prims.fft_c2r.default)
def prims_fft_c2r(call: Call, x: Tensor, *, dim: Sequence[int], last_dim_size: Any) -> Tensor:
    """Half a spectrum to real numbers"""
    return fft_c2r(call, x, dim, _NONE, last_dim_size)
