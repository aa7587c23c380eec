"""
Functions of PyTorch that take a count as a C++ int, for counts that are symbolic.

PyTorch gives such a count its value in the example inputs, so that the program is compiled for
that one size:

    torch.linspace(0, 1, x.shape[0])
    F.avg_pool1d(x, x.shape[-1])

While a program is exported, these functions are computed from operators that take symbolic sizes,
with the arithmetic of PyTorch's kernels.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
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


def _floats(dtype: torch.dtype | None) -> tuple[torch.dtype, torch.dtype]:
    """The dtype of a result, the default one for None, and the one in which it is computed."""
    kind = dtype or torch.get_default_dtype()
    return kind, kind if kind.is_floating_point else torch.float64


def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None, **_: Any) -> Any:
    """`steps` equidistant numbers from start to end, computed from the nearer end."""
    kind, wide = _floats(dtype)
    first, last = (
        v.to(wide) if isinstance(v, torch.Tensor) else torch.scalar_tensor(v, dtype=wide)
        for v in (start, end)
    )
    step = (last - first) / torch.sym_max(steps - 1, 1)
    places = torch.arange(steps)
    near = places < torch.sym_max(steps // 2, 1)
    return torch.where(near, first + step * places, last - step * (steps - 1 - places)).to(kind)


def logspace(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: Any = None, **_: Any
) -> Any:
    """base ** x for equidistant x"""
    kind, wide = _floats(dtype)
    return torch.pow(base, linspace(start, end, steps, dtype=wide)).to(kind)


def _window(length: Any, periodic: bool, dtype: Any, scale: float, fn: Callable[[Any], Any]) -> Any:
    """fn(scale / (n - 1) * i) for i < length, with n = length, or length + 1 if periodic."""
    kind, wide = _floats(dtype)
    places = torch.arange(length, dtype=wide)
    count = length if periodic else torch.sym_max(length - 1, 1)
    values = fn(places * (scale / count)).to(kind)
    return torch.where(torch.scalar_tensor(length, dtype=torch.int64) == 1, 1.0, values)


def hamming_window(
    length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """alpha - beta cos(2 pi i / (n - 1))"""
    return _window(length, periodic, dtype, 2 * math.pi, lambda x: alpha - beta * x.cos())


def hann_window(length: Any, periodic: bool = True, *, dtype: Any = None, **_: Any) -> Any:
    """(1 - cos(2 pi i / (n - 1))) / 2"""
    return hamming_window(length, periodic, 0.5, 0.5, dtype=dtype)


def blackman_window(length: Any, periodic: bool = True, *, dtype: Any = None, **_: Any) -> Any:
    """0.42 - cos(2 pi i / (n - 1)) / 2 + 0.08 cos(4 pi i / (n - 1))"""

    def fn(x: Any) -> Any:
        return (x * 4).cos() * 0.08 - (x * 2).cos() * 0.5 + 0.42

    return _window(length, periodic, dtype, math.pi, fn)


def bartlett_window(length: Any, periodic: bool = True, *, dtype: Any = None, **_: Any) -> Any:
    """1 - |2 i / (n - 1) - 1|"""
    return _window(length, periodic, dtype, 2.0, lambda x: torch.where(x <= 1, x, 2 - x))


def kaiser_window(
    length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, **_: Any
) -> Any:
    """i0(beta sqrt(1 - (2 i / (n - 1) - 1)^2)) / i0(beta)"""
    kind, wide = _floats(dtype)
    norm = torch.i0(torch.tensor(beta, dtype=wide))

    def fn(x: Any) -> Any:
        return torch.i0(beta * (1 - (x - 1).square()).sqrt()) / norm

    return _window(length, periodic, kind, 2.0, fn)


def _triangle(keeps: Callable[[Any, int], Any]) -> Callable[..., Any]:
    def indices(row: Any, col: Any, offset: int = 0, *, dtype: Any = torch.int64, **_: Any) -> Any:
        distance = torch.arange(col) - torch.arange(row).unsqueeze(1)
        return keeps(distance, offset).nonzero().T.to(dtype or torch.int64)

    return indices


def kron(input: Any, other: Any) -> Any:
    """The Kronecker product: x[i...] y[j...] at (i * m + j)..."""
    rank = max(input.dim(), other.dim())
    x, y = ([1] * (rank - t.dim()) + list(t.shape) for t in (input, other))
    left = input.reshape([size for n in x for size in (n, 1)])
    right = other.reshape([size for n in y for size in (1, n)])
    return (left * right).reshape([n * m for n, m in zip(x, y)])


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """The powers 0, ..., N - 1 of each element"""
    count = x.shape[-1] if N is None else N
    factors = x.unsqueeze(-1).expand(*x.shape, count)
    kind = torch.int64 if not (x.is_floating_point() or x.is_complex()) else x.dtype
    factors = torch.where(torch.arange(count) == 0, torch.ones((), dtype=kind), factors.to(kind))
    powers = factors.cumprod(-1)
    return powers if increasing else powers.flip(-1)


def fftfreq(n: Any, d: float = 1.0, *, dtype: Any = None, **_: Any) -> Any:
    """The frequencies 0, 1, ..., -2, -1 over n d"""
    places = torch.arange(n)
    places = torch.where(places < (n + 1) // 2, places, places - n)
    return places.to(_floats(dtype)[0]) * (1.0 / (n * d))


def rfftfreq(n: Any, d: float = 1.0, *, dtype: Any = None, **_: Any) -> Any:
    """The frequencies 0, ..., n // 2 over n d"""
    return torch.arange(n // 2 + 1).to(_floats(dtype)[0]) * (1.0 / (n * d))


def affine_grid(theta: Any, size: Sequence[Any], align_corners: bool | None = None) -> Any:
    """(x, y, 1) of each pixel times the transposed matrix, in normalized coordinates"""
    sizes = list(size)[2:]

    def line(count: Any) -> Any:
        ends = linspace(-1.0, 1.0, count, dtype=theta.dtype)
        return ends if align_corners else ends * ((count - 1) / count)

    axes = torch.meshgrid(*(line(count) for count in sizes), indexing="ij")
    grid = torch.stack([*reversed(axes), torch.ones_like(axes[0])], -1)
    flat = grid.reshape(1, -1, len(sizes) + 1).expand(theta.shape[0], -1, -1)
    return (flat @ theta.mT).reshape(theta.shape[0], *sizes, len(sizes))


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
    spread = [
        (v,) * rank if isinstance(v, int | torch.SymInt) else tuple(v)
        for v in (kernel, stride or kernel)
    ]
    dims = range(input.dim() - rank, input.dim())
    for dim, size, step in zip(dims, *(each * rank if len(each) == 1 else each for each in spread)):
        input = unfold(input, dim, size, step)
    return input


def _pool(rank: int, reduce: Callable[[Any, list[int]], Any], original: Any) -> Callable[..., Any]:
    """A pooling without padding and dilation; `original` takes all others."""

    @functools.wraps(original)
    def pool(input: Any, kernel_size: Any, stride: Any = None, *rest: Any, **named: Any) -> Any:
        plain = {"padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}
        if rest or any(value != plain.get(name, value) for name, value in named.items()):
            return original(input, kernel_size, stride, *rest, **named)
        return reduce(_windows(input, kernel_size, stride, rank), list(range(-rank, 0)))

    return pool


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """PyTorch's function in two dims, which takes symbolic sizes"""
    count = output_size if isinstance(output_size, int | torch.SymInt) else output_size[0]
    return functional.adaptive_avg_pool2d(input.unsqueeze(-2), (1, count)).squeeze(-2)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All combinations of r elements of a vector, one per row"""
    if r < 1:
        return torch.combinations(input, r, with_replacement)
    places = torch.meshgrid(*[torch.arange(input.shape[0])] * r, indexing="ij")
    kept = torch.ones_like(places[0], dtype=torch.bool)
    for left, right in itertools.pairwise(places):
        kept = kept & (left <= right if with_replacement else left < right)
    return input[kept.nonzero()]


OF_COUNTS: dict[Any, Callable[..., Any]] = {
    torch.linspace: linspace, torch.logspace: logspace, torch.hann_window: hann_window,
    torch.hamming_window: hamming_window, torch.blackman_window: blackman_window,
    torch.bartlett_window: bartlett_window, torch.kaiser_window: kaiser_window,
    torch.tril_indices: _triangle(lambda distance, offset: distance <= offset),
    torch.triu_indices: _triangle(lambda distance, offset: distance >= offset),
    torch.kron: kron, torch.Tensor.kron: kron, torch.vander: vander,
    torch.fft.fftfreq: fftfreq, torch.fft.rfftfreq: rfftfreq,
    functional.affine_grid: affine_grid, torch.combinations: combinations,
    torch.Tensor.unfold: unfold,
    functional.avg_pool1d: _pool(1, torch.mean, functional.avg_pool1d),
    functional.avg_pool2d: _pool(2, torch.mean, functional.avg_pool2d),
    functional.avg_pool3d: _pool(3, torch.mean, functional.avg_pool3d),
    functional.max_pool1d: _pool(1, torch.amax, functional.max_pool1d),
    functional.max_pool2d: _pool(2, torch.amax, functional.max_pool2d),
    functional.max_pool3d: _pool(3, torch.amax, functional.max_pool3d),
    torch.max_pool1d: _pool(1, torch.amax, torch.max_pool1d),
    torch.max_pool2d: _pool(2, torch.amax, torch.max_pool2d),
    functional.adaptive_avg_pool1d: adaptive_avg_pool1d,
}  # fmt: skip
"""The function that takes symbolic counts in place of one of PyTorch's."""

OF_SIZES = frozenset(
    {torch.kron, torch.Tensor.kron, torch.vander, torch.combinations, functional.affine_grid}
)
"""Those whose counts are the sizes of their tensors."""


@contextmanager
def symbolic_roots() -> Generator[None]:
    """`math.sqrt` of a symbolic number is symbolic; Python makes it a float."""
    original = math.sqrt

    def sqrt(x: Any) -> Any:
        return x**0.5 if isinstance(x, torch.SymInt | torch.SymFloat) else original(x)

    math.sqrt = sqrt
    try:
        yield
    finally:
        math.sqrt = original


def replacement(function: Any, args: Any, kwargs: Any) -> Callable[..., Any] | None:
    """The function in place of one of PyTorch's for these arguments, if it needs one."""
    if function not in OF_COUNTS:
        return None
    numbers = [x for x in tree_leaves((args, kwargs)) if not isinstance(x, torch.Tensor)]
    given = (args, kwargs) if function in OF_SIZES else numbers
    return OF_COUNTS[function] if is_symbolic(*given) else None
