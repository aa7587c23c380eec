"""
A compiled program: call it with arrays.

`Program` is a shared library with its manifest and constants; `Function` is one entry of it.
A call checks every argument, makes one foreign call, and wraps the results without a copy.
Concurrent calls are safe: each call writes only to its own frame.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import (
    ArgumentError,
    DeviceError,
    IreesError,
    OutOfMemoryError,
    ParseError,
    RuntimeTrap,
    UnsupportedError,
)
from irees.fence import fenced, rethrow
from irees.runtime.alignment import placed
from irees.runtime.arguments import SCALAR_BYTES, ScalarSpec, Scratchpad, TensorSpec
from irees.runtime.cuda import CudaDevice
from irees.runtime.cuda_plans import PlannedCalls
from irees.runtime.cuda_timing import DeviceTimer
from irees.runtime.dtypes import torch_dtype
from irees.runtime.entry import main_function, sole_function
from irees.runtime.graphs import GraphCalls
from irees.runtime.library import Library
from irees.runtime.manifest import EqualDims, FunctionInfo, ProgramInfo, Trap
from irees.runtime.origin import Origin
from irees.runtime.services import CallStruct, Services, load_services
from irees.runtime.signature import STATE, Signature, State
from irees.runtime.timing import DispatchTimer, Times
from irees.runtime.tracing import Tracer
from irees.runtime.updates import writable

_OUT_OF_MEMORY, _SIZE_OVERFLOW, _DEVICE_FAULT, _MISALIGNED, _BAD_BOX = -1, -2, -3, -4, -5
_BAD_COUNTER = -6


class _Frame:
    """The call frame: everything the entry reads and writes except the arrays."""

    def __init__(self, function: Function):
        arguments, results = len(function.arguments), len(function.results)
        self.args = (ctypes.c_void_p * max(1, arguments))()
        self.dims = (ctypes.c_int64 * max(1, len(function.dynamic_dims)))()
        self.results = (ctypes.c_void_p * max(1, results))()
        self.result_dims = (ctypes.c_int64 * max(1, function.result_rank))()
        self.scalars = (ctypes.c_char * max(1, SCALAR_BYTES * results))()
        self.trap = (ctypes.c_int64 * 4)()
        self.pad = Scratchpad(arguments)
        self.call = CallStruct(
            function.table,
            ctypes.addressof(self.args),
            ctypes.addressof(self.dims),
            ctypes.addressof(function.constants),
            ctypes.addressof(self.results),
            ctypes.addressof(self.result_dims),
            ctypes.addressof(self.scalars),
            ctypes.addressof(self.trap),
            function.tracer.address if function.tracer is not None else None,
        )
        self.address = ctypes.addressof(self.call)


class Function:
    """One public function of a program. Call it with its arguments in order."""

    def __init__(self, info: FunctionInfo, program: Program):
        self.name = info.name
        self.services: Services = program.services
        self.tracer = program.tracer
        self.arguments = info.arguments
        self.results = info.results
        self.result_rank = sum(len(spec.shape) for spec in info.results)
        self.dynamic_dims = [
            (i, dim) for i, spec in enumerate(info.arguments) for dim in spec.dynamic
        ]
        self.constants = (ctypes.c_void_p * max(1, len(info.constants)))(
            *(program.constant_address(name) for name in info.constants)
        )
        self._constant_names = info.constants
        self._program = program
        self._traps = info.traps
        self._equal_dims = info.equal_dims
        self.updates = info.updates
        self.entry = program.library.address(f"irees_entry_{info.entry}")
        self._frames: list[_Frame] = []
        self.device = device = program.device
        self.table = self.services.table if device is None else device.table
        if device is None:
            emulated = program.target_kind == "cuda-emulated"
            self._binders = [
                spec.bind_aligned if emulated and isinstance(spec, TensorSpec) else spec.bind
                for spec in info.arguments
            ]
            self._readers = _result_readers(info.results, self.services)
        else:
            self._binders = [device.binder(spec) for spec in info.arguments]
            self._readers = device.readers(info.results)
        self._placed = False
        """Whether the constants are on the device."""
        self._graphs: GraphCalls | None = None
        if device is not None and self.tracer is None:
            self._graphs = GraphCalls(device, info.arguments, info.results)
        self._planned: PlannedCalls | None = None
        if device is not None and PlannedCalls.suits(self):
            self._planned = PlannedCalls(self, device, self._graphs)

    def __repr__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        return f"<irees function {self.name}({arguments}) -> ({', '.join(map(str, self.results))})>"

    def __call__(self, *arguments: Any) -> Any:
        """
        Runs the function. Returns a single result bare, several as a tuple; as torch tensors if
        an argument is one, else as numpy arrays. Raises the same errors as `run`.
        """
        outputs = self.run(arguments)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """
        Runs the function; returns results as a list, None for one written into an argument.

        Raises ArgumentError before anything runs, RuntimeTrap when the program traps,
        OutOfMemoryError when a result or a temporary does not fit.
        """
        specs = self.arguments
        if len(arguments) != len(specs):
            raise ArgumentError(
                f"{self.name} takes {_plural(len(specs))}, but {len(arguments)} given"
            )
        if self._planned is not None and (outputs := self._planned.run(arguments)) is not None:
            return outputs
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self)
        pad = frame.pad
        updated = writable(self, arguments) if self.updates else None
        if updated is not None:
            arguments = updated.arguments
        try:
            if self.device is None:
                outputs = self._run(frame, arguments, updated)
            else:
                with self.device.call(arguments):
                    if not self._placed:
                        data = self._program.constants
                        self.device.place(self.constants, self._constant_names, data)
                        self._placed = True
                    outputs = self._run(frame, arguments, updated)
        except IreesError:
            raise
        except Exception as error:
            rethrow(f"Function {self.name}", error, arguments)
        finally:
            if pad.keep:
                pad.keep.clear()
            pad.torch = pad.device = False
            self._frames.append(frame)
        return outputs

    def _run(self, frame: _Frame, arguments: Sequence[Any], updated: Any) -> list[Any]:
        """Binds the arguments, runs the entry, and reads the results."""
        specs, pad, pointers = self.arguments, frame.pad, frame.args
        if self.tracer is not None:
            self.tracer.begin()
        shapes: list[tuple[int, ...]] = []
        for i, value in enumerate(arguments):
            pointers[i], shape = self._binders[i](value, pad)
            shapes.append(shape)
        for rule in self._equal_dims:
            if shapes[rule.a][rule.a_dim] != shapes[rule.b][rule.b_dim]:
                raise _unequal(rule, specs, shapes)
        dims = frame.dims
        for i, (argument, dim) in enumerate(self.dynamic_dims):
            dims[i] = shapes[argument][dim]
        status = self._invoke(frame)
        if status:
            raise self._failure(status, frame)
        if self._planned is not None and self.device is not None:
            self._planned.learn(shapes, frame, self.device.log)
        outputs = [read(frame) for read in self._readers]
        if updated is not None:
            updated.finish()
        if self.tracer is not None:
            self.tracer.end()
        if pad.torch:
            outputs = [to_torch(value) for value in outputs]
        for number, _ in self.updates:
            outputs.insert(number, None)
        return outputs

    @contextmanager
    def frame(self) -> Generator[_Frame]:
        """Lends a call frame to a caller that fills it itself."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self)
        try:
            yield frame
        finally:
            if frame.pad.keep:
                frame.pad.keep.clear()
            frame.pad.torch = frame.pad.device = False
            self._frames.append(frame)

    def launch(self, frame: _Frame) -> list[Any]:
        """
        Runs the entry on the CPU, with a frame that holds the pointers and dims of all arguments.

        Raises RuntimeTrap and OutOfMemoryError.
        """
        status = self._invoke(frame)
        if status:
            raise self._failure(status, frame)
        outputs = [read(frame) for read in self._readers]
        for number, _ in self.updates:
            outputs.insert(number, None)
        return outputs

    def _invoke(self, frame: _Frame) -> int:
        """Runs the entry, or replays its recorded CUDA graph."""

        def entry() -> int:
            return self.services.invoke(self.entry, frame.address, len(self.results))

        if self.device is None:
            return entry()
        if self._graphs is not None:
            return self._graphs.run(frame, entry)
        return self.device.trapped(entry(), self.device.trap)

    def _failure(self, status: int, frame: _Frame) -> Exception:
        for spec, pointer in zip(self.results, frame.results):
            if spec.is_tensor and pointer:
                (self.services if self.device is None else self.device).free(pointer)
        if self.device is not None and (error := self.device.failure()) is not None:
            return error
        if status == _DEVICE_FAULT:
            return DeviceError(f"{self.name}: threads of a block wait at different barriers")
        if status == _MISALIGNED:
            return DeviceError(f"{self.name}: a kernel makes a misaligned access")
        if status == _BAD_BOX:
            return DeviceError(
                f"{self.name}: a kernel makes an invalid bulk copy, or an invalid wait for one"
            )
        if status == _BAD_COUNTER:
            return DeviceError(f"{self.name}: a kernel does not reset its counters to 0")
        if status == _OUT_OF_MEMORY:
            return OutOfMemoryError(f"{self.name} ran out of memory")
        if status == _SIZE_OVERFLOW:
            return OutOfMemoryError(f"{self.name} needs an array of more than 2^63 bytes")
        if not 0 < status <= len(self._traps):
            return RuntimeTrap(f"{self.name} failed with status {status}")
        return _trap_error(self._traps[status - 1], list(frame.trap))


