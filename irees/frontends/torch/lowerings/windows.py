"""Convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...builder import (
    Body,
    Scalar,
    Tensor,
    indexing,
    reductions,
    resampling,
    shapes,
    windows,
)
from ...builder.core import Size
from ...builder.dtypes import I64
from ...builder.windows import Windows
from ..calls import Call, NotLowered, lowers
from ..operators import aten


def _with_bias(call: Call, result: Tensor, bias: Tensor | None, axis: int = 1) -> Tensor:
    if bias is None:
        return call.b.cast(result, call.dtype())
    wide = result.dtype
    bias = shapes.reshape(call.b, bias, [bias.shape[0], *[1] * (result.rank - axis - 1)])
    return call.b.map(lambda v, c: v + c.to(wide), result, bias, dtype=call.dtype())


@lowers(aten.convolution.default, aten._convolution.default, aten.convolution_overrideable.default)
def convolve(
    call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution of any rank, or its adjoint; x may lack the batch dim."""
    b, n = call.b, weight.rank - 2
    call.check_same_dtype(x, weight)
    x, lone = windows.as_channels(b, x, n)
    kernel = call.static(weight.shape[2:], "kernel") if transposed else weight.shape[2:]
    low = high = call.spread(padding, n)
    shape = call.shape()
    out = shape[-n:] if n else ()
    if transposed:
        high = tuple(h - more for h, more in zip(high, call.spread(output_padding, n), strict=True))
    steps = call.steps(stride, n), call.steps(dilation, n)
    found = Windows(tuple(kernel), *steps, low, high, whole=transposed)
    if transposed:
        found = replace(found, finish=lambda y: _with_bias(call, y, bias))
        result = windows.transposed_convolution(b, x, weight, found, groups, out)
    else:
        result = _with_bias(call, windows.convolution(b, x, weight, found, groups, out=out), bias)
    return shapes.reshape(b, result, shape) if lone else result


