"""
Decomposes PyTorch's primitive operators (`prims`) to `aten` operators.

Graphs traced through `torch._refs` contain them. A primitive is the `aten` operator of the same
name without broadcasting or dtype promotion, so each decomposes to that operator.
"""

from __future__ import annotations

from typing import Any

import torch

aten, prims = torch.ops.aten, torch.ops.prims

_NAMESAKES = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil",
    "conj_physical", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "hypot",
    "imag", "isfinite", "log", "log10", "log1p", "log2", "maximum", "minimum", "neg", "nextafter",
    "real", "reciprocal", "round", "rsqrt", "sign", "signbit", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc", "atan2", "fmax", "fmin", "cat",
)  # fmt: skip
_NAMESAKES_OF_TENSORS = (
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "fmod", "ge", "gt", "le", "lt", "mul",
    "ne", "remainder", "sub",
)  # fmt: skip


def div(x: Any, y: Any) -> Any:
    """x / y, truncated for integers."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return aten.div.Tensor(x, y)
    return aten.div.Tensor_mode(x, y, rounding_mode="trunc")


def var(x: Any, dims: Any, correction: float | None = 1, *, output_dtype: Any = None) -> Any:
    """The variance along dims."""
    result = aten.var.correction(x, dims, correction=correction)
    return result if output_dtype is None else result.to(output_dtype)


def full(shape: Any, value: Any, *, dtype: Any, **_: Any) -> Any:
    """A tensor filled with a value."""
    return aten.full.default(shape, value, dtype=dtype)


def full_like(x: Any, value: Any, *, dtype: Any, **_: Any) -> Any:
    """A tensor filled with a value, in the shape of x."""
    return aten.full.default(x.shape, value, dtype=dtype)


def empty(shape: Any, *_: Any, dtype: Any, **__: Any) -> Any:
    """An uninitialized tensor; the layout is ignored."""
    return aten.empty.memory_format(shape, dtype=dtype)


def copied(x: Any, *_: Any, **__: Any) -> Any:
    """A copy of x; the layout and the device are ignored."""
    return aten.clone.default(x)


DECOMPOSITIONS: dict[Any, Any] = {
    **{getattr(prims, n).default: getattr(aten, n).default for n in _NAMESAKES},
    **{getattr(prims, n).default: getattr(aten, n).Tensor for n in _NAMESAKES_OF_TENSORS},
    prims.as_strided.default: aten.as_strided.default,
    prims.conj.default: aten._conj.default,
    prims.copy_strided.default: copied,
    prims.device_put.default: copied,
    prims.div.default: div,
    prims.empty.default: empty,
    prims.empty_permuted.default: empty,
    prims.empty_strided.default: empty,
    prims.fill.default: aten.fill.Scalar,
    prims.full.default: full,
    prims.full_like.default: full_like,
    prims.item.default: aten._local_scalar_dense.default,
    prims.pow.default: aten.pow.Tensor_Tensor,
    prims.rev.default: aten.flip.default,
    prims.scalar_tensor.default: aten.scalar_tensor.default,
    prims.shift_left.default: aten.bitwise_left_shift.Tensor,
    prims.shift_right_arithmetic.default: aten.bitwise_right_shift.Tensor,
    prims.svd.default: lambda x, *, full_matrices: aten._linalg_svd.default(x, full_matrices),
    prims.var.default: var,
    prims.view_of_dtype.default: aten.view.dtype,
    prims.where.default: aten.where.self,
}
"""Decomposition of each primitive. `prims.cbrt` and `prims.xor_sum` have none."""
