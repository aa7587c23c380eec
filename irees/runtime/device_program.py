"""
A program that spans several devices, called with arrays like any other program.

Each device has its own program, and a schedule orders their runs and transfers. A call walks the
schedule once and enqueues work without waiting; it waits only to branch on a value. So devices
compute in parallel, and transfers overlap with computation.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from irees.errors import ArgumentError, IreesError
from irees.fence import fenced
from irees.runtime.arguments import ScalarSpec, Scratchpad, TensorSpec, numpy_of
from irees.runtime.devices import LocalDevice, parse_specs, place_of, share_out
from irees.runtime.entry import main_function
from irees.runtime.events import Event
from irees.runtime.program import Program, to_torch
from irees.runtime.schedule import Constant, Edge, End, FunctionSchedule, Import, Run, Schedule
from irees.runtime.services import Services

OnError = Literal["raise", "yield"]
Maker = Callable[[Services | None], Any]
"""Creates the program of one device on that device's services (None: those of the process)."""


@dataclass
class Transfers:
    """Counts of tensors and bytes sent between devices since the last `reset`."""

    count: int = 0
    bytes: int = 0
    links: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """(source, target) => number of transfers and bytes."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, source: str, target: str, size: int) -> None:
        """Counts one transfer."""
        with self._lock:
            self.count += 1
            self.bytes += size
            count, total = self.links.get((source, target), (0, 0))
            self.links[source, target] = (count + 1, total + size)

    def reset(self) -> None:
        """Resets all counts."""
        with self._lock:
            self.count = self.bytes = 0
            self.links = {}


@dataclass(frozen=True)
class Begun:
    """A call in flight: pairs of a device (None for the host) and a handle."""

    results: list[tuple[Any, Any]]
    done: list[tuple[Any, Any]]
    """One handle of each run that no result depends on."""
    arguments: tuple[Any, ...]
    """Kept alive while the devices may read them."""
    torch: bool = False
    """Whether an argument was a torch tensor, so results are torch tensors, too."""


class DeviceFunction:
    """One public function of a multi-device program."""

    def __init__(self, schedule: FunctionSchedule, program: DeviceProgram):
        self.name = schedule.name
        self.schedule = schedule
        self.arguments: tuple[TensorSpec | ScalarSpec, ...] = schedule.arguments
        self.results: tuple[TensorSpec | ScalarSpec, ...] = schedule.results
        self.program = program

    def __repr__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        return f"<irees function {self.name}({arguments}) -> ({', '.join(map(str, self.results))})>"

    @fenced
    def __call__(self, *arguments: Any) -> Any:
        """
        Runs the function; returns a single result bare, several as a tuple.

        Raises ArgumentError before anything runs, RuntimeTrap when the program traps,
        OutOfMemoryError or DeviceError when a device fails.
        """
        return self.finish(self.start(*arguments))

    @fenced
    def start(self, *arguments: Any) -> Begun:
        """Enqueues the work of a call. Raises ArgumentError for arguments that do not fit."""
        if len(arguments) != len(self.arguments):
            raise ArgumentError(
                f"{self.name} takes {len(self.arguments)} arguments, but {len(arguments)} given"
            )
        pad = Scratchpad(len(arguments))
        for spec, value in zip(self.arguments, arguments):
            spec.bind(value, pad)
        if pad.torch:
            torch = sys.modules["torch"]
            arguments = tuple(numpy_of(a) if isinstance(a, torch.Tensor) else a for a in arguments)
        return replace(self._walk(arguments), torch=pad.torch)

    @fenced
    def finish(self, begun: Begun) -> Any:
        """Waits for a call and returns its results. Raises the errors of a call."""
        for device, handle in begun.done:
            device.wait(handle)
        found = [
            handle if device is None else device.fetch(handle) for device, handle in begun.results
        ]
        values = [_as_declared(value, spec) for value, spec in zip(found, self.results)]
        if begun.torch:
            values = [to_torch(value) for value in values]
        return values[0] if len(values) == 1 else tuple(values)

    def _walk(self, arguments: tuple[Any, ...]) -> Begun:
        devices, note = self.program.devices, self.program.note
        count = self.program.transfers.add
        block = self.schedule.blocks[0]
        # A value is on a device, or known to the host.
        values: dict[int, tuple[Any, Any]] = {}
        values.update(zip(block.arguments, ((None, a) for a in arguments)))
        done: list[tuple[Any, Any]] = []
        several = len(self.schedule.blocks) > 1
        while True:
            for place, step in enumerate(block.steps):
                if isinstance(step, Run):
                    device = devices[step.device]
                    given = [values[number][1] for number in step.arguments]
                    made = device.run(step.function, given, len(step.results), note)
                    if several or place in self.schedule.loose:
                        done.append((device, made[0]))
                    values.update(zip(step.results, ((device, handle) for handle in made)))
                elif isinstance(step, Import):
                    device = devices[step.device]
                    values[step.result] = (device, device.take(arguments[step.argument]))
                elif isinstance(step, Constant):
                    values[step.result] = (None, step.value)
                else:
                    device, (owner, handle) = devices[step.target], values[step.value]
                    source = owner or devices[step.source]
                    values[step.result] = (
                        device,
                        device.receive(handle, source, step.bytes, note, count),
                    )
            end = block.end
            if not end.edges:
                return Begun([values[number] for number in end.returned], done, arguments)
            edge = _taken(end, values)
            block = self.schedule.blocks[edge.block]
            values.update(zip(block.arguments, [values[number] for number in edge.values]))


def _taken(end: End, values: Mapping[int, tuple[Any, Any]]) -> Edge:
    """Returns the edge that a branch takes; waits for its condition."""
    if end.condition is None:
        return end.edges[0]
    owner, handle = values[end.condition]
    chosen = handle if owner is None else owner.fetch(handle)
    return end.edges[0 if chosen else 1]


def _as_declared(value: Any, spec: TensorSpec | ScalarSpec) -> Any:
    """A result viewed with the signedness of the function's signature."""
    if isinstance(spec, TensorSpec) and value.dtype != spec.dtype:
        return value.view(spec.dtype)
    return value


