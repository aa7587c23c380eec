"""
The CUDA device of a program: memory, launches, and transfers of arrays, through CuPy.

CuPy is imported by the first call that needs a device, so programs can be created, saved and
loaded without one. All work goes to the caller's current stream (`cuda_queue`); the host waits
only for data that it reads. This module implements the services that the host program calls,
except launches, copies and tensor maps, which the runtime library implements. A service that fails
stores its error, and the call raises it. Concurrent calls are safe: per-call state is in the
thread-local `_Call`.

This is the general path of a call. Repeated calls with PyTorch tensors need no service in Python
(`cuda_plans`).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from irees.errors import ArgumentError, DeviceError, IreesError, OutOfMemoryError
from irees.runtime import tensor_maps
from irees.runtime.arguments import DEVICE_ALIGNMENT, ScalarSpec, Scratchpad, TensorSpec
from irees.runtime.cuda_queue import Queue, device_of, queue_of
from irees.runtime.services import Services
from irees.runtime.tensor_maps import TensorStruct, driver_error, refusal
from irees.target import Target

STATIC_SHARED_BYTES = 48 << 10
OUT_OF_MEMORY, DEVICE_FAULT = -1, -3
TRAP_BYTES = 4
_TO_DEVICE, _TO_HOST, ON_DEVICE = 1, 2, 3
"""cudaMemcpyKind"""
_MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"""

_pointer = ctypes.c_void_p
_Parallel = ctypes.CFUNCTYPE(None, *(_pointer,) * 3, ctypes.c_int64, ctypes.c_int64)
_Alloc = ctypes.CFUNCTYPE(_pointer, ctypes.c_int64)
_Free = ctypes.CFUNCTYPE(None, _pointer)
_Counters = ctypes.CFUNCTYPE(_pointer, _pointer, ctypes.c_int64)
_Word = ctypes.CFUNCTYPE(_pointer, _pointer)
_Copy = ctypes.CFUNCTYPE(ctypes.c_int32, _pointer, _pointer, _pointer, ctypes.c_int64)
_Refused = ctypes.CFUNCTYPE(ctypes.c_int32, _pointer, ctypes.c_int32, _pointer)


class _Services(ctypes.Structure):
    """`irees_runtime` of irees.h."""

    _fields_ = [
        ("pool", _pointer), ("parallel", _Parallel), ("alloc", _Alloc), ("free", _Free),
        ("launch", _pointer), ("read", _Copy), ("write", _Copy), ("copy", _pointer),
        ("encode_tensor_map", _pointer), ("counters", _Counters), ("trap_word", _Word),
    ]  # fmt: skip


class _KernelStruct(ctypes.Structure):
    """`irees_cuda_kernel` of runtime.c."""

    _fields_ = [
        ("function", _pointer), ("maps", ctypes.c_int64), ("dynamic_bytes", ctypes.c_int64),
    ]  # fmt: skip


class _ProgramStruct(ctypes.Structure):
    """`irees_cuda_program` of runtime.c."""

    _fields_ = [
        *((name, _pointer) for name in ("launch", "copy", "encode", "current", "push", "pop")),
        ("context", _pointer), ("refused", _Refused), ("kernels", ctypes.POINTER(_KernelStruct)),
    ]  # fmt: skip


def connect(target: Target) -> Any:
    """Returns CuPy if the current device can run code for the target. Raises DeviceError."""
    try:
        import cupy  # pyright: ignore
    except ImportError as error:
        raise DeviceError(
            f"cupy cannot be imported: {error}",
            hint="`pip install irees[cuda12]`, or compile with target=cuda-emulated",
        ) from None
    try:
        capability = cupy.cuda.Device().compute_capability
    except Exception as error:
        raise DeviceError(
            f"there is no CUDA device: {error}", hint="compile with target=cuda-emulated"
        ) from None
    # A cubin runs on devices with the same major and at least the same minor capability.
    wanted = target.arch.removeprefix("sm_")
    if capability[:-1] != wanted[:-1] or int(capability) < int(wanted):
        raise DeviceError(
            f"the program was compiled for sm_{wanted}, but the device is sm_{capability}",
            hint="compile it again with target=cuda",
        )
    return cupy