@dataclass(frozen=True)
class Code:
    """The code of a program."""

    library: bytes
    """The shared library with the host program and the kernels of the CPU."""
    runtime: bytes
    """The shared library of the runtime that the program was built for."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """The C and CUDA texts, by name."""
    cubins: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The compiled CUDA kernels, by the names of their texts."""


class Program:
    """
    A compiled program. `program(...)` calls `main`, or the only public function;
    `program.functions` has all of them. It uses the threads and allocator of `services`, by
    default those of the process.

    Raises UnsupportedError when this machine lacks what the library was compiled for,
    ToolchainError when the library cannot be loaded, ArgumentError when a constant is missing.
    """

    @fenced
    def __init__(
        self,
        code: Code,
        manifest: Mapping[str, Any],
        constants: Mapping[str, Any] | None = None,
        *,
        services: Services | None = None,
    ):
        self.manifest = dict(manifest)
        self.image = code.library
        self.runtime_image = code.runtime
        self.sources = dict(code.sources)
        self.cubins = dict(code.cubins)
        info = ProgramInfo.read(self.manifest)
        if missing := info.target.missing_features():
            raise UnsupportedError(
                f"the program was compiled for a processor with {', '.join(missing)}",
                hint="compile it again on this machine, or with target=cpu:generic",
            )
        self.target_kind = info.target.kind
        self.services = services or load_services(code.runtime)
        self.library = Library(code.library)
        self.device: CudaDevice | None = None
        if info.target.kind == "cuda":
            self.device = CudaDevice(info.target, info.launches, self.cubins, self.services)
        self.tracer = _tracer(info, self.device, self.services)
        self.constants = placed({name: _constant(data) for name, data in (constants or {}).items()})
        self.functions = {entry.name: Function(entry, self) for entry in info.functions}
        self._main = sole_function(self.functions)
        self.origin: Origin | None = None
        """None for a program that was loaded."""
        self.signature: Signature | None = None
        self.state = State({})
        if self._main is not None and "signature" in self.manifest:
            self.signature = Signature.read(
                self.manifest["signature"],
                len(self._main.arguments),
                len(self._main.results) + len(self._main.updates),
            )
            self.state = self._initial_state()

    def _initial_state(self) -> State:
        """The arrays that the program updates, with their values from compilation or saving."""
        assert self.signature is not None
        assert self._main is not None
        names = [name for name, _ in self.signature.states]
        first = len(self._main.arguments) - len(names) - self.signature.seeds
        specs = self._main.arguments[first:]
        found: dict[str, np.ndarray[Any, Any]] = {}
        for name, spec in zip(names, specs):
            data = self.constants.get(STATE + name)
            size = prod(s or 0 for s in spec.shape) * spec.dtype.itemsize
            if data is None or data.nbytes != size:
                raise ParseError(f"the state {name!r} of the program is missing or damaged")
            flat = data.reshape(-1).view(np.uint8)
            found[name] = flat.view(spec.dtype).reshape([s or 0 for s in spec.shape]).copy()
        return State(found)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """
        Calls `main`, or the only public function. If the program has a signature, it takes the
        arguments of the original Python function, nested and by position or name.

        Raises the errors of `Function.run`, and ArgumentError for arguments of another structure.
        """
        main = self._main or main_function(self.functions)
        if self.signature is not None:
            try:
                return self.signature.run(main.run, self.state, arguments, named)
            except IreesError:
                raise
            except Exception as error:
                rethrow("Program.__call__", error, arguments, named)
        if named:
            raise ArgumentError(
                f"{main.name} takes its arguments by position, but got {', '.join(named)} by name"
            )
        outputs = main.run(arguments)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __repr__(self) -> str:
        if self.signature is not None:
            return f"<irees program {self.signature} on {self.target_kind}>"
        return f"<irees program with {', '.join(self.functions) or 'no functions'}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the signature, and `explain`."""
        return f"<p>{escape(repr(self))}</p><pre>{escape(self.explain())}</pre>"

    def __reduce__(self) -> Any:
        from irees.runtime.artifact import bytes_of, load_bytes

        return load_bytes, (bytes_of(self), "<pickle>")

    @fenced
    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        make, arguments = self.__reduce__()
        return make(*arguments)

    def constant_address(self, name: str) -> int:
        """Address of a constant. Raises ArgumentError when the program was created without it."""
        if (data := self.constants.get(name)) is None:
            raise ArgumentError(f"the constant {name!r} is missing")
        return data.ctypes.data

    @fenced
    def memory_analysis(self) -> dict[str, Any]:
        """
        Bytes by kind: `constant_bytes`, and by function `arena_bytes` of temporaries and
        `live_bytes`, their peak live bytes, a lower bound for any memory plan. None where sizes
        depend on the arguments.
        """
        sizes = {"constant_bytes": sum(data.nbytes for data in self.constants.values())}
        return sizes | self._object("memory")

    def _object(self, name: str) -> dict[str, Any]:
        """An object of the manifest, which is untrusted input. Raises ParseError."""
        found = self.manifest.get(name) or {}
        if not isinstance(found, Mapping):
            raise ParseError(f"the manifest's {name!r} must be an object")
        return dict(found)

    @property
    def tuning(self) -> dict[str, Any]:
        """The tuned lowering configs of the compilation: `irees.compile(tuning=...)`."""
        return self._object("tuning")

    @fenced
    def trace_to(self, directory: str | Path | None) -> None:
        """
        Sets the folder for traces of dispatch tensors; None prints them.

        Raises ArgumentError for a program that was compiled without `trace_dispatch_tensors`.
        """
        if not isinstance(self.tracer, Tracer):
            raise ArgumentError(
                "the program was compiled without dispatch traces",
                hint="compile it with --trace-dispatch-tensors",
            )
        self.tracer.directory = directory

    @fenced
    def explain(
        self,
        inputs: Sequence[Any] | None = None,
        *,
        function: str | None = None,
        peaks: tuple[float, float] | None = None,
        as_data: bool = False,
    ) -> Any:
        """
        Explains the compiler's decisions for each dispatch, with the reasons for the alternatives
        it rejected. Returns a text, or JSON-compatible data with `as_data`.

        With `inputs`, times the dispatches of a function (`main`, or the only one); the program
        must be compiled with `time_dispatches`. `inputs` are the positional arguments of a call, or
        flat arguments if `function` is given; updates are made to copies. `peaks` are the machine's
        GFLOP/s and GB/s: rates are also given as a fraction of them. Raises ArgumentError for
        inputs of a program without `time_dispatches`, and the errors of a call.
        """
        from irees.runtime.explanation import explanation, text_of

        times = None
        if inputs is not None:
            timed = self._main if function is None else self.functions.get(function)
            if timed is None:
                raise ArgumentError(f"no function {function or 'main'!r} to time")
            if function is None and self.signature is not None:
                inputs = self.signature.flat(self.state, inputs, {})
            times = measured(timed, inputs)
        data = explanation(self, times, peaks)
        return data if as_data else text_of(data)

    @fenced
    def report(
        self,
        path: str | Path | None = None,
        inputs: Sequence[Any] | None = None,
        *,
        measure: bool = True,
    ) -> Any:
        """
        Returns the report of this program (`irees.report`), and writes it to `path`.

        Compiles the source once more, since a program does not keep its IR; for this, a module or
        function that it was compiled from must still exist. Kernels are timed on `inputs`, by
        default on zeros or random numbers. Raises ArgumentError if the program was loaded from a
        file, or if its source is gone or has changed since; and the errors of a compilation.
        """
        from irees import report

        if self.origin is None:
            raise ArgumentError(
                "the source of the program is unknown: it was loaded, or compiled by torch.compile",
                hint="irees.report(model, inputs) makes the report of a model or a file",
            )
        given = self.origin.arguments()
        if inputs is not None:
            given["inputs"] = inputs
        made = report(self.origin.current(), measure=measure, **given, **self.origin.options)
        texts, own = made.texts, dict(self.sources)
        if self.manifest.get("time_dispatches"):  # the host program of a report has no clock
            texts.pop("host"), own.pop("host")
        if any(own[name].split() != texts.get(name, "").split() for name in own):
            raise ArgumentError(
                "the source has changed since the program was compiled",
                hint="compile it again, or use irees.report",
            )
        if path is not None:
            made.save(path)
        return made

    @fenced
    def save(self, path: str | Path) -> None:
        """Writes the program to one file for `irees.load`. Raises ArgumentError if it cannot."""
        from irees.runtime.artifact import save

        save(self, path)


