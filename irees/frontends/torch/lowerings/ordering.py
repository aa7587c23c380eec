"""Sorting, selection, scans and binary search."""

from __future__ import annotations

from typing import Any

from ...builder import Tensor, indexing, ordering, shapes
from ...builder.dtypes import F64, I64
from ..calls import Call, lowers
from ..operators import aten
from .activations import log_add


@lowers(aten.sort.default, aten.sort.stable)
def sort(call: Call, x: Tensor, *given: Any) -> tuple[Tensor, Tensor]:
    """x sorted along a dim, and the original indices"""
    dim, descending = _sort_arguments(call)
    if not x.rank:
        return x, call.b.full(0, I64, ())
    return ordering.sort(call.b, x, call.axis(dim, x.rank), descending)


def _sort_arguments(call: Call) -> tuple[int, bool]:
    names = [a.name for a in call.target._schema.arguments if not a.kwarg_only]
    given = dict(zip(names, call.raw))
    named = call.named
    dim = given.get("dim", named.get("dim", -1))
    return dim, bool(given.get("descending", named.get("descending", False)))


@lowers(aten.argsort.default, aten.argsort.stable)
def argsort(call: Call, x: Tensor, *given: Any) -> Tensor:
    """The original indices of the sorted elements"""
    return sort(call, x)[1]


@lowers(aten.msort.default)
def msort(call: Call, x: Tensor) -> Tensor:
    """x sorted along dim 0"""
    return ordering.sort(call.b, x, 0, False)[0] if x.rank else x


@lowers(aten.topk.default)
def topk(call: Call, x: Tensor, k: Any, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The k largest or smallest elements along a dim in order, and their indices"""
    if not x.rank:
        return x, call.b.full(0, I64, ())
    return ordering.topk(call.b, x, k, dim % x.rank, largest)


@lowers(aten.kthvalue.default)
def kthvalue(call: Call, x: Tensor, k: Any, dim: int, keep: bool) -> tuple[Tensor, Tensor]:
    """The k-th smallest element (1-based) along a dim, and its index"""
    b = call.b
    if not x.rank:
        return x, b.full(0, I64, ())
    axis = dim % x.rank
    found = ordering.sort(b, x, axis, False)
    picked = [shapes.slice_axis(b, t, axis, b.sub(k, 1), 1) for t in found]
    values, indices = (t if keep else shapes.squeeze(b, t, [axis]) for t in picked)
    return values, indices


# --- scans ---


def _running(fn: Any) -> Any:
    def lower(call: Call, x: Tensor, dim: int) -> Tensor:
        b, dtype = call.b, call.dtype()
        # PyTorch's CPU kernels accumulate f32 in f64, and half floats in f32.
        wide = F64 if dtype.is_float and dtype.computed is dtype else dtype.computed
        if not x.rank:
            return b.cast(x, dtype)
        return b.cast(indexing.scan(b, b.cast(x, wide), dim % x.rank, fn), dtype)

    return lower


lowers(aten.cumsum.default)(_running(lambda acc, v: acc + v))
lowers(aten.cumprod.default)(_running(lambda acc, v: acc * v))


@lowers(aten.cummax.default, aten.cummin.default)
def cummax(call: Call, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The running maximum or minimum, and its index"""
    if not x.rank:
        return x, call.b.full(0, I64, ())
    largest = call.target is aten.cummax.default
    return ordering.running_best(call.b, x, dim % x.rank, largest)


@lowers(aten.logcumsumexp.default, aten._logcumsumexp.default)
def logcumsumexp(call: Call, x: Tensor, dim: int) -> Tensor:
    """log(cumsum(exp(x)))"""
    b, dtype = call.b, call.dtype()
    if not x.rank:
        return x
    wide = dtype.computed
    return b.cast(indexing.scan(b, b.cast(x, wide), dim % x.rank, log_add), dtype)


@lowers(
    aten.searchsorted.Tensor, aten.searchsorted.Scalar, aten.bucketize.Tensor,
    aten.bucketize.Scalar,
)  # fmt: skip
def searchsorted(
    call: Call, first: Any, second: Any, *, right: bool, side: Any = None, sorter: Any = None
) -> Tensor:
    """The number of elements of a sorted row that are less than each value"""
    b = call.b
    bucketize = call.target.__name__.startswith("bucketize")
    row, values = (second, first) if bucketize else (first, second)
    wide = call.common_dtype()
    values = call.tensor(values, wide)
    if sorter is not None:
        row = indexing.take_along(b, row, sorter, row.rank - 1, indexing.checked)
    found = ordering.search(b, b.cast(row, wide), values, right or side == "right")
    return b.cast(found, call.dtype())
