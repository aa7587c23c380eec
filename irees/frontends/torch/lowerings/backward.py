"""Gradients of operators that PyTorch keeps whole: convolutions, poolings, norms, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...builder import (
    Scalar,
    Size,
    Tensor,
    contractions,
    indexing,
    reductions,
    resampling,
    same,
    shapes,
)  # fmt: skip
from ...builder import windows as builder_windows
from ...builder.dtypes import BOOL, I64
from ...builder.windows import Windows
from ..calls import Call, NotLowered, lowers
from ..operators import aten
from .attention import repeat_heads
from .windows import pool_windows


def _last(call: Call, n: int) -> int:
    """The number of spatial dims of an operator, from its name."""
    return next(k for k in (1, 2, 3) if f"{k}d" in call.target.__name__) if not n else n


# --- convolutions ---


@lowers(aten.convolution_backward.default)
def convolution_backward(
    call: Call, grad: Tensor, x: Tensor, weight: Tensor, _: Any, stride: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: int, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of x, weight and bias: two convolutions and a sum"""
    b, n = call.b, weight.rank - 2
    kernel = call.static(weight.shape[2:], "kernel")
    low = call.spread(padding, n)
    found = Windows(kernel, call.steps(stride, n), call.steps(dilation, n), low, low)
    out = x.shape[2:]
    results: list[Tensor | None] = [None, None, None]
    if wanted[0] and transposed:
        results[0] = builder_windows.convolution(b, grad, weight, found, groups, out=out)
    elif wanted[0]:
        results[0] = builder_windows.transposed_convolution(b, grad, weight, found, groups, out)
    if wanted[1]:
        pair = (grad, x) if transposed else (x, grad)
        results[1] = builder_windows.weight_gradient(b, *pair, found, groups)
    if wanted[2]:
        results[2] = reductions.sum_(b, grad, [0, *range(2, grad.rank)])
    return tuple(None if t is None else b.cast(t, call.dtype(i)) for i, t in enumerate(results))


@lowers(aten.col2im.default)
def col2im(
    call: Call, x: Tensor, size: list[int], kernel: Any, dilation: Any, padding: Any, stride: Any
) -> Tensor:
    """Sums windows, given as columns, at their positions"""
    b = call.b
    lone = x.rank == 2
    x = shapes.unsqueeze(b, x, 0) if lone else x
    low = call.spread(padding, 2)
    found = Windows(
        call.spread(kernel, 2), call.steps(stride, 2), call.steps(dilation, 2), low, low
    )
    channels = call.shape()[0 if lone else 1]
    windows = found.outputs(b, size)
    x = shapes.reshape(b, x, [x.shape[0], channels, *found.kernel, *windows])
    result = builder_windows.fold(b, x, found, size)
    return b.cast(shapes.reshape(b, result, call.shape()), call.dtype())


# --- poolings ---


