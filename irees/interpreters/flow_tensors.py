"""flow.tensor: the host's operations on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, Operation

from irees.dialects import flow
from irees.errors import RuntimeTrap
from irees.interpreters.arith import Width
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.tensor import clamped, inserted, overwritten, reshaped, slices
from irees.interpreters.values import constant, dtype_of, filled, poison, shape_from

BYTE = 8


@implements("flow.tensor.constant", "flow.tensor.dynamic_constant")
def _constant(machine: Machine, op: Operation) -> Prepared:
    """A constant."""
    result = (constant(op.properties["value"]),)
    return lambda: result


@implements("flow.tensor.tie_shape")
def _tie_shape(machine: Machine, op: Operation) -> Prepared:
    """Returns the operand: arrays carry their dims."""
    return lambda value, *dims: (value,)


@implements("flow.tensor.splat")
def _splat(machine: Machine, op: Operation) -> Prepared:
    """A tensor filled with one number."""
    kind = op.results[0].type
    return lambda value, *dims: (filled(value, shape_from(kind, dims), dtype_of(kind)),)


@implements("flow.tensor.empty")
def _empty(machine: Machine, op: Operation) -> Prepared:
    """An uninitialized tensor."""
    kind = op.results[0].type
    return lambda *dims: (poison(shape_from(kind, dims), dtype_of(kind)),)


@implements("flow.tensor.reshape")
def _reshape(machine: Machine, op: Operation) -> Prepared:
    """Reshapes a tensor."""
    operands, kind = Operands(op), op.results[0].type

    def run(*args: Any):
        bound = operands.bind(args)
        return (reshaped(bound["source"], shape_from(kind, bound["result_dims"])),)

    return run


def bits_of(array: np.ndarray, kind: TensorType[Attribute]) -> np.ndarray:
    """The bits of all elements, lowest first."""
    width = flow.storage_bits(kind)
    data = np.ascontiguousarray(array).view(np.uint8)
    bits = np.unpackbits(data.reshape(array.size, -1), axis=1, bitorder="little")
    return bits[:, :width].reshape(-1)


def elements_of(bits: np.ndarray, kind: TensorType[Attribute]) -> np.ndarray:
    """The elements with these bits; the inverse of `bits_of`."""
    width, dtype = flow.storage_bits(kind), dtype_of(kind)
    assert width is not None
    rows = np.zeros((bits.size // width, BYTE * dtype.itemsize), np.uint8)
    rows[:, :width] = bits.reshape(-1, width)
    data = np.packbits(rows, axis=1, bitorder="little")
    if dtype == np.bool_:
        return (data & 1).reshape(-1).astype(np.bool_)
    array = data.reshape(-1).view(dtype)
    return Width.of(kind).wrap(array) if isinstance(kind.element_type, IntegerType) else array


@implements("flow.tensor.bitcast")
def _bitcast(machine: Machine, op: Operation) -> Prepared:
    """Reinterprets the bits as another element type."""
    operands = Operands(op)
    source, kind = op.operands[0].type, op.results[0].type
    assert isinstance(source, TensorType)
    assert isinstance(kind, TensorType)

    def run(*args: Any):
        bound = operands.bind(args)
        shape = shape_from(kind, bound["result_dims"])
        bits = bits_of(bound["source"], source)
        if bits.size != int(np.prod(shape)) * (flow.storage_bits(kind) or 0):
            raise RuntimeTrap(f"{bits.size} bits cannot become {tuple(shape)} of {kind}", op=op)
        return (elements_of(bits, kind).reshape(shape),)

    return run


@implements("flow.tensor.load")
def _load(machine: Machine, op: Operation) -> Prepared:
    """Reads one element, as `tensor.extract`."""
    operands = Operands(op)

    def run(*args: Any):
        bound = operands.bind(args)
        return (clamped(bound["source"], bound["indices"]),)

    return run


@implements("flow.tensor.store")
def _store(machine: Machine, op: Operation) -> Prepared:
    """Overwrites one element, as `tensor.insert`."""
    operands = Operands(op)

    def run(*args: Any):
        bound = operands.bind(args)
        return (inserted(bound["target"], bound["indices"], bound["value"]),)

    return run


@implements("flow.tensor.slice", "flow.tensor.update")
def _box(machine: Machine, op: Operation) -> Prepared:
    """Extracts or overwrites a slice of a tensor."""
    operands, copies = Operands(op), op.name == "flow.tensor.slice"

    def run(*args: Any):
        bound = operands.bind(args)
        array = bound["source" if copies else "target"]
        sizes = bound["lengths"] if copies else bound["update"].shape
        starts = [int(i) for i in bound["start_indices"]]
        box = slices(array.shape, starts, [int(n) for n in sizes], [1] * array.ndim)
        return (array[box] if copies else overwritten(array, box, bound["update"]),)

    return run
