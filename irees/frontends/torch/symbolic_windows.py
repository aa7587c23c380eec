"""
Windows, poolings and spectra with symbolic counts, from operators that take symbolic sizes.

`symbolic_counts` has the table of PyTorch's functions that they stand for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from torch.utils._pytree import tree_leaves


def is_symbolic(*values: Any) -> bool:
    """Whether an argument is a symbolic number, or a tensor with a symbolic size."""
    for value in tree_leaves(values):
        sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
        if any(isinstance(size, torch.SymInt) for size in sizes):
            return True
    return False


def _spread(value: Any, rank: int) -> tuple[Any, ...]:
    """A number or a sequence of one as one number per dim."""
    values = tuple(value) if isinstance(value, Sequence) else (value,)
    return values * rank if len(values) == 1 else values


def unfold(input: Any, dimension: int, size: Any, step: Any) -> Any:
    """The windows of a dim, as a new last dim"""
    dim = dimension % input.dim()
    count = (input.shape[dim] - size) // step + 1
    places = torch.arange(count).unsqueeze(1) * step + torch.arange(size)
    found = input.index_select(dim, places.reshape(-1))
    shape = [*input.shape[:dim], count, size, *input.shape[dim + 1 :]]
    return found.reshape(shape).movedim(dim + 1, -1)


def _windows(input: Any, kernel: Any, stride: Any, rank: int) -> Any:
    """The windows of the last `rank` dims, as `rank` new last dims."""
    dims = range(input.dim() - rank, input.dim())
    for dim, size, step in zip(dims, _spread(kernel, rank), _spread(stride or kernel, rank)):
        input = unfold(input, dim, size, step)
    return input


def _padded_windows(
    input: Any, kernel: Any, stride: Any, padding: Any, fill: float, rank: int
) -> Any:
    """The windows of the last `rank` dims with `padding` elements `fill` on both sides."""
    amounts = [amount for each in reversed(_spread(padding, rank)) for amount in (each, each)]
    padded = functional.pad(input, amounts, value=fill) if any(amounts) else input
    return _windows(padded, kernel, stride, rank)


def max_pool(rank: int, original: Any) -> Callable[..., Any]:
    """The largest element of each symbolic window; `original` takes dilation and the like."""

    @functools.wraps(original)
    def pooled(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *rest: Any, **named: Any
    ) -> Any:
        plain = {"dilation": 1, "ceil_mode": False, "return_indices": False}
        if rest or any(value != plain[name] for name, value in named.items()):
            return original(input, kernel_size, stride, padding, *rest, **named)
        windows = _padded_windows(input, kernel_size, stride, padding, -math.inf, rank)
        return windows.amax(list(range(-rank, 0)))

    return pooled


@dataclass(frozen=True)
class MeanOptions:
    """The options of `avg_pool`, in PyTorch's order."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: Any = None


def avg_pool(rank: int, original: Any) -> Callable[..., Any]:
    """The mean of each symbolic window, or its sum over a divisor"""
    dims = list(range(-rank, 0))

    @functools.wraps(original)
    def pooled(input: Any, *options: Any, **named: Any) -> Any:
        given = MeanOptions(*options, **named)
        if given.ceil_mode:
            return original(input, *options, **named)

        def windows_of(x: Any) -> Any:
            return _padded_windows(x, given.kernel_size, given.stride, given.padding, 0.0, rank)

        windows = windows_of(input)
        if given.divisor_override is not None:
            return windows.sum(dims) / given.divisor_override
        if given.count_include_pad:
            return windows.mean(dims)
        return windows.sum(dims) / windows_of(torch.ones_like(input)).sum(dims)

    return pooled


def max_pool1d(input: Any, kernel_size: Any, *rest: Any, **named: Any) -> Any:
    """PyTorch's function: of symbolic windows, or in two dims, which take symbolic sizes"""
    names = ("stride", "padding", "dilation", "ceil_mode", "return_indices")
    given = {**dict(zip(names, rest)), **named}
    if is_symbolic(kernel_size, given.get("stride")):
        return max_pool(1, functional.max_pool1d)(input, kernel_size, **given)
    flags = {name: given.pop(name) for name in names[3:] if name in given}
    given["stride"] = given.get("stride") or kernel_size
    outer = {"stride": 1, "padding": 0, "dilation": 1}
    sizes = {name: (outer[name], _spread(value, 1)[0]) for name, value in given.items()}
    kernel = (1, _spread(kernel_size, 1)[0])
    found = functional.max_pool2d(input.unsqueeze(-2), kernel, **sizes, **flags)
    return tuple(t.squeeze(-2) for t in found) if isinstance(found, tuple) else found.squeeze(-2)


