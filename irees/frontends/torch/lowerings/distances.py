"""Distances between rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...builder import Tensor, indexing, reductions, shapes
from ...builder.dtypes import I64
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
    if not isinstance(count, int):
        raise call.unsupported("pdist of a number of rows that is not known")
    if count < 2:
        return b.empty(call.dtype(), call.shape())
    rows, columns = np.triu_indices(count, 1)
    pairs = [indexing.take(b, x, b.constant(np.ascontiguousarray(i), I64), 0)
             for i in (rows, columns)]  # fmt: skip
    left, right = (shapes.unsqueeze(b, t, 1) for t in pairs)
    found = reductions.distances(b, left, right, float(order))
    return b.cast(shapes.reshape(b, found, call.shape()), call.dtype())
