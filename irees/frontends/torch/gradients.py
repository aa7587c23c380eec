"""Decompositions of gradients that PyTorch has only as kernels."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import inf, prod
from typing import Any

import torch

from irees.errors import UnsupportedError

aten = torch.ops.aten

GRADIENTS: dict[Any, Any] = {}
"""The decomposition of each operator."""


def decomposes(op: Any) -> Callable[[Any], Any]:
    """Registers a function as the decomposition of an operator."""

    def register(function: Any) -> Any:
        GRADIENTS[op] = function
        return function

    return register


@decomposes(aten.masked_scatter_backward.default)
def masked_scatter_backward(gradient: Any, mask: Any, sizes: Any) -> Any:
    """The gradients of the elements that `masked_scatter` took from its source, 0 for the rest."""
    count = prod(sizes)
    chosen = mask.expand_as(gradient).reshape(-1)
    places = torch.where(chosen, chosen.cumsum(0) - 1, count)
    taken = gradient.new_zeros(count + 1).index_put((places,), gradient.reshape(-1))
    return taken[:count].view(sizes)


@decomposes(aten._cdist_backward.default)
def cdist_backward(gradient: Any, x: Any, y: Any, p: float, distances: Any) -> Any:
    """The gradient of the rows of x in `cdist(x, y, p)`; 0 for rows at distance 0."""
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    distance, slope = distances.unsqueeze(-1), gradient.unsqueeze(-1)
    sign, size = apart.sign(), apart.abs()
    if p == 0:
        terms = torch.zeros_like(apart)
    elif p == 1:
        terms = slope * sign
    elif p == inf:
        terms = slope * sign * (size == distance)
    elif p == 2:
        terms = torch.where(distance == 0, 0, slope * apart / distance)
    else:
        powers = sign * size.pow(p - 1) * slope / distance.pow(p - 1)
        terms = torch.where((distance == 0) | (size == 0), 0, powers)
    return terms.sum(-2)


def _bags(indices: Any, offsets: Any) -> Any:
    """The bag of each index; PyTorch leaves them out where its kernel does not need them."""
    places = torch.arange(indices.shape[0], device=indices.device, dtype=offsets.dtype)
    return torch.searchsorted(offsets, places, right=True) - 1


@decomposes(aten._embedding_bag_per_sample_weights_backward.default)
def embedding_bag_weights_backward(
    gradient: Any, table: Any, indices: Any, offsets: Any, bags: Any, mode: int, padding: int = -1
) -> Any:
    """The gradients of the factors of the rows in `embedding_bag`; 0 for rows of padding."""
    products = (gradient[_bags(indices, offsets)] * table[indices]).sum(1)
    return torch.where(indices == padding, 0, products)


@decomposes(aten._embedding_bag_backward.default)
def embedding_bag_backward(
    gradient: Any, indices: Any, offsets: Any, bags: Any, sizes: Any, largest: Any, rows: Any,
    by_frequency: bool, mode: int, sparse: bool, weights: Any, padding: int = -1,
) -> Any:  # fmt: skip
    """The gradient of the table of `embedding_bag` for sums (0), means (1) or maxima (2)."""
    table = gradient.new_zeros((rows, gradient.shape[-1]))
    if mode == 2:
        terms = torch.where((sizes == 0).unsqueeze(1), 0, gradient)
        return table.scatter_add(0, largest.long(), terms)
    bags = _bags(indices, offsets)
    terms = gradient[bags]
    if weights is not None:
        terms = terms * weights.unsqueeze(1)
    if mode == 1:
        terms = terms / sizes[bags].unsqueeze(1).to(terms.dtype)
    if by_frequency:
        terms = terms / _frequencies(indices, rows).unsqueeze(1)
    terms = torch.where((indices == padding).unsqueeze(1), 0, terms)
    return table.index_add(0, indices, terms)


def _frequencies(indices: Any, rows: Any) -> Any:
    """
    What PyTorch divides the gradient of each index by: for the i-th distinct index, in order, it
    is how often the i-th of all sorted indices occurs, not how often the index itself does.
    """
    counts = torch.zeros(rows).index_add(0, indices, torch.ones(indices.shape[0]))
    ordered, places = indices.sort()
    is_new = torch.cat([torch.zeros_like(ordered[:1]), (ordered[1:] != ordered[:-1]).long()])
    found = counts[ordered[is_new.cumsum(0)]]
    return torch.zeros_like(found).index_put((places,), found)


@decomposes(aten._pdist_backward.default)
def pdist_backward(gradient: Any, x: Any, p: float, distances: Any) -> Any:
    """The gradient of the rows in `pdist(x, p)`, as `cdist(x, x, p)` has it for pairs i < j."""
    rows = x.shape[0]
    first, second = torch.triu_indices(rows, rows, 1).unbind(0)
    whole = gradient.new_zeros((rows, rows))
    slopes, apart = (
        whole.index_put((first, second), t) + whole.index_put((second, first), t)
        for t in (gradient, distances)
    )
    return cdist_backward(slopes, x, x, p, apart)


@decomposes(aten._segment_reduce_backward.default)
def segment_reduce_backward(
    gradient: Any, output: Any, data: Any, reduce: str, *, lengths: Any = None, offsets: Any = None,
    axis: int = 0, initial: Any = None,
) -> Any:  # fmt: skip
    """The gradient of the data: each element gets the gradient of its segment's result."""
    if axis or (lengths if offsets is None else offsets).dim() != 1:
        raise UnsupportedError(
            "gradients of segments of other axes than the first are not supported"
        )
    if lengths is None:
        lengths = offsets.diff()
    places = torch.repeat_interleave(lengths, output_size=data.shape[0])
    slope, result = gradient[places], output[places]
    if reduce == "sum":
        return slope
    counts = lengths[places].reshape(-1, *[1] * (data.dim() - 1))
    if reduce == "mean":
        return slope / counts
    if reduce == "prod":
        raise UnsupportedError("gradients of products of segments are not supported")
    chosen = (data == result) | (data.isnan() & result.isnan())
    ties = torch.zeros_like(output).index_add(0, places, chosen.to(output.dtype))
    return torch.where(chosen, slope / ties[places], 0)


