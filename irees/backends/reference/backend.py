"""
The reference backend: makes a module at any phase callable through the interpreter.

It generates no code and needs no compiler or accelerator. It is slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType, ModuleOp

from irees.backends.common.program_text import argument_records, result_records
from irees.dialects.signature import element_names, is_entry
from irees.dialects.util import FuncOp as UtilFuncOp
from irees.errors import ArgumentError, UnsupportedError
from irees.fence import fenced
from irees.interpreters import Interpreter
from irees.interpreters.host import traced
from irees.interpreters.values import dtype_of
from irees.runtime.arguments import ScalarSpec, TensorSpec, numpy_of
from irees.runtime.entry import main_function
from irees.runtime.manifest import read_spec
from irees.runtime.signature import Signature, State
from irees.runtime.tracing import Tracer

BYTE = 8
NARROW = ("int2", "int4", "uint2", "uint4")


@dataclass(frozen=True)
class Dispatches:
    """A program lowered to dispatches, which is interpreted only to trace their tensors."""

    interpreter: Interpreter
    tracer: Tracer


class ReferenceFunction:
    """A public function; takes numpy arrays, or values convertible to arrays."""

    def __init__(
        self,
        interpreter: Interpreter,
        name: str,
        arguments: Sequence[TensorSpec | ScalarSpec | None] = (),
        results: Sequence[TensorSpec | ScalarSpec | None] = (),
        stored: Mapping[int, np.dtype[Any]] | None = None,
        dispatches: Dispatches | None = None,
    ):
        self.interpreter = interpreter
        self.dispatches = dispatches
        self.name = name
        self.arguments = arguments
        self.results = results
        self.stored = stored or {}

    def __call__(self, *arguments: Any) -> Any:
        """The result, or a tuple when there are several. Raises ArgumentError and RuntimeTrap."""
        results = self.run(arguments)
        return results[0] if len(results) == 1 else tuple(results)

    @fenced
    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """The results as a list. Raises ArgumentError and RuntimeTrap."""
        results = self._run(self._stored(self._arrays(arguments)))
        return [_returned(r, spec) for r, spec in zip(results, self.results)]

    def _arrays(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments, checked like those of a compiled program."""
        if len(arguments) != len(self.arguments):
            return [numpy_of(a) for a in arguments]  # the interpreter reports the wrong count
        pairs = zip(self.arguments, arguments)
        return [numpy_of(a) if spec is None else spec.checked(a) for spec, a in pairs]

    def _stored(self, arrays: list[Any]) -> list[Any]:
        """The arguments with the element types of the module, where they differ for callers."""
        found = list(arrays)
        for number, dtype in self.stored.items():
            found[number] = recast(found[number], dtype)
        return found

    def _run(self, arrays: list[np.ndarray]) -> list[Any]:
        results = owned(self.interpreter.call(self.name, *arrays), arrays)
        if self.dispatches is not None:
            tracer = self.dispatches.tracer
            tracer.begin()
            with traced(tracer.record):
                self.dispatches.interpreter.call(self.name, *arrays)
            tracer.end()
        return results


def owned(results: Sequence[Any], arguments: Sequence[np.ndarray]) -> list[Any]:
    """
    Returns the results, copied if they are read-only or share memory with an argument or an
    earlier result. The interpreter returns views, and the caller may write to its results.
    """
    taken: list[np.ndarray] = list(arguments)
    found: list[Any] = []
    for result in results:
        if isinstance(result, np.ndarray):
            shared = any(np.may_share_memory(result, other) for other in taken)
            if shared or not result.flags.writeable:
                result = result.copy()
            taken.append(result)
        found.append(result)
    return found


class ReferenceProgram:
    """
    An interpreted module. `program(...)` calls `main`, or the only public function;
    `program.functions` has all of them. `traced` is the same program lowered to dispatches: it
    is interpreted too, and its dispatches are reported to `tracer`.
    """

    @fenced
    def __init__(
        self,
        module: ModuleOp,
        signature: Signature | None = None,
        state: Mapping[str, np.ndarray] | None = None,
        *,
        traced: ModuleOp | None = None,
        tracer: Tracer | None = None,
    ):
        self.module = module
        self.signature = signature
        self.state = State({name: array.copy() for name, array in (state or {}).items()})
        interpreter = Interpreter(module)
        dispatches = None
        if traced is not None and tracer is not None:
            dispatches = Dispatches(Interpreter(traced), tracer)
        names = {} if signature is None else signature.argument_names
        self.functions = {
            op.sym_name.data: ReferenceFunction(
                interpreter,
                op.sym_name.data,
                specs(argument_records(op), names if op.sym_name.data == "main" else {}),
                specs(result_records(op, op.function_type.outputs)),
                stored_dtypes(op),
                dispatches,
            )
            for op in public_functions(module)
        }

    @fenced
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """
        Calls `main`, or the only public function. If the program has a signature, it takes the
        arguments of the original Python function. Raises ArgumentError and RuntimeTrap.
        """
        main = main_function(self.functions)
        if self.signature is not None:
            return self.signature.run(main.run, self.state, arguments, named)
        if named:
            raise ArgumentError(f"{main.name} takes its arguments by position")
        return main(*arguments)

    def __repr__(self) -> str:
        return f"<irees reference program with {', '.join(self.functions) or 'no functions'}>"


def specs(
    records: Sequence[dict[str, Any]], names: Mapping[int, str] | None = None
) -> list[TensorSpec | ScalarSpec | None]:
    """Specs of arguments or results; None for a type that only the interpreter supports."""
    found: list[TensorSpec | ScalarSpec | None] = []
    for index, record in enumerate(records):
        try:
            found.append(read_spec(index, {**record, "name": (names or {}).get(index, "")}))
        except UnsupportedError:
            found.append(None)
    return found


def _returned(value: Any, spec: TensorSpec | ScalarSpec | None) -> Any:
    """A result as a compiled program returns it: a number is one of Python."""
    if spec is None:
        return value
    found = recast(value, spec.dtype)
    if isinstance(spec, ScalarSpec) and isinstance(found, np.generic | np.ndarray):
        return found.item()
    return found


def stored_dtypes(op: func.FuncOp | UtilFuncOp) -> dict[int, np.dtype[Any]]:
    """The module's dtypes of arguments whose element type differs for callers."""
    types = op.function_type.inputs.data
    widths = ((i, getattr(kind, "element_type", kind)) for i, kind in enumerate(types))
    narrow = {i for i, e in widths if isinstance(e, IntegerType) and 1 < e.width.data < BYTE}
    return {i: dtype_of(types[i]) for i in {*element_names(op, "arg"), *narrow}}


def recast(value: Any, dtype: np.dtype[Any]) -> Any:
    """
    Returns a value as another dtype for the same bits: int8 as uint8. The interpreter holds an i4
    in an int8.
    """
    array = np.asarray(value)
    if array.dtype == dtype:
        return value
    narrow = any(each.name in NARROW for each in (array.dtype, dtype))
    if narrow or array.itemsize != dtype.itemsize:
        array = array.astype(dtype)
    else:
        array = array.view(dtype)
    return array if isinstance(value, np.ndarray) else array[()]


def public_functions(module: ModuleOp) -> list[func.FuncOp | UtilFuncOp]:
    """The public functions of a module."""
    return [
        op
        for op in module.body.block.ops
        if isinstance(op, func.FuncOp | UtilFuncOp) and is_entry(op)
    ]
