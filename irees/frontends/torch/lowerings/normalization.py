"""Layer, RMS, group, batch and instance norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...builder import Tensor, reductions, shapes
from ..calls import Call, NotLowered, lowers
from ..operators import aten


def normalized(
    call: Call, x: Tensor, axes: Sequence[int], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(var + eps) over axes in f32 or wider, the mean, and 1 / sqrt(var + eps)."""
    b = call.b
    spread, average = reductions.var_mean(b, x, axes, 0.0)
    rstd = b.map(lambda v: 1 / (v + eps).sqrt(), spread)
    mean, scale = (reductions.keep_dims(b, x, t, axes) for t in (average, rstd))
    wide = average.dtype
    result = b.map(lambda v, m, r: (v.to(wide) - m) * r, x, mean, scale, dtype=wide)
    return result, average, rstd


def affine(
    call: Call, x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[Any]
) -> Tensor:
    """x * weight + bias, where both are reshaped to broadcast, in the operator's dtype."""
    b, wide = call.b, x.dtype
    given = [shapes.reshape(b, t, shape) for t in (weight, bias) if t is not None]

    def body(v: Any, *params: Any) -> Any:
        left = [p.to(wide) for p in params]
        v = v * left.pop(0) if weight is not None else v
        return v + left.pop(0) if bias is not None else v

    return b.map(body, x, *given, dtype=call.dtype())


@lowers(aten.native_layer_norm.default)
def native_layer_norm(
    call: Call, x: Tensor, shape: list[Any], weight: Any, bias: Any, eps: float
) -> tuple[Tensor, ...]:
    """The norm over the last dims, the mean, and 1 / sqrt(var + eps)"""
    axes = list(range(x.rank - len(shape), x.rank))
    result, average, rstd = normalized(call, x, axes, eps)
    kept = [
        call.b.cast(reductions.keep_dims(call.b, x, t, axes), call.dtype(i))
        for i, t in ((1, average), (2, rstd))
    ]
    return affine(call, result, weight, bias, shape), *kept


@lowers(aten.layer_norm.default)
def layer_norm(
    call: Call, x: Tensor, shape: list[Any], weight: Any, bias: Any, eps: float
) -> Tensor:
    """The norm over the last dims"""
    axes = list(range(x.rank - len(shape), x.rank))
    return affine(call, normalized(call, x, axes, eps)[0], weight, bias, shape)


