"""
When the dispatches of a program that was compiled with `time_dispatches` begin and end.

The program says so to `irees_rt_time` of the native runtime, which writes numbers and times into
a buffer of the calling thread: some 30 ns each, and no Python.
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
"""How long `measure` calls again, and how often at least and at most."""


@dataclass(frozen=True)
class Times:
    """Median seconds of a call and, by the name of the kernel, of its dispatches together."""

    call: float
    dispatches: dict[str, float]


class DispatchTimer:
    """
    Collects times, call by call. `address` is what a native program calls.

    `keys` are those of the program's traces: `<kernel>::<function> inputs`, then `outputs`.
    Raises ToolchainError when the runtime, of an older program, cannot take times.
    """

    def __init__(self, keys: Sequence[str], services: Services):
        self._kernels = [key.partition("::")[0] for key in keys]
        self._begins = [key.endswith(" inputs") for key in keys]
        self._services = services
        self._thread = threading.local()
        self.address = services.timing_address()
        self.calls: list[dict[str, float]] = []
        """Per call that was noted as a whole, seconds by kernel."""

    def begin(self) -> None:
        """Gives the calling thread a place for what it notes."""
        log = getattr(self._thread, "log", None)
        if log is None:
            log = self._thread.log = np.zeros((FIRST_EVENTS, 2), np.int64)
        self._services.time_to(log.ctypes.data, len(log))

    def end(self) -> None:
        """Adds up the call. One with more events than there was room for is not counted."""
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
        """Medians over calls that take half a second together, after one that is not counted."""
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
