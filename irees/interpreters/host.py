"""Host ops of util, ml_program, flow, stream, iree_tensor_ext and check."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, SymbolRefAttr
from xdsl.ir import Operation

from irees.dialects._shaped import UNTIED, tied_indices
from irees.dialects.flow import DispatchOp, TensorTraceOp
from irees.dialects.hal import BufferViewDimOp
from irees.dialects.irees import InvokeOp
from irees.dialects.stream import CmdDispatchOp, CmdTraceOp
from irees.dialects.util import AssumeIntOp
from irees.dialects.util.hints import VIOLATED, is_on_host
from irees.errors import RuntimeTrap, UnsupportedError
from irees.interpreters.machine import Machine, symbol_name
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.tensor import Slicing, put, shape_of_type
from irees.interpreters.values import MemRef, constant, dtype_of, poison, shape_from

# --- globals ------------------------------------------------------------------------------


def _initial(op: Operation) -> Any:
    value = next(
        (v for k in ("value", "initial_value") if (v := op.properties.get(k)) is not None), None
    )
    kind = op.properties["type"]
    if value is None or value.name in ("builtin.unit", "util.uninitialized"):
        return (
            poison(kind.get_shape(), dtype_of(kind))
            if hasattr(kind, "get_shape")
            else dtype_of(kind).type(0)
        )  # pyright: ignore
    return constant(value)


def _global_name(op: Operation) -> str:
    found = (*op.properties.values(), *op.attributes.values())
    return next(a.string_value() for a in found if isinstance(a, SymbolRefAttr))


@implements("util.global.load", "ml_program.global_load", "ml_program.global_load_const")
def _global_load(machine: Machine, op: Operation) -> Prepared:
    """The value of a global."""

    def run():
        symbol = machine.symbol(_global_name(op), op)
        if symbol not in machine.globals:
            machine.globals[symbol] = _initial(symbol)
        return (machine.globals[symbol],)

    return run


@implements("util.global.store", "ml_program.global_store")
def _global_store(machine: Machine, op: Operation) -> Prepared:
    """Stores a value to a global."""

    def run(value: Any):
        machine.globals[machine.symbol(_global_name(op), op)] = value
        return ()

    return run


@implements("util.assume.int")
def _assume(machine: Machine, op: Operation) -> Prepared:
    """Returns the operands; traps on the host if one is not what is assumed."""
    assert isinstance(op, AssumeIntOp)
    if not is_on_host(op):
        return lambda *values: values

    def run(*values: Any):
        for value, operand, ways in zip(values, op.values, op.assumptions, strict=True):
            kind = operand.type
            number = int(value) % (1 << (kind.width.data if isinstance(kind, IntegerType) else 64))
            if ways.data and not any(way.holds(number) for way in ways):
                raise RuntimeTrap(VIOLATED, op=op)
        return values

    return run


@implements("util.optimization_barrier")
def _same(machine: Machine, op: Operation) -> Prepared:
    """Returns the operands."""
    return lambda *values: values


@implements("util.align")
def _align(machine: Machine, op: Operation) -> Prepared:
    """Rounds a value up to a multiple of a power of two."""

    def run(value: Any, alignment: Any):
        one = value.dtype.type(1)
        return ((value + (alignment - one)) & ~(alignment - one),)

    return run


@implements("flow.tensor.transfer", "flow.tensor.barrier", "flow.tensor.clone")
def _transfer(machine: Machine, op: Operation) -> Prepared:
    """Returns the operand; placement has no effect."""
    return lambda value, *dims: (value,)


@implements("hal.tensor.import", "hal.tensor.export")
def _border(machine: Machine, op: Operation) -> Prepared:
    """Returns the operand: buffer views are arrays, too."""
    return lambda value, *others: (value,)


@implements("hal.buffer_view.dim")
def _view_dim(machine: Machine, op: Operation) -> Prepared:
    """The size of a dim of a buffer view."""
    assert isinstance(op, BufferViewDimOp)
    index = op.index.value.data
    return lambda view: (np.int64(view.shape[index]),)


# --- traces -------------------------------------------------------------------------------

TraceSink = Callable[[str, list[np.ndarray]], None]
_SINK: ContextVar[TraceSink | None] = ContextVar("irees_trace_sink", default=None)


@contextmanager
def traced(sink: TraceSink) -> Generator[None]:
    """Calls the sink for every trace op that runs inside the block."""
    token = _SINK.set(sink)
    try:
        yield
    finally:
        _SINK.reset(token)


@implements("flow.tensor.trace", "stream.cmd.trace")
def _trace(machine: Machine, op: Operation) -> Prepared:
    """Passes values to the trace sink, if any."""
    assert isinstance(op, TensorTraceOp | CmdTraceOp)

    def run(*values: Any):
        if (sink := _SINK.get()) is not None:
            shown = values[: len(op.values)]
            sink(op.key.data, [v.array if isinstance(v, MemRef) else v for v in shown])
        return ()

    return run


# --- dispatches ---------------------------------------------------------------------------


def _function(machine: Machine, op: Operation) -> Operation:
    """The function of a dispatch's entry point or of an invoke's callee."""
    assert isinstance(op, DispatchOp | CmdDispatchOp | InvokeOp)
    entry = op.callee if isinstance(op, InvokeOp) else op.entry_point
    executable = machine.symbol(entry.root_reference.data, op)
    names = [part.data for part in entry.nested_references]
    if not names:
        return executable
    for inner in executable.walk():
        if inner is not executable and symbol_name(inner) == names[-1]:
            return inner
    raise UnsupportedError(f"no function {entry}", op=op)


@implements("flow.dispatch")
def _dispatch(machine: Machine, op: Operation) -> Prepared:
    """
    Runs an executable on tensors. Each result is a buffer that it writes; a tied result starts as a
    copy of its operand, and takes over the operand's memory: a later read of the old value, or a
    caller's argument that is only read, shows.
    """
    operands = Operands(op)
    function = _function(machine, op)
    tied = tied_indices(op.properties.get("tied_operands"), len(op.results))

    def run(*args: Any):
        bound = operands.bind(args)
        sizes = iter(bound["result_dims"])
        shapes = [shape_from(r.type, sizes) for r in op.results]
        given = list(bound["arguments"])
        results: list[Any] = []
        replaced: list[tuple[Any, int]] = []
        for result, shape, at in zip(op.results, shapes, tied, strict=True):
            if at == UNTIED:
                results.append(poison(shape, dtype_of(result.type)))
            else:
                replaced.append((given[at], len(results)))
                given[at] = np.array(given[at], order="C")
                results.append(given[at])
        arguments = [
            MemRef.of(v) if isinstance(v, np.ndarray) and a.type != o.type else v
            for v, a, o in zip(given, function.regions[0].block.args, op.operands, strict=False)
        ]
        new = [MemRef(r, r.reshape(-1)) for r, at in zip(results, tied) if at == UNTIED]
        machine.call_op(function, [*arguments, *new])
        for old, number in replaced:
            np.copyto(old, results[number])
        return results

    return run


@implements("stream.cmd.dispatch")
def _cmd_dispatch(machine: Machine, op: Operation) -> Prepared:
    """Runs an executable on buffers."""
    function = _function(machine, op)

    def run(*arguments: Any):
        machine.call_op(function, arguments)
        return ()

    return run


@implements("irees.invoke")
def _invoke(machine: Machine, op: Operation) -> Prepared:
    """Runs a function of a device's module."""
    function = _function(machine, op)
    return lambda *arguments: machine.call_op(function, arguments)


