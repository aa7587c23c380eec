"""
The native services of `native/runtime.c`, loaded once per process: threads, memory, invocation.

The first program to be loaded provides the library, whether freshly compiled or saved.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from irees.errors import ArgumentError, ToolchainError
from irees.fence import fenced
from irees.runtime.library import Library
from irees.target import available_cores, default_threads

ABI = 1
_MAX_BLOCK_TYPES = 1024

_lock = threading.Lock()
_wanted_threads: int | None = None
_services: Services | None = None


class CallStruct(ctypes.Structure):
    """`irees_call` of irees.h."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            *("rt", "args", "arg_dims", "constants"),
            *("results", "result_dims", "result_scalars", "trap", "trace"),
        )
    ]


class CudaLauncher:
    """
    The CUDA part of the library. `launch`, `copy` and `encode` are addresses of services. The
    others apply to the current thread: `begin(stream)` starts a call, `launches()` returns its
    number of kernels, and `error()` the CUresult of the last launch or copy. `call(plan, stream)`
    runs a planned call, for which `plan_services(table, program)` fills in the services.
    """

    def __init__(self, cdll: Any):
        self.launch, self.copy, self.encode = (
            ctypes.cast(service, ctypes.c_void_p).value
            for service in (cdll.irees_cuda_launch, cdll.irees_cuda_copy, cdll.irees_cuda_encode)
        )
        self.call, self.plan_services = cdll.irees_cuda_call, cdll.irees_cuda_planned
        self.call.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        self.call.restype = ctypes.c_int32
        self.plan_services.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        self.plan_services.restype = None
        # They return immediately, so releasing the GIL does not pay off.
        held = ctypes.PyDLL(None, handle=cdll._handle)
        self.begin, self.launches = held.irees_cuda_begin, held.irees_cuda_launches
        self.error = held.irees_cuda_error
        self.begin.argtypes, self.begin.restype = (ctypes.c_void_p,), None
        self.launches.restype, self.error.restype = ctypes.c_int64, ctypes.c_int32


class Services:
    """The loaded library. `table` is the address of the `irees_runtime` passed to programs."""

    def __init__(self, image: bytes):
        # Its threads and handlers outlive every program, so it is never unloaded.
        self.library = Library(image, permanent=True)
        cdll = self.library.cdll
        try:
            version, get = cdll.irees_rt_abi, cdll.irees_rt_get
            self.invoke, self._set_threads = cdll.irees_rt_invoke, cdll.irees_rt_set_threads
            self._threads, self.trim = cdll.irees_rt_threads, cdll.irees_rt_trim
        except AttributeError as error:
            raise ToolchainError(f"not a runtime library: {error}") from None
        if version() != ABI:
            raise ToolchainError(f"the runtime library has ABI {version()}, but must have {ABI}")
        get.restype = ctypes.c_void_p
        self.table: int | None = get()
        if not self.table:
            raise ToolchainError("the process has no thread-specific keys left")
        self.invoke.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self.invoke.restype = ctypes.c_int32
        self._set_threads.argtypes = (ctypes.c_int32, ctypes.c_int32)
        self._set_threads.restype = None
        self.trim.restype = None
        # A free takes less time than releasing the GIL.
        self.free = ctypes.PyDLL(None, handle=cdll._handle).irees_rt_free
        self.free.argtypes = (ctypes.c_void_p,)
        self.free.restype = None
        self._block_types: dict[int, Any] = {}
        self._prepare_timing()

    def _prepare_timing(self) -> None:
        """Binds the timing functions, which runtimes of older saved programs lack."""
        cdll = self.library.cdll
        self._time = getattr(cdll, "irees_rt_time", None)
        if self._time is not None:
            self.times, self.time_to = cdll.irees_rt_times, cdll.irees_rt_time_to
            self.times.restype = ctypes.c_int64
            self.time_to.argtypes = (ctypes.c_void_p, ctypes.c_int64)
            self.time_to.restype = None
        self._parts_to = getattr(cdll, "irees_rt_parts_to", None)
        if self._parts_to is not None:
            self._parts_to.argtypes, self._parts_to.restype = (ctypes.c_void_p,), None

    def parts_to(self, log: int | None) -> None:
        """
        Logs the parts of parallel regions that the calling thread starts, at this address. Does
        nothing in a runtime of an older saved program.
        """
        if self._parts_to is not None:
            self._parts_to(log)

    def timing_address(self) -> int:
        """Address of the timing callback for programs. Raises ToolchainError if there is none."""
        if self._time is None:
            raise ToolchainError(
                "the runtime of the program that was loaded first does not support timing",
                hint="load the program that times its dispatches first",
            )
        return ctypes.cast(self._time, ctypes.c_void_p).value or 0

    def cuda_launcher(self) -> CudaLauncher:
        """The launcher of CUDA kernels. Raises ToolchainError if the library has none."""
        try:
            return CudaLauncher(self.library.cdll)
        except AttributeError:
            raise ToolchainError(
                "the runtime of the program that was loaded first does not support GPU kernels",
                hint="load the program for a GPU first, or compile the other one again",
            ) from None

    def set_threads(self, count: int) -> None:
        """Sets the number of threads that run a parallel region."""
        self._set_threads(count, available_cores())

    def threads(self) -> int:
        """Number of threads that run a parallel region."""
        return self._threads()

    def block_type(self, size: int) -> Any:
        """
        Returns the ctypes class of blocks of that size. An instance made with `from_address` owns
        memory that the program allocated, frees it when it dies, and is a buffer for numpy.
        """
        if (found := self._block_types.get(size)) is not None:
            return found
        if len(self._block_types) >= _MAX_BLOCK_TYPES:
            self._block_types.clear()
        made = self._block_types[size] = _make_block_type(size, self.free)
        return made


def _make_block_type(size: int, free: Any) -> Any:
    def give_back(block: Any, addressof=ctypes.addressof) -> None:
        free(addressof(block))

    return type("Block", (ctypes.c_char * size,), {"__slots__": (), "__del__": give_back})


def load_services(image: bytes) -> Services:
    """The services of this process, loaded from `image` on the first call."""
    global _services
    with _lock:
        if _services is None:
            services = Services(image)
            services.set_threads(_wanted_threads or default_threads())
            _services = services
        return _services


@fenced
def set_num_threads(count: int) -> None:
    """
    Sets the number of threads for all programs of this process; results do not depend on it.

    Raises ArgumentError unless it is a number from 1 to 1024.
    """
    global _wanted_threads
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 1024:
        raise ArgumentError(f"the number of threads is {count!r}, but must be from 1 to 1024")
    with _lock:
        _wanted_threads = count
        if _services is not None:
            _services.set_threads(count)


def num_threads() -> int:
    """Number of threads that the programs of this process use."""
    with _lock:
        return _services.threads() if _services else _wanted_threads or default_threads()
