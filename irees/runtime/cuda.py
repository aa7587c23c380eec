"""
A CUDA device as a program sees it: memory, launches, arrays in and out, through CuPy.

CuPy is imported when the first call needs a device, so that programs can be made, saved and
loaded where there is none. Everything happens on the caller's current stream (`cuda_queue`), and
only what the host reads is waited for. The services that the host program calls are functions of
this module but for launches, which are the runtime library's: one that fails keeps its error, which
the call then raises. Calls may run at the same time in several threads: what belongs to a call is
in `_Call`, one per thread.
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
from irees.runtime.cuda_queue import Queue, queue_of
from irees.runtime.services import Services
from irees.runtime.tensor_maps import TensorStruct, driver_error, encode
from irees.target import Target

STATIC_SHARED_BYTES = 48 << 10
OUT_OF_MEMORY, DEVICE_FAULT = -1, -3
TRAP_BYTES = 4
_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"""

_pointer = ctypes.c_void_p
_Parallel = ctypes.CFUNCTYPE(None, *(_pointer,) * 3, ctypes.c_int64, ctypes.c_int64)
_Alloc = ctypes.CFUNCTYPE(_pointer, ctypes.c_int64)
_Free = ctypes.CFUNCTYPE(None, _pointer)
_Counters = ctypes.CFUNCTYPE(_pointer, _pointer, ctypes.c_int64)
_Word = ctypes.CFUNCTYPE(_pointer, _pointer)
_Copy = ctypes.CFUNCTYPE(ctypes.c_int32, _pointer, _pointer, _pointer, ctypes.c_int64)
_Encode = ctypes.CFUNCTYPE(ctypes.c_int32, _pointer, _pointer, _pointer)


class _Services(ctypes.Structure):
    """`irees_runtime` of irees.h."""

    _fields_ = [
        ("pool", _pointer), ("parallel", _Parallel), ("alloc", _Alloc), ("free", _Free),
        ("launch", _pointer), ("read", _Copy), ("write", _Copy), ("copy", _Copy),
        ("encode_tensor_map", _Encode), ("counters", _Counters), ("trap_word", _Word),
    ]  # fmt: skip


class _KernelStruct(ctypes.Structure):
    """`irees_cuda_kernel` of runtime.c."""

    _fields_ = [
        ("function", _pointer), ("maps", ctypes.c_int64), ("dynamic_bytes", ctypes.c_int64),
    ]  # fmt: skip


class _ProgramStruct(ctypes.Structure):
    """`irees_cuda_program` of runtime.c."""

    _fields_ = [("launch", _pointer), ("kernels", ctypes.POINTER(_KernelStruct))]


def connect(target: Target) -> Any:
    """CuPy, if there is a device that runs what was compiled for a target. Raises DeviceError."""
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
    # Machine code runs on devices of the same generation that are not older.
    wanted = target.arch.removeprefix("sm_")
    if capability[:-1] != wanted[:-1] or int(capability) < int(wanted):
        raise DeviceError(
            f"the program was compiled for sm_{wanted}, but the device is sm_{capability}",
            hint="compile it again with target=cuda",
        )
    return cupy


class _Call(threading.local):
    """What the calls of one thread have, one at a time."""

    queue: Queue
    error: IreesError | None = None
    touched = 0
    """How often the host has read or written memory of the device."""
    kept: list[Any] | None = None
    trap: tuple[int, Any] | None = None
    """The address of the trap word and the array that holds it, once the call asks for one."""
    other: int | None = None
    """CuPy's current stream, where the call works on arrays of it but on another stream."""


@dataclass
class _Loaded:
    """A program on a device. The struct and the modules live as long as its kernels may run."""

    cupy: Any
    device: int
    struct: _ProgramStruct
    modules: list[Any]


