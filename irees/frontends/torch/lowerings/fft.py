"""Discrete Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ...builder import DType, Size, Tensor, fft, reductions, shapes
from ...builder.dtypes import BOOL, I64
from ..calls import Call, lowers

aten, prims = torch.ops.aten, torch.ops.prims
_NONE, _BY_ROOT, _BY_SIZE = range(3)


def _normalized(call: Call, x: Tensor, sizes: Sequence[Size], normalization: int) -> Tensor:
    """x / n or x / sqrt(n), for dynamic sizes."""
    n = call.b.value(call.b.product(sizes))

    def body(v: Any) -> Any:
        count = v.body.scalar(n).to(I64).to(v.dtype.part)
        divisor = count if normalization == _BY_SIZE else count.sqrt()
        if v.dtype.is_complex:
            return (v.re() / divisor).with_imaginary(v.im() / divisor)
        return v / divisor

    return call.b.map(body, x)


def _scale(sizes: Sequence[Size], normalization: int) -> float | None:
    """The factor of a normalization; None if it is 1 or a size is dynamic."""
    if normalization == _NONE or not all(isinstance(s, int) for s in sizes):
        return None
    n = math.prod(s for s in sizes if isinstance(s, int)) or 1
    return 1 / n if normalization == _BY_SIZE else 1 / math.sqrt(n)


def _chain(
    call: Call, x: Tensor, dims: Sequence[int], sizes: Sequence[Size], normalization: int, step: Any
) -> Tensor:
    """Applies step(x, dim, scale) for each dim; the last step applies the scale."""
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
    """Complex-to-complex transform along dims"""

    def step(v: Tensor, axis: int, scale: float | None) -> Tensor:
        return fft.transform(call.b, v, axis, forward, scale=scale)

    return _chain(call, x, dim, _sizes(x, dim), normalization, step)


@lowers(aten._fft_r2c.default)
def fft_r2c(
    call: Call, x: Tensor, dim: Sequence[int], normalization: int, onesided: bool
) -> Tensor:
    """Real-to-complex transform; starts with the last of the dims, which is halved if `onesided`"""

    def step(v: Tensor, axis: int, scale: float | None) -> Tensor:
        first = not v.dtype.is_complex
        return fft.transform(call.b, v, axis, True, half=first and onesided, scale=scale)

    x = call.b.cast(x, call.dtype().part)
    return _chain(call, x, list(dim)[::-1], _sizes(x, dim), normalization, step)


@lowers(aten._fft_c2r.default)
def fft_c2r(call: Call, x: Tensor, dim: Sequence[int], normalization: int, size: Any) -> Tensor:
    """Complex-to-real transform from a half spectrum; the last of the dims gets size `size`"""
    last = dim[-1] % x.rank

    def step(v: Tensor, axis: int, scale: float | None) -> Tensor:
        if axis == last:
            return fft.to_real(call.b, v, axis, size, scale)
        return fft.transform(call.b, v, axis, False, scale=scale)

    sizes = [*_sizes(x, dim[:-1]), size]
    return _chain(call, x, dim, sizes, normalization, step)


@lowers(prims.fft_c2c.default)
def prims_fft_c2c(call: Call, x: Tensor, *, dim: Sequence[int], forward: bool) -> Tensor:
    """Complex-to-complex transform along dims"""
    return fft_c2c(call, x, dim, _NONE, forward)


@lowers(prims.fft_r2c.default)
def prims_fft_r2c(call: Call, x: Tensor, *, dim: Sequence[int], onesided: bool) -> Tensor:
    """Real-to-complex transform along dims"""
    return fft_r2c(call, x, dim, _NONE, onesided)


@lowers(prims.fft_c2r.default)
def prims_fft_c2r(call: Call, x: Tensor, *, dim: Sequence[int], last_dim_size: Any) -> Tensor:
    """Complex-to-real transform from a half spectrum"""
    return fft_c2r(call, x, dim, _NONE, last_dim_size)


# --- short-time transforms ---


def _window(call: Call, window: Tensor | None, size: int, n: int, dtype: DType) -> Tensor:
    """A window of `size` elements (default: ones), centered in n."""
    b = call.b
    window = b.full(1, dtype, [size]) if window is None else b.cast(window, dtype)
    left = (n - size) // 2
    return shapes.pad(b, window, [left], [n - size - left])


def _frames(call: Call, x: Tensor, n: int, normalized: bool) -> Tensor:
    """
    The inverse transform of each column of a spectrum [batch, n or n / 2 + 1, frames], as rows. A
    real result uses only half of the spectrum.
    """
    b = call.b
    scale = 1 / math.sqrt(n) if normalized else 1 / n
    x = shapes.transpose(b, x, [0, 2, 1])
    if not call.dtype().is_complex:
        return fft.to_real(b, x, 2, n, scale)
    return fft.transform(b, x, 2, False, scale=scale)


@lowers(aten.istft.default)
def istft(
    call: Call, x: Tensor, n: int, hop: int | None, size: int | None, window: Tensor | None,
    center: bool, normalized: bool, _: bool | None, length: int | None,
) -> Tensor:  # fmt: skip
    """The overlap-added windowed frames, divided by the overlap-added squares of the window."""
    b, dtype = call.b, call.dtype()
    if x.rank == 2:
        x = shapes.unsqueeze(b, x, 0)
    hop, size = hop or n // 4, size or n
    frames = _frames(call, x, n, normalized)
    kind = dtype if dtype.is_complex or window is None else window.dtype
    weights = _window(call, window, size, n, kind)
    signal = fft.overlap_add(b, b.map(lambda v, w: v * w.to(v.dtype), frames, weights), hop)
    squares = b.map(lambda w: w * w, weights, shape=[1, x.shape[2], n])
    envelope = fft.overlap_add(b, squares, hop)
    total = signal.shape[1]
    start = n // 2 if center else 0
    if length is not None:
        end = b.minimum(start + length, total)
    else:
        end = b.sub(total, n // 2) if center else total
    parts = [shapes.slice_axis(b, t, 1, start, b.sub(end, start)) for t in (signal, envelope)]
    _check_envelope(call, parts[1])
    result = b.map(lambda v, w: v / w.to(v.dtype), *parts)
    if length is not None:
        result = shapes.pad(b, result, [0, 0], [0, b.sub(length, result.shape[1])])
    return shapes.reshape(b, result, call.shape())


def _check_envelope(call: Call, envelope: Tensor) -> None:
    b = call.b
    fine = b.map(lambda w: w.abs() > 1e-11, envelope, dtype=BOOL)
    fine = reductions.all_(b, fine, [0, 1])
    b.check(b.item(fine), "istft: the windows leave a part of the signal out")
