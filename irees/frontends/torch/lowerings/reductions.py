"""Reductions: sums, extrema, norms, variances, softmax."""

from __future__ import annotations

import math
from typing import Any

from ...builder import Tensor, reductions, shapes
from ...builder.dtypes import BOOL, F32, F64, I64, U64
from ..calls import Call, lowers
from ..operators import aten


def finish(
    call: Call, x: Tensor, result: Tensor, axes: list[int], keep: bool, i: int = 0
) -> Tensor:
    """Casts a reduction to the operator's dtype; restores reduced dims with size 1 if `keep`."""
    if keep:
        result = reductions.keep_dims(call.b, x, result, axes)
    return call.b.cast(result, call.dtype(i))


def _sum_dtype(call: Call) -> Any:
    return call.dtype().computed


@lowers(aten.sum.default, aten.sum.dim_IntList)
def sum_(call: Call, x: Tensor, dim: Any = None, keep: bool = False) -> Tensor:
    """The sum; integers accumulate in i64"""
    axes = call.axes(dim, x.rank)
    wide = call.dtype().computed
    return finish(call, x, reductions.sum_(call.b, x, axes, wide), axes, keep)


@lowers(aten.nansum.default)
def nansum(call: Call, x: Tensor, dim: Any, keep: bool) -> Tensor:
    """The sum, ignoring NaNs"""
    axes, wide = call.axes(dim, x.rank), call.dtype().computed
    if not x.dtype.is_integer:
        x = call.b.map(lambda v: v.isnan().where(0.0, v), x)
    return finish(call, x, reductions.sum_(call.b, x, axes, wide), axes, keep)


@lowers(aten.mean.default, aten.mean.dim)
def mean(call: Call, x: Tensor, dim: Any = None, keep: bool = False) -> Tensor:
    """sum / n"""
    axes, wide = call.axes(dim, x.rank), call.dtype().computed
    return finish(call, x, reductions.mean(call.b, x, axes, wide), axes, keep)


@lowers(aten.prod.default, aten.prod.dim_int)
def prod(call: Call, x: Tensor, dim: Any = None, keep: bool = False) -> Tensor:
    """The product; integers accumulate in i64"""
    axes, wide = call.axes(dim, x.rank), call.dtype().computed
    return finish(call, x, reductions.prod(call.b, x, axes, wide), axes, keep)


def _full_axes(call: Call, x: Tensor, dim: Any) -> list[int]:
    """The axes of a reduction that has no result for empty dims; aborts a run with one."""
    axes = call.axes(dim, x.rank)
    call.require_elements([x.shape[axis] for axis in axes])
    return axes


@lowers(aten.amax.default)
def amax(call: Call, x: Tensor, dim: Any, keep: bool) -> Tensor:
    """The largest element"""
    axes = _full_axes(call, x, dim)
    return finish(call, x, reductions.max_(call.b, x, axes), axes, keep)


@lowers(aten.amin.default)
def amin(call: Call, x: Tensor, dim: Any, keep: bool) -> Tensor:
    """The smallest element"""
    axes = _full_axes(call, x, dim)
    return finish(call, x, reductions.min_(call.b, x, axes), axes, keep)


