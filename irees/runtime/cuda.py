"""
A CUDA device as a program sees it: memory, launches, arrays in and out, through CuPy.

CuPy is imported when the first call needs a device, so that programs can be made, saved and
loaded where there is none. Memory is of CuPy's pool; everything happens on the caller's current
stream, and only what the host reads is waited for. The services that the host program calls are
functions of this module: one that fails keeps its error, which the call then raises.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from irees.errors import ArgumentError, DeviceError, IreesError, OutOfMemoryError
from irees.runtime.arguments import DEVICE_ALIGNMENT, ScalarSpec, Scratchpad, TensorSpec
from irees.runtime.dtypes import torch_dtype, torch_dtypes
from irees.runtime.tensor_maps import TensorStruct, by_value, encode
from irees.target import Target

STATIC_SHARED_BYTES = 48 << 10
OUT_OF_MEMORY, DEVICE_FAULT = -1, -3
_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"""

_pointer = ctypes.c_void_p
_Parallel = ctypes.CFUNCTYPE(None, *(_pointer,) * 3, ctypes.c_int64, ctypes.c_int64)
_Alloc = ctypes.CFUNCTYPE(_pointer, ctypes.c_int64)
_Free = ctypes.CFUNCTYPE(None, _pointer)
_Counters = ctypes.CFUNCTYPE(_pointer, _pointer, ctypes.c_int64)
_Launch = ctypes.CFUNCTYPE(ctypes.c_int32, _pointer, _pointer)
_Copy = ctypes.CFUNCTYPE(ctypes.c_int32, _pointer, _pointer, _pointer, ctypes.c_int64)
_Encode = ctypes.CFUNCTYPE(ctypes.c_int32, _pointer, _pointer, _pointer)


class _Services(ctypes.Structure):
    """`irees_runtime` of irees.h."""

    _fields_ = [
        ("pool", _pointer), ("parallel", _Parallel), ("alloc", _Alloc), ("free", _Free),
        ("launch", _Launch), ("read", _Copy), ("write", _Copy), ("copy", _Copy),
        ("encode_tensor_map", _Encode), ("counters", _Counters),
    ]  # fmt: skip


