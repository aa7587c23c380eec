"""
Represents quantized tensors as integer tensors while a program is traced.

`torch.export` has no meta kernels for quantized tensors and their packed modules. A `Quantized`
holds the integers, the scale and the zero point instead, and PyTorch functions on it become integer
arithmetic that `torch.export` records:

    torch.quantize_per_tensor(x, s, z, torch.qint8)  =>  Quantized(clamp(round(x / s + z)), s, z)
    torch.dequantize(q)                              =>  (q.ints - q.zero) * q.scale

`unpacked` replaces the quantized modules of `torch.ao.nn.quantized`, and the linear layers that
`quantize_dynamic` makes, by modules on `Quantized`s. A
function that is not in the table raises UnsupportedError. Quantized tensors cannot be arguments,
results or buffers of a program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from irees.errors import UnsupportedError

_STORED = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}
_QUANTIZED = {stored: dtype for dtype, stored in _STORED.items()}


@dataclass(frozen=True, eq=False)
class Quantized:
    """
    A quantized tensor. `scale` and `zero` are numbers, or vectors with one entry per slice along
    `axis`.
    """

    ints: torch.Tensor
    scale: Any
    zero: Any
    axis: int | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The quantized dtype, such as `torch.qint8`."""
        return _QUANTIZED[self.ints.dtype]

    @property
    def shape(self) -> torch.Size:
        """The sizes of the tensor."""
        return self.ints.shape

    is_quantized = True

    def __getattr__(self, name: str) -> Any:
        function = getattr(torch.Tensor, name, None)
        if name.startswith("__") or function is None:
            raise AttributeError(name)
        return lambda *args, **kwargs: Quantized.__torch_function__(
            function, (), (self, *args), kwargs
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func)).split(".")[0]
        if (function := _FUNCTIONS.get(name)) is None:
            raise UnsupportedError(
                f"{name} of a quantized tensor is not supported", hint="dequantize it first"
            )
        return function(*args, **(kwargs or {}))

    def spread(self, values: Any) -> Any:
        """`scale` or `zero` with a shape that broadcasts along `axis`."""
        if self.axis is None or not isinstance(values, torch.Tensor):
            return values
        return values.reshape([-1 if i == self.axis else 1 for i in range(self.ints.dim())])


# --- conversions ---


def _integers(x: torch.Tensor, scale: Any, zero: Any, dtype: torch.dtype) -> torch.Tensor:
    """clamp(round(x * (1 / scale) + zero)) in the storage type of `dtype`."""
    stored = _STORED[dtype]
    limits = torch.iinfo(stored)
    # Multiplies by the f32 reciprocal, as PyTorch's kernels do.
    factor = (1 / torch.as_tensor(scale, dtype=torch.float32)).to(x.dtype)
    rounded = torch.round(x * factor + zero)
    if stored != torch.int32:
        return rounded.clamp(limits.min, limits.max).to(stored)
    # The largest i32 is not representable in f32.
    wide = rounded.double().clamp(limits.min, limits.max)
    return wide.to(torch.int64).to(torch.int32)


def quantize_per_tensor(input: torch.Tensor, scale: Any, zero_point: Any, dtype: Any) -> Quantized:
    """clamp(round(x / scale + zero_point))"""
    if not isinstance(input, torch.Tensor):
        raise UnsupportedError("a list of tensors to quantize is not supported")
    return Quantized(_integers(input, scale, zero_point, dtype), scale, zero_point)


def quantize_per_channel(
    input: torch.Tensor, scales: torch.Tensor, zero_points: torch.Tensor, axis: int, dtype: Any
) -> Quantized:
    """clamp(round(x / scales[i] + zero_points[i])) for i along `axis`"""
    frame = Quantized(input, scales, zero_points, axis % input.dim())
    scale, zero = frame.spread(scales.float()), frame.spread(zero_points)
    return replace(frame, ints=_integers(input, scale, zero, dtype))


