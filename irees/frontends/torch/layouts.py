"""
Memory order of a tensor's dims.

A tensor that is dense in some order of its dims (a transposed weight, a channels-last image) is
passed as a row-major array in that order and transposed in the IR. The same holds for a result that
PyTorch expects with such strides. Neither copies elements.
"""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.utils._sympy import functions as sf


def _value(size: Any) -> int:
    """A size, or the example value of a symbolic one."""
    if isinstance(size, int):
        return size
    hint = size.node.hint
    return int(hint) if hint is not None else 1 << 30


def _equal(a: Any, b: Any) -> bool:
    """Whether two sizes are the same number or expression; adds no guard."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    left, right = (_size(getattr(getattr(x, "node", None), "expr", x)) for x in (a, b))
    return bool(left == right) or bool((left - right).expand() == 0)


def _size(stride: Any) -> Any:
    """A stride without Max(1, s) for sizes s: they differ only for tensors without elements."""
    if not isinstance(stride, sympy.Basic):
        return stride
    return stride.replace(
        lambda e: isinstance(e, sf.Max | sympy.Max) and len(e.args) == 2 and 1 in e.args,
        lambda e: next(arg for arg in e.args if arg != 1),
    )


def memory_order(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """
    The dims from outermost to innermost if the tensor is dense in that order; None otherwise (an
    expanded tensor, a slice). Row-major tensors have 0, 1, 2, ...
    """
    sizes, strides = list(tensor.shape), list(tensor.stride())
    order = sorted(range(len(sizes)), key=lambda i: (-_value(strides[i]), i))
    for candidate in (tuple(range(len(sizes))), tuple(order)):
        expected: Any = 1
        for i in reversed(candidate):
            if isinstance(sizes[i], int) and sizes[i] == 1:
                continue
            if not _equal(strides[i], expected):
                break
            expected = expected * sizes[i]
        else:
            return candidate
    return None


def inverse(order: tuple[int, ...]) -> list[int]:
    """The inverse permutation."""
    return [order.index(i) for i in range(len(order))]
