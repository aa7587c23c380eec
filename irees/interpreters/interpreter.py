"""`Interpreter` runs functions of a module, `evaluate` runs one op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, ShapedType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from irees.dialects.signature import updates_of
from irees.errors import ArgumentError
from irees.interpreters import (  # noqa: F401 (they fill the table)
    arith,
    complex,
    ext_attention,
    ext_convolution,
    ext_indexing,
    ext_sorting,
    flow_tensors,
    gpu,
    host,
    interface,
    kernels,
    math,
    memref,
    panel,
    plugin_ops,
    scf,
    structured,
    tensor,
    vector,
)
from irees.interpreters.machine import Machine, Spend, quietly
from irees.interpreters.values import MemRef, dtype_of


def as_value(value: Any, kind: Attribute) -> Any:
    """Converts a Python or numpy value to a type. Raises ArgumentError when it does not fit."""
    if isinstance(value, MemRef):
        return value
    dtype = dtype_of(kind)
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not isinstance(kind, ShapedType):
        if array.ndim:
            raise ArgumentError(f"expected a scalar of type {kind}, but got shape {array.shape}")
        return array.astype(dtype)[()]
    wanted = kind.get_shape()
    if array.ndim != len(wanted) or any(
        n not in (-1, m) and n >= 0 for n, m in zip(wanted, array.shape)
    ):
        raise ArgumentError(f"expected {kind}, but got shape {array.shape}")
    if array.dtype != dtype:
        integers = isinstance(kind.get_element_type(), IntegerType | IndexType)  # pyright: ignore
        if not (integers and array.dtype.kind in "iub") or array.dtype.itemsize != dtype.itemsize:
            raise ArgumentError(f"expected {kind}, but got elements of type {array.dtype}")
        array = array.view(dtype)
    if isinstance(kind, MemRefType):
        array = np.ascontiguousarray(array).reshape(array.shape).view()
        array.flags.writeable = False  # programs must not write to arguments
        return MemRef(array, array.reshape(-1))
    return array


def _protected(value: Any, is_updated: bool) -> Any:
    """Returns a tensor that dispatches may write to if the function updates it, else must not."""
    if not isinstance(value, np.ndarray):
        return value
    found = value.copy() if is_updated else value.view()
    found.flags.writeable = is_updated
    return found


def evaluate(op: Operation, operands: Sequence[np.ndarray | Any]) -> list[Any]:
    """
    Evaluates one op on operand values; returns its results, in order.

    Tensors are arrays, scalars are scalars. The op's regions may capture only values of
    `arith.constant` from outside. Raises UnsupportedError for an op or a captured value that cannot
    be evaluated, and RuntimeTrap when the program would trap.
    """
    machine = Machine()
    with quietly():
        values = [as_value(v, o.type) for v, o in zip(operands, op.operands, strict=True)]
        return list(machine.prepared(op)(*values))


class Interpreter:
    """
    Runs the functions of a module; globals keep their values between calls. `spend` is called
    before each run of a block, with its number of ops, and may raise to end the program.
    """

    def __init__(self, module: Any, spend: Spend | None = None):
        self.machine = Machine(module, spend)
        self._initialized = False

    def _initialize(self) -> None:
        """Runs the initializers of the module, once."""
        if not self._initialized:
            self._initialized = True
            for op in self.machine.module.ops if self.machine.module is not None else ():
                if op.name == "util.initializer":
                    self.machine.call_op(op, ())

    def initial_globals(self) -> dict[Operation, Any]:
        """
        Runs all initializers; returns the values of the globals that they read or stored.

        Raises UnsupportedError and RuntimeTrap.
        """
        with quietly():
            self._initialize()
        return dict(self.machine.globals)

    def bind(self, bindings: Sequence[np.ndarray], constants: Sequence[int] = ()) -> None:
        """Sets what `hal.interface.*` reads: byte arrays, written in place, and numbers."""
        self.machine.state[interface.BINDINGS] = bindings
        self.machine.state[interface.CONSTANTS] = constants

    def call(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        """Calls a function with numpy arguments. Raises ArgumentError."""
        op = self.machine.symbol(function)
        parameters = op.regions[0].blocks[0].args
        if len(arguments) != len(parameters):
            raise ArgumentError(
                f"@{function} takes {len(parameters)} arguments, not {len(arguments)}"
            )
        with quietly():
            self._initialize()
            values = [as_value(v, p.type) for v, p in zip(arguments, parameters, strict=True)]
            updated = set(updates_of(op).values()) if isinstance(op, FuncOp) else set[int]()
            values = [_protected(v, i in updated) for i, v in enumerate(values)]
            results = self.machine.call_op(op, values)
        return tuple(r.array.copy() if isinstance(r, MemRef) else r for r in results)
