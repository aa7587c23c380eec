"""Image resizing and grid sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...builder import DType, Tensor, resampling, shapes
from ...builder.dtypes import F32, U8
from ...builder.resampling import Resizing, Sampling
from ..calls import Call, NotLowered, lowers
from ..operators import aten

_MODES = {
    "nearest_exact": "exact", "nearest": "nearest", "bilinear": "linear", "trilinear": "linear",
    "linear": "linear", "bicubic": "cubic", "lanczos": "lanczos",
}  # fmt: skip


def _mode(call: Call) -> str:
    name = call.target.__name__
    return next(mode for part, mode in _MODES.items() if part in name)


def _wide(x: Tensor) -> DType:
    return x.dtype.computed if x.dtype.is_float else F32


def _resizings(
    call: Call, x: Tensor, out: Sequence[Any], factors: Any, aligned: bool
) -> list[Resizing]:
    n = len(out)
    factors = list(factors or []) + [None] * n
    sizes = x.shape[-n:]
    call.require_elements([*sizes, *out])
    return [Resizing(_mode(call), size, o, aligned, f) for size, o, f in zip(sizes, out, factors)]


def _finished(call: Call, result: Tensor) -> Tensor:
    dtype = call.dtype()
    if dtype.is_integer:
        return call.b.map(lambda v: v.round().clamp(0.0, 255.0).to(dtype), result, dtype=dtype)
    return call.b.cast(result, dtype)


def _upsampled(call: Call, x: Tensor, factors: Any, aligned: bool) -> Tensor:
    """Resizes the spatial dims of x."""
    n = x.rank - 2
    dims = _resizings(call, x, call.shape()[2:], factors, aligned)
    if dims[0].mode in ("nearest", "exact"):
        times = [found for dim in dims if (found := _times(dim)) is not None]
        return _repeated(call, x, times) if len(times) == n else _nearest(call, x, dims)
    if x.dtype is U8 and n == 2 and x.is_static:
        return resampling.apply_matrices_to_bytes(call.b, x, _matrices(call, dims, np.float64))
    return _finished(call, resampling.resize(call.b, x, dims, _wide(x)))


def _nearest(call: Call, x: Tensor, dims: list[Resizing]) -> Tensor:
    """Nearest-neighbor resizing; computes indices in f32 and only moves elements."""
    wide = _wide(x)

    def element(s: Any, *at: Any) -> Any:
        places = [d.nearest(s, at[2 + i], wide) for i, d in enumerate(dims)]
        return s.extract(x, [*at[:2], *places])

    return call.b.from_function(element, call.shape(), x.dtype)


def _times(dim: Resizing) -> int | None:
    """How often resizing repeats each element, or None if that differs or is not known."""
    if isinstance(dim.size, int) and isinstance(dim.out, int):
        times = dim.out // dim.size if dim.size else 0
        known = dim.out == times * dim.size and dim.factor in (None, float(times))
    else:
        # PyTorch's size is then floor(size * factor).
        times = int(dim.factor or 0)
        known = dim.factor == times
    return times if known and times > 0 else None


def _repeated(call: Call, x: Tensor, times: list[int]) -> Tensor:
    b = call.b
    apart: list[Any] = list(x.shape[:2])
    stretched: list[Any] = list(x.shape[:2])
    for size, count in zip(x.shape[2:], times, strict=True):
        apart += [size, 1]
        stretched += [size, count]
    wide = shapes.broadcast_to(b, shapes.reshape(b, x, apart), stretched)
    return shapes.reshape(b, wide, call.shape())


@lowers(
    aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec,
    aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec,
    aten._upsample_nearest_exact3d.vec,
)  # fmt: skip
def upsample_nearest_vec(call: Call, x: Tensor, _: Any, factors: Any) -> Tensor:
    """x resized by nearest-neighbor interpolation"""
    return _upsampled(call, x, factors, False)


@lowers(
    aten.upsample_nearest1d.default, aten.upsample_nearest2d.default,
    aten.upsample_nearest3d.default, aten._upsample_nearest_exact1d.default,
    aten._upsample_nearest_exact2d.default, aten._upsample_nearest_exact3d.default,
)  # fmt: skip
def upsample_nearest(call: Call, x: Tensor, _: Any, *factors: Any) -> Tensor:
    """x resized by nearest-neighbor interpolation"""
    return _upsampled(call, x, factors, False)


@lowers(
    aten.upsample_linear1d.vec, aten.upsample_bilinear2d.vec, aten.upsample_trilinear3d.vec,
    aten.upsample_bicubic2d.vec,
)  # fmt: skip
def upsample_vec(call: Call, x: Tensor, _: Any, aligned: bool, factors: Any) -> Tensor:
    """x resized by linear or cubic interpolation"""
    return _upsampled(call, x, factors, aligned)


@lowers(
    aten.upsample_linear1d.default, aten.upsample_bilinear2d.default,
    aten.upsample_trilinear3d.default, aten.upsample_bicubic2d.default,
)  # fmt: skip
def upsample(call: Call, x: Tensor, _: Any, aligned: bool, *factors: Any) -> Tensor:
    """x resized by linear or cubic interpolation"""
    return _upsampled(call, x, factors, aligned)


def _matrices(
    call: Call, dims: list[Resizing], kind: Any = np.float32, wide: DType | None = None
) -> list[Any]:
    """
    The weight matrix of each dim; `_aa` operators use an antialiasing filter. If given, `wide` is
    the dtype of weights that are computed at run time; else sizes must be known.
    """
    found: list[Any] = []
    for dim in dims:
        smooth = "_aa" in call.target.__name__
        if not isinstance(dim.size, int) or not isinstance(dim.out, int):
            if wide is None or not smooth:
                raise call.unsupported("resizing by a filter with sizes that are not known")
            found.append(resampling.smooth_band(call.b, dim, wide))
            continue
        if not smooth:
            found.append(dim.matrix(kind))
            continue
        step = dim.size / dim.out if not dim.factor else 1 / dim.factor
        if dim.aligned:
            step = (dim.size - 1) / max(dim.out - 1, 1)
        found.append(resampling.smooth_matrix(dim.mode, dim.size, dim.out, step))
    return found


def _smoothed(call: Call, x: Tensor, aligned: bool, factors: Any) -> Tensor:
    dims = _resizings(call, x, call.shape()[2:], factors, aligned)
    if x.dtype is U8:
        return resampling.apply_matrices_to_bytes(call.b, x, _matrices(call, dims))
    matrices = _matrices(call, dims, wide=_wide(x))
    return _finished(call, resampling.apply_matrices(call.b, x, matrices, _wide(x)))


@lowers(
    aten._upsample_bilinear2d_aa.default,
    aten._upsample_bicubic2d_aa.default,
    aten._upsample_lanczos2d_aa.default,
)
def upsample_aa(call: Call, x: Tensor, _: Any, aligned: bool, *factors: Any) -> Tensor:
    """x resized with an antialiasing filter"""
    return _smoothed(call, x, aligned, factors)


@lowers(
    aten._upsample_bilinear2d_aa.vec,
    aten._upsample_bicubic2d_aa.vec,
    aten._upsample_lanczos2d_aa.vec,
)
def upsample_aa_vec(call: Call, x: Tensor, _: Any, aligned: bool, factors: Any) -> Tensor:
    """x resized with an antialiasing filter"""
    return _smoothed(call, x, aligned, factors)


def _adjoint(call: Call, grad: Tensor, size: Any, factors: Any, aligned: bool) -> Tensor:
    """The gradient of x: multiplies each dim by its transposed weights."""
    dims = [
        Resizing(_mode(call), n, out, aligned, f)
        for n, out, f in zip(size[2:], grad.shape[2:], [*(factors or []), None, None, None])
    ]
    matrices = [m.T for m in _matrices(call, dims)]
    return call.b.cast(resampling.apply_matrices(call.b, grad, matrices, _wide(grad)), call.dtype())


@lowers(
    aten.upsample_nearest1d_backward.default, aten.upsample_nearest2d_backward.default,
    aten.upsample_nearest3d_backward.default, aten._upsample_nearest_exact1d_backward.default,
    aten._upsample_nearest_exact2d_backward.default,
    aten._upsample_nearest_exact3d_backward.default,
)  # fmt: skip
def upsample_nearest_backward(
    call: Call, grad: Tensor, _: Any, size: list[int], *factors: Any
) -> Tensor:
    """Sums the gradients of all copies of each element"""
    return _adjoint(call, grad, size, factors, False)


@lowers(
    aten.upsample_linear1d_backward.default, aten.upsample_bilinear2d_backward.default,
    aten.upsample_trilinear3d_backward.default, aten.upsample_bicubic2d_backward.default,
    aten._upsample_bilinear2d_aa_backward.default, aten._upsample_bicubic2d_aa_backward.default,
    aten._upsample_lanczos2d_aa_backward.default,
)  # fmt: skip
def upsample_backward(
    call: Call, grad: Tensor, _: Any, size: list[int], aligned: bool, *factors: Any
) -> Tensor:
    """Sums the weighted gradients of the results that each element contributed to"""
    return _adjoint(call, grad, size, factors, aligned)


@lowers(aten.grid_sampler_2d.default, aten.grid_sampler_3d.default, aten.grid_sampler.default)
def grid_sampler(
    call: Call, x: Tensor, grid: Tensor, mode: int, outside: int, aligned: bool
) -> Tensor:
    """x sampled at grid positions from -1 to 1"""
    modes, paddings = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")
    if modes[mode] == "cubic" and x.rank != 4:
        raise NotLowered
    how = Sampling(modes[mode], paddings[outside], bool(aligned))
    wide = x.dtype.computed
    return call.b.cast(resampling.sample(call.b, x, grid, how, wide), call.dtype())
