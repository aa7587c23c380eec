"""
Constants from a program's tensors: parameters, buffers and literals, bound to their memory.

A dense tensor is used without a copy, so importing a model allocates no weights, and in-place
changes of a weight before the program is built take effect. Names that share memory share one
constant. A tensor with non-dense strides (a transposed or an expanded weight) is copied once.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from irees.errors import UnsupportedError

from ..builder import Builder, Tensor
from ..builder.dtypes import BF16, C64, C128, Float8
from .dtypes import dtype_of

_SIGNED = {np.dtype(f"uint{n}"): np.dtype(f"int{n}") for n in (8, 16, 32, 64)}


def refuse_odd_tensor(tensor: torch.Tensor, what: str, held: bool = False) -> None:
    """
    Raises UnsupportedError for a tensor without plain dense elements in host memory; `held` tells
    that the program holds it.
    """
    if not isinstance(tensor, torch.Tensor):
        raise UnsupportedError(
            f"{what} is a {type(tensor).__name__}, which is neither a tensor nor a number",
            hint="capture it in the program instead of passing it as an argument",
        )
    if tensor.is_nested:
        raise UnsupportedError(f"{what} is nested", hint="use torch.nested.to_padded_tensor")
    if tensor.layout is not torch.strided:
        raise UnsupportedError(f"{what} is sparse", hint="use .to_dense()")
    if held and isinstance(tensor, FakeTensor) and tensor.numel():
        raise UnsupportedError(f"{what} is a tensor without elements, which a trace has left")
    if tensor.is_quantized or tensor.is_nested:
        raise UnsupportedError(
            f"{what} is a {'quantized' if tensor.is_quantized else 'nested'} tensor"
        )
    if tensor.device.type != "cpu":
        raise UnsupportedError(f"{what} is on {tensor.device}", hint="copy it with .cpu()")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise UnsupportedError(
            f"{what} is a tensor of a function transform, which torch.export turns into a constant",
            hint='use torch.compile(backend="irees"), which traces torch.func.grad',
        )


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The elements as a dense array; shares the tensor's memory if its layout allows."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    if isinstance(dtype_of(plain.dtype), Float8):
        return plain.view(torch.int8).numpy()
    array = plain.numpy()
    return array.view(_SIGNED[array.dtype]) if array.dtype in _SIGNED else array


class Constants:
    """Creates constants from tensors, one for each piece of memory."""

    def __init__(self, builder: Builder):
        self.b = builder
        self._made: dict[tuple[Any, ...], Tensor] = {}
        self._kept: list[torch.Tensor] = []
        self._names: set[str] = set()

    def of(self, tensor: torch.Tensor, name: str) -> Tensor:
        """
        The constant of a tensor, named `name`. Raises UnsupportedError for unsupported tensors.
        """
        # Dynamo's callback returns with its fake mode active, which rejects real tensors.
        with _disable_current_modes():
            return self._of(tensor, name)

    def _of(self, tensor: torch.Tensor, name: str) -> Tensor:
        refuse_odd_tensor(tensor, repr(name), held=True)
        dtype = dtype_of(tensor.dtype)
        if tensor.numel() == 0:
            return self.b.empty(dtype, tuple(tensor.shape))
        if tensor.numel() == 1 and dtype not in (C64, C128):
            return self.b.full(tensor.detach().reshape(()).item(), dtype, tuple(tensor.shape))
        key = (
            tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(),
            tensor.is_conj(), tensor.is_neg(),
        )  # fmt: skip
        if key not in self._made:
            array = array_of(tensor)
            self._kept.append(tensor)
            self._made[key] = self.b.constant(array, dtype, self._fresh(name))
        return self._made[key]

    def _fresh(self, name: str) -> str:
        fresh, number = name, 0
        while fresh in self._names:
            fresh, number = f"{name}_{number}", number + 1
        self._names.add(fresh)
        return fresh


__all__ = ["BF16", "Constants", "array_of", "refuse_odd_tensor"]
