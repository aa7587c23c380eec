"""
TorchScript's operators on numbers, as Python's own.

`torch.ops.aten.ceil(x)` of a number returns a number, which an export does not record. PyTorch's
export by bytecode follows this mode, and records Python's operator on the number instead:

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
    """The only element of a tensor, a number itself"""
    return x.item() if isinstance(x, torch.Tensor) else x


def as_int(x: Any) -> Any:
    """The only element of a tensor as an integer, a number truncated"""
    return x.to(torch.int64).item() if isinstance(x, torch.Tensor) else int(x)


def as_float(x: Any) -> Any:
    """The only element of a tensor, or a number, as a float"""
    return torch.sym_float(x.item() if isinstance(x, torch.Tensor) else x)


def quotient(x: Any, y: Any) -> Any:
    """x / y in f32, which PyTorch computes for two integers"""
    parts = [torch.scalar_tensor(torch.sym_float(n), dtype=torch.float32) for n in (x, y)]
    return parts[0] / parts[1]


def square_root(x: Any) -> Any:
    """The square root of a number"""
    return torch.sym_float(x) ** 0.5


_OF_TENSORS: dict[Any, Callable[..., Any]] = {
    aten.Float: as_float, aten.Int: as_int, aten.FloatImplicit: element,
    aten.IntImplicit: element, aten.ScalarImplicit: element,
}  # fmt: skip
"""Operators that return a number for a tensor, too."""

_OF_NUMBERS: dict[Any, Callable[..., Any]] = {
    aten.ceil: math.ceil, aten.floor: math.floor, aten.sqrt: square_root, aten.neg: operator.neg,
    aten.add: operator.add, aten.sub: operator.sub, aten.mul: operator.mul,
    aten.div: quotient, aten.lt: operator.lt, aten.le: operator.le, aten.gt: operator.gt,
    aten.ge: operator.ge,
}  # fmt: skip
"""Operators that return a number for numbers alone."""


class ScalarCalls(TorchFunctionMode):
    """Replaces operators on numbers while it is entered."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not kwargs:
            if func in _OF_TENSORS:
                return _OF_TENSORS[func](*args)
            if func in _OF_NUMBERS and not any(isinstance(a, torch.Tensor) for a in args):
                return _OF_NUMBERS[func](*args)
        return func(*args, **(kwargs or {}))