def lp_pool(rank: int, original: Any) -> Callable[..., Any]:
    """(sum of x^p in a window)^(1/p)"""

    @functools.wraps(original)
    def pooled(
        input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        if ceil_mode:
            return original(input, norm_type, kernel_size, stride, ceil_mode)
        windows = _windows(input.pow(norm_type), kernel_size, stride, rank)
        return windows.sum(list(range(-rank, 0))).pow(1.0 / norm_type)

    return pooled


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """PyTorch's function in two dims, which takes symbolic sizes"""
    (count,) = _spread(output_size, 1)
    return functional.adaptive_avg_pool2d(input.unsqueeze(-2), (1, count)).squeeze(-2)


def adaptive_max_pool(rank: int, original: Any) -> Callable[..., Any]:
    """The largest elements of windows from floor(i n / m) to ceil((i + 1) n / m)"""

    @functools.wraps(original)
    def pooled(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        dims = range(input.dim() - rank, input.dim())
        counts = [
            input.shape[dim] if count is None else count
            for dim, count in zip(dims, _spread(output_size, rank))
        ]
        if return_indices or not is_symbolic(counts):
            return original(input, output_size, return_indices)
        for dim, count in zip(dims, counts):
            size, places = input.shape[dim], torch.arange(count)
            # One more than the longest window: what is beyond an end repeats the last element.
            width = size // count + 2
            last = ((places + 1) * size + count - 1) // count - 1
            at = (places * size // count).unsqueeze(1) + torch.arange(width)
            found = input.index_select(dim, torch.minimum(at, last.unsqueeze(1)).reshape(-1))
            shape = [*input.shape[:dim], count, width, *input.shape[dim + 1 :]]
            input = found.reshape(shape).amax(dim + 1)
        return input

    return pooled


def im2col(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """The elements of each window of the last two dims, as a column"""
    kernel, apart, pad, steps = (_spread(v, 2) for v in (kernel_size, dilation, padding, stride))
    x = functional.pad(input, (pad[1], pad[1], pad[0], pad[0]))
    places = []
    for dim, (size, far, step) in enumerate(zip(kernel, apart, steps), -2):
        count = (x.shape[dim] - far * (size - 1) - 1) // step + 1
        places.append(torch.arange(size).unsqueeze(1) * far + torch.arange(count) * step)
    rows, columns = places
    found = x[..., rows[:, None, :, None], columns[None, :, None, :]]
    lead, height, width = x.shape[:-3], rows.shape[1], columns.shape[1]
    return found.reshape(*lead, x.shape[-3] * kernel[0] * kernel[1], height * width)


@dataclass(frozen=True)
class SpectrumOptions:
    """The options of `stft`, in PyTorch's order."""

    hop_length: Any = None
    win_length: Any = None
    window: Any = None
    center: bool = True
    pad_mode: str = "reflect"
    normalized: bool = False
    onesided: bool | None = None
    return_complex: bool | None = None
    align_to_window: bool | None = None


def stft(input: Any, n_fft: Any, *options: Any, **named: Any) -> Any:
    """The spectra of windows that are `hop_length` apart: [..., frequency, time]"""
    given = SpectrumOptions(*options, **named)
    length, weights = given.win_length or n_fft, given.window
    if weights is None:
        weights = torch.ones(length, dtype=input.dtype)
    before = (n_fft - length) // 2
    weights = functional.pad(weights, (before, n_fft - length - before))
    if given.center:
        flat = input.reshape(1, -1, input.shape[-1])
        flat = functional.pad(flat, (n_fft // 2, n_fft // 2), mode=given.pad_mode)
        input = flat.reshape(*input.shape[:-1], flat.shape[-1])
    is_real = not (input.is_complex() or weights.is_complex())
    transform = torch.fft.rfft if is_real and given.onesided is not False else torch.fft.fft
    frames = unfold(input, -1, n_fft, given.hop_length or n_fft // 4) * weights
    found = transform(frames, norm="ortho" if given.normalized else None).mT
    return found if given.return_complex else torch.view_as_real(found)