@lowers(aten.aminmax.default)
def aminmax(call: Call, x: Tensor, *, dim: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element"""
    axes = _full_axes(call, x, dim)
    low, high = (f(call.b, x, axes) for f in (reductions.min_, reductions.max_))
    return finish(call, x, low, axes, keepdim), finish(call, x, high, axes, keepdim, 1)


@lowers(aten.max.default, aten.min.default)
def extremum(call: Call, x: Tensor) -> Tensor:
    """The largest or smallest of all elements"""
    fn = reductions.max_ if call.target is aten.max.default else reductions.min_
    return fn(call.b, x, _full_axes(call, x, None))


@lowers(aten.max.dim, aten.min.dim)
def extremum_dim(call: Call, x: Tensor, dim: int, keep: bool) -> tuple[Tensor, Tensor]:
    """The largest or smallest element along a dim, and its index"""
    largest = call.target is aten.max.dim
    if not x.rank:
        return x, call.b.full(0, I64, ())
    axes = [dim % x.rank]
    values, indices = reductions.arg_best(call.b, x, axes[0], largest)
    return finish(call, x, values, axes, keep), finish(call, x, indices, axes, keep, 1)


@lowers(aten.argmax.default, aten.argmin.default)
def arg_extremum(call: Call, x: Tensor, dim: Any, keep: bool) -> Tensor:
    """The index of the largest or smallest element, the first in a tie"""
    largest = call.target is aten.argmax.default
    if not x.rank:
        return call.b.full(0, I64, call.shape())
    if dim is None:
        _, indices = reductions.arg_best(call.b, shapes.flatten(call.b, x), 0, largest)
        return shapes.reshape(call.b, indices, call.shape())
    axes = [dim % x.rank]
    return finish(call, x, reductions.arg_best(call.b, x, axes[0], largest)[1], axes, keep)


@lowers(
    aten.any.default, aten.any.dim, aten.any.dims, aten.all.default, aten.all.dim, aten.all.dims,
    aten._is_all_true.default, aten._is_any_true.default,
)  # fmt: skip
def any_all(call: Call, x: Tensor, dim: Any = None, keep: bool = False) -> Tensor:
    """Whether any element, or every element, is nonzero"""
    dims_form = call.target in (aten.any.dims, aten.all.dims)
    axes = [] if dims_form and dim == [] else call.axes(dim, x.rank)
    name = call.target.__name__.split(".")[0]
    fn = reductions.any_ if "any" in name else reductions.all_
    result = fn(call.b, x, axes) if axes or not x.rank else call.b.is_true(x)
    if not x.rank:
        result = call.b.is_true(x)
    return finish(call, x, result, axes, keep)


def _correction(unbiased: Any) -> float:
    return float(bool(unbiased))


@lowers(aten.var.correction, aten.std.correction)
def var_correction(call: Call, x: Tensor, dim: Any, *, correction: Any, keepdim: bool) -> Tensor:
    """sum(|x - mean|^2) / (n - correction), or its square root"""
    return _spread(call, x, dim, 1 if correction is None else correction, keepdim)[0]


@lowers(aten.var.default, aten.std.default)
def var_default(call: Call, x: Tensor, unbiased: bool) -> Tensor:
    """The variance of all elements, or its square root"""
    return _spread(call, x, None, _correction(unbiased), False)[0]


@lowers(aten.var.dim, aten.std.dim)
def var_dim(call: Call, x: Tensor, dim: Any, unbiased: bool, keep: bool) -> Tensor:
    """The variance along dims, or its square root"""
    return _spread(call, x, dim, _correction(unbiased), keep)[0]


@lowers(aten.var_mean.correction, aten.std_mean.correction)
def var_mean(
    call: Call, x: Tensor, dim: Any, *, correction: Any, keepdim: bool
) -> tuple[Tensor, ...]:
    """The variance along dims, or its square root, and the mean"""
    return _spread(call, x, dim, 1 if correction is None else correction, keepdim)


@lowers(aten.var_mean.default, aten.std_mean.default)
def var_mean_default(call: Call, x: Tensor, unbiased: bool) -> tuple[Tensor, ...]:
    """The variance of all elements, or its square root, and the mean"""
    return _spread(call, x, None, _correction(unbiased), False)


@lowers(aten.var_mean.dim, aten.std_mean.dim)
def var_mean_dim(call: Call, x: Tensor, dim: Any, unbiased: bool, keep: bool) -> tuple[Tensor, ...]:
    """The variance along dims, or its square root, and the mean"""
    return _spread(call, x, dim, _correction(unbiased), keep)


def _spread(call: Call, x: Tensor, dim: Any, correction: Any, keep: bool) -> tuple[Tensor, ...]:
    axes = call.axes(dim, x.rank)
    if not isinstance(correction, int | float):
        correction = call.tensor(correction, F64)
    spread, average = reductions.var_mean(call.b, x, axes, correction)
    if call.target.__name__.startswith("std"):
        spread = call.b.map(lambda v: v.sqrt(), spread)
    spread = finish(call, x, spread, axes, keep)
    if not isinstance(call.value, tuple | list):
        return (spread,)
    return spread, finish(call, x, average, axes, keep, 1)


@lowers(aten.logsumexp.default, aten.special_logsumexp.default)
def logsumexp(call: Call, x: Tensor, dim: Any, keep: bool) -> Tensor:
    """log(sum(exp(x)))"""
    axes = call.axes(dim, x.rank)
    return finish(call, x, reductions.logsumexp(call.b, x, axes), axes, keep)


@lowers(aten.linalg_vector_norm.default)
def vector_norm(call: Call, x: Tensor, order: Any, dim: Any, keep: bool) -> Tensor:
    """(sum |x|^p)^(1/p)"""
    axes = call.axes(dim, x.rank)
    return finish(call, x, _norm(call, x, order, axes), axes, keep)


def _norm(call: Call, x: Tensor, order: Any, axes: list[int]) -> Tensor:
    if isinstance(order, int | float):
        if order < 0 or order == math.inf:
            call.require_elements([x.shape[axis] for axis in axes])
        return reductions.norm(call.b, x, float(order), axes)
    return reductions.norm_of_order(call.b, x, call.tensor(order, F64), axes)


@lowers(aten.norm.Scalar, aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dim_dtype)
def norm(call: Call, x: Tensor, order: Any, dim: Any = None, keep: bool = False) -> Tensor:
    """(sum |x|^p)^(1/p)"""
    axes = call.axes(dim, x.rank)
    return finish(call, x, _norm(call, x, 2 if order is None else order, axes), axes, keep)


@lowers(aten.count_nonzero.dim_IntList, aten.count_nonzero.default)
def count_nonzero(call: Call, x: Tensor, dim: Any) -> Tensor:
    """The number of nonzero elements"""
    axes = call.axes(dim, x.rank)
    return reductions.sum_(call.b, call.b.is_true(x), axes, I64)


@lowers(aten._softmax.default, aten.softmax.int, aten._safe_softmax.default)
def softmax(call: Call, x: Tensor, dim: int, _: Any = None) -> Tensor:
    """exp(x) / sum(exp(x))"""
    return _along(call, x, dim, reductions.softmax)


@lowers(aten._log_softmax.default, aten.log_softmax.int)
def log_softmax(call: Call, x: Tensor, dim: int, _: Any = None) -> Tensor:
    """x - log(sum(exp(x)))"""
    return _along(call, x, dim, reductions.log_softmax)


def _along(call: Call, x: Tensor, dim: int, fn: Any) -> Tensor:
    x = x if x.dtype is call.dtype() else call.b.cast(x, call.dtype().computed)
    if not x.rank:
        x = shapes.reshape(call.b, x, [1])
        return call.b.cast(shapes.reshape(call.b, fn(call.b, x, 0), ()), call.dtype())
    axis = call.axis(dim, x.rank)
    result = fn(call.b, x, axis)
    if call.target is aten._safe_softmax.default:
        rows = reductions.any_(
            call.b, call.b.map(lambda v: v > float("-inf"), x, dtype=BOOL), [axis]
        )
        rows = reductions.keep_dims(call.b, x, rows, [axis])
        result = call.b.map(lambda c, v: c.where(v, 0.0), rows, result, dtype=result.dtype)
    return call.b.cast(result, call.dtype())


@lowers(aten.equal.default)
def equal(call: Call, x: Tensor, y: Tensor) -> Any:
    """Whether the tensors have equal shapes and elements"""
    from ..calls import Symbolic

    if len(x.shape) != len(y.shape) or any(
        isinstance(a, int) and isinstance(c, int) and a != c for a, c in zip(x.shape, y.shape)
    ):
        return False
    wide = call.common_dtype()
    same = call.b.map(lambda u, v: u.to(wide) == v.to(wide), x, y, dtype=BOOL)
    result = reductions.all_(call.b, same, list(range(same.rank)))
    return Symbolic(call.b.item(result), BOOL)


@lowers(aten.hash_tensor.default)
def hash_tensor(call: Call, x: Tensor, dim: Any, *, keepdim: bool, mode: int) -> Tensor:
    """The XOR of all elements' bits along dims; floats are converted to f64"""
    if mode or x.dtype.is_complex:
        raise call.unsupported("this kind of checksum")
    b, axes = call.b, call.axes(dim, x.rank)
    words = b.map(lambda v: v.to(F64).bitcast(I64) if v.dtype.is_float else v.to(I64), x, dtype=I64)
    if axes:
        (words,) = b.reduce(lambda s, v, acc: acc ^ v, [words], axes, [(0, I64)])
    return shapes.reshape(b, b.cast(words, U64), call.shape())


__all__ = ["F32", "finish"]
