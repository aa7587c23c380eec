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

from .symbolic_windows import (
    adaptive_avg_pool1d,
    adaptive_max_pool,
    avg_pool,
    im2col,
    is_symbolic,
    lp_pool,
    max_pool,
    max_pool1d,
    stft,
    unfold,
)


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
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """alpha - beta cos(2 pi i / (n - 1))"""
    return _window(window_length, periodic, dtype, 2 * math.pi, lambda x: alpha - beta * x.cos())


def hann_window(window_length: Any, periodic: bool = True, *, dtype: Any = None, **_: Any) -> Any:
    """(1 - cos(2 pi i / (n - 1))) / 2"""
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype)


def blackman_window(
    window_length: Any, periodic: bool = True, *, dtype: Any = None, **_: Any
) -> Any:
    """0.42 - cos(2 pi i / (n - 1)) / 2 + 0.08 cos(4 pi i / (n - 1))"""

    def fn(x: Any) -> Any:
        return (x * 4).cos() * 0.08 - (x * 2).cos() * 0.5 + 0.42

    return _window(window_length, periodic, dtype, math.pi, fn)


def bartlett_window(
    window_length: Any, periodic: bool = True, *, dtype: Any = None, **_: Any
) -> Any:
    """1 - |2 i / (n - 1) - 1|"""
    return _window(window_length, periodic, dtype, 2.0, lambda x: torch.where(x <= 1, x, 2 - x))


def kaiser_window(
    window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, **_: Any
) -> Any:
    """i0(beta sqrt(1 - (2 i / (n - 1) - 1)^2)) / i0(beta)"""
    kind, wide = _floats(dtype)
    norm = torch.i0(torch.tensor(beta, dtype=wide))

    def fn(x: Any) -> Any:
        return torch.i0(beta * (1 - (x - 1).square()).sqrt()) / norm

    return _window(window_length, periodic, kind, 2.0, fn)


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


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All combinations of r elements of a vector, one per row"""
    if r < 1:
        return torch.combinations(input, r, with_replacement)
    places = torch.meshgrid(*[torch.arange(input.shape[0])] * r, indexing="ij")
    kept = torch.ones_like(places[0], dtype=torch.bool)
    for left, right in itertools.pairwise(places):
        kept = kept & (left <= right if with_replacement else left < right)
    return input[kept.nonzero()]


def tensor(data: Any, *, dtype: Any = None, **_: Any) -> Any:
    """A tensor of numbers"""
    # As an export takes `torch.tensor`: an operator for each number.
    return data if isinstance(data, torch.Tensor) else torch._refs.tensor(data, dtype=dtype)


def new_tensor(input: Any, data: Any, *, dtype: Any = None, **_: Any) -> Any:
    """A tensor of numbers with the dtype of another one"""
    return tensor(data, dtype=dtype or input.dtype)


def histc(input: Any, bins: Any = 100, min: Any = 0, max: Any = 0) -> Any:
    """Counts of elements in `bins` equal bins from min to max, or to the bounds of the elements"""
    x = input.reshape(-1)
    low, high = (torch.scalar_tensor(v, dtype=x.dtype) for v in (min, max))
    if min == max:
        if min == 0:
            low, high = x.amin(), x.amax()
        same = low == high
        low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    places = ((x - low) * bins / (high - low)).long().clamp(max=bins - 1)
    inside = (x >= low) & (x <= high)
    counts = torch.zeros(bins, dtype=x.dtype)
    return counts.index_add(0, torch.where(inside, places, 0), inside.to(x.dtype))


def diagonal(input: Any, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """x[..., i + max(-offset, 0), i + max(offset, 0)]"""
    x = input.movedim((dim1, dim2), (-2, -1))
    down, right = torch.sym_max(-offset, 0), torch.sym_max(offset, 0)
    count = torch.sym_max(torch.sym_min(x.shape[-2] - down, x.shape[-1] - right), 0)
    places = torch.arange(count)
    return x[..., places + down, places + right]


def diag_embed(input: Any, offset: Any = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Zeros with x as a diagonal of the last two dims"""
    down, right = torch.sym_max(-offset, 0), torch.sym_max(offset, 0)
    count = input.shape[-1]
    places = torch.arange(count)
    found = input.new_zeros(*input.shape[:-1], count + down + right, count + down + right)
    index = [None] * (input.dim() - 1) + [places + down, places + right]
    found = torch.ops.aten.index_put.default(found, index, input)
    return found.movedim((-2, -1), (dim1, dim2))