# --- grids ---

_CUBIC = -0.75
"""The parameter of PyTorch's cubic convolution."""


def _reflected(at: Any, low: float, high: float) -> tuple[Any, Any]:
    """Coordinates reflected at both ends into low <= at <= high, and the sign of their slope."""
    if high <= low:
        return torch.zeros_like(at), torch.zeros_like(at)
    span = high - low
    inside = (at - low).abs()
    extra = inside.fmod(span)
    is_even = (inside / span).floor().remainder(2) == 0
    sign = torch.where(at < low, -1.0, 1.0)
    return torch.where(is_even, extra, span - extra) + low, torch.where(is_even, sign, -sign)


def _padded(at: Any, size: int, padding: int, align_corners: bool) -> tuple[Any, Any]:
    """Coordinates that are left (0), clamped (1) or reflected (2), and their slope."""
    slope = torch.ones_like(at)
    if padding == 2:
        ends = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        at, slope = _reflected(at, *ends)
    if padding:
        slope = torch.where((at > 0) & (at < size - 1), slope, 0.0)
        at = at.clamp(0, size - 1)
    return at, slope


def _taps(at: Any, mode: int) -> list[tuple[Any, Any, Any]]:
    """The pixels that are read at a coordinate: place, weight, and the weight's slope."""
    one = torch.ones_like(at)
    if mode == 1:
        return [(at.round(), one, torch.zeros_like(at))]
    low = at.floor()
    t = at - low
    if mode == 0:
        return [(low, 1 - t, -one), (low + 1, t, one)]
    near, far = _CUBIC + 2, _CUBIC
    found = []
    for k, sign, d in ((-1, 1, t + 1), (0, 1, t), (1, -1, 1 - t), (2, -1, 2 - t)):
        if d is t or k == 1:
            weight, slope = (near * d - (near + 1)) * d * d + 1, (3 * near * d - 2 * (near + 1)) * d
        else:
            weight = ((far * d - 5 * far) * d + 8 * far) * d - 4 * far
            slope = (3 * far * d - 10 * far) * d + 8 * far
        found.append((low + k, weight, sign * slope))
    return found


def _axis_taps(
    at: Any, size: int, mode: int, padding: int, align_corners: bool
) -> list[tuple[Any, Any, Any]]:
    """The taps of one coordinate of a grid, -1 to 1; slopes are those by the grid."""
    scale = (size - 1) / 2 if align_corners else size / 2
    at = (at + 1) * scale - (0.0 if align_corners else 0.5)
    if mode == 2:
        taps = [
            (_padded(place, size, padding, align_corners)[0], weight, slope)
            for place, weight, slope in _taps(at, mode)
        ]
        return [(place, weight, slope * scale) for place, weight, slope in taps]
    at, chain = _padded(at, size, padding, align_corners)
    return [(place, weight, slope * chain * scale) for place, weight, slope in _taps(at, mode)]