def make_per_tensor(input: torch.Tensor, scale: Any, zero_point: Any) -> Quantized:
    """Makes a quantized tensor from its integers."""
    return Quantized(input, scale, zero_point)


def make_per_channel(input: torch.Tensor, scale: Any, zero_point: Any, axis: int) -> Quantized:
    """Makes a quantized tensor from its integers, with scales and zero points along `axis`."""
    return Quantized(input, scale, zero_point, axis % input.dim())


def dequantize(q: Quantized) -> torch.Tensor:
    """(ints - zero) * scale"""
    zero = q.spread(q.zero)
    zero = zero.to(torch.int32) if isinstance(zero, torch.Tensor) else zero
    scale = torch.as_tensor(q.spread(q.scale), dtype=torch.float32)
    return (q.ints.to(torch.int32) - zero).float() * scale


# --- functions on quantized tensors ---


def _relu(q: Quantized, inplace: bool = False) -> Quantized:
    if inplace:
        raise UnsupportedError("writing to a quantized tensor is not supported")
    return replace(q, ints=q.ints.clamp(min=q.zero))


def _moved(function: Callable[..., torch.Tensor]) -> Callable[..., Quantized]:
    """Applies a function that only moves elements to the integers."""

    def moved(q: Quantized, *args: Any, **kwargs: Any) -> Quantized:
        if q.axis is not None:
            raise UnsupportedError(f"{function.__name__} of a tensor quantized per channel")
        return replace(q, ints=function(q.ints, *args, **kwargs))

    return moved


def _bounded(function: Callable[..., Any], scale: float, low: int) -> Callable[..., Quantized]:
    """A function with a bounded range, whose result PyTorch quantizes with a fixed scale."""

    def bounded(q: Quantized) -> Quantized:
        zero = low + (128 if q.dtype == torch.quint8 else 0)
        return quantize_per_tensor(function(dequantize(q)), scale, zero, q.dtype)

    return bounded


def _scalar(name: str) -> Callable[[Quantized], Any]:
    """The getter of a per-tensor scale or zero point."""

    def scalar(q: Quantized) -> Any:
        if q.axis is not None:
            raise UnsupportedError(f"q_{name} of a tensor quantized per channel")
        return getattr(q, name)

    return scalar


_MOVES = "clone contiguous detach flatten permute reshape squeeze transpose unsqueeze view".split()

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dequantize": dequantize,
    "int_repr": lambda q: q.ints,
    "q_scale": _scalar("scale"),
    "q_zero_point": _scalar("zero"),
    "q_per_channel_scales": lambda q: q.scale,
    "q_per_channel_zero_points": lambda q: q.zero,
    "q_per_channel_axis": lambda q: q.axis,
    "size": lambda q, *dim: q.ints.size(*dim),
    "dim": lambda q: q.ints.dim(),
    "numel": lambda q: q.ints.numel(),
    "relu": _relu,
    "tanh": _bounded(torch.tanh, 2 / 256, 0),
    "sigmoid": _bounded(torch.sigmoid, 1 / 256, -128),
    **{name: _moved(getattr(torch.Tensor, name)) for name in _MOVES},
}
"""Implementations on `Quantized` by the name of PyTorch's function."""


# --- modules ---


class _Quantize(nn.Module):
    """quantize_per_tensor with a scale and zero point that are constants during tracing."""

    def __init__(self, packed: Any):
        super().__init__()
        self.scale, self.zero = float(packed.scale), int(packed.zero_point)
        self.dtype = packed.dtype

    def forward(self, x: torch.Tensor) -> Quantized:
        return quantize_per_tensor(x, self.scale, self.zero, self.dtype)