def diag(input: Any, diagonal: Any = 0) -> Any:
    """A diagonal of a matrix, or a matrix with a vector as a diagonal"""
    return diag_embed(input, diagonal) if input.dim() == 1 else _diagonal(input, diagonal)


_diagonal = diagonal


def group_norm(
    input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """(x - mean) / sqrt(var + eps) of each group of channels, scaled and shifted by channel"""
    size = input.shape[1] // num_groups * math.prod(input.shape[2:])
    groups = input.reshape(input.shape[0], num_groups, size)
    var, mean = torch.var_mean(groups, -1, correction=0, keepdim=True)
    found = ((groups - mean) * (var + eps).rsqrt()).reshape(input.shape)
    columns = [1, -1, *[1] * (input.dim() - 2)]
    if weight is not None:
        found = found * weight.reshape(columns)
    return found if bias is None else found + bias.reshape(columns)


def take_along_dim(input: Any, indices: Any, dim: Any = None) -> Any:
    """x[i, indices[i, j, k], k] for dim 1, with dims that broadcast"""
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    shape = torch.broadcast_shapes(
        *([1 if i == dim % t.dim() else n for i, n in enumerate(t.shape)] for t in (input, indices))
    )
    x, at = (
        t.expand([t.shape[i] if i == dim % t.dim() else n for i, n in enumerate(shape)])
        for t in (input, indices)
    )
    return x.gather(dim, at)


def multi_dot(tensors: Any) -> Any:
    """The product of matrices, from the left: the fastest order depends on sizes"""
    return functools.reduce(torch.matmul, tensors)


def einsum(*args: Any) -> Any:
    """The sum of products, contracted from the left: `opt_einsum` takes sizes as ints"""
    with torch.backends.opt_einsum.flags(enabled=False):
        return torch.einsum(*args)


def _shift(half: Callable[[Any], Any]) -> Callable[..., Any]:
    def shift(input: Any, dim: Any = None) -> Any:
        dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
        return torch.roll(input, [half(input.shape[i]) for i in dims], list(dims))

    return shift


OF_COUNTS: dict[Any, Callable[..., Any]] = {
    torch.linspace: linspace, torch.logspace: logspace, torch.hann_window: hann_window,
    torch.hamming_window: hamming_window, torch.blackman_window: blackman_window,
    torch.bartlett_window: bartlett_window, torch.kaiser_window: kaiser_window,
    torch.tril_indices: _triangle(lambda distance, offset: distance <= offset),
    torch.triu_indices: _triangle(lambda distance, offset: distance >= offset),
    torch.kron: kron, torch.Tensor.kron: kron, torch.vander: vander,
    torch.einsum: einsum, torch.fft.fftshift: _shift(lambda n: n // 2),
    torch.fft.ifftshift: _shift(lambda n: (n + 1) // 2),
    torch.fft.fftfreq: fftfreq, torch.fft.rfftfreq: rfftfreq,
    functional.affine_grid: affine_grid, torch.combinations: combinations,
    torch.Tensor.unfold: unfold, torch.as_tensor: tensor, torch.Tensor.new_tensor: new_tensor,
    torch.histc: histc, torch.Tensor.histc: histc,
    torch.diagonal: diagonal, torch.Tensor.diagonal: diagonal,
    torch.diag_embed: diag_embed, torch.Tensor.diag_embed: diag_embed,
    torch.diag: diag, torch.Tensor.diag: diag, functional.group_norm: group_norm,
    torch.take_along_dim: take_along_dim, torch.Tensor.take_along_dim: take_along_dim,
    torch.linalg.multi_dot: multi_dot, torch.stft: stft, torch.Tensor.stft: stft,
    functional.unfold: im2col,
    functional.avg_pool1d: avg_pool(1, functional.avg_pool1d),
    functional.avg_pool2d: avg_pool(2, functional.avg_pool2d),
    functional.avg_pool3d: avg_pool(3, functional.avg_pool3d),
    functional.max_pool1d: max_pool1d, torch.max_pool1d: max_pool1d,
    functional.max_pool2d: max_pool(2, functional.max_pool2d),
    functional.max_pool3d: max_pool(3, functional.max_pool3d),
    torch.max_pool2d: max_pool(2, torch.max_pool2d),
    functional.lp_pool1d: lp_pool(1, functional.lp_pool1d),
    functional.lp_pool2d: lp_pool(2, functional.lp_pool2d),
    functional.lp_pool3d: lp_pool(3, functional.lp_pool3d),
    functional.adaptive_avg_pool1d: adaptive_avg_pool1d,
    functional.adaptive_max_pool1d: adaptive_max_pool(1, functional.adaptive_max_pool1d),
    functional.adaptive_max_pool2d: adaptive_max_pool(2, functional.adaptive_max_pool2d),
    functional.adaptive_max_pool3d: adaptive_max_pool(3, functional.adaptive_max_pool3d),
}  # fmt: skip
"""The function that takes symbolic counts in place of one of PyTorch's."""

OF_SIZES = frozenset({
    torch.kron, torch.Tensor.kron, torch.vander, torch.combinations, functional.affine_grid,
    functional.max_pool1d, torch.max_pool1d, torch.take_along_dim, torch.Tensor.take_along_dim,
    torch.einsum, torch.fft.fftshift, torch.fft.ifftshift,
    torch.linalg.multi_dot, functional.adaptive_max_pool2d, functional.adaptive_max_pool3d,
})  # fmt: skip
"""Those whose counts are the sizes of their tensors."""


_FUNCTIONS = (
    "exp", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos",
    "atan", "erf",
)  # fmt: skip
"""Functions of `math` that PyTorch has for tensors."""


def _symbolic(original: Callable[..., Any], form: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def function(x: Any, *base: Any) -> Any:
        if not isinstance(x, torch.SymInt | torch.SymFloat):
            return original(x, *base)
        found = form(x)
        return found / function(*base) if base else found

    return function


def _of_tensor(name: str) -> Callable[[Any], Any]:
    """A function of a symbolic number as that of a tensor's element: exports take no other form."""
    compute = getattr(torch, name)
    return lambda x: compute(torch.scalar_tensor(x, dtype=torch.float64)).item()


@contextmanager
def symbolic_functions(every: bool = False) -> Generator[None]:
    """
    `math.sqrt` of a symbolic number is symbolic, and the other functions of `math` if `every`.
    Python makes them floats. A program cannot compare symbolic results of the other functions.
    """
    forms: dict[str, Callable[[Any], Any]] = {"sqrt": lambda x: x**0.5}
    if every:
        forms |= {name: _of_tensor(name) for name in _FUNCTIONS}
        forms["isqrt"] = lambda x: torch.sym_int(x**0.5)
    originals = {name: getattr(math, name) for name in forms}
    for name, form in forms.items():
        setattr(math, name, _symbolic(originals[name], form))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(math, name, original)


def replacement(function: Any, args: Any, kwargs: Any) -> Callable[..., Any] | None:
    """The function in place of one of PyTorch's for these arguments, if it needs one."""
    if function not in OF_COUNTS:
        return None
    numbers = [x for x in tree_leaves((args, kwargs)) if not isinstance(x, torch.Tensor)]
    given = (args, kwargs) if function in OF_SIZES else numbers
    return OF_COUNTS[function] if is_symbolic(*given) else None
