"""
Times the dispatches of a program that was compiled with `time_dispatches`.

The program calls `irees_rt_time` of the native runtime before and after each dispatch. It writes
trace numbers and times to a buffer of the calling thread: about 30 ns each, without Python.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irees.runtime.events import Event
from irees.runtime.services import Services

FIRST_EVENTS = 1 << 12
PARTS_PER_EVENT = 4
"""Room for parts of threads, per event of the caller."""
SECONDS, LEAST, MOST = 0.5, 3, 200
"""Duration of `measure` in seconds, and its minimum and maximum number of calls."""


@dataclass(frozen=True)
class Times:
    """
    Median seconds of a call, and of all dispatches of each kernel in it; and what each thread did
    in the call of median duration.
    """

    call: float
    dispatches: dict[str, float]
    timeline: list[Event] = field(default_factory=list)


Log = tuple[list[list[int]], list[list[int]]]
"""Events of a call: rows of a trace number and a time in ns; rows of a thread and two times."""


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
        self.logs: deque[Log] = deque(maxlen=MOST)
        """Events of the latest of `calls`."""

    def begin(self) -> None:
        """Sets the event buffers of the calling thread."""
        log = getattr(self._thread, "log", None)
        if log is None:
            log = self._thread.log = np.zeros((FIRST_EVENTS, 2), np.int64)
        capacity = PARTS_PER_EVENT * len(log)
        parts = self._thread.parts = np.zeros(2 + 3 * capacity, np.int64)
        parts[0] = capacity
        self._services.time_to(log.ctypes.data, len(log))
        self._services.parts_to(parts.ctypes.data)

    def end(self) -> None:
        """Sums up the call. Drops a call whose events overflow the buffer, and grows the buffer."""
        log, count = self._thread.log, self._services.times()
        self._services.time_to(None, 0)
        self._services.parts_to(None)
        if count > len(log):
            self._thread.log = np.zeros((2 * count, 2), np.int64)
            return
        capacity, parts = self._thread.parts[:2].tolist()
        rows = self._thread.parts[2 : 2 + 3 * min(capacity, parts)].reshape(-1, 3).tolist()
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
        self.logs.append((events, rows))

    def timeline(self) -> list[Event]:
        """What each thread did in the logged call of median duration; [] without a log."""
        logs = [log for log in self.logs if log[0]]
        if not logs:
            return []
        events, parts = sorted(logs, key=lambda log: log[0][-1][1] - log[0][0][1])[len(logs) // 2]
        found: list[Event] = []
        parts = deque(sorted(parts, key=lambda row: row[1]))
        begun = 0
        for number, at in events:
            if self._begins[number]:
                begun = at
                continue
            own: list[list[int]] = []
            while parts and parts[0][1] < at:
                own.append(parts.popleft())
            for thread, begin, end in own or [[0, begun, at]]:
                name = self._kernels[number]
                found.append(Event("run", name, f"thread {thread}", begin / 1e9, end / 1e9))
        return found

    def measure(self, call: Callable[[], Any]) -> Times:
        """Medians over half a second of calls, after one warm-up call."""
        call()
        self.calls.clear()
        self.logs.clear()
        total: list[float] = []
        end = time.perf_counter() + SECONDS
        while len(total) < LEAST or (time.perf_counter() < end and len(total) < MOST):
            begin = time.perf_counter()
            call()
            total.append(time.perf_counter() - begin)
        names = dict.fromkeys(name for found in self.calls for name in found)
        each = {n: statistics.median(c.get(n, 0.0) for c in self.calls) for n in names}
        return Times(statistics.median(total), each, self.timeline())
