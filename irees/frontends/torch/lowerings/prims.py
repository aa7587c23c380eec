"""PyTorch's primitive operators, which decompositions and traced reference functions contain."""

from __future__ import annotations

from typing import Any

import torch

from ...builder import Tensor, reductions, shapes
from ...builder.dtypes import I64
from ..calls import Call, lowers

prims = torch.ops.prims


@lowers(
    prims.collapse.default, prims.collapse_view.default, prims.split_dim.default,
    prims.squeeze.default, prims.reshape.default,
)  # fmt: skip
def reshape(call: Call, x: Tensor, *_: Any) -> Tensor:
    """Reshape in row-major order"""
    return shapes.reshape(call.b, x, call.shape())


@lowers(prims.view_of.default, prims.clone.default)
def identity(call: Call, x: Tensor, *_: Any) -> Tensor:
    """x"""
    return x


@lowers(prims.transpose.default)
def transpose(call: Call, x: Tensor, order: list[int]) -> Tensor:
    """out dim n is dim order[n] of x"""
    return shapes.transpose(call.b, x, order)


@lowers(prims.broadcast_in_dim.default)
def broadcast_in_dim(call: Call, x: Tensor, shape: list[Any], dims: list[int]) -> Tensor:
    """Broadcasts x; dim n of x becomes dim dims[n] of the result"""
    sizes: list[Any] = [1] * len(shape)
    for size, dim in zip(x.shape, dims, strict=True):
        sizes[dim] = size
    return shapes.broadcast_to(call.b, shapes.reshape(call.b, x, sizes), call.shape())


@lowers(prims.iota.default)
def iota(call: Call, length: Any, *, start: Any, step: Any) -> Tensor:
    """start + i * step"""
    dtype = call.dtype()

    def element(s: Any, i: Any) -> Any:
        first, by = (call.number_in(s, v, I64) for v in (start, step))
        return (first + i.to(I64) * by).to(dtype)

    return call.b.from_function(element, call.shape(), dtype)


@lowers(prims.sum.default, prims.prod.default, prims.amax.default, prims.amin.default)
def reduction(call: Call, x: Tensor, dims: Any) -> Tensor:
    """Sum, product, maximum or minimum along dims"""
    name = call.target.__name__.split(".")[0]
    table = {
        "sum": reductions.sum_, "prod": reductions.prod, "amax": reductions.max_,
        "amin": reductions.min_,
    }  # fmt: skip
    axes = list(range(x.rank)) if dims is None else call.axes(dims, x.rank) if dims else []
    return call.b.cast(table[name](call.b, x, axes), call.dtype())
