"""panel: copies of slices of operands into panels, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from irees.dialects.panel import PackColumnsOp, PackRowsOp
from irees.errors import RuntimeTrap
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.values import array_of, dtype_of, is_float

SIGN = np.int8(-128)
"""The sign bit: xor with it adds 128 to an i8, as an unsigned value."""


def elements(op: Operation, memory: Any, places: np.ndarray) -> np.ndarray:
    """Returns the elements of a flat buffer at these places. Raises RuntimeTrap."""
    array = array_of(memory)
    if places.size and (places.min() < 0 or places.max() >= array.size):
        first, last = int(places.min()), int(places.max())
        raise RuntimeTrap(f"elements {first} to {last} of a buffer of {array.size}", op=op)
    return array[places]


def store(op: Operation, memory: Any, start: int, values: np.ndarray) -> None:
    """Stores values from `start` on. Raises RuntimeTrap."""
    array = array_of(memory)
    if start < 0 or start + values.size > array.size:
        raise RuntimeTrap(f"{values.size} elements at {start} of a panel of {array.size}", op=op)
    array[start : start + values.size] = values.reshape(-1)


def widened(values: np.ndarray, dtype: np.dtype[Any], unsigned: UnitAttr | None) -> np.ndarray:
    """Returns elements of a wider type, integers with their sign unless `unsigned`."""
    if values.dtype == dtype:
        return values
    if values.dtype.kind == "b":
        return values.astype(dtype) if unsigned is not None else -values.astype(dtype)
    if values.dtype.kind == "i" and unsigned is not None:
        values = values.view(f"u{values.dtype.itemsize}")
    return values.astype(dtype)


def address(index: np.ndarray, sizes: Sequence[Any], steps: Sequence[Any]) -> np.ndarray:
    """Returns the address of iterations of several loops, the last one innermost."""
    total, rest = np.zeros_like(index), index
    for loop in reversed(range(len(sizes))):
        digit = rest if loop == 0 else rest % int(sizes[loop])
        total = total + digit * int(steps[loop])
        if loop:
            rest = rest // int(sizes[loop])
    return total


@implements("panel.pack_rows")
def _pack_rows(machine: Machine, op: Operation) -> Prepared:
    """panel[pitch * i + k] = source[base + across * i + step * k]"""
    assert isinstance(op, PackRowsOp)
    dtype, pitch, group = dtype_of(op.panel.type), op.pitch.value.data, op.group.value.data

    def run(source: Any, *rest: Any):
        base, rows, across, depth, step = map(int, rest[:-1])
        filled = -(-depth // group) * group
        for i in range(rows):
            read = elements(op, source, base + i * across + step * np.arange(depth))
            values = widened(read, dtype, op.unsigned)
            if op.bias is not None:
                values = values ^ SIGN
            padded = np.concatenate([values, np.zeros(filled - depth, dtype)])
            store(op, rest[-1], i * pitch, padded)
        return ()

    return run


@implements("panel.pack_columns")
def _pack_columns(machine: Machine, op: Operation) -> Prepared:
    """panel[NR * k + j] = source[base + K(row + k) + N(column + j)], in groups of K"""
    assert isinstance(op, PackColumnsOp)
    operands, group = Operands(op), op.group.value.data
    width, dtype = op.vectors.value.data * op.lanes.value.data, dtype_of(op.panel.type)
    zero = -0.0 if is_float(op.panel.type) else 0

    def run(*args: Any):
        b = operands.bind(args)
        depth, columns = int(b["depth"]), int(b["column"]) + np.arange(width)
        if b["total"] is not None:
            columns = np.minimum(columns, int(b["total"]) - 1)
        k = address(int(b["row"]) + np.arange(depth), b["k_sizes"], b["k_steps"])
        n = address(columns, b["n_sizes"], b["n_steps"])
        read = elements(op, b["source"], int(b["base"]) + k[:, None] + n[None, :])
        values = np.full((-(-depth // group) * group, width), zero, dtype)
        values[:depth] = widened(read, dtype, op.unsigned)
        values = values.reshape(-1, group, width).transpose(0, 2, 1)
        store(op, b["panel"], 0, np.ascontiguousarray(values))
        return ()

    return run