def _cupy() -> Any:
    try:
        import cupy  # pyright: ignore
    except ImportError:
        return None
    return cupy


@contextmanager
def _current_device(number: int | None) -> Iterator[None]:
    """Makes a device current, None for the one that is."""
    # Without CuPy, `connect` raises the error.
    if number is None or (cupy := _cupy()) is None:
        yield
        return
    runtime = cupy.cuda.runtime
    before = runtime.getDevice()
    runtime.setDevice(number)
    try:
        yield
    finally:
        runtime.setDevice(before)


class _Call(threading.local):
    """State of the current call of a thread."""

    queue: Queue
    error: IreesError | None = None
    touched = 0
    """Number of host reads and writes of device memory."""
    kept: list[Any] | None = None
    trap: tuple[int, Any] | None = None
    """Address and owner of the trap word, None until the call requests it."""
    log: list[tuple[int | None, int]] | None = None
    """
    The allocations of the call so far, for `cuda_plans`: bytes (None for a free, negative for
    counters) and address. None if another call may differ, because the host reads device memory.
    """
    other: int | None = None
    """CuPy's current stream, if the call uses CuPy arrays but runs on another stream."""


@dataclass
class _Loaded:
    """A program loaded on a device. Its struct and modules must outlive all kernel launches."""

    cupy: Any
    device: int
    struct: _ProgramStruct
    modules: list[Any]


