"""
Arguments that a program updates in place.

An argument that is not contiguous and aligned is copied, and copied back after the call. An
argument that aliases another one is rejected: the program would read its new value too early.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irees.errors import ArgumentError
from irees.runtime.arguments import check_copy, refuse_overlap
from irees.runtime.torch_tensors import address_of

if TYPE_CHECKING:
    from irees.runtime.program import Function


class Writable:
    """The arguments of one call, with updated ones in writable, contiguous memory."""

    def __init__(self, arguments: Sequence[Any]):
        self.arguments = list(arguments)
        self.copies: list[tuple[Any, Any]] = []
        self.tensors: list[Any] = []

    def finish(self) -> None:
        """Copies the copies back, and bumps the version of updated PyTorch tensors."""
        for original, copy in self.copies:
            if isinstance(original, np.ndarray):
                np.copyto(original, copy)
            else:
                original.copy_(copy)
        if self.tensors:
            sys.modules["torch"].autograd.graph.increment_version(self.tensors)


def writable(function: Function, arguments: Sequence[Any]) -> Writable:
    """
    Prepares the arguments of a call of a function that updates some of them.

    Raises ArgumentError for an updated argument that is no array, is read-only, or aliases.
    """
    found = Writable(arguments)
    numbers = [number for _, number in function.updates if number < len(arguments)]
    refuse_aliases(numbers, arguments, lambda number: function.arguments[number].label)
    for number in numbers:
        label = function.arguments[number].label
        value = arguments[number]
        if isinstance(value, np.ndarray):
            _array(found, number, value, label)
        elif (torch := sys.modules.get("torch")) is not None and isinstance(value, torch.Tensor):
            address_of(value, label)
            _tensor(found, number, value, label)
        else:
            raise ArgumentError(
                f"{label} is written to by the program, but is a {type(value).__name__}",
                hint="pass an array of numpy or torch",
            )
    return found


def refuse_aliases(
    updated: Sequence[int], arguments: Sequence[Any], label: Callable[[int], str]
) -> None:
    """Raises ArgumentError if an argument that a program updates shares memory with another one."""
    spans = [_span(value) for value in arguments]
    for number in updated:
        for other, span in enumerate(spans):
            if other != number and spans[number] and span and _overlap(spans[number], span):
                raise ArgumentError(
                    f"{label(number)} is written to by the program, but shares memory with "
                    f"{label(other)}",
                    hint="pass a copy of one of them",
                )


def _array(found: Writable, number: int, value: np.ndarray[Any, Any], label: str) -> None:
    if not value.flags.writeable:
        raise ArgumentError(f"{label} is written to by the program, but is read-only")
    if not value.flags.carray or not value.dtype.isnative:
        refuse_overlap(value, label)
        check_copy(value.size * value.dtype.itemsize, label)
        found.arguments[number] = np.array(value, value.dtype.newbyteorder("="), order="C")
        found.copies.append((value, found.arguments[number]))


def _tensor(found: Writable, number: int, value: Any, label: str) -> None:
    if value.requires_grad and sys.modules["torch"].is_grad_enabled() and value.is_leaf:
        raise ArgumentError(
            "a leaf tensor that requires grad is written to by the program",
            hint="call it under torch.no_grad()",
        )
    plain = value.is_contiguous() and not value.is_conj() and not value.is_neg()
    if plain and value.data_ptr() % value.element_size() == 0:
        if not value.is_inference():
            found.tensors.append(value)
        return
    refuse_overlap(value, label)
    check_copy(value.numel() * value.element_size(), label)
    found.arguments[number] = value.detach().resolve_conj().resolve_neg().contiguous().clone()
    found.copies.append((value.detach(), found.arguments[number]))


def _span(value: Any) -> tuple[int, int] | None:
    """The address range of an array, end exclusive; None for an empty array or a non-array."""
    if isinstance(value, np.ndarray):
        return np.lib.array_utils.byte_bounds(value) if value.size else None
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    try:
        begin = address_of(value, "")
    except ArgumentError:  # A tensor without elements in memory is refused by its label later.
        return None
    if not value.numel():
        return None
    reach = sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    return begin, begin + (reach + 1) * value.element_size()


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]