class DeviceProgram:
    """
    A program whose parts run on several devices. `program(...)` calls `main`, or the only public
    function. `program.functions` has all functions, `program.programs` the part of each device.

    Raises DeviceError when a device is missing.
    """

    @fenced
    def __init__(
        self, schedule: Mapping[str, Any], makers: Mapping[str, Maker], *, runtime: bytes | None
    ):
        self.record = dict(schedule)
        self.schedule = Schedule.read(schedule)
        self.transfers = Transfers()
        self._events: list[Event] | None = None
        self.devices = open_devices(self.schedule, makers, runtime)
        self.programs = {n: d.program for n, d in self.devices.items() if d.program is not None}
        self.functions = {f.name: DeviceFunction(f, self) for f in self.schedule.functions}

    def __repr__(self) -> str:
        devices = ", ".join(f"@{name} = {spec}" for name, spec in self.schedule.devices.items())
        return f"<irees program with {', '.join(self.functions) or 'no functions'} on {devices}>"

    def main(self) -> DeviceFunction:
        """`main`, or the only public function. Raises ArgumentError when there is none."""
        return main_function(self.functions)

    @fenced
    def __call__(self, *arguments: Any) -> Any:
        """Calls `main`, or the only public function. Raises the errors of `DeviceFunction`."""
        return self.main()(*arguments)

    @fenced
    def stream(
        self,
        requests: Iterable[Any],
        *,
        in_flight: int = 16,
        function: str | None = None,
        on_error: OnError = "raise",
    ) -> Iterator[Any]:
        """
        Yields the results of a stream of requests, in order, pipelined over the devices. A
        request is a tuple of arguments, or a single argument.

        At most `in_flight` requests are in flight; the next one is taken after the oldest is
        answered. With `on_error="yield"` an error is yielded in place of the result, else it ends
        the stream. Raises ArgumentError unless `in_flight` is positive.
        """
        if in_flight < 1:
            raise ArgumentError(f"in_flight is {in_flight}, but must be 1 or more")
        called = self.main() if function is None else self.functions[function]
        if called.schedule.is_straight:
            return _windowed(requests, in_flight, on_error, _begun(called))
        return self._in_threads(requests, in_flight, on_error, called)

    def _in_threads(
        self, requests: Iterable[Any], in_flight: int, on_error: OnError, called: DeviceFunction
    ) -> Iterator[Any]:
        with ThreadPoolExecutor(in_flight) as pool:

            def begin(arguments: tuple[Any, ...]) -> Callable[[], Any]:
                return pool.submit(called, *arguments).result

            yield from _windowed(requests, in_flight, on_error, begin)

    @contextmanager
    def trace(self) -> Iterator[list[Event]]:
        """Collects the runs and transfers of this machine's devices inside the block."""
        before, self._events = self._events, []
        try:
            yield self._events
        finally:
            self._events = before

    def note(
        self, kind: str, name: str, device: str, size: int = 0
    ) -> AbstractContextManager[None]:
        """Records an event for the block if tracing is on."""
        events = self._events
        return nullcontext() if events is None else _noted(events, kind, name, device, size)

    @fenced
    def memory_analysis(self) -> dict[str, Any]:
        """Bytes by kind for each device with a compiled part: `Program.memory_analysis`."""
        return {name: part.memory_analysis() for name, part in self._compiled()}

    @fenced
    def explain(self, *, as_data: bool = False) -> Any:
        """
        Explains the transfers of each function, and the compiler's decisions for each device's
        part (`Program.explain`). Returns a text, or JSON-compatible data with `as_data`.
        """
        sends = [
            {"function": f.name, "from": send.source, "to": send.target, "bytes": send.bytes}
            for f in self.schedule.functions
            for send in f.sends()
        ]
        parts = {name: part.explain(as_data=as_data) for name, part in self._compiled()}
        specs = dict(self.schedule.devices)
        if as_data:
            return {"devices": specs, "transfers": sends, "parts": parts}
        lines = [f"transfers: {len(sends)}"]
        for send in sends:
            size = "unknown" if send["bytes"] is None else f"{send['bytes']:,}"
            lines.append(f"  {send['function']}: @{send['from']} to @{send['to']}, {size} bytes")
        for name, spec in specs.items():
            lines += ["", f"@{name} = {spec}", parts.get(name, "not compiled")]
        return "\n".join(lines)

    def _compiled(self) -> Iterator[tuple[str, Program]]:
        return ((n, part) for n, part in self.programs.items() if isinstance(part, Program))

    @fenced
    def save(self, path: str | Path) -> None:
        """Writes the program to one file for `irees.load`. Raises ArgumentError if it cannot."""
        from irees.runtime.artifact import save_devices

        save_devices(self, path)