class _LaunchStruct(ctypes.Structure):
    """`irees_launch` of irees.h."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("kernel", "threads", "waits", "count")),
        *((name, ctypes.c_int64) for name in ("blocks", "shared_bytes")),
        ("arguments", ctypes.POINTER(ctypes.c_int64)),
    ]


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


class CudaDevice:
    """What one program has of a device: its kernels, its constants, its memory."""

    def __init__(
        self, target: Target, launches: Sequence[Mapping[str, Any]], cubins: Mapping[str, bytes]
    ):
        self.target = target
        self.launches = launches
        self.cubins = cubins
        self.blocks: dict[int, Any] = {}
        self.placed: dict[str, Any] = {}
        self.kernels: list[Any] = []
        self.counters: dict[tuple[int, int], list[Any]] = {}
        """Those that nobody uses, by the stream on which they were used last and their size."""
        self._counting: dict[int, tuple[tuple[int, int], Any]] = {}
        self.error: IreesError | None = None
        self.touched = 0
        """How often the host has read or written memory of the device."""
        self._kept: list[Any] | None = None
        self._cupy: Any = None
        self._services = _Services(
            None, _Parallel(0), _Alloc(self._alloc), _Free(self.free), _Launch(self._launch),
            _Copy(self._read), _Copy(self._write), _Copy(self._copy), _Encode(self._encode),
            _Counters(self._counters),
        )  # fmt: skip
        self.table = ctypes.addressof(self._services)

    @property
    def cupy(self) -> Any:
        """CuPy, with the kernels loaded. Raises DeviceError."""
        if self._cupy is None:
            cupy = connect(self.target)
            modules: dict[str, Any] = {}
            for launch in self.launches:
                source = launch["source"]
                if source not in modules:
                    modules[source] = cupy.cuda.function.Module()
                    modules[source].load(self.cubins[source])
                kernel = modules[source].get_function(launch["name"])
                if launch["shared_bytes"] > STATIC_SHARED_BYTES:
                    cupy.cuda.driver.funcSetAttribute(
                        kernel.ptr, _MAX_DYNAMIC_SHARED, launch["shared_bytes"]
                    )
                self.kernels.append(kernel)
            self._cupy = cupy
        return self._cupy

    # --- services: called by the host program -----------------------------------------------

    def guarded(self, work: Callable[[], None]) -> int:
        """Does some work: 0, or the status of its error, which `failure` then has."""
        try:
            work()
        except Exception as error:
            self.error = typed(error)
            return OUT_OF_MEMORY if isinstance(self.error, OutOfMemoryError) else DEVICE_FAULT
        return 0

    def _memory(self, size: int) -> Any:
        """Device memory. Raises OutOfMemoryError or DeviceError."""
        try:
            return self.cupy.cuda.alloc(max(1, size))
        except Exception as error:
            raise typed(error) from None

    def _alloc(self, size: int) -> int:
        try:
            block = self._memory(size)
        except IreesError as error:
            self.error = error
            return 0
        self.blocks[block.ptr] = block
        return block.ptr

    def free(self, pointer: int | None) -> None:
        """Gives memory back to the pool, for what comes later on the stream."""
        block, kept = self.blocks.pop(pointer or 0, None), self._kept
        key, counters = self._counting.pop(pointer or 0, ((0, 0), None))
        if kept is not None:
            kept.append(block or counters)
        elif counters is not None:
            self.counters.setdefault(key, []).append(counters)

    def _counters(self, pool: int, size: int) -> int:
        """Counters that are 0, since they were 0 when they were used last on this stream."""

        def work() -> None:
            key = (self.cupy.cuda.get_current_stream().ptr, size)
            unused = self.counters.get(key)
            block = unused.pop() if unused else self._zeros(size)
            self._counting[block.ptr] = key, block
            taken.append(block.ptr)

        taken: list[int] = []
        self.guarded(work)
        return taken[0] if taken else 0

    def _zeros(self, size: int) -> Any:
        """New memory that is 0; on a stream of its own, so that no graph records how it was."""
        with self.cupy.cuda.Stream(non_blocking=True) as stream:
            block = self._memory(size)
            self.cupy.cuda.runtime.memsetAsync(block.ptr, 0, size, stream.ptr)
            stream.synchronize()
        return block

    @contextmanager
    def keeping(self) -> Iterator[list[Any]]:
        """Keeps in a list what is given back meanwhile: a graph goes on using it."""
        kept: list[Any] = []
        self._kept = kept
        try:
            yield kept
        finally:
            self._kept = None

    def duplicate(self, source: int, size: int) -> int:
        """New memory with what is at another place. Raises OutOfMemoryError or DeviceError."""
        block = self._memory(size)
        self.blocks[block.ptr] = block
        if size:
            self._move(block.ptr, source, size, _ON_DEVICE)
        return block.ptr

    def fetch(self, pointer: int, size: int) -> bytes:
        """The bytes at a place of the device; an error is kept for `failure`."""
        host = ctypes.create_string_buffer(size)
        self.guarded(lambda: self._move(ctypes.addressof(host), pointer, size, _TO_HOST))
        return host.raw

    def _launch(self, pool: int, address: int) -> int:
        launch = _LaunchStruct.from_address(address)

        def work() -> None:
            shared = launch.shared_bytes if launch.shared_bytes > STATIC_SHARED_BYTES else 0
            maps = self.launches[launch.kernel]["maps"]
            words = launch.arguments[: launch.count]
            arguments = (*map(by_value, words[:maps]), *map(np.int64, words[maps:]))
            kernel = self.kernels[launch.kernel]
            kernel((launch.blocks,), (launch.threads,), arguments, shared_mem=shared)

        return self.guarded(work)

    def _move(self, to: int, source: int, size: int, kind: int) -> None:
        try:
            stream = self.cupy.cuda.get_current_stream()
            self.cupy.cuda.runtime.memcpyAsync(to, source, size, kind, stream.ptr)
            if kind == _TO_HOST:
                stream.synchronize()
        except Exception as error:
            raise typed(error) from None

    def _read(self, pool: int, host: int, device: int, size: int) -> int:
        self.touched += 1
        return self.guarded(lambda: self._move(host, device, size, _TO_HOST))

    def _write(self, pool: int, device: int, host: int, size: int) -> int:
        self.touched += 1
        return self.guarded(lambda: self._move(device, host, size, _TO_DEVICE))

    def _copy(self, pool: int, device: int, source: int, size: int) -> int:
        return self.guarded(lambda: self._move(device, source, size, _ON_DEVICE))

    def _encode(self, pool: int, address: int, tensor: int) -> int:
        return self.guarded(lambda: encode(address, TensorStruct.from_address(tensor)))

    # --- arrays ------------------------------------------------------------------------------

    def begin(self, constants: Any, names: Sequence[str], data: Mapping[str, Any]) -> None:
        """Puts the constants of a function onto the device, once. Raises DeviceError."""
        self.error = None
        for number, name in enumerate(names):
            if name not in self.placed:
                self.placed[name] = self._upload(data[name])
            constants[number] = self.placed[name].ptr

    def _upload(self, array: np.ndarray[Any, Any]) -> Any:
        memory = self._memory(array.nbytes)
        if array.nbytes:
            self._move(memory.ptr, array.ctypes.data, array.nbytes, _TO_DEVICE)
        return memory

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
            memory = self._memory(size)
            if size:
                self._move(memory.ptr, pointer, size, _TO_DEVICE)
            pad.keep += [memory, host]
            return memory.ptr, shape

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
        pad.device = True
        pad.keep.append(array)
        return array.data.ptr, array.shape

    def _bind_tensor(
        self, spec: TensorSpec, value: Any, pad: Scratchpad
    ) -> tuple[int, tuple[int, ...]]:
        """A tensor of torch on the device; CuPy has no types for some of them (bf16)."""
        if torch_dtypes().get(value.dtype) not in spec.accepted:
            raise ArgumentError(
                f"{spec.label} has dtype {value.dtype}, but must have {spec.dtype} ({spec})"
            )
        shape = tuple(value.shape)
        spec.check_shape(shape)
        value = value.detach().contiguous()
        if value.data_ptr() % DEVICE_ALIGNMENT:
            value = value.clone()
        pad.torch = pad.device = True
        pad.keep.append(value)
        return value.data_ptr(), shape

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
        def read(frame: Any) -> Any:
            shape = tuple(frame.result_dims[first : first + spec.rank])
            memory = self.blocks.pop(frame.results[number])
            if frame.pad.device and spec.dtype.isbuiltin == 1:
                return self.cupy.ndarray(shape, spec.dtype, memory)
            if frame.pad.device and frame.pad.torch:
                # CuPy has no such type; integers of the same size carry the bits.
                bits = self.cupy.ndarray(shape, f"i{spec.dtype.itemsize}", memory)
                return sys.modules["torch"].from_dlpack(bits).view(torch_dtype(spec.dtype))
            array = np.empty(shape, spec.dtype)
            if array.nbytes:
                self._move(array.ctypes.data, memory.ptr, array.nbytes, _TO_HOST)
            return array

        return read

    def failure(self) -> Exception | None:
        """What a service has failed with, once."""
        error, self.error = self.error, None
        return error


def typed(error: Exception) -> IreesError:
    """An error of CuPy as one of irees."""
    if isinstance(error, IreesError):
        return error
    if type(error).__name__ == "OutOfMemoryError":
        return OutOfMemoryError(f"the device has not enough memory: {error}")
    return DeviceError(f"the device failed: {type(error).__name__}: {error}")


def _scalar_reader(number: int, spec: ScalarSpec) -> Callable[[Any], Any]:
    return lambda frame: spec.read(frame.scalars, 16 * number)