@implements("iree_tensor_ext.dispatch.tensor.load")
def _tensor_load(machine: Machine, op: Operation) -> Prepared:
    """Loads a slice of a dispatch tensor."""
    operands, slicing = Operands(op), Slicing(op, shape_of_type(op.results[0]))

    def run(*args: Any):
        bound = operands.bind(args)
        array = bound["source"].array
        place = slicing.of(array.shape, [*bound["offsets"], *bound["sizes"], *bound["strides"]])
        return (array[place].squeeze(slicing.dropped).copy(),)

    return run


@implements("iree_tensor_ext.dispatch.tensor.store")
def _tensor_store(machine: Machine, op: Operation) -> Prepared:
    """Stores a slice of a dispatch tensor."""
    operands, slicing = Operands(op), Slicing(op, shape_of_type(op.operands[0]))

    def run(*args: Any):
        bound = operands.bind(args)
        array = bound["target"].array
        place = slicing.of(array.shape, [*bound["offsets"], *bound["sizes"], *bound["strides"]])
        put(array, place, bound["value"], slicing.dropped)
        return ()

    return run


# --- expectations --------------------------------------------------------------------------


def _equal(a: Any, b: Any, op: Operation) -> bool:
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def _almost_equal(a: Any, b: Any, op: Operation) -> bool:
    atol, rtol = (float(op.properties[k].value.data) for k in ("atol", "rtol"))  # pyright: ignore
    x, y = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    near = np.abs(x - y) <= atol + rtol * np.abs(y)
    return bool(np.all(near | (x == y) | ((x != x) & (y != y))))


def _expect(name: str, holds: Callable[[Operation, tuple[Any, ...]], bool]) -> None:
    @implements(name)
    def prepare(machine: Machine, op: Operation) -> Prepared:
        def run(*args: Any):
            if not holds(op, args):
                raise RuntimeTrap(
                    f"expected otherwise of {' and '.join(str(a) for a in args)}", op=op
                )
            return ()

        return run


_expect("check.expect_true", lambda op, a: bool(np.all(a[0])))
_expect("check.expect_false", lambda op, a: not np.any(a[0]))
_expect("check.expect_all_true", lambda op, a: bool(np.all(a[0])))
_expect("check.expect_eq", lambda op, a: _equal(a[0], a[1], op))
_expect("check.expect_eq_const", lambda op, a: _equal(a[0], constant(op.properties["value"]), op))
_expect("check.expect_almost_eq", lambda op, a: _almost_equal(a[0], a[1], op))
_expect(
    "check.expect_almost_eq_const",
    lambda op, a: _almost_equal(a[0], constant(op.properties["value"]), op),
)