class CudaDevice:
    """What one program has of a device: its kernels, its constants, its memory."""

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
        """Those that nobody uses, by the stream on which they were used last and their size."""
        self._counting: dict[int, tuple[tuple[int, int], Any]] = {}
        self._lock = threading.RLock()
        self._loaded: _Loaded | None = None
        self._call = _Call()
        self._native = services.cuda_launcher()
        self._services = _Services(
            None, _Parallel(0), _Alloc(self._alloc), _Free(self.free), self._native.launch,
            _Copy(self._read), _Copy(self._write), _Copy(self._copy), _Encode(self._encode),
            _Counters(self._counters), _Word(self._trap_word),
        )  # fmt: skip
        self.table = ctypes.addressof(self._services)

    @property
    def cupy(self) -> Any:
        """CuPy, with the kernels loaded. Raises DeviceError."""
        return self.loaded().cupy

    def loaded(self) -> _Loaded:
        """
        The program on the device, loaded by the first call: of several first calls one loads it,
        and one that fails leaves nothing behind. Raises DeviceError.
        """
        if self._loaded is not None:
            return self._loaded
        with self._lock:
            if self._loaded is None:
                try:
                    loaded = self._load()
                except Exception as error:
                    raise typed(error) from error
                self._services.pool = ctypes.addressof(loaded.struct)
                self._loaded = loaded
            return self._loaded

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
        address = ctypes.cast(tensor_maps.find_driver().cuLaunchKernel, _pointer).value
        struct = _ProgramStruct(address, kernels)
        return _Loaded(cupy, cupy.cuda.runtime.getDevice(), struct, list(modules.values()))

    @contextmanager
    def call(self, arguments: Sequence[Any]) -> Iterator[None]:
        """Everything of a call with these arguments: its stream, and the device it is for."""
        loaded = self.loaded()
        runtime = loaded.cupy.cuda.runtime
        # Also makes the device's context the thread's: launches are not CuPy's.
        current = runtime.getDevice()
        runtime.setDevice(loaded.device)
        call = self._call
        call.error = call.trap = call.other = None
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
        """The stream of the call that this thread makes."""
        return self._call.queue.stream

    @property
    def touched(self) -> int:
        """How often the host has read or written memory of the device, in this thread."""
        return self._call.touched

    def launched(self) -> int:
        """How many kernels the call of this thread has launched, but for those of graphs."""
        return self._native.launches()

    def _wait(self, stream: int, other: int) -> None:
        """Lets what comes on a stream wait for what was put on another one."""
        cuda = self.cupy.cuda
        event = cuda.Event(disable_timing=True)
        cuda.runtime.eventRecord(event.ptr, other)
        cuda.runtime.streamWaitEvent(stream, event.ptr)

    # --- services: called by the host program -----------------------------------------------

    def guarded(self, work: Callable[[], None]) -> int:
        """Does some work: 0, or the status of its error, which `failure` then has."""
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
        return pointer

    def free(self, pointer: int | None) -> None:
        """Gives memory back to the pool, for what comes later on the stream."""
        block, kept = self.blocks.pop(pointer or 0, None), self._call.kept
        key, counters = self._counting.pop(pointer or 0, ((0, 0), None))
        if kept is not None:
            kept.append(counters if block is None else block)
        elif counters is not None:
            with self._lock:
                self.counters.setdefault(key, []).append((pointer or 0, counters))

    def _counters(self, pool: int, size: int) -> int:
        """Counters that are 0, since they were 0 when they were used last on this stream."""

        def work() -> None:
            key = (self.stream, size)
            with self._lock:
                unused = self.counters.get(key)
                pointer, block = unused.pop() if unused else (0, None)
            if block is None:
                pointer, block = self._zeros(size)
            self._counting[pointer] = key, block
            taken.append(pointer)

        taken: list[int] = []
        self.guarded(work)
        return taken[0] if taken else 0

    def _zeros(self, size: int) -> tuple[int, Any]:
        """
        New memory that is 0. It is filled on the stream that it was taken for: earlier work there
        may still use it, and a graph, which is recorded on another stream, does not fill it again.
        """
        pointer, block = self._memory(size)
        self.cupy.cuda.runtime.memsetAsync(pointer, 0, size, self._call.queue.home)
        return pointer, block

    def _trap_word(self, pool: int) -> int:
        """A word that is 0 for the kernels of this call."""

        def work() -> None:
            self._call.trap = pointer, _ = self._memory(TRAP_BYTES)
            self.cupy.cuda.runtime.memsetAsync(pointer, 0, TRAP_BYTES, self.stream)

        self.guarded(work)
        return self._call.trap[0] if self._call.trap is not None else 0

    @property
    def trap(self) -> tuple[int, Any] | None:
        """The trap word of the call, where its kernels may trap."""
        return self._call.trap

    def trapped(self, status: int, word: tuple[int, Any] | None) -> int:
        """
        The status of a call: that of the first kernel that trapped, which is waited for where there
        are such, before any that the host found behind it. What a kernel that trapped has left may
        be the size of an array that does not fit.
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
        Works on another stream, and keeps in a list what is given back meanwhile: a graph goes on
        using it.
        """
        kept: list[Any] = []
        call, queue = self._call, self._call.queue
        call.kept, call.queue = kept, queue.on(stream)
        self._native.begin(stream)
        try:
            yield kept
        finally:
            call.kept, call.queue = None, queue
            self._native.begin(queue.stream)

    def duplicate(self, source: int, size: int) -> int:
        """New memory with what is at another place. Raises OutOfMemoryError or DeviceError."""
        pointer, block = self._memory(size)
        self.blocks[pointer] = block
        if size:
            self._move(pointer, source, size, _ON_DEVICE)
        return pointer

    def fetch(self, pointer: int, size: int) -> bytes:
        """The bytes at a place of the device; an error is kept for `failure`."""
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
        status = self.guarded(lambda: self._move(host, device, size, _TO_HOST))
        # A kernel that trapped left anything: what the host reads of it could keep a loop going.
        return status or self.trapped(0, self._call.trap)

    def _write(self, pool: int, device: int, host: int, size: int) -> int:
        self._call.touched += 1
        return self.guarded(lambda: self._move(device, host, size, _TO_DEVICE))

    def _copy(self, pool: int, device: int, source: int, size: int) -> int:
        return self.guarded(lambda: self._move(device, source, size, _ON_DEVICE))

    def _encode(self, pool: int, address: int, tensor: int) -> int:
        return self.guarded(lambda: encode(address, TensorStruct.from_address(tensor)))

    # --- arrays ------------------------------------------------------------------------------

    def place(self, constants: Any, names: Sequence[str], data: Mapping[str, Any]) -> None:
        """Puts the constants of a function onto the device, once. Raises DeviceError."""
        with self._lock:
            for number, name in enumerate(names):
                if name not in self.placed:
                    self.placed[name] = self._upload(data[name])
                constants[number] = self.placed[name][0]

    def _upload(self, array: np.ndarray[Any, Any]) -> tuple[int, Any]:
        pointer, memory = self._memory(array.nbytes)
        if array.nbytes:
            self._move(pointer, array.ctypes.data, array.nbytes, _TO_DEVICE)
            # Calls on other streams read it too.
            self.cupy.cuda.runtime.streamSynchronize(self.stream)
        return pointer, memory

    def binder(self, spec: TensorSpec | ScalarSpec) -> Callable[..., Any]:
        """What takes an argument: arrays of the device where they are, others are copied to it."""
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
                    # Such a copy goes on after the call, when the caller may write to the tensor.
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
        # What made the array, or the copy, is on CuPy's stream.
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
        """A tensor of torch on the device; CuPy has no types for some of them (bf16)."""
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
        """What makes Python's values of the results of a call."""
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
        """What a service has failed with, once."""
        call = self._call
        error, call.error = call.error, None
        if error is None and (status := self._native.error()):
            error = DeviceError(f"the device failed: a launch has {driver_error(status)}")
        return error


def _kernel(cupy: Any, module: Any, launch: Mapping[str, Any]) -> _KernelStruct:
    """What the runtime library is told of a kernel, which may take the shared memory it needs."""
    kernel, shared = module.get_function(launch["name"]), launch["shared_bytes"]
    if shared <= STATIC_SHARED_BYTES:
        return _KernelStruct(kernel.ptr, launch["maps"], 0)
    cupy.cuda.driver.funcSetAttribute(kernel.ptr, _MAX_DYNAMIC_SHARED, shared)
    return _KernelStruct(kernel.ptr, launch["maps"], shared)


def typed(error: Exception) -> IreesError:
    """An error of CuPy as one of irees."""
    if isinstance(error, IreesError):
        return error
    # CuPy and PyTorch name it alike.
    if type(error).__name__ == "OutOfMemoryError":
        return OutOfMemoryError(f"the device has not enough memory: {error}")
    return DeviceError(f"the device failed: {type(error).__name__}: {error}")


def _scalar_reader(number: int, spec: ScalarSpec) -> Callable[[Any], Any]:
    return lambda frame: spec.read(frame.scalars, 16 * number)