class _Linear(nn.Module):
    """
    clamp(round((acc * s + bias) / scale + zero)), where acc is the i32 product of the operands
    minus their zero points, and s is the product of the operands' scales.
    """

    def __init__(self, packed: Any, is_relu: bool):
        super().__init__()
        self.is_relu, self.scale, self.zero = is_relu, float(packed.scale), int(packed.zero_point)
        self._keep(*packed._weight_bias())

    def _keep(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)
        if not weight.is_quantized:
            self.register_buffer("weight", weight.float())
            return
        self.register_buffer("weight", weight.int_repr())
        if weight.qscheme() == torch.per_channel_affine:
            scale, zero = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
            self.register_buffer("weight_scale", scale.float())
            self.register_buffer("weight_zero", zero.to(torch.int32)[:, None])
        else:
            self.weight_scale, self.weight_zero = weight.q_scale(), weight.q_zero_point()

    def _product(self, q: Quantized) -> torch.Tensor:
        """acc * s + bias"""
        left = q.ints.to(torch.int32) - q.zero
        right = self.weight.to(torch.int32) - self.weight_zero
        factor = torch.as_tensor(self.weight_scale * q.scale, dtype=torch.float32)
        product = torch.matmul(left, right.t()).float() * factor
        return product if self.bias is None else product + self.bias

    def forward(self, q: Quantized) -> Quantized:
        found = quantize_per_tensor(self._product(q), self.scale, self.zero, q.dtype)
        return _relu(found) if self.is_relu else found


class _DynamicLinear(_Linear):
    """
    x @ weight^T + bias, where x is quantized by its smallest and largest element, and the product
    is dequantized. 8 bits of which PyTorch leaves out one, so that sums of two products fit in i16.
    """

    def __init__(self, packed: Any):
        nn.Module.__init__(self)
        self.is_reduced = packed.version is not None and packed.version >= _REDUCED_SINCE
        self._keep(*packed._weight_bias())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.weight.is_floating_point():
            return nn.functional.linear(x.float(), self.weight, self.bias).to(x.dtype)
        wide = x.float()
        low, high = (t.clamp(*ends) for t, ends in zip(wide.aminmax(), ((None, 0), (0, None))))
        scale, zero = _range_parameters(low, high, 127 if self.is_reduced else 255)
        q = Quantized(_integers(wide, scale, zero, torch.quint8), scale, zero)
        return self._product(q).to(x.dtype)


_REDUCED_SINCE = 4
"""Version of PyTorch's dynamic modules since which their inputs have 7 bits."""


def _range_parameters(low: torch.Tensor, high: torch.Tensor, most: int) -> tuple[Any, Any]:
    """
    The scale for the integers 0, ..., `most`, and the zero point. It is computed from the end that
    is nearer to 0, as PyTorch does.
    """
    low, high = low.double(), high.double()
    scale = (high - low) / most
    scale = torch.where(scale.float() == 0, 0.1, scale)
    first, last = -low / scale, most - high / scale
    zero = torch.where(low.abs() < most * scale + high.abs(), first, last)
    return scale.float(), zero.clamp(0, most).round().to(torch.int32)


def _unpacked(module: nn.Module) -> nn.Module | None:
    """The replacement on `Quantized`s for a quantized module; None if the module needs none."""
    from torch.ao.nn import quantized
    from torch.ao.nn.intrinsic.quantized import LinearReLU

    if type(module) is quantized.Quantize:
        return _Quantize(module)
    if type(module) in (quantized.Linear, LinearReLU):
        return _Linear(module, type(module) is LinearReLU)
    if type(module) is quantized.dynamic.Linear:
        return _DynamicLinear(module)
    return None


@contextlib.contextmanager
def unpacked(root: nn.Module) -> Generator[nn.Module]:
    """Replaces the quantized submodules of a module, and restores them on exit."""
    if not any(".quantized." in type(module).__module__ for module in root.modules()):
        yield root
        return
    replaced = list[tuple[nn.Module, str, nn.Module]]()
    try:
        for parent in list(root.modules()):
            for name, child in parent.named_children():
                if (found := _unpacked(child)) is not None:
                    replaced.append((parent, name, child))
                    parent._modules[name] = found
        yield _unpacked(root) or root
    finally:
        for parent, name, child in replaced:
            parent._modules[name] = child
