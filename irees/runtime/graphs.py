"""
CUDA graphs of repeated calls: captured once, then replayed without the host program.

A program with many small kernels is launch-bound. A call can be captured if the host does the same
work in each call: all shapes are static, there are no scalar arguments or results, and the host
does not access device memory. The second call with the same arrays on the same stream is captured,
and later ones launch the graph. A graph keeps the memory that it was captured with. Results are
copied out of it, so a call is captured only if that copy takes less time than its launches. If
capture fails (device or CuPy without support), it is not tried again, and calls run normally.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from irees.runtime.arguments import ScalarSpec, TensorSpec
from irees.runtime.cuda import ON_DEVICE, CudaDevice

MOST_GRAPHS = 4
"""Maximum graphs per function: each is for one set of arrays, and has its own memory."""

LEAST_LAUNCHES = 4
"""
Minimum launches of a captured call above its number of results, each of which is copied by a
launch: with fewer, a graph launch is no faster.
"""

COPIED_BYTES = 1 << 20
"""Maximum result bytes per launch of a captured call: copying more takes longer than a launch."""

_log = logging.getLogger("irees.cuda")


@dataclass
class Recorded:
    """A captured graph with its results, trap word and memory."""

    graph: Any
    results: list[int]
    dims: list[int]
    trap: tuple[int, Any] | None
    kept: list[Any]


@dataclass
class GraphCalls:
    """Runs the calls of one function on a device, with graphs where possible."""

    device: CudaDevice
    arguments: Sequence[TensorSpec | ScalarSpec]
    results: Sequence[TensorSpec | ScalarSpec]
    graphs: dict[tuple[int, ...], Recorded] = field(default_factory=dict[tuple[int, ...], Recorded])
    seen: dict[tuple[int, ...], None] = field(default_factory=dict[tuple[int, ...], None])

    def __post_init__(self) -> None:
        specs = [*self.arguments, *self.results]
        self.capturable = all(isinstance(s, TensorSpec) and None not in s.shape for s in specs)
        self._sizes = [_bytes(spec) for spec in self.results]
        # All launches of a graph use the same memory: no launch may start before the copy-out.
        self._lock = threading.Lock()

    def run(self, frame: Any, invoke: Callable[[], int]) -> int:
        """Runs a call with `invoke`, or replays its graph. Returns its status."""
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

    def replay_planned(
        self, key: tuple[int, ...], make: Callable[[], list[Any]]
    ) -> list[Any] | None:
        """
        Replays a graph on the current device, and copies its results to the tensors of `make`.
        Returns None unless there is a graph that cannot trap for the stream and the arguments of
        `key`.
        """
        # Threads that record wait for nothing else, so the lock is free soon.
        with self._lock:
            recorded = self.graphs.get(key)
            if recorded is None or recorded.trap is not None:
                return None
            results = make()
            runtime = self.device.cupy.cuda.runtime
            runtime.graphLaunch(recorded.graph.graphExec, key[0])
            for result, source, size in zip(results, recorded.results, self._sizes):
                runtime.memcpyAsync(result.data_ptr(), source, size, ON_DEVICE, key[0])
            return results

    def is_new(self, key: tuple[int, ...]) -> bool:
        """Whether this is the first call on this stream with these arguments; records it."""
        with self._lock:
            if key in self.graphs or key in self.seen:
                return False
            _remember(self.seen, key, None)
            return True

    def _plain(self, invoke: Callable[[], int]) -> int:
        return self.device.trapped(invoke(), self.device.trap)

    def _against(self, touched: int) -> str:
        """Returns why calls like the last one cannot be captured; empty if they can."""
        if self.device.touched != touched:
            return "the host accesses device memory"
        launches, copies = self.device.launched(), len(self.results)
        if launches - copies < LEAST_LAUNCHES:
            return f"{launches} launches take no longer than a graph and {copies} copies of results"
        if sum(self._sizes) > launches * COPIED_BYTES:
            return "copying its results takes longer than launching its kernels"
        return ""

    def _refuse(self, reason: str) -> None:
        self.capturable = False
        self.seen.clear()
        _log.info("calls are not recorded as graphs: %s", reason)

    def _record(self, frame: Any, invoke: Callable[[], int]) -> Recorded | None:
        """Captures a call as a graph without running it; returns None if that fails."""
        device = self.device
        self._forget_results(frame)
        try:
            # Does not become CuPy's current stream: memory is allocated for the caller's stream.
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
        """Clears results of an earlier call, so that a failed call frees only its own."""
        for number in range(len(self.results)):
            frame.results[number] = None

    def _replay(self, recorded: Recorded, frame: Any) -> int:
        """Launches the graph, and copies its results to new memory."""
        device = self.device

        def work() -> None:
            device.cupy.cuda.runtime.graphLaunch(recorded.graph.graphExec, device.stream)
            for number, (size, source) in enumerate(
                zip(self._sizes, recorded.results, strict=True)
            ):
                frame.results[number] = device.duplicate(source, size)

        self._forget_results(frame)
        frame.result_dims[:] = recorded.dims
        return device.trapped(device.guarded(work), recorded.trap)


def _bytes(spec: TensorSpec | ScalarSpec) -> int:
    return prod(n or 0 for n in spec.shape) * spec.dtype.itemsize


def _remember(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Adds an entry, and evicts the oldest ones above MOST_GRAPHS."""
    table[key] = value
    while len(table) > MOST_GRAPHS:
        del table[next(iter(table))]
