"""
Calls that a CUDA device does again without the host: captured once as a graph, then launched.

A program of many small kernels spends its time on launches. Where nothing that the host does can
differ from call to call (all shapes are known, no scalars come or go, no element of a buffer is
read or written by the host), what a call asks of the device is recorded the second time that it
comes with the same arrays on the same stream, and launched as one thing from then on. The graph
keeps the memory that it was recorded with; results are copied out of it, so a call is recorded
only where that copy takes less time than its launches. A device or a CuPy that cannot record is
asked once, and everything goes on as before.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from irees.runtime.arguments import ScalarSpec, TensorSpec
from irees.runtime.cuda import CudaDevice

MOST_GRAPHS = 4
"""Of one function: each is for other arrays, and has memory of its own."""

LEAST_LAUNCHES = 4
"""Launches of a call that is recorded: a graph is launched no faster than so many kernels."""

COPIED_BYTES = 1 << 20
"""Bytes of results per launch of a call that is recorded: a copy of more takes longer than that."""

_log = logging.getLogger("irees.cuda")


@dataclass
class Recorded:
    """One graph, what its results are, and the memory that it works in."""

    graph: Any
    results: list[int]
    dims: list[int]
    trap: tuple[int, Any] | None
    kept: list[Any]


@dataclass
class GraphCalls:
    """The calls of one function on a device."""

    device: CudaDevice
    arguments: Sequence[TensorSpec | ScalarSpec]
    results: Sequence[TensorSpec | ScalarSpec]
    graphs: dict[tuple[int, ...], Recorded] = field(default_factory=dict[tuple[int, ...], Recorded])
    seen: dict[tuple[int, ...], None] = field(default_factory=dict[tuple[int, ...], None])

    def __post_init__(self) -> None:
        specs = [*self.arguments, *self.results]
        self.capturable = all(isinstance(s, TensorSpec) and None not in s.shape for s in specs)
        # A graph has one memory: what is copied out of it must be that of the last launch.
        self._lock = threading.Lock()

    def run(self, frame: Any, invoke: Callable[[], int]) -> int:
        """Does a call: `invoke`, or the graph that was recorded of it. Returns its status."""
        if not self.capturable:
            return self._plain(invoke)
        key = (self.device.stream, *frame.args[: len(self.arguments)])
        with self._lock:
            if key in self.graphs:
                return self._replay(self.graphs[key], frame)
            if key in self.seen:
                recorded = self._record(frame, invoke)
                if recorded is not None:
                    _remember(self.graphs, key, recorded)
                    return self._replay(recorded, frame)
            _remember(self.seen, key, None)
        touched = self.device.touched
        status = self._plain(invoke)
        if reason := self._against(touched):
            self._refuse(reason)
        return status

    def _plain(self, invoke: Callable[[], int]) -> int:
        return self.device.trapped(invoke(), self.device.trap)

    def _against(self, touched: int) -> str:
        """Why calls like the last are not recorded, if they are not."""
        if self.device.touched != touched:
            return "the host reads or writes memory of the device"
        launches = self.device.launched()
        if launches < LEAST_LAUNCHES:
            return f"a call launches {launches} kernels, and a graph is no faster"
        if sum(map(_bytes, self.results)) > launches * COPIED_BYTES:
            return "its results take longer to copy than its kernels to launch"
        return ""

    def _refuse(self, reason: str) -> None:
        self.capturable = False
        self.seen.clear()
        _log.info("calls are not recorded as graphs: %s", reason)

    def _record(self, frame: Any, invoke: Callable[[], int]) -> Recorded | None:
        """The graph of a call, which does not run meanwhile; None where that failed."""
        device = self.device
        self._forget_results(frame)
        try:
            # Not CuPy's current stream: memory is taken for that of the caller.
            stream = device.cupy.cuda.Stream(non_blocking=True)
            with device.recording(stream.ptr) as kept:
                stream.begin_capture()
                try:
                    status = invoke()
                finally:
                    graph = stream.end_capture()
                if status:
                    raise device.failure() or RuntimeError(f"status {status}")
        except Exception as error:
            device.failure()
            for number in range(len(self.results)):
                device.free(frame.results[number])
            self._refuse(f"{type(error).__name__}: {error}")
            return None
        results = [int(frame.results[i]) for i in range(len(self.results))]
        kept += [device.blocks.pop(pointer) for pointer in results]
        return Recorded(graph, results, list(frame.result_dims), device.trap, kept)

    def _forget_results(self, frame: Any) -> None:
        """Those of an earlier call: where one fails, what it has made is freed."""
        for number in range(len(self.results)):
            frame.results[number] = None

    def _replay(self, recorded: Recorded, frame: Any) -> int:
        """Launches the graph, and copies its results to memory of the caller."""
        device = self.device

        def work() -> None:
            device.cupy.cuda.runtime.graphLaunch(recorded.graph.graphExec, device.stream)
            for number, (spec, source) in enumerate(
                zip(self.results, recorded.results, strict=True)
            ):
                frame.results[number] = device.duplicate(source, _bytes(spec))

        self._forget_results(frame)
        frame.result_dims[:] = recorded.dims
        return device.trapped(device.guarded(work), recorded.trap)


def _bytes(spec: TensorSpec | ScalarSpec) -> int:
    return prod(n or 0 for n in spec.shape) * spec.dtype.itemsize


def _remember(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Notes an entry, and forgets the oldest where there are too many."""
    table[key] = value
    while len(table) > MOST_GRAPHS:
        del table[next(iter(table))]