class CudaDevice:
    """The device state of one program: kernels, constants, memory."""

    def __init__(
        self,
        target: Target,
        launches: Sequence[Mapping[str, Any]],
        cubins: Mapping[str, bytes],
        services: Services,
    ):
        self.target = target
        self.launches = launches
        self.cubins = cubins
        self.blocks: dict[int, Any] = {}
        self.placed: dict[str, tuple[int, Any]] = {}
        self.counters: dict[tuple[int, int], list[tuple[int, Any]]] = {}
        """Unused counters, by the stream of their last use and their size."""
        self._counting: dict[int, tuple[tuple[int, int], Any]] = {}
        self._lock = threading.RLock()
        self._loaded: _Loaded | None = None
        self._call = _Call()
        self._native = services.cuda_launcher()
        self._services = _Services(
            None, _Parallel(0), _Alloc(self._alloc), _Free(self.free), self._native.launch,
            _Copy(self._read), _Copy(self._write), self._native.copy, self._native.encode,
            _Counters(self._counters), _Word(self._trap_word),
        )  # fmt: skip
        self.table = ctypes.addressof(self._services)
        self._planned = _Services()
        self.planned_table = ctypes.addressof(self._planned)
        """The services of planned calls, filled in when the program is loaded."""
        self.call_planned: Callable[[int, int], int] = self._native.call

    @property
    def cupy(self) -> Any:
        """CuPy, with the kernels loaded. Raises DeviceError."""
        return self.loaded().cupy

    def loaded(self, arguments: Sequence[Any] = ()) -> _Loaded:
        """
        The program on the device, loaded by the first call: on the device of its arguments, else
        on the current one. Concurrent first calls load it once; a failed load leaves no state
        behind. Raises DeviceError.
        """
        if self._loaded is not None:
            return self._loaded
        with self._lock:
            if self._loaded is None:
                try:
                    with _current_device(device_of(arguments)):
                        loaded = self._load()
                except Exception as error:
                    raise typed(error) from error
                self._services.pool = ctypes.addressof(loaded.struct)
                self._native.plan_services(self.planned_table, self._services.pool)
                self._loaded = loaded
            return self._loaded

    @property
    def number(self) -> int:
        """The number of the device. Raises DeviceError."""
        return self.loaded().device

    @property
    def program_address(self) -> int:
        """The address of the loaded program's `irees_cuda_program`."""
        return self._services.pool or 0

    def _load(self) -> _Loaded:
        cupy = connect(self.target)
        kernels = (_KernelStruct * max(1, len(self.launches)))()
        modules: dict[str, Any] = {}
        for number, launch in enumerate(self.launches):
            source = launch["source"]
            if source not in modules:
                modules[source] = cupy.cuda.function.Module()
                modules[source].load(self.cubins[source])
            kernels[number] = _kernel(cupy, modules[source], launch)
        struct = _program_struct(kernels, _Refused(self._refused))
        return _Loaded(cupy, cupy.cuda.runtime.getDevice(), struct, list(modules.values()))

    @contextmanager
    def call(self, arguments: Sequence[Any]) -> Iterator[None]:
        """Sets up a call with these arguments: its stream and the current device."""
        loaded = self.loaded(arguments)
        runtime = loaded.cupy.cuda.runtime
        # Also makes the device's context current in this thread: launches bypass CuPy.
        current = runtime.getDevice()
        runtime.setDevice(loaded.device)
        call = self._call
        call.error = call.trap = call.other = None
        call.log = []
        call.queue = queue_of(arguments, loaded.cupy, loaded.device)
        self._native.begin(call.queue.stream)
        try:
            yield
        finally:
            call.trap = None
            if call.other is not None:
                self._wait(call.other, call.queue.stream)
            if current != loaded.device:
                runtime.setDevice(current)

    @property
    def stream(self) -> int:
        """The stream of this thread's call."""
        return self._call.queue.stream

    @property
    def touched(self) -> int:
        """Number of host reads and writes of device memory, in this thread."""
        return self._call.touched

    @property
    def log(self) -> list[tuple[int | None, int]] | None:
        """The allocations of this thread's call, None if they cannot be planned."""
        return self._call.log if self._call.queue.torch is not None else None

    def _note(self, size: int | None, pointer: int) -> None:
        if self._call.log is not None:
            self._call.log.append((size, pointer))

    def launched(self) -> int:
        """Number of kernels launched by this thread's call, without those of graphs."""
        return self._native.launches()

    def _wait(self, stream: int, other: int) -> None:
        """Makes later work on `stream` wait for the work already on `other`."""
        cuda = self.cupy.cuda
        event = cuda.Event(disable_timing=True)
        cuda.runtime.eventRecord(event.ptr, other)
        cuda.runtime.streamWaitEvent(stream, event.ptr)

    # --- services: called by the host program -----------------------------------------------

    def guarded(self, work: Callable[[], None]) -> int:
        """Runs `work`; returns 0, or the status of its error, which `failure` returns."""
        try:
            work()
        except Exception as error:
            self._call.error = typed(error)
            return OUT_OF_MEMORY if isinstance(self._call.error, OutOfMemoryError) else DEVICE_FAULT
        return 0

    def _memory(self, size: int) -> tuple[int, Any]:
        """Device memory and its owner. Raises OutOfMemoryError or DeviceError."""
        try:
            return self._call.queue.memory(size)
        except Exception as error:
            raise typed(error) from None

    def _alloc(self, size: int) -> int:
        try:
            pointer, block = self._memory(size)
        except IreesError as error:
            self._call.error = error
            return 0
        self.blocks[pointer] = block
        self._note(size, pointer)
        return pointer

    def free(self, pointer: int | None) -> None:
        """Returns memory to the pool, for reuse by later work on the stream."""
        self._note(None, pointer or 0)
        block, kept = self.blocks.pop(pointer or 0, None), self._call.kept
        key, counters = self._counting.pop(pointer or 0, ((0, 0), None))
        if kept is not None:
            kept.append(counters if block is None else block)
        elif counters is not None:
            self.put_back(key, (pointer or 0, counters))

    def unused_counters(self, stream: int, size: int) -> tuple[int, Any]:
        """Takes zeroed counters of a stream. Raises LookupError when there are none."""
        with self._lock:
            return self.counters[stream, size].pop()

    def put_back(self, key: tuple[int, int], counters: tuple[int, Any]) -> None:
        """Keeps counters for later work on their stream; `key` is the stream and their size."""
        with self._lock:
            self.counters.setdefault(key, []).append(counters)

    def _counters(self, pool: int, size: int) -> int:
        """Allocates zeroed counters; kernels reset them, so those of this stream are reused."""

        def work() -> None:
            key = (self.stream, size)
            try:
                pointer, block = self.unused_counters(*key)
            except LookupError:
                pointer, block = self._zeros(size)
            self._counting[pointer] = key, block
            self._note(-size, pointer)
            taken.append(pointer)

        taken: list[int] = []
        self.guarded(work)
        return taken[0] if taken else 0

    def _zeros(self, size: int) -> tuple[int, Any]:
        """
        Allocates zeroed memory. It is cleared on the home stream, for two reasons: earlier work
        there may still use it, and a graph, recorded on another stream, must not clear it again.
        """
        pointer, block = self._memory(size)
        self.cupy.cuda.runtime.memsetAsync(pointer, 0, size, self._call.queue.home)
        return pointer, block

    def _trap_word(self, pool: int) -> int:
        """Allocates a zeroed trap word for the kernels of this call."""

        def work() -> None:
            self._call.trap = pointer, _ = self._memory(TRAP_BYTES)
            self._note(-TRAP_BYTES, pointer)
            self.cupy.cuda.runtime.memsetAsync(pointer, 0, TRAP_BYTES, self.stream)

        self.guarded(work)
        return self._call.trap[0] if self._call.trap is not None else 0

    @property
    def trap(self) -> tuple[int, Any] | None:
        """The trap word of the call, None if its kernels cannot trap."""
        return self._call.trap

    def trapped(self, status: int, word: tuple[int, Any] | None) -> int:
        """
        The status of a call. If kernels may trap, waits for them, and the first trap takes
        precedence over a later error of the host: that error may be a consequence, such as an
        allocation with a garbage size that the trapped kernel left.
        """
        if word is None or status == DEVICE_FAULT:
            return status
        call = self._call
        behind, call.error = call.error, None
        found = self.fetch(word[0], TRAP_BYTES)
        if call.error is not None:
            return DEVICE_FAULT
        if trap := int.from_bytes(found, sys.byteorder, signed=True):
            return trap
        call.error = behind
        return status

    @contextmanager
    def recording(self, stream: int) -> Iterator[list[Any]]:
        """
        Switches to another stream for graph capture. Yields the list of memory freed meanwhile,
        which the graph must keep alive.
        """
        kept: list[Any] = []
        call, queue = self._call, self._call.queue
        call.log = None
        call.kept, call.queue = kept, queue.on(stream)
        self._native.begin(stream)
        try:
            yield kept
        finally:
            call.kept, call.queue = None, queue
            self._native.begin(queue.stream)

    def duplicate(self, source: int, size: int) -> int:
        """Copies device memory to a new allocation. Raises OutOfMemoryError or DeviceError."""
        pointer, block = self._memory(size)
        self.blocks[pointer] = block
        if size:
            self._move(pointer, source, size, ON_DEVICE)
        return pointer

    def fetch(self, pointer: int, size: int) -> bytes:
        """Reads bytes of device memory; an error is stored for `failure`."""
        host = ctypes.create_string_buffer(size)
        self.guarded(lambda: self._move(ctypes.addressof(host), pointer, size, _TO_HOST))
        return host.raw

    def _move(self, to: int, source: int, size: int, kind: int) -> None:
        try:
            runtime = self.cupy.cuda.runtime
            runtime.memcpyAsync(to, source, size, kind, self.stream)
            if kind == _TO_HOST:
                runtime.streamSynchronize(self.stream)
        except Exception as error:
            raise typed(error) from None

    def _read(self, pool: int, host: int, device: int, size: int) -> int:
        self._call.touched += 1
        self._call.log = None
        status = self.guarded(lambda: self._move(host, device, size, _TO_HOST))
        # A trapped kernel leaves garbage, and a host loop that reads it might not terminate.
        return status or self.trapped(0, self._call.trap)

    def _write(self, pool: int, device: int, host: int, size: int) -> int:
        self._call.touched += 1
        self._call.log = None
        return self.guarded(lambda: self._move(device, host, size, _TO_DEVICE))

    def _refused(self, pool: int, status: int, tensor: int) -> int:
        self._call.error = refusal(status, TensorStruct.from_address(tensor))
        return DEVICE_FAULT

    # --- arrays ------------------------------------------------------------------------------

    def place(self, constants: Any, names: Sequence[str], data: Mapping[str, Any]) -> None:
        """Uploads the constants of a function to the device, once. Raises DeviceError."""
        with self._lock:
            for number, name in enumerate(names):
                if name not in self.placed:
                    self.placed[name] = self._upload(data[name])
                constants[number] = self.placed[name][0]

    def _upload(self, array: np.ndarray[Any, Any]) -> tuple[int, Any]:
        pointer, memory = self._memory(array.nbytes)
        if array.nbytes:
            self._move(pointer, array.ctypes.data, array.nbytes, _TO_DEVICE)
            # Calls on other streams read it, too.
            self.cupy.cuda.runtime.streamSynchronize(self.stream)
        return pointer, memory

    def binder(self, spec: TensorSpec | ScalarSpec) -> Callable[..., Any]:
        """Returns the binder of an argument: device arrays are passed in place, others copied."""
        if isinstance(spec, ScalarSpec):
            return spec.bind

        def bind(value: Any, pad: Scratchpad) -> tuple[int, tuple[int, ...]]:
            torch = sys.modules.get("torch")
            if torch is not None and isinstance(value, torch.Tensor) and value.is_cuda:
                return self._bind_tensor(spec, value, pad)
            if getattr(value, "__cuda_array_interface__", None) is not None:
                return self._bind_here(spec, value, pad)
            host = Scratchpad(1)
            pointer, shape = spec.bind(value, host)
            pad.torch |= host.torch
            size = prod(shape) * spec.dtype.itemsize
            there, memory = self._memory(size)
            if size:
                self._move(there, pointer, size, _TO_DEVICE)
                if host.torch and value.is_pinned():
                    # A copy from pinned memory is asynchronous, and the caller may write to the
                    # tensor after the call.
                    self.cupy.cuda.runtime.streamSynchronize(self.stream)
            pad.keep += [memory, host]
            return there, shape

        return bind

    def _bind_here(
        self, spec: TensorSpec, value: Any, pad: Scratchpad
    ) -> tuple[int, tuple[int, ...]]:
        array = self.cupy.asarray(value)
        if array.dtype not in spec.accepted:
            raise ArgumentError(
                f"{spec.label} has dtype {array.dtype}, but must have {spec.dtype} ({spec})"
            )
        spec.check_shape(array.shape)
        array = self.cupy.ascontiguousarray(array)
        if array.data.ptr % DEVICE_ALIGNMENT:
            array = array.copy()
        # The array or its copy was produced on CuPy's stream.
        if self._call.queue.torch is not None:
            current = self.cupy.cuda.get_current_stream().ptr
            if current != self.stream:
                self._wait(self.stream, current)
                self._call.other = current
        pad.device = True
        pad.keep.append(array)
        return array.data.ptr, array.shape

    def _bind_tensor(
        self, spec: TensorSpec, value: Any, pad: Scratchpad
    ) -> tuple[int, tuple[int, ...]]:
        """Binds a torch tensor on the device, without CuPy, which lacks some dtypes (bf16)."""
        spec.check_torch_dtype(value)
        device = self._call.queue.device
        if value.get_device() != device:
            raise ArgumentError(
                f"{spec.label} is on {value.device}, but the program runs on cuda:{device}",
                hint=f"copy it with .to('cuda:{device}')",
            )
        try:
            pointer, shape = spec.place_of(value, pad)
            if shape != spec.shape:
                spec.check_shape(shape)
            if pointer % DEVICE_ALIGNMENT:
                value = value.clone()
                pad.keep.append(value)
                pointer = value.data_ptr()
        except IreesError:
            raise
        except Exception as error:
            raise typed(error) from error
        pad.torch = pad.device = True
        return pointer, shape

    def readers(self, results: Sequence[TensorSpec | ScalarSpec]) -> list[Callable[[Any], Any]]:
        """Returns one reader per result, which converts it to a Python value."""
        found: list[Callable[[Any], Any]] = []
        first = 0
        for number, spec in enumerate(results):
            if isinstance(spec, TensorSpec):
                found.append(self._tensor_reader(number, first, spec))
            else:
                found.append(_scalar_reader(number, spec))
            first += len(spec.shape)
        return found

    def _tensor_reader(self, number: int, first: int, spec: TensorSpec) -> Callable[[Any], Any]:
        size = spec.rank

        def read(frame: Any) -> Any:
            shape = tuple(frame.result_dims[first : first + size])
            memory = self.blocks.pop(frame.results[number])
            queue = self._call.queue
            if frame.pad.device and (queue.torch is not None or spec.dtype.isbuiltin == 1):
                return queue.array(memory, shape, spec.dtype)
            array = np.empty(shape, spec.dtype)
            if array.nbytes:
                self._move(array.ctypes.data, frame.results[number], array.nbytes, _TO_HOST)
            return array

        return read

    def failure(self) -> Exception | None:
        """Returns and clears the error of a service."""
        call = self._call
        error, call.error = call.error, None
        if error is None and (status := self._native.error()):
            error = DeviceError(f"the device failed: {driver_error(status)}")
        return error


