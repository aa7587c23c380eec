"""
Replaces TorchScript operators on numbers by Python operators.

`torch.ops.aten.ceil(x)` of a number returns a number, and an export does not record it. PyTorch's
bytecode export honors this mode and records the Python operator on the number instead:

    with ScalarCalls():
        torch.export.export(module, args, strict=True)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

aten = torch.ops.aten


def element(x: Any) -> Any:
    """The only element of a tensor; a number unchanged."""
    return x.item() if isinstance(x, torch.Tensor) else x


def as_int(x: Any) -> Any:
    """The only element of a tensor as an integer; a number truncated."""
    return x.to(torch.int64).item() if isinstance(x, torch.Tensor) else int(x)


def as_float(x: Any) -> Any:
    """The only element of a tensor, or a number, as a float."""
    return torch.sym_float(element(x))


def is_true(x: Any) -> Any:
    """x != 0"""
    return element(x) != 0


def quotient(x: Any, y: Any) -> Any:
    """x / y in f32, PyTorch's precision for two integers."""
    parts = [torch.scalar_tensor(torch.sym_float(n), dtype=torch.float32) for n in (x, y)]
    return parts[0] / parts[1]


def square_root(x: Any) -> Any:
    """The square root of a number."""
    return torch.sym_float(x) ** 0.5


_OF_TENSORS: dict[Any, Callable[..., Any]] = {
    aten.Bool: is_true, aten.Float: as_float, aten.Int: as_int, aten.FloatImplicit: element,
    aten.IntImplicit: element, aten.ScalarImplicit: element,
}  # fmt: skip
"""Operators that take a tensor or a number and return a number."""

_OF_NUMBERS: dict[Any, Callable[..., Any]] = {
    aten.ceil: math.ceil, aten.floor: math.floor, aten.sqrt: square_root, aten.neg: operator.neg,
    aten.div: quotient, aten.lt: operator.lt, aten.le: operator.le, aten.gt: operator.gt,
    aten.ge: operator.ge,
}  # fmt: skip
"""Operators that return a number only if all arguments are numbers."""


class ScalarCalls(TorchFunctionMode):
    """While active, replaces operators on numbers."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not kwargs:
            if func in _OF_TENSORS:
                return _OF_TENSORS[func](*args)
            if func in _OF_NUMBERS and not any(isinstance(a, torch.Tensor) for a in args):
                return _OF_NUMBERS[func](*args)
        return func(*args, **(kwargs or {}))
