"""panel: copies into panels, element by element, and micro-kernels, step by step along K."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from irees.dialects.panel import MicroKernelOp, PackColumnsOp, PackRowsOp
from irees.errors import RuntimeTrap
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.values import array_of, dtype_of, is_float
from irees.interpreters.vector import bf16_dot

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


@implements("panel.micro_kernel")
def _micro_kernel(machine: Machine, op: Operation) -> Prepared:
    """sums[r, v] = accs[r, v] + sum over k of A[r, k] * B[k, v], in the order of the loops"""
    assert isinstance(op, MicroKernelOp)
    operands, group = Operands(op), op.group.value.data
    dtype, lanes = dtype_of(op.sums[0].type), op.sums[0].type.get_shape()[0]
    columns = np.arange(op.vectors * lanes)

    def multiply(acc: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Adds the products of A [rows, group] and B [columns, group] to C [rows, columns]."""
        if group > 1 and dtype.kind == "f":
            flat = b.reshape(-1)
            return np.stack([bf16_dot(c, np.tile(x, len(b)), flat) for c, x in zip(acc, a)])
        if op.bias is not None:
            a = (a ^ SIGN).view(np.uint8)
        a, b = widened(a, dtype, op.unsigned_a), widened(b, dtype, op.unsigned_b)
        for g in range(group):
            acc = acc + a[:, None, g] * b[None, :, g]
        return acc

    def run(*args: Any):
        bound = operands.bind(args)
        rows, steps = np.array(bound["rows"], np.int64), np.arange(group)
        acc = np.stack(bound["accs"]).reshape(len(rows), -1)
        starts = int(bound["apart"]) * (columns // lanes) + columns % lanes * group
        read = columns if bound["valid"] is None else columns[: max(0, int(bound["valid"]))]
        for at in product(*(range(int(trip)) for trip in bound["trips"])):
            a_at, b_at = (
                sum(k * int(step) for k, step in zip(at, bound[name], strict=True))
                for name in ("a_steps", "b_steps")
            )
            a = elements(op, bound["a"], rows[:, None] + a_at + steps)
            places = int(bound["column"]) + b_at + starts[read][:, None] + steps
            b = elements(op, bound["b"], places)
            if len(read) < len(columns):
                fill = np.resize(bound["fill"], (len(columns) - len(read), group))
                b = np.concatenate([widened(b, dtype, op.unsigned_b), fill])
            acc = multiply(acc, a, b)
        return tuple(acc.reshape(-1, lanes))

    return run