def _program_struct(kernels: Any, refused: Any) -> _ProgramStruct:
    """The runtime library's record of a program in the current context."""
    driver, context = tensor_maps.find_driver(), _pointer()
    if status := driver.cuCtxGetCurrent(ctypes.byref(context)):
        raise DeviceError(f"the device failed: {driver_error(status)}")
    functions = [
        ctypes.cast(found, _pointer) if found is not None else _pointer()
        for found in (
            *(driver.cuLaunchKernel, driver.cuMemcpyDtoDAsync_v2),
            # Drivers before CUDA 12 have no tensor maps.
            getattr(driver, "cuTensorMapEncodeTiled", None),
            *(driver.cuCtxGetCurrent, driver.cuCtxPushCurrent_v2, driver.cuCtxPopCurrent_v2),
        )
    ]
    return _ProgramStruct(*functions, context, refused, kernels)


def _kernel(cupy: Any, module: Any, launch: Mapping[str, Any]) -> _KernelStruct:
    """The runtime library's record of a kernel; raises the kernel's shared memory limit."""
    kernel, shared = module.get_function(launch["name"]), launch["shared_bytes"]
    if shared <= STATIC_SHARED_BYTES:
        return _KernelStruct(kernel.ptr, launch["maps"], 0)
    cupy.cuda.driver.funcSetAttribute(kernel.ptr, _MAX_DYNAMIC_SHARED, shared)
    return _KernelStruct(kernel.ptr, launch["maps"], shared)


def typed(error: Exception) -> IreesError:
    """Converts an error of CuPy to an IreesError."""
    if isinstance(error, IreesError):
        return error
    # CuPy and PyTorch use the same class name.
    if type(error).__name__ == "OutOfMemoryError":
        return OutOfMemoryError(f"the device has not enough memory: {error}")
    return DeviceError(f"the device failed: {type(error).__name__}: {error}")


def _scalar_reader(number: int, spec: ScalarSpec) -> Callable[[Any], Any]:
    return lambda frame: spec.read(frame.scalars, 16 * number)