@lowers(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
def avg_pool_backward(
    call: Call, grad: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, _: bool,
    include: bool, divisor: int | None,
) -> Tensor:  # fmt: skip
    """Each window's gradient divided by the window size, summed at its elements"""
    b, n = call.b, _last(call, 0)
    found = pool_windows(call, n, kernel, stride, padding)
    sizes, lead = x.shape[-n:], x.shape[:-n]
    shares = builder_windows.by_window_size(
        b, b.cast(grad, grad.dtype.computed), sizes, found, include, divisor
    )
    flat = shapes.reshape(b, shares, [1, b.product(lead), *[1] * n, *grad.shape[-n:]])
    result = builder_windows.fold(b, flat, found, sizes)
    return b.cast(shapes.reshape(b, result, x.shape), call.dtype())


@lowers(aten._adaptive_avg_pool2d_backward.default, aten._adaptive_avg_pool3d_backward.default)
def adaptive_avg_pool_backward(call: Call, grad: Tensor, x: Tensor) -> Tensor:
    """Each window's gradient divided by the window size, summed at its elements"""
    n = _last(call, 0)
    matrices = [_shares(call, s, o) for s, o in zip(x.shape[-n:], grad.shape[-n:])]
    wide = grad.dtype.computed
    return call.b.cast(resampling.apply_matrices(call.b, grad, matrices, wide), call.dtype())


def _shares(call: Call, size: Size, out: Size) -> np.ndarray[Any, Any]:
    """The averaging matrix: the weight of each element (rows) in window i (columns)."""
    if not isinstance(size, int) or not isinstance(out, int):
        raise call.unsupported("windows of sizes that are not known")
    found = np.zeros((size, out))
    for i in range(out):
        begin, end = i * size // out, -(-(i + 1) * size // out)
        found[begin:end, i] = 1 / (end - begin)
    return found


@lowers(
    aten.max_pool2d_with_indices_backward.default, aten.max_pool3d_with_indices_backward.default,
    aten.fractional_max_pool2d_backward.default, aten.fractional_max_pool3d_backward.default,
    aten.adaptive_max_pool2d_backward.default, aten.adaptive_max_pool3d_backward.default,
)  # fmt: skip
def max_pool_backward(call: Call, grad: Tensor, x: Tensor, *given: Any) -> Tensor:
    """Scatters each window's gradient to the window's largest element"""
    b, n = call.b, _last(call, 0)
    indices = given[-1]
    rows, wide = b.product(x.shape[:-n]), grad.dtype.computed
    count, windows = b.product(x.shape[-n:]), b.product(grad.shape[-n:])
    flat, places = (shapes.reshape(b, t, [rows, windows]) for t in (grad, indices))
    result = indexing.put_along(
        b, b.full(0, wide, [rows, count]), places, b.cast(flat, wide), 1, lambda old, new: old + new
    )
    return b.cast(shapes.reshape(b, result, x.shape), call.dtype())


# --- norms ---


def _norm_backward(
    call: Call, grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, axes: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """
    n = (x - mean) * rstd, and rstd * (g - mean(g) - n * mean(g * n)) over axes. mean and rstd have
    size 1 along the axes.
    """
    b, wide = call.b, grad.dtype
    normed = b.map(lambda v, m, r: (v.to(wide) - m.to(wide)) * r.to(wide), x, mean, rstd,
                   dtype=wide)  # fmt: skip
    product = b.map(lambda g, v: g * v, grad, normed)
    means = [reductions.keep_dims(b, x, reductions.mean(b, t, axes), axes)
             for t in (grad, product)]  # fmt: skip
    return normed, b.map(
        lambda g, v, r, m, p: r.to(wide) * (g - m - v * p), grad, normed, rstd, *means, dtype=wide
    )


def _scaled(call: Call, grad: Tensor, weight: Tensor | None, shape: Sequence[Size]) -> Tensor:
    """grad * weight in f32 or wider."""
    b, wide = call.b, grad.dtype.computed
    grad = b.cast(grad, wide)
    if weight is None:
        return grad
    weight = shapes.reshape(b, weight, shape)
    return b.map(lambda g, w: g * w.to(wide), grad, weight, dtype=wide)


def _parameters(
    call: Call, grad: Tensor, normed: Tensor, axes: Sequence[int], shape: Sequence[Size]
) -> tuple[Tensor, Tensor]:
    """The sums of grad * normed and of grad over axes: the gradients of weight and bias."""
    b, wide = call.b, normed.dtype
    grad = b.cast(grad, wide)
    product = b.map(lambda g, v: g * v, grad, normed)
    weight, bias = (shapes.reshape(b, reductions.sum_(b, t, axes), shape) for t in (product, grad))
    return weight, bias


def _chosen(
    call: Call, results: Sequence[Tensor | None], wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    return tuple(
        call.b.cast(t, call.dtype(i)) if want and t is not None and call.fake(i) is not None
        else None
        for i, (t, want) in enumerate(zip(results, wanted))
    )  # fmt: skip


@lowers(aten.native_layer_norm_backward.default)
def layer_norm_backward(
    call: Call, grad: Tensor, x: Tensor, shape: list[Any], mean: Tensor, rstd: Tensor,
    weight: Tensor | None, bias: Tensor | None, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of x, weight and bias of a layer norm"""
    lead = x.rank - len(shape)
    axes = list(range(lead, x.rank))
    kept = [shapes.reshape(call.b, t, [*x.shape[:lead], *[1] * len(shape)]) for t in (mean, rstd)]
    scaled = _scaled(call, grad, weight, x.shape[lead:])
    normed, result = _norm_backward(call, scaled, x, *kept, axes)
    rest = _parameters(call, grad, normed, list(range(lead)), x.shape[lead:])
    return _chosen(call, [result, *rest], wanted)


@lowers(aten.native_group_norm_backward.default)
def group_norm_backward(
    call: Call, grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None,
    n: Size, c: int, hw: Size, groups: int, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of x, weight and bias of a group norm"""
    b, split = call.b, [n, groups, c // groups, hw]
    parts = [shapes.reshape(b, t, split) for t in (grad, x)]
    kept = [shapes.reshape(b, t, [n, groups, 1, 1]) for t in (mean, rstd)]
    scaled = _scaled(call, parts[0], weight, [groups, c // groups, 1])
    normed, result = _norm_backward(call, scaled, parts[1], *kept, [2, 3])
    rest = _parameters(call, parts[0], normed, [0, 3], [c])
    return _chosen(call, [shapes.reshape(b, result, x.shape), *rest], wanted)


@lowers(aten.native_batch_norm_backward.default)
def batch_norm_backward(
    call: Call, grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor | None,
    var: Tensor | None, saved_mean: Tensor | None, saved_rstd: Tensor | None, training: bool,
    eps: float, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of x, weight and bias of a batch norm"""
    b, axes = call.b, [0, *range(2, x.rank)]
    shape = [x.shape[1], *[1] * (x.rank - 2)]
    scaled = _scaled(call, grad, weight, shape)
    wide = scaled.dtype
    if training:
        if saved_mean is None or saved_rstd is None:
            raise NotLowered
        kept = [shapes.reshape(b, t, shape) for t in (saved_mean, saved_rstd)]
        normed, result = _norm_backward(call, scaled, x, *kept, axes)
    else:
        if mean is None or var is None:
            raise NotLowered
        rstd = b.map(lambda v: 1 / (v.to(wide) + eps).sqrt(), var, dtype=wide)
        m, r = (shapes.reshape(b, t, shape) for t in (mean, rstd))
        normed = b.map(lambda v, m, r: (v.to(wide) - m.to(wide)) * r, x, m, r, dtype=wide)
        result = b.map(lambda g, r: g * r, scaled, r, dtype=wide)
    rest = _parameters(call, grad, normed, axes, [x.shape[1]])
    return _chosen(call, [result, *rest], wanted)


# --- gathers and attention ---


@lowers(aten.embedding_dense_backward.default)
def embedding_dense_backward(
    call: Call, grad: Tensor, indices: Tensor, count: Size, padding: int, by_frequency: bool
) -> Tensor:
    """The gradients of each table row summed, or averaged by frequency"""
    b, wide = call.b, grad.dtype.computed
    places = b.map(lambda i: (i == padding).where(-1, i), shapes.flatten(b, b.cast(indices, I64)))
    column = shapes.unsqueeze(b, places, 1)
    rows = shapes.reshape(b, b.cast(grad, wide), [places.shape[0], grad.shape[-1]])

    def add(old: Scalar, new: Scalar) -> Scalar:
        return old + new

    result = indexing.scatter(b, b.full(0, wide, [count, grad.shape[-1]]), column, rows, add)
    if by_frequency:
        ones = b.full(1, I64, places.shape)
        times = indexing.scatter(b, b.full(0, I64, [count]), column, ones, add)
        result = b.map(
            lambda v, n: v / n.maximum(1).to(wide), result, shapes.unsqueeze(b, times, 1)
        )
    return b.cast(result, call.dtype())


@lowers(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def flash_attention_backward(
    call: Call, grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor,
    logsumexp: Tensor, dropout: float, causal: bool, *, attn_mask: Tensor | None,
    scale: float | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of query, key and value, from the saved logsumexp of the scores"""
    if dropout:
        raise NotLowered
    b, rank, groups = call.b, query.rank, key.shape[-3]
    key, value = (repeat_heads(call, t, query.shape[-3]) for t in (key, value))
    (width,) = call.static(query.shape[-1:], "feature dim")
    factor = 1 / math.sqrt(width) if scale is None else scale
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    scores = contractions.matmul(b, query, shapes.transpose(b, key, swapped))
    wide = scores.dtype
    top = shapes.unsqueeze(b, b.cast(logsumexp, wide), rank - 1)
    weights = _weights(call, scores, top, attn_mask, causal, factor)
    totals = b.map(lambda g, o: g.to(wide) * o.to(wide), grad, out, dtype=wide)
    totals = reductions.keep_dims(b, grad, reductions.sum_(b, totals, [rank - 1]), [rank - 1])
    slopes = contractions.matmul(b, grad, shapes.transpose(b, value, swapped))
    slopes = b.map(lambda w, s, t: w * (s - t) * factor, weights, slopes, totals)
    pairs = (
        (slopes, b.cast(key, wide)),
        (shapes.transpose(b, slopes, swapped), b.cast(query, wide)),
        (shapes.transpose(b, weights, swapped), b.cast(grad, wide)),
    )
    of_query, *others = (contractions.matmul(b, u, v) for u, v in pairs)
    results = (of_query, *(_sum_groups(call, t, groups) for t in others))
    return tuple(b.cast(t, call.dtype(i)) for i, t in enumerate(results))


def _sum_groups(call: Call, x: Tensor, heads: Size) -> Tensor:
    """The gradient of `repeat_heads`: sums the query heads that share a head of `heads`."""
    if same(x.shape[-3], heads):
        return x
    b, (*lead, given), tail = call.b, x.shape[:-2], x.shape[-2:]
    split = shapes.reshape(b, x, [*lead, heads, b.floordiv(given, heads), *tail])
    return reductions.sum_(b, split, [x.rank - 2])


def _weights(
    call: Call, scores: Tensor, top: Tensor, mask: Tensor | None, causal: bool, factor: float
) -> Tensor:
    """exp(scores * factor + mask - top); 0 for masked elements."""
    b, rank, wide = call.b, scores.rank, scores.dtype
    given = [top] if mask is None else [top, mask]

    def body(s: Any, v: Scalar, t: Scalar, *rest: Scalar) -> Scalar:
        v, kept = v * factor, s.number(1, BOOL)
        if causal:
            kept = s.index(rank - 1) <= s.index(rank - 2)
        if mask is not None:
            kept = kept & rest[0] if mask.dtype is BOOL else kept
            v = v if mask.dtype is BOOL else v + rest[0].to(wide)
        kept = kept & (t > -math.inf)
        return kept.where((v - t).exp(), 0.0)

    maps = [b.broadcast_map(t.shape, scores.shape) for t in (scores, *given, scores)]
    init = b.empty(wide, scores.shape)
    return b.structured([scores, *given], [init], maps, [False] * rank, body)[0]
