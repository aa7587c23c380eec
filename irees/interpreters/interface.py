"""
hal, iree_codegen and the bitcast of iree_tensor_ext: accesses of a dispatch to its bindings.

`Interpreter.bind` sets the bindings and constants of `hal.interface.*`: an array of bytes per
binding, which the dispatch writes in place, and a number per ordinal.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Operation

from irees.dialects.hal import InterfaceBindingSubspanOp, InterfaceConstantLoadOp
from irees.dialects.iree_tensor_ext import DispatchTensorType
from irees.errors import RuntimeTrap
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.values import MemRef, dtype_of, shape_from

BINDINGS, CONSTANTS = "hal.bindings", "hal.constants"
"""Keys in `Machine.state`."""


def _given(machine: Machine, key: str, number: int, op: Operation) -> Any:
    found = machine.state.get(key, ())
    if number >= len(found):
        raise RuntimeTrap(f"{key} has {len(found)} entries, but {number} is wanted", op=op)
    return found[number]


@implements("hal.interface.constant.load")
def _constant(machine: Machine, op: Operation) -> Prepared:
    """A push constant from the host."""
    assert isinstance(op, InterfaceConstantLoadOp)
    number, dtype = op.ordinal.value.data, dtype_of(op.result.type)
    return lambda: (dtype.type(_given(machine, CONSTANTS, number, op)),)


@implements("hal.interface.binding.subspan")
def _subspan(machine: Machine, op: Operation) -> Prepared:
    """A row-major view of a binding at a byte offset."""
    assert isinstance(op, InterfaceBindingSubspanOp)
    kind = op.result.type
    shaped = kind.bound_type if isinstance(kind, DispatchTensorType) else kind
    assert isinstance(shaped, TensorType | MemRefType)
    operands, number, dtype = Operands(op), op.binding.value.data, dtype_of(shaped)

    def run(*args: Any):
        bound = operands.bind(args)
        data = _given(machine, BINDINGS, number, op)
        shape = shape_from(shaped, bound["dynamic_dims"])
        offset = bound["byte_offset"]
        start = 0 if offset is None else int(offset)
        size = prod(shape) * dtype.itemsize
        if start < 0 or start + size > data.size:
            raise RuntimeTrap(f"bytes {start} to {start + size} of {data.size}", op=op)
        return (MemRef.of(data[start : start + size].view(dtype).reshape(shape)),)

    return run


@implements("iree_codegen.load_from_buffer")
def _load(machine: Machine, op: Operation) -> Prepared:
    """Copies the current elements."""
    return lambda buffer: (buffer.array.copy(),)


@implements("iree_codegen.store_to_buffer")
def _store(machine: Machine, op: Operation) -> Prepared:
    """Writes all elements."""

    def run(value: np.ndarray, buffer: MemRef):
        if value.shape != buffer.array.shape:
            raise RuntimeTrap(f"{value.shape} stored to {buffer.array.shape}", op=op)
        buffer.array[...] = value
        return ()

    return run


@implements("iree_tensor_ext.bitcast")
def _bitcast(machine: Machine, op: Operation) -> Prepared:
    """Reinterprets the bytes as another element type."""
    operands, kind = Operands(op), op.results[0].type
    dtype = dtype_of(kind)

    def run(*args: Any):
        bound = operands.bind(args)
        flat = np.ascontiguousarray(bound["source"]).reshape(-1).view(dtype)
        return (flat.reshape(shape_from(kind, bound["result_dims"])),)

    return run
