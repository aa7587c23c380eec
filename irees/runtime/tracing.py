"""
Prints or saves the dispatch tensors of a program compiled with `trace_dispatch_tensors`.

Each dispatch is traced with its inputs, then its outputs. They are printed to standard error in
numpy's format, or saved in a folder as `NNN_<kernel>_inputs_K.npy` and
`NNN_<kernel>_outputs_K.npy`: NNN numbers the dispatches of the program, K the tensors.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import sys
import threading
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError
from irees.runtime.manifest import TraceInfo

_SHOWN = 64
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")
CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64)
)


class Tracer:
    """
    Prints or saves tensors. `address` is the callback for native programs.

    Concurrent calls are safe: errors are kept per thread.
    """

    def __init__(self, traces: Sequence[TraceInfo] = (), directory: str | Path | None = None):
        self.directory = directory
        self.fetch: Callable[[int, int], bytes] = ctypes.string_at
        """Reads bytes at an address, in host or device memory."""
        self._traces = traces
        self._numbers = itertools.count()
        self._call = threading.local()
        self._callback = CALLBACK(self._native)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value

    def begin(self) -> None:
        """Creates the folder. Raises ArgumentError when that fails."""
        self._call.error = None
        if self.directory is None:
            return
        try:
            Path(self.directory).mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None

    def end(self) -> None:
        """Raises ArgumentError if a write failed since `begin`."""
        if (error := self._call.error) is not None:
            raise self._unwritable(error) from None

    def record(self, key: str, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        """Prints or saves the inputs or outputs of a dispatch."""
        if key.endswith(" inputs") or not hasattr(self._call, "number"):
            self._call.number = next(self._numbers)
        if self._call.error is not None:
            return
        try:
            if self.directory is None:
                sys.stderr.write(text_of(self._call.number, key, arrays))
            else:
                self._save(Path(self.directory), key, arrays)
        except (OSError, ValueError) as error:  # exceptions must not pass through C
            self._call.error = error

    def _save(self, folder: Path, key: str, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        kernel, _, what = key.rpartition(" ")
        name = _OTHER.sub("_", kernel.split("::")[0])
        for i, array in enumerate(arrays):
            path = folder / f"{self._call.number:03}_{name}_{what}_{i}.npy"
            np.save(path, array, allow_pickle=False)

    def _native(self, number: int, values: Any, dims: Any) -> None:
        trace, first = self._traces[number], 0
        arrays: list[np.ndarray[Any, Any]] = []
        for i, spec in enumerate(trace.values):
            shape = tuple(dims[first : first + len(spec.shape)])
            first += len(shape)
            size = prod(shape) * spec.dtype.itemsize
            data = self.fetch(values[i], size) if size else b""
            arrays.append(np.frombuffer(data, spec.dtype).reshape(shape))
        self.record(trace.key, arrays)

    def _unwritable(self, error: Exception) -> ArgumentError:
        reason = getattr(error, "strerror", None) or str(error)
        return ArgumentError(
            f"cannot write traces to {str(self.directory)!r}: {reason}",
            hint="name a folder that can be written, as in --trace-dispatch-tensors=DIR",
        )


def text_of(number: int, key: str, arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    """Formats one trace for printing."""
    lines = [f"=== {number:03} {key} ==="]
    for i, array in enumerate(arrays):
        lines.append(f"[{i}] {array.dtype.name} {'x'.join(map(str, array.shape)) or 'scalar'}")
        lines.append(np.array2string(array, threshold=_SHOWN))
    return "\n".join(lines) + "\n"
