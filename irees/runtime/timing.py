"""
Times the dispatches of a program that was compiled with `time_dispatches`.

The program calls `irees_rt_time` of the native runtime before and after each dispatch. It writes
trace numbers and times to a buffer of the calling thread: about 30 ns each, without Python.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irees.runtime.services import Services

FIRST_EVENTS = 1 << 12
SECONDS, LEAST, MOST = 0.5, 3, 200
"""Duration of `measure` in seconds, and its minimum and maximum number of calls."""


@dataclass(frozen=True)
class Times:
    """Median seconds of a call, and of all dispatches of each kernel in it."""

    call: float
    dispatches: dict[str, float]


class DispatchTimer:
    """
    Collects the times of each call. `address` is the callback for native programs.

    `keys` are the keys of the program's traces: `<kernel>::<function> inputs`, then `outputs`.
    Raises ToolchainError if the runtime comes from an older program without timing support.
    """

    def __init__(self, keys: Sequence[str], services: Services):
        self._kernels = [key.partition("::")[0] for key in keys]
        self._begins = [key.endswith(" inputs") for key in keys]
        self._services = services
        self._thread = threading.local()
        self.address = services.timing_address()
        self.calls: list[dict[str, float]] = []
        """Seconds by kernel, for each call whose events fitted into the buffer."""

    def begin(self) -> None:
        """Sets the event buffer of the calling thread."""
        log = getattr(self._thread, "log", None)
        if log is None:
            log = self._thread.log = np.zeros((FIRST_EVENTS, 2), np.int64)
        self._services.time_to(log.ctypes.data, len(log))

    def end(self) -> None:
        """Sums up the call. Drops a call whose events overflow the buffer, and grows the buffer."""
        log, count = self._thread.log, self._services.times()
        self._services.time_to(None, 0)
        if count > len(log):
            self._thread.log = np.zeros((2 * count, 2), np.int64)
            return
        found: dict[str, float] = {}
        begun = 0
        events: list[list[int]] = log[:count].tolist()
        for number, at in events:
            if self._begins[number]:
                begun = at
            else:
                kernel = self._kernels[number]
                found[kernel] = found.get(kernel, 0.0) + (at - begun) / 1e9
        self.calls.append(found)

    def measure(self, call: Callable[[], Any]) -> Times:
        """Medians over half a second of calls, after one warm-up call."""
        call()
        self.calls.clear()
        total: list[float] = []
        end = time.perf_counter() + SECONDS
        while len(total) < LEAST or (time.perf_counter() < end and len(total) < MOST):
            begin = time.perf_counter()
            call()
            total.append(time.perf_counter() - begin)
        names = dict.fromkeys(name for found in self.calls for name in found)
        each = {n: statistics.median(c.get(n, 0.0) for c in self.calls) for n in names}
        return Times(statistics.median(total), each)
