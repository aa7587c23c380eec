"""Times dispatches on a CUDA device with events on the caller's stream."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irees.runtime.cuda import CudaDevice
from irees.runtime.events import Event
from irees.runtime.timing import MOST, DispatchTimer
from irees.runtime.tracing import CALLBACK


class DeviceTimer(DispatchTimer):
    """
    Collects the times of each call, like `DispatchTimer`. `address` is the callback for programs:
    it records an event on the stream before and after each dispatch. Events are read after a call.
    """

    def __init__(self, keys: Sequence[str], device: CudaDevice):
        self._kernels = [key.partition("::")[0] for key in keys]
        self._begins = [key.endswith(" inputs") for key in keys]
        self._device = device
        self._thread = threading.local()
        self._callback = CALLBACK(self._note)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self.calls: list[dict[str, float]] = []
        self.logs = deque(maxlen=MOST)

    def _note(self, number: int, values: Any, dims: Any) -> None:
        def work() -> None:
            event = self._device.cupy.cuda.Event()
            self._device.cupy.cuda.runtime.eventRecord(event.ptr, self._device.stream)
            self._thread.events.append((number, event))

        self._device.guarded(work)

    def begin(self) -> None:
        """Clears the events of this thread."""
        self._thread.events = []

    def end(self) -> None:
        """Waits for the device, and sums up the call."""
        found: dict[str, float] = {}
        begun: Any = None
        log: list[list[int]] = []
        elapsed = self._device.cupy.cuda.get_elapsed_time
        for number, event in self._thread.events:
            event.synchronize()
            log.append([number, round(1e6 * elapsed(self._thread.events[0][1], event))])
            if self._begins[number]:
                begun = event
                continue
            kernel = self._kernels[number]
            found[kernel] = found.get(kernel, 0.0) + elapsed(begun, event) / 1e3
        self.calls.append(found)
        self.logs.append((log, []))

    def timeline(self) -> list[Event]:
        """What the device did in the logged call of median duration."""
        return [replace(event, device="device") for event in super().timeline()]