@decomposes(aten.grid_sampler_2d_backward.default)
@decomposes(aten.grid_sampler_3d_backward.default)
def grid_sampler_backward(
    gradient: Any, x: Any, grid: Any, mode: int, padding: int, align_corners: bool, mask: Any
) -> tuple[Any, Any]:
    """The gradients of the image and of the grid in `grid_sample`, tap by tap."""
    sizes, rank = x.shape[2:], grid.shape[-1]
    axes = [
        _axis_taps(grid[..., rank - 1 - i], sizes[i], mode, padding, align_corners)
        for i in range(rank)
    ]
    flat, slopes = x.flatten(2), gradient.flatten(2)
    of_x, of_grid = torch.zeros_like(flat), [torch.zeros_like(grid[..., 0]) for _ in axes]
    for taps in itertools.product(*axes):
        inside: Any = torch.ones_like(taps[0][0], dtype=torch.bool)
        place: Any = 0
        for (at, _, _), size in zip(taps, sizes):
            inside = inside & (at >= 0) & (at < size)
            place = place * size + at.clamp(0, size - 1).long()
        index = place.flatten(1).unsqueeze(1).expand(-1, x.shape[1], -1)
        weight = torch.where(inside, prod(w for _, w, _ in taps), 0.0)
        of_x = of_x.scatter_add(2, index, slopes * weight.flatten(1).unsqueeze(1))
        products = (flat.gather(2, index) * slopes).sum(1).reshape(inside.shape)
        for i, (_, _, slope) in enumerate(taps):
            others = prod(w for j, (_, w, _) in enumerate(taps) if j != i)
            of_grid[i] = of_grid[i] + torch.where(inside, products * slope * others, 0.0)
    return of_x.reshape(x.shape), torch.stack(of_grid[::-1], -1)


# --- quantization ---


@decomposes(aten._fake_quantize_learnable_per_tensor_affine.default)
def learnable_fake_quantize(
    x: Any, scale: Any, zero: Any, low: int, high: int, factor: float = 1.0
) -> Any:
    """x rounded to the integers low, ..., high times the scale, after a shift to `zero`."""
    return _quantized(x, scale.reshape(()), _zero(zero.reshape(()), low, high), low, high)[0]


@decomposes(aten._fake_quantize_learnable_per_tensor_affine_backward.default)
def learnable_fake_quantize_backward(
    gradient: Any, x: Any, scale: Any, zero: Any, low: int, high: int, factor: float = 1.0
) -> tuple[Any, Any, Any]:
    """The gradients of x, of the scale and of the zero point."""
    column = (scale.reshape(()), _zero(zero.reshape(()), low, high))
    found = _quantized_gradients(gradient, x, column, (low, high), factor)
    return found[0], found[1].sum().reshape(scale.shape), found[2].sum().reshape(zero.shape)


@decomposes(aten._fake_quantize_learnable_per_channel_affine.default)
def learnable_fake_quantize_channels(
    x: Any, scale: Any, zero: Any, axis: int, low: int, high: int, factor: float = 1.0
) -> Any:
    """`learnable_fake_quantize` with a scale and a zero point for each channel."""
    columns = (_column(x, t, axis) for t in (scale, _zero(zero, low, high)))
    return _quantized(x, *columns, low, high)[0]


@decomposes(aten._fake_quantize_learnable_per_channel_affine_backward.default)
def learnable_fake_quantize_channels_backward(
    gradient: Any, x: Any, scale: Any, zero: Any, axis: int, low: int, high: int,
    factor: float = 1.0,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The gradients of x, of the scales and of the zero points."""
    columns = tuple(_column(x, t, axis) for t in (scale, _zero(zero, low, high)))
    found = _quantized_gradients(gradient, x, columns, (low, high), factor)
    others = [dim for dim in range(x.dim()) if dim != axis % x.dim()]
    return found[0], *(t.sum(others) if others else t for t in found[1:])


@decomposes(aten.fake_quantize_per_channel_affine_cachemask.default)
def fake_quantize_channels(
    x: Any, scale: Any, zero: Any, axis: int, low: int, high: int
) -> tuple[Any, Any]:
    """`learnable_fake_quantize_channels`, and the mask of elements that were not clamped."""
    if not zero.is_floating_point():
        inside = ((zero >= low) & (zero <= high)).all()
        torch._assert_async(inside, "a zero point must be between quant_min and quant_max")
    columns = (_column(x, t, axis) for t in (scale, zero))
    return _quantized(x, *columns, low, high)


def _column(x: Any, t: Any, axis: int) -> Any:
    return t.reshape([-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())])


def _zero(zero: Any, low: int, high: int) -> Any:
    """The zero point as an integer that x can be."""
    return (zero + 0.5).clamp(low, high).long()


def _places(x: Any, scale: Any, zero: Any) -> Any:
    """The integer for each element, before it is clamped."""
    return (x * (1 / scale)).round() + zero


def _quantized(x: Any, scale: Any, zero: Any, low: int, high: int) -> tuple[Any, Any]:
    places = _places(x, scale, zero)
    result = (places.clamp(low, high) - zero) * scale
    return result.to(x.dtype), (places >= low) & (places <= high)


def _quantized_gradients(
    gradient: Any, x: Any, column: tuple[Any, Any], bounds: tuple[int, int], factor: float
) -> tuple[Any, Any, Any]:
    """The gradients of x, the scale and the zero point, for each element."""
    (scale, zero), (low, high) = column, bounds
    result, inside = _quantized(x, scale, zero, low, high)
    ends = torch.where(_places(x, scale, zero) < low, low - zero, high - zero)
    slope = torch.where(inside, (result - x) * (1 / scale), ends)
    of_zero = torch.where(inside, 0, -scale)
    return torch.where(inside, gradient, 0), gradient * slope * factor, gradient * of_zero * factor
