"""Distances between rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...builder import Body, Scalar, Size, Tensor, indexing, reductions, shapes
from ...builder.dtypes import F64, I64
from ..calls import Call, lowers
from ..operators import aten


@lowers(aten._cdist_forward.default)
def cdist_forward(call: Call, x: Tensor, y: Tensor, order: float, _: Any) -> Tensor:
    """norm(x[i, :] - y[j, :])"""
    return call.b.cast(reductions.distances(call.b, x, y, float(order)), call.dtype())


@lowers(aten._euclidean_dist.default)
def euclidean_dist(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """sqrt(sum((x[i, :] - y[j, :])^2))"""
    return call.b.cast(reductions.distances(call.b, x, y, 2.0), call.dtype())


@lowers(aten._pdist_forward.default)
def pdist_forward(call: Call, x: Tensor, order: float) -> Tensor:
    """norm(x[i, :] - x[j, :]) for i < j, in row-major order"""
    b, count = call.b, x.shape[0]
    if isinstance(count, int) and count < 2:
        return b.empty(call.dtype(), call.shape())
    pairs = [indexing.take(b, x, i, 0) for i in _pairs(call, count)]
    left, right = (shapes.unsqueeze(b, t, 1) for t in pairs)
    found = reductions.distances(b, left, right, float(order))
    return b.cast(shapes.reshape(b, found, call.shape()), call.dtype())


def _pairs(call: Call, count: Size) -> tuple[Tensor, Tensor]:
    """
    All i < j < count, in row-major order.

    Row i begins at pair i * count - i * (i + 1) / 2. The row of pair k solves that equation for i.
    The rounding of the root moves it by at most one row, which two comparisons correct.
    """
    b = call.b
    if isinstance(count, int):
        rows, columns = np.triu_indices(count, 1)
        constants = (b.constant(np.ascontiguousarray(i), I64) for i in (rows, columns))
        return next(constants), next(constants)

    def begin(i: Scalar) -> Scalar:
        """The number of pairs before row i."""
        return i * i.body.as_index(count).to(I64) - (i * (i + 1)).shift_right(1)

    def row(s: Body, k: Scalar) -> Scalar:
        k, slope = k.to(I64), s.as_index(count).to(I64) * 2 - 1
        root = (slope * slope - k * 8).to(F64).sqrt()
        near = ((slope.to(F64) - root) * 0.5).to(I64)
        after = (begin(near + 1) <= k).to(I64)
        return near + after - (begin(near) > k).to(I64)

    pairs = call.shape()
    rows = b.from_function(row, pairs, I64)
    places = shapes.iota(b, pairs[0])
    columns = b.map(lambda k, i: k.to(I64) - begin(i) + i + 1, places, rows, dtype=I64)
    return rows, columns
