"""
Packed sequences, as operators that `torch.export` can trace.

PyTorch's kernels read the lengths of the sequences. Here, the length of the longest one and the
number of all elements are counted at run time:

    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    out, state = lstm(packed)                        # aten.lstm.data, which is lowered whole
    x, lengths = pad_packed_sequence(out)
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.utils import rnn

_BATCH = "_irees_batch"
"""Attribute of `batch_sizes`: the number of sequences, which is also its first element."""


def pack(input: Any, lengths: Any, batch_first: bool) -> tuple[Any, Any]:
    """The elements of all sequences, step by step, and how many sequences each step has."""
    x = input.transpose(0, 1) if batch_first else input
    torch._assert_async((lengths > 0).all(), "each sequence must have an element")
    # Slices of n - 1 lengths would need at least 3 of them.
    in_order = (lengths.cummin(0)[0] == lengths).all()
    torch._assert_async(in_order, "lengths must be sorted in decreasing order")
    longest: Any = lengths.max().item()
    torch._check(longest >= 1)
    torch._check(longest <= x.shape[0])
    is_element = torch.arange(longest).unsqueeze(1) < lengths
    step, sequence = is_element.nonzero().unbind(1)
    batch_sizes = is_element.sum(1)
    setattr(batch_sizes, _BATCH, x.shape[1])
    return x[step, sequence], batch_sizes


def pad(
    data: Any, batch_sizes: Any, batch_first: bool, padding_value: Any, total_length: Any
) -> tuple[Any, Any]:
    """The elements by step and sequence, with a value for missing ones; the lengths."""
    batch = get_item(batch_sizes, 0)
    if isinstance(batch, torch.Tensor):
        batch = batch.item()
        torch._check(batch >= 1)
    sequences = torch.arange(batch)
    is_element = sequences < batch_sizes.unsqueeze(1)
    places = (batch_sizes.cumsum(0) - batch_sizes).unsqueeze(1) + sequences
    rows = data[torch.where(is_element, places, 0)]
    shape = [*is_element.shape, *[1] * (rows.dim() - 2)]
    x = torch.where(is_element.reshape(shape), rows, padding_value)
    if total_length is not batch_sizes.shape[0]:
        missing = total_length - batch_sizes.shape[0]
        x = torch.cat([x, x.new_full((missing, *x.shape[1:]), padding_value)])
    return x.transpose(0, 1) if batch_first else x, is_element.sum(0)


def get_item(x: Any, key: Any) -> Any:
    """x[key]; the first element of `batch_sizes` is a size, not data."""
    if type(key) is int and key == 0 and hasattr(x, _BATCH):
        return getattr(x, _BATCH)
    return x[key]


@contextmanager
def total_lengths_checked() -> Generator[None]:
    """
    `pad_packed_sequence` compares its `total_length` with the longest sequence, which is counted
    at run time. While active, it goes on, and each run checks the length.
    """
    greater, less = torch.SymInt.__gt__, torch.SymInt.__lt__

    def is_checked(longest: Any, total: Any) -> bool:
        if sys._getframe(2).f_code is not rnn.pad_packed_sequence.__code__:
            return False
        torch._check(longest <= total, lambda: "total_length is less than the longest sequence")
        return True

    def compare_greater(longest: Any, total: Any) -> Any:
        return False if is_checked(longest, total) else greater(longest, total)

    def compare_less(total: Any, longest: Any) -> Any:
        return False if is_checked(longest, total) else less(total, longest)

    try:
        torch.SymInt.__gt__ = compare_greater  # type: ignore[method-assign]
        torch.SymInt.__lt__ = compare_less  # type: ignore[method-assign]
        yield
    finally:
        torch.SymInt.__gt__, torch.SymInt.__lt__ = greater, less  # type: ignore[method-assign]