@contextmanager
def _noted(events: list[Event], kind: str, name: str, device: str, size: int) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    events.append(Event(kind, name, device, begin, time.perf_counter(), size))


def _begun(called: DeviceFunction) -> Callable[[tuple[Any, ...]], Callable[[], Any]]:
    def begin(arguments: tuple[Any, ...]) -> Callable[[], Any]:
        begun = called.start(*arguments)
        return lambda: called.finish(begun)

    return begin


def _windowed(
    requests: Iterable[Any],
    in_flight: int,
    on_error: OnError,
    begin: Callable[[tuple[Any, ...]], Callable[[], Any]],
) -> Iterator[Any]:
    waiting: deque[Callable[[], Any]] = deque()

    def answer(end: Callable[[], Any]) -> Any:
        try:
            return end()
        except IreesError as error:
            if on_error == "raise":
                raise
            return error

    for request in requests:
        arguments = request if isinstance(request, tuple) else (request,)
        try:
            waiting.append(begin(arguments))
        except IreesError as error:
            if on_error == "raise":
                raise
            waiting.append(lambda error=error: error)
        if len(waiting) >= in_flight:
            yield answer(waiting.popleft())
    while waiting:
        yield answer(waiting.popleft())


def open_devices(
    schedule: Schedule, makers: Mapping[str, Maker], runtime: bytes | None
) -> dict[str, Any]:
    """Opens all devices of a program, by name. Raises DeviceError when one is missing."""
    specs = parse_specs(schedule.devices)
    if any(spec.kind == "ray" for spec in specs.values()):
        from irees.runtime.ray import open_cluster

        return open_cluster(specs, makers, schedule.stateful)
    cores = share_out(list(specs.values()))
    found: dict[str, Any] = {}
    for name, spec in specs.items():
        place = place_of(spec, cores.get(spec, ()), runtime)
        # A device without a program may still receive results.
        program = makers[name](place.services) if name in makers else None
        found[name] = LocalDevice(name, spec, program, place)
    return found