@lowers(aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
def conv(
    call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
    dilation: Any, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution"""
    return convolve(call, x, weight, bias, stride, padding, dilation, False, 0, groups)


@lowers(aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding)
def conv_padding(
    call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: str,
    dilation: Any, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution with "valid" or "same" padding; "same" puts the odd element at the end"""
    b, n = call.b, weight.rank - 2
    if padding == "valid":
        return convolve(call, x, weight, bias, stride, 0, dilation, False, 0, groups)
    x, lone = windows.as_channels(b, x, n)
    kernel = call.static(weight.shape[2:], "kernel")
    steps = call.steps(dilation, n)
    total = [d * (k - 1) for k, d in zip(kernel, steps)]
    low = tuple(t // 2 for t in total)
    high = tuple(t - m for t, m in zip(total, low))
    found = Windows(kernel, call.steps(stride, n), steps, low, high)
    out = call.shape()[-n:]
    result = _with_bias(call, windows.convolution(b, x, weight, found, groups, out=out), bias)
    return shapes.reshape(b, result, call.shape()) if lone else result


@lowers(aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input)
def conv_transpose(
    call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
    output_padding: Any, groups: int, dilation: Any,
) -> Tensor:  # fmt: skip
    """The adjoint of a convolution"""
    return convolve(call, x, weight, bias, stride, padding, dilation, True, output_padding, groups)


# --- pooling ---


def pool_windows(
    call: Call, n: int, kernel: Any, stride: Any, padding: Any, dilation: Any = 1
) -> Windows:
    """The windows of a pooling; the stride defaults to the kernel."""
    kernel = call.spread(kernel, n)
    stride = call.steps(stride, n) if stride not in ([], None) else kernel
    padding = call.spread(padding, n)
    return Windows(kernel, stride, call.steps(dilation, n), padding, padding)


def _rank_of(call: Call) -> int:
    name = call.target.__name__
    return next(n for n in (1, 2, 3) if f"{n}d" in name)


@lowers(aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
def max_pool(
    call: Call, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> Tensor:
    """The largest element of each window"""
    n = _rank_of(call)
    found = pool_windows(call, n, kernel, stride, padding, dilation)
    found = replace(found, beyond=ceil)
    return windows.max_pool(call.b, x, found, call.shape()[-n:])


@lowers(
    aten.max_pool1d_with_indices.default,
    aten.max_pool2d_with_indices.default,
    aten.max_pool3d_with_indices.default,
)
def max_pool_with_indices(
    call: Call, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> tuple[Tensor, Tensor]:
    """The largest element of each window, and its index"""
    n = _rank_of(call)
    found = pool_windows(call, n, kernel, stride, padding, dilation)
    found = replace(found, beyond=ceil)
    return windows.max_pool_with_indices(call.b, x, found, call.shape()[-n:])


@lowers(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
def avg_pool(
    call: Call, x: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool,
    divisor: int | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window"""
    n = _rank_of(call)
    found = replace(pool_windows(call, n, kernel, stride, padding), beyond=ceil)
    result = windows.average_pool(call.b, x, found, call.shape()[-n:], include, divisor)
    return call.b.cast(result, call.dtype())


@lowers(
    aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool3d.default,
    aten._adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool3d.default,
)
def adaptive_avg_pool(call: Call, x: Tensor, _: Any) -> Tensor:
    """Means over adaptive windows that cover x"""
    b, n = call.b, _rank_of(call)
    call.require_elements(x.shape[-n:])
    every = tuple(range(x.rank - n, x.rank))
    if all(o == 1 for o in call.shape()[-n:]):
        result = reductions.keep_dims(b, x, reductions.mean(b, x, every), every)
    else:
        result = _window_means(call, x, call.shape()[-n:])
    return b.cast(result, call.dtype())


def _window_means(call: Call, x: Tensor, out: Sequence[Size]) -> Tensor:
    """Means over adaptive windows, in f32 or wider; static ones are equal windows or matrices."""
    n = len(out)
    sizes = x.shape[-n:]
    known = [(s, o) for s, o in zip(sizes, out) if isinstance(s, int) and isinstance(o, int)]
    if len(known) < n or not all(o for _, o in known):
        return windows.adaptive_pool(call.b, x, out, largest=False)
    if all(s % o == 0 for s, o in known):
        kernel = tuple(s // o for s, o in known)
        found = Windows(kernel, kernel, (1,) * n, (0,) * n, (0,) * n)
        return windows.average_pool(call.b, x, found, out, True)
    if not all(s for s, _ in known):
        return windows.adaptive_pool(call.b, x, out, largest=False)
    means = [resampling.mean_matrix(s, o) for s, o in known]
    return resampling.apply_matrices(call.b, x, means, x.dtype.computed)


@lowers(
    aten.adaptive_max_pool1d.default,
    aten.adaptive_max_pool2d.default,
    aten.adaptive_max_pool3d.default,
)
def adaptive_max_pool(call: Call, x: Tensor, _: Any) -> tuple[Tensor, Tensor | None]:
    """The largest elements of adaptive windows that cover x, and their indices"""
    b, n = call.b, _rank_of(call)
    call.require_elements(x.shape[-n:])
    out, every = call.shape()[-n:], tuple(range(x.rank - n, x.rank))
    if 1 not in call.unused:
        return windows.adaptive_max_pool_with_indices(b, x, out)
    if all(o == 1 for o in out):
        return reductions.keep_dims(b, x, reductions.max_(b, x, every), every), None
    return windows.adaptive_pool(b, x, out, largest=True), None


@lowers(aten.fractional_max_pool2d.default, aten.fractional_max_pool3d.default)
def fractional_max_pool(
    call: Call, x: Tensor, kernel: list[int], out: list[int], samples: Tensor
) -> tuple[Tensor, Tensor]:
    """The largest elements of windows with random fractional spacing, and their indices"""
    b, n = call.b, _rank_of(call)
    x, lone = windows.as_channels(b, x, n)
    # The first sample of a plane is for the columns in 2D, for the depth in 3D.
    samples = shapes.flip(b, samples, [2]) if n == 2 else samples
    wide = samples.dtype.computed
    found = windows.fractional_pool(b, x, kernel, out, b.cast(samples, wide))
    values, indices = (
        shapes.reshape(b, t, call.shape(i)) if lone else t for i, t in enumerate(found)
    )
    return values, indices


@lowers(aten.max_unpool2d.default, aten.max_unpool3d.default)
def max_unpool(call: Call, x: Tensor, indices: Tensor, *_: Any) -> Tensor:
    """Zeros with each element of x at its index in its plane"""
    b, n, shape = call.b, _rank_of(call), call.shape()
    plane, flat = b.product(shape[-n:]), [b.product(x.shape[:-n]), b.product(x.shape[-n:])]

    def place(s: Body, index: Scalar, _: Scalar) -> Scalar:
        at = indexing.checked(s, index, plane)
        return (s.index(0) * s.as_index(plane) + at).to(I64)

    rows, init = shapes.reshape(b, indices, flat), b.empty(I64, flat)
    maps = [b.broadcast_map(flat, flat)] * 2
    places = b.structured([rows], [init], maps, [False] * 2, place)
    zeros = b.full(0, x.dtype, [b.mul(flat[0], plane)])
    found = indexing.index_update(
        b, zeros, [shapes.flatten(b, places[0])], shapes.flatten(b, x), None, indexing.wrapped
    )
    return shapes.reshape(b, found, shape)


@lowers(aten.im2col.default)
def im2col(call: Call, x: Tensor, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """The elements of each window as a column"""
    b = call.b
    x, _ = windows.as_channels(b, x, 2)
    padding = call.spread(padding, 2)
    found = Windows(
        call.spread(kernel, 2), call.steps(stride, 2), call.steps(dilation, 2), padding, padding
    )
    result = windows.unfold(b, x, found, found.outputs(b, x.shape[2:]))
    return shapes.reshape(b, result, call.shape())


__all__ = ["NotLowered"]