@lowers(aten.rms_norm.default)
def rms_norm(call: Call, x: Tensor, shape: list[Any], weight: Any, eps: float | None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight"""
    b, axes = call.b, list(range(x.rank - len(shape), x.rank))
    wide = x.dtype.computed
    if eps is None:
        eps = torch.finfo(call.raw[0].dtype if wide is x.dtype else torch.float32).eps
    squares = b.map(lambda v: v.to(wide) * v.to(wide), x, dtype=wide)
    mean = reductions.keep_dims(b, x, reductions.mean(b, squares, axes), axes)
    scale = b.map(lambda v: 1 / (v + eps).sqrt(), mean)
    result = b.map(lambda v, r: v.to(wide) * r, x, scale, dtype=wide)
    return affine(call, result, weight, None, shape)


def _grouped(
    call: Call, x: Tensor, groups: int, weight: Any, bias: Any, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """
    x * (rstd * weight) + (bias - mean * rstd * weight) with the statistics of channel groups, the
    means, and rstd = 1 / sqrt(var + eps).
    """
    b = call.b
    inner = b.floordiv(x.shape[1], groups)
    split = shapes.reshape(b, x, [x.shape[0], groups, inner, b.product(x.shape[2:])])
    spread, average = reductions.var_mean(b, split, [2, 3], 0.0)
    wide = average.dtype
    rstd = b.map(lambda v: 1 / (v + eps).sqrt(), spread)
    # Keeps the spatial dims so that the following elementwise ops fuse.
    ones = [1] * (x.rank - 2)
    split = shapes.reshape(b, x, [x.shape[0], groups, inner, *x.shape[2:]])
    columns = [shapes.reshape(b, t, [x.shape[0], groups, 1, *ones]) for t in (average, rstd)]
    given = [shapes.reshape(b, t, [groups, inner, *ones]) for t in (weight, bias) if t is not None]

    def body(v: Any, m: Any, r: Any, *params: Any) -> Any:
        left = [p.to(wide) for p in params]
        scale = r * left.pop(0) if weight is not None else r
        shift = -m * scale
        return v.to(wide) * scale + (shift + left.pop(0) if bias is not None else shift)

    result = b.map(body, split, *columns, *given, dtype=call.dtype())
    return shapes.reshape(b, result, x.shape), average, rstd


@lowers(aten.group_norm.default)
def group_norm(
    call: Call, x: Tensor, groups: int, weight: Any, bias: Any, eps: float, _: bool
) -> Tensor:
    """The norm over channel groups"""
    return _grouped(call, x, groups, weight, bias, eps)[0]


@lowers(aten.native_group_norm.default)
def native_group_norm(
    call: Call, x: Tensor, weight: Any, bias: Any, n: Any, c: Any, hw: Any, groups: int, eps: float
) -> tuple[Tensor, ...]:
    """The norm over channel groups, the means, and 1 / sqrt(var + eps)"""
    result, average, rstd = _grouped(call, x, groups, weight, bias, eps)
    return result, call.b.cast(average, call.dtype(1)), call.b.cast(rstd, call.dtype(2))


def _by_channel(call: Call, x: Tensor, t: Tensor) -> Tensor:
    return shapes.reshape(call.b, t, [t.shape[0], *[1] * (x.rank - 2)])


@dataclass(frozen=True)
class Statistics:
    """The mean and the variance of each channel, and what is added to the variance."""

    mean: Tensor
    var: Tensor
    eps: float


def by_statistics(call: Call, x: Tensor, weight: Any, bias: Any, given: Statistics) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias by channel, with given statistics."""
    b, wide = call.b, x.dtype.computed
    if x.rank < 2:  # PyTorch accepts an empty vector
        return b.cast(x, call.dtype())
    rstd = b.map(lambda v: 1 / (v.to(wide) + given.eps).sqrt(), given.var, dtype=wide)
    columns = [_by_channel(call, x, t) for t in (given.mean, rstd)]
    result = b.map(lambda v, m, r: (v.to(wide) - m.to(wide)) * r, x, *columns, dtype=wide)
    return affine(call, result, weight, bias, [x.shape[1], *[1] * (x.rank - 2)])


@lowers(aten._native_batch_norm_legit_no_training.default)
def batch_norm_no_training(
    call: Call, x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, _: float, eps: float
) -> tuple[Tensor, ...]:
    """The norm with given statistics; the other two results are empty"""
    result = by_statistics(call, x, weight, bias, Statistics(mean, var, eps))
    rest = [call.b.empty(call.dtype(i), call.shape(i)) for i in (1, 2)]
    return result, *rest


@lowers(aten.batch_norm.default, aten.instance_norm.default)
def batch_norm(
    call: Call, x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool,
    momentum: float, eps: float, _: bool,
) -> Tensor:  # fmt: skip
    """The norm with given statistics, or with those of x"""
    if call.target is aten.batch_norm.default and not training:
        return by_statistics(call, x, weight, bias, Statistics(mean, var, eps))
    if mean is not None or not training:
        raise NotLowered
    axes = [0, *range(2, x.rank)]
    if call.target is aten.instance_norm.default:
        axes = axes[1:]
    result, _, _ = normalized(call, x, axes, eps)
    return affine(call, result, weight, bias, [x.shape[1], *[1] * (x.rank - 2)])


def batch_statistics(
    call: Call, x: Tensor, weight: Any, bias: Any, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The norm with the statistics of x, the mean, and 1 / sqrt(var + eps)."""
    result, average, rstd = normalized(call, x, [0, *range(2, x.rank)], eps)
    result = affine(call, result, weight, bias, [x.shape[1], *[1] * (x.rank - 2)])
    return result, call.b.cast(average, call.dtype(1)), call.b.cast(rstd, call.dtype(2))


@lowers(aten._native_batch_norm_legit.no_stats)
def batch_norm_no_stats(
    call: Call, x: Tensor, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    """The norm with the statistics of x"""
    return batch_statistics(call, x, weight, bias, eps)


@lowers(aten.native_batch_norm.default)
def native_batch_norm(
    call: Call, x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool,
    momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The norm with given statistics, or with those of x if there are no running statistics"""
    if not training:
        return batch_norm_no_training(call, x, weight, bias, mean, var, momentum, eps)
    if mean is not None or var is not None:
        raise call.unsupported("a batch norm that writes its running statistics unsaid")
    return batch_statistics(call, x, weight, bias, eps)


@lowers(aten._native_batch_norm_legit_functional.default)
def batch_norm_functional(
    call: Call, x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, training: bool,
    momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The norm with the statistics of x; also returns the updated running statistics"""
    b = call.b
    if not training:
        result = by_statistics(call, x, weight, bias, Statistics(mean, var, eps))
        rest = [b.empty(call.dtype(i), call.shape(i)) for i in (1, 2)]
        return result, *rest, mean, var
    axes = [0, *range(2, x.rank)]
    spread, average = reductions.var_mean(b, x, axes, 0.0)
    result, _, rstd = normalized(call, x, axes, eps)
    result = affine(call, result, weight, bias, [x.shape[1], *[1] * (x.rank - 2)])
    count = reductions.size_as(b, reductions.count(b, x, axes), average.dtype)
    wide = average.dtype

    def towards(old: Any, new: Any) -> Any:
        return old.to(wide) * (1 - momentum) + new * momentum

    new_mean = b.map(towards, mean, average, dtype=mean.dtype)
    new_var = b.map(
        lambda old, v: towards(old, v * count(v.body) / (count(v.body) - 1)),
        var, spread, dtype=var.dtype,
    )  # fmt: skip
    saved = [b.cast(t, call.dtype(i)) for i, t in ((1, average), (2, rstd))]
    return result, *saved, new_mean, new_var
