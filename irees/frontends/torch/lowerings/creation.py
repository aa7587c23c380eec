"""Tensor creation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...builder import Body, Scalar, Size, Tensor, bessel, shapes
from ...builder.dtypes import F64, I64, INDEX, DType
from ..calls import Call, lowers
from ..operators import aten


@lowers(
    aten.empty.memory_format, aten.empty_strided.default, aten.empty_like.default,
    aten.new_empty.default, aten.new_empty_strided.default, aten.empty_permuted.default,
    aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default,
    aten._efficientzerotensor.default, aten._new_zeros_with_same_feature_meta.default,
)  # fmt: skip
def zeros(call: Call, *_: Any) -> Tensor:
    """A tensor of 0; also used for uninitialized tensors"""
    return call.b.full(0, call.dtype(), call.shape())


@lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(call: Call, *_: Any) -> Tensor:
    """A tensor of 1"""
    return call.b.full(1, call.dtype(), call.shape())


@lowers(aten.new_full.default)
def new_full(call: Call, _: Any, shape: Any, value: Any) -> Tensor:
    """A tensor filled with one number"""
    return full(call, shape, value)


@lowers(aten.full.default, aten.full_like.default, aten.fill.Scalar, aten.fill.Tensor)
def full(call: Call, _: Any, value: Any) -> Tensor:
    """A tensor filled with one number"""
    return shapes.broadcast_to(call.b, call.tensor(value, call.dtype()), call.shape())


@lowers(aten.scalar_tensor.default)
def scalar_tensor(call: Call, value: Any) -> Tensor:
    """A number as a rank-0 tensor"""
    return call.tensor(value, call.dtype())


@lowers(aten.arange.default, aten.arange.start, aten.arange.start_step)
def arange(call: Call, *bounds: Any) -> Tensor:
    """start + i * step"""
    start, step = 0, 1
    if call.target is not aten.arange.default:
        start = bounds[0]
    if call.target is aten.arange.start_step:
        step = bounds[2] if len(bounds) > 2 else 1
    dtype = call.dtype()
    wide = I64 if dtype.is_integer else F64

    def element(s: Any, i: Any) -> Any:
        first, by = (call.number_in(s, v, wide) for v in (start, step))
        return (first + i.to(wide) * by).to(dtype)

    return call.b.from_function(element, call.shape(), dtype)


@lowers(aten.fft_fftfreq.default, aten.fft_rfftfreq.default)
def fft_frequencies(call: Call, n: Size, d: float) -> Tensor:
    """i / (n d), where the indices i of the upper half count from -n / 2 for `fftfreq`"""
    b, wide = call.b, call.dtype().computed
    half = b.value(b.floordiv(b.add(n, 1), 2))

    def element(s: Body, i: Scalar) -> Scalar:
        size = s.scalar(b.value(n), INDEX).to(I64)
        place = i.to(I64)
        if call.target is aten.fft_fftfreq.default:
            place = (place < s.scalar(half, INDEX).to(I64)).where(place, place - size)
        # PyTorch multiplies by a factor that it computes in f64.
        return place.to(wide) * (1.0 / (size.to(F64) * d)).to(wide)

    return b.from_function(element, call.shape(), call.dtype())


def _bound(call: Call, s: Body, value: Any, dtype: DType, wide: DType) -> Scalar:
    """A bound in the computation dtype, after conversion to the result dtype."""
    if isinstance(value, Tensor):
        return s.extract(value, [0] * value.rank).to(dtype).to(wide)
    return call.number_in(s, value, dtype).to(wide)


@lowers(
    aten.linspace.default, aten.linspace.Tensor_Tensor, aten.linspace.Tensor_Scalar,
    aten.linspace.Scalar_Tensor,
)  # fmt: skip
def linspace(call: Call, start: Any, end: Any, steps: int) -> Tensor:
    """`steps` equidistant numbers from start to end, computed from the nearer end"""
    dtype = call.dtype()
    if isinstance(start, complex) or isinstance(end, complex) or dtype.is_complex:
        wide = dtype
    else:
        wide = F64 if dtype.is_integer or dtype is F64 else dtype.computed

    def element(s: Any, i: Any) -> Any:
        low, high = (_bound(call, s, v, dtype, wide) for v in (start, end))
        if wide.is_complex:
            step = (high - low) * (1 / max(steps - 1, 1))
        else:
            step = (high - low) / max(steps - 1, 1)
        below = low + step * i.to(wide.part).to(wide)
        above = high - step * (steps - 1 - i).to(wide.part).to(wide)
        return (i < steps // 2).where(below, above).to(dtype) if steps > 1 else low.to(dtype)

    return call.b.from_function(element, call.shape(), dtype)


@lowers(
    aten.logspace.default, aten.logspace.Tensor_Tensor, aten.logspace.Tensor_Scalar,
    aten.logspace.Scalar_Tensor,
)  # fmt: skip
def logspace(call: Call, start: Any, end: Any, steps: int, base: float) -> Tensor:
    """base ^ linspace(start, end)"""
    dtype = call.dtype()
    wide = dtype if dtype.is_complex else F64

    def element(s: Any, i: Any) -> Any:
        # A single power uses the bound without rounding it to the dtype.
        kind = wide if steps == 1 else dtype
        low, high = (_bound(call, s, v, kind, wide) for v in (start, end))
        step = (
            (high - low) * (1 / max(steps - 1, 1))
            if wide.is_complex
            else (high - low) / max(steps - 1, 1)
        )
        below = low + step * i.to(wide.part).to(wide)
        above = high - step * (steps - 1 - i).to(wide.part).to(wide)
        exponent = (i < steps // 2).where(below, above) if steps > 1 else low
        return s.number(base, wide).pow(exponent).to(dtype)

    return call.b.from_function(element, call.shape(), dtype)


@lowers(aten.eye.default, aten.eye.m)
def eye(call: Call, *_: Any) -> Tensor:
    """The identity matrix"""
    dtype = call.dtype()
    return call.b.from_function(lambda s, i, j: (i == j).to(dtype), call.shape(), dtype)


@lowers(aten.tril_indices.default, aten.triu_indices.default)
def triangle_indices(call: Call, rows: int, columns: int, offset: int) -> Tensor:
    """The indices of a triangle: row 0 has the row indices, row 1 the column indices"""
    lower = call.target is aten.tril_indices.default
    make = np.tril_indices if lower else np.triu_indices  # PyTorch's are fake in `torch.compile`
    found = np.stack(make(rows, offset, columns)).astype(np.int64)
    if not found.size:
        return call.b.empty(call.dtype(), call.shape())
    return call.b.cast(call.b.constant(found, I64), call.dtype())


def window(call: Call, fn: Any, length: int, periodic: bool) -> Tensor:
    """fn(i / n), where n is `length` if periodic, else length - 1"""
    dtype = call.dtype()
    n = length if periodic else length - 1

    def element(s: Any, i: Any) -> Any:
        if length == 1:
            return s.number(1.0, F64).to(dtype)
        return fn(i.to(F64) / n).to(dtype)

    return call.b.from_function(element, call.shape(), dtype)


def _cosines(*weights: float) -> Any:
    def fn(x: Any) -> Any:
        total = x._other(weights[0])
        for k, weight in enumerate(weights[1:], 1):
            total = total + (x * (2 * math.pi * k)).cos() * ((-1) ** k * weight)
        return total

    return fn


@lowers(aten.hann_window.default, aten.hann_window.periodic)
def hann_window(call: Call, length: int, periodic: bool = True) -> Tensor:
    """0.5 - 0.5 cos(2 pi x)"""
    return window(call, _cosines(0.5, 0.5), length, periodic)


@lowers(
    aten.hamming_window.default,
    aten.hamming_window.periodic,
    aten.hamming_window.periodic_alpha,
    aten.hamming_window.periodic_alpha_beta,
)
def hamming_window(
    call: Call, length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46
) -> Tensor:
    """alpha - beta cos(2 pi x)"""
    return window(call, _cosines(alpha, beta), length, periodic)


@lowers(aten.blackman_window.default, aten.blackman_window.periodic)
def blackman_window(call: Call, length: int, periodic: bool = True) -> Tensor:
    """0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)"""
    return window(call, _cosines(0.42, 0.5, 0.08), length, periodic)


@lowers(aten.bartlett_window.default, aten.bartlett_window.periodic)
def bartlett_window(call: Call, length: int, periodic: bool = True) -> Tensor:
    """1 - |2 x - 1|"""
    return window(call, lambda x: 1 - (x * 2 - 1).abs(), length, periodic)


@lowers(aten.kaiser_window.default, aten.kaiser_window.periodic, aten.kaiser_window.beta)
def kaiser_window(call: Call, length: int, periodic: bool = True, beta: float = 12.0) -> Tensor:
    """i0(beta sqrt(4 x (1 - x))) / i0(beta)"""
    whole = float(np.i0(beta))
    return window(
        call, lambda x: bessel.i0(((x * 4) * (1 - x)).maximum(0.0).sqrt() * beta) / whole,
        length, periodic,
    )  # fmt: skip
