"""
Calls that a CUDA device does again without the host: captured once as a graph, then launched.

A program of many small kernels spends its time on launches. Where nothing that the host does can
differ from call to call (all shapes are known, no scalars come or go, no element of a buffer is
read or written by the host), what a call asks of the device is recorded the second time that it
comes with the same arrays, and launched as one thing from then on. The graph keeps the memory
that it was recorded with; results are copied out of it. A device or a CuPy that cannot record is
asked once, and everything goes on as before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from irees.runtime.arguments import ScalarSpec, TensorSpec
from irees.runtime.cuda import CudaDevice

MOST_GRAPHS = 4
"""Of one function: each is for other arrays, and has memory of its own."""

_log = logging.getLogger("irees.cuda")


@dataclass
class Recorded:
    """One graph, what its results are, and the memory that it works in."""

    graph: Any
    results: list[int]
    dims: list[int]
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

    def run(self, frame: Any, invoke: Callable[[], int]) -> int:
        """Does a call: `invoke`, or the graph that was recorded of it. Returns its status."""
        if not self.capturable:
            return invoke()
        key = tuple(frame.args[: len(self.arguments)])
        if key in self.graphs:
            return self._replay(self.graphs[key], frame)
        if key not in self.seen:
            _remember(self.seen, key, None)
            touched = self.device.touched
            status = invoke()
            if self.device.touched != touched:
                self._refuse("the host reads or writes memory of the device")
            return status
        recorded = self._record(frame, invoke)
        if recorded is None:
            return invoke()
        _remember(self.graphs, key, recorded)
        return self._replay(recorded, frame)

    def _refuse(self, reason: str) -> None:
        self.capturable = False
        self.seen.clear()
        _log.info("calls are not recorded as graphs: %s", reason)

    def _record(self, frame: Any, invoke: Callable[[], int]) -> Recorded | None:
        """The graph of a call, which does not run meanwhile; None where that failed."""
        device = self.device
        for number in range(len(self.results)):
            frame.results[number] = None
        try:
            with device.keeping() as kept, device.cupy.cuda.Stream(non_blocking=True) as stream:
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
        return Recorded(graph, results, list(frame.result_dims), kept)

    def _replay(self, recorded: Recorded, frame: Any) -> int:
        """Launches the graph, and copies its results to memory of the caller."""
        device = self.device

        def work() -> None:
            recorded.graph.launch(device.cupy.cuda.get_current_stream())
            for number, (spec, source) in enumerate(
                zip(self.results, recorded.results, strict=True)
            ):
                assert isinstance(spec, TensorSpec)
                size = prod(n or 0 for n in spec.shape) * spec.dtype.itemsize
                frame.results[number] = device.duplicate(source, size)

        frame.result_dims[:] = recorded.dims
        return device.guarded(work)


def _remember(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Notes an entry, and forgets the oldest where there are too many."""
    table[key] = value
    while len(table) > MOST_GRAPHS:
        del table[next(iter(table))]