def measured(function: Function, inputs: Sequence[Any]) -> Times:
    """Medians over calls of the function. Raises ArgumentError where dispatches are not timed."""
    if not isinstance(function.tracer, DispatchTimer):
        raise ArgumentError(
            "the program does not time its dispatches", hint="compile it with time_dispatches=True"
        )
    given = repeatable(function, inputs)
    return function.tracer.measure(lambda: function(*given))


def repeatable(function: Function, flat: Sequence[Any]) -> Sequence[Any]:
    """The flat arguments for many calls: copies, if the function updates arguments or state."""
    return list(map(_copied, flat)) if function.updates else flat


def _copied(value: Any) -> Any:
    """A copy of an array or of a torch tensor; a number stays."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.detach().clone() if hasattr(value, "detach") else value


def _tracer(
    info: ProgramInfo, device: CudaDevice | None, services: Services
) -> Tracer | DispatchTimer | None:
    """Returns what times or records the dispatches of a program; None unless compiled for it."""
    if info.timed:
        keys = [trace.key for trace in info.traces]
        return DispatchTimer(keys, services) if device is None else DeviceTimer(keys, device)
    if not info.traces:
        return None
    tracer = Tracer(info.traces, info.trace_directory)
    if device is not None:
        tracer.fetch = device.fetch
    return tracer


def _constant(data: Any) -> np.ndarray[Any, Any]:
    return data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)


def _result_readers(
    results: tuple[TensorSpec | ScalarSpec, ...], services: Services
) -> list[Callable[[_Frame], Any]]:
    readers: list[Callable[[_Frame], Any]] = []
    first_dim = 0
    for i, spec in enumerate(results):
        if isinstance(spec, TensorSpec):
            readers.append(_tensor_reader(i, first_dim, spec, services))
        else:
            readers.append(_scalar_reader(i, spec))
        first_dim += len(spec.shape)
    return readers


def _tensor_reader(
    index: int, first_dim: int, spec: TensorSpec, services: Services
) -> Callable[[_Frame], Any]:
    dtype, itemsize, last_dim = spec.dtype, spec.dtype.itemsize, first_dim + spec.rank
    block_type, ndarray = services.block_type, np.ndarray

    def read(frame: _Frame) -> Any:
        shape = frame.result_dims[first_dim:last_dim]
        block = block_type(prod(shape) * itemsize).from_address(frame.results[index])
        try:
            return ndarray(shape, dtype, block)
        except ValueError:
            # A shape like (0, 1 << 62) is empty, but numpy rejects the product of its dims.
            raise RuntimeTrap(
                f"result {index} has the shape {tuple(shape)}: no array has"
            ) from None

    return read


def _scalar_reader(index: int, spec: ScalarSpec) -> Callable[[_Frame], Any]:
    begin = SCALAR_BYTES * index
    return lambda frame: spec.read(frame.scalars, begin)


def to_torch(value: Any) -> Any:
    """An array as a torch tensor over the same memory; torch must have been imported."""
    if isinstance(value, sys.modules["torch"].Tensor):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return sys.modules["torch"].from_dlpack(value)
    if not isinstance(value, np.ndarray):
        return value
    if value.size == 0:  # memory of NumPy cannot be resized, as `out=torch.empty(0)` needs it
        return sys.modules["torch"].empty(value.shape, dtype=torch_dtype(value.dtype))
    from_numpy = sys.modules["torch"].from_numpy
    if value.dtype.isbuiltin == 1:
        return from_numpy(value)
    # torch rejects ml_dtypes dtypes, so pass the bits as integers of the same size.
    return from_numpy(value.view(f"i{value.itemsize}")).view(torch_dtype(value.dtype))


def _unequal(rule: EqualDims, specs: Any, shapes: list[tuple[int, ...]]) -> ArgumentError:
    (first, first_dim), (last, last_dim) = sorted(((rule.a, rule.a_dim), (rule.b, rule.b_dim)))
    origin = " at ".join(part for part in (rule.op, rule.location) if part)
    return ArgumentError(
        f"{specs[last].label} dim {last_dim} is {shapes[last][last_dim]}, but must equal "
        f"dim {first_dim} of {specs[first].label} = {shapes[first][first_dim]}"
        + (f" (from {origin})" if origin else "")
    )


def _trap_error(trap: Trap, numbers: list[int]) -> RuntimeTrap:
    message = trap.message
    for i, number in enumerate(numbers):
        message = message.replace(f"{{{i}}}", str(number))
    return RuntimeTrap(message, location=trap.location, op=trap.op)


def _plural(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"
