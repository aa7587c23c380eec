"""
Devices of a multi-device program. A device runs functions in order.

A device has a queue and a thread that executes it. A second thread receives transfers from other
devices, so they overlap with computation. Every request returns a future immediately. Work only
waits for futures of earlier requests, so devices cannot deadlock.

    cpu:N             cores, a pool of threads and memory of its own
    cuda:N            a GPU
    cuda-emulated:N   a GPU whose kernels a CPU runs
    reference:N       the interpreter
    ray://HOST:PORT/N a process on node N of a Ray cluster (`irees.runtime.ray`)

Devices that compute on this machine's cores each get an equal share of the cores.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from typing import Any

import numpy as np

from irees.errors import ArgumentError, DeviceError, IreesError
from irees.runtime.alignment import aligned_copy
from irees.runtime.services import Services, num_threads
from irees.target import available_cores

Work = Callable[[], Any]
KINDS = "cpu:N, cuda:N, cuda-emulated:N, reference:N or ray://HOST:PORT/N"
_SPEC = re.compile(r"(cpu|cuda|cuda-emulated|reference)(?::(\d{1,4}))?|ray://([^/]*)/(\d{1,6})")


@dataclass(frozen=True, order=True)
class DeviceSpec:
    """A parsed device such as `cpu:0`; `address` is the address of a Ray cluster."""

    kind: str
    index: int = 0
    address: str = ""

    @staticmethod
    def parse(text: str) -> DeviceSpec:
        """Parses a device. Raises ArgumentError for invalid text."""
        found = _SPEC.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ArgumentError(f"device {text!r} is unknown", hint=f"use {KINDS}")
        if found[1] is None:
            return DeviceSpec("ray", int(found[4]), found[3])
        return DeviceSpec(found[1], int(found[2] or 0))

    def __str__(self) -> str:
        if self.kind == "ray":
            return f"ray://{self.address}/{self.index}"
        return f"{self.kind}:{self.index}"

    @property
    def uses_cores(self) -> bool:
        """Whether it computes on cores of this machine."""
        return self.kind in ("cpu", "cuda-emulated")


def parse_specs(devices: Mapping[str, str]) -> dict[str, DeviceSpec]:
    """
    Parses the devices of a program, by name.

    Raises ArgumentError for invalid text, or if local and Ray devices are mixed.
    """
    specs = {name: DeviceSpec.parse(text) for name, text in devices.items()}
    if len({spec.kind == "ray" for spec in specs.values()}) > 1:
        raise ArgumentError("a program cannot mix devices of this machine and of a Ray cluster")
    return specs


def share_out(specs: Sequence[DeviceSpec]) -> dict[DeviceSpec, tuple[int, ...]]:
    """
    Partitions the cores of this process equally among the devices, in order.

    If there are more devices than cores, several devices use the same core.
    """
    wanted = sorted({spec for spec in specs if spec.uses_cores})
    try:
        cores = sorted(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        cores = list(range(os.cpu_count() or 1))
    cores = cores[: max(1, min(len(cores), available_cores()))]
    count = len(wanted)
    found: dict[DeviceSpec, tuple[int, ...]] = {}
    for place, spec in enumerate(wanted):
        part = cores[place * len(cores) // count : (place + 1) * len(cores) // count]
        found[spec] = tuple(part or [cores[place % len(cores)]])
    return found


class Worker:
    """A thread that runs submitted work in order, pinned to some cores."""

    def __init__(self, name: str, cores: Sequence[int] = ()):
        self.name = name
        self.cores = tuple(cores)
        self._start()

    def _start(self) -> None:
        self.process = os.getpid()
        self.jobs: SimpleQueue[tuple[Future[Any], Work] | None] = SimpleQueue()
        arguments = (self.jobs, self.cores)
        thread = threading.Thread(target=_work_off, args=arguments, name=self.name, daemon=True)
        thread.start()
        # The thread only references the queue, so it ends when the worker is garbage-collected.
        weakref.finalize(self, self.jobs.put, None)

    def submit(self, work: Work) -> Future[Any]:
        """Submits work, to run after all earlier work; returns its future."""
        if self.process != os.getpid():
            # A forked child inherits the queue, but not the thread.
            self._start()
        future: Future[Any] = Future()
        self.jobs.put((future, work))
        return future


def _work_off(jobs: SimpleQueue[tuple[Future[Any], Work] | None], cores: tuple[int, ...]) -> None:
    if cores and hasattr(os, "sched_setaffinity"):
        # Threads of a pool inherit the affinity of the thread that starts them.
        with suppress(OSError):
            os.sched_setaffinity(0, cores)
    while (job := jobs.get()) is not None:
        future, work = job
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)
        del job, future, work


@dataclass(frozen=True)
class Place:
    """The threads and services of one device of this process, common to all programs."""

    worker: Worker
    receiver: Worker
    services: Services | None


_places: dict[tuple[DeviceSpec, tuple[int, ...]], Place] = {}
_lock = threading.Lock()


def place_of(spec: DeviceSpec, cores: tuple[int, ...], runtime: bytes | None) -> Place:
    """
    Returns this process's instance of a device; `runtime` is the image of the runtime library.

    Each device loads its own copy of that library, because a copy has one thread pool.
    """
    with _lock:
        if (spec, cores) not in _places:
            services = None
            if spec.uses_cores and runtime is not None:
                services = Services(runtime)
                services.set_threads(max(1, min(len(cores), num_threads())))
            name = f"irees-{spec}"
            _places[spec, cores] = Place(
                Worker(name, cores), Worker(f"{name}-receiver", cores), services
            )
        return _places[spec, cores]


def settled(value: Any) -> Any:
    """Waits for a handle and returns its value. Raises the errors of the work."""
    return value.result() if isinstance(value, Future) else value


def current(spec: DeviceSpec) -> AbstractContextManager[Any]:
    """Makes a GPU current in the calling thread; a no-op for other devices and without CuPy."""
    if spec.kind != "cuda":
        return nullcontext()
    try:
        return import_module("cupy").cuda.Device(spec.index)
    except ImportError:
        return nullcontext()  # the call itself raises the error


class LocalDevice:
    """A device of this process with a program on it."""

    def __init__(self, name: str, spec: DeviceSpec, program: Any, place: Place):
        self.name = name
        self.spec = spec
        self.program = program
        self.place = place

    def run(
        self, function: str, arguments: Sequence[Any], results: int, note: Callable[..., None]
    ) -> list[Any]:
        """
        Enqueues a function; it runs in order, once its arguments are available. Returns handles of
        the results, or one handle of its completion if there are no results.
        """
        entry = self.program.functions[function]

        def work() -> tuple[Any, ...]:
            values = [settled(argument) for argument in arguments]
            with note("run", function, self.name):
                found = self._guarded(entry, values)
            return found if isinstance(found, tuple) else (found,)

        done = self.place.worker.submit(work)
        return [_part(done, i) for i in range(results)] or [done]

    def _guarded(self, entry: Callable[..., Any], values: Sequence[Any]) -> Any:
        try:
            with current(self.spec):
                return entry(*values)
        except IreesError:
            raise
        except Exception as error:
            raise DeviceError(
                f"device @{self.name} ({self.spec}) failed: {type(error).__name__}: {error}"
            ) from error

    def take(self, value: Any) -> Any:
        """Imports an argument of the caller to this device."""
        return value

    def receive(
        self,
        value: Any,
        source: LocalDevice,
        size: int | None,
        note: Callable[..., Any],
        count: Callable[..., None],
    ) -> Any:
        """Copies a value from another device to this one; counts its actual size."""
        if source.spec == self.spec:
            return value

        def work() -> Any:
            found = settled(value)
            with note("send", f"@{source.name}", self.name, int(found.nbytes)):
                copied = aligned_copy(np.asarray(found))
            count(source.name, self.name, int(copied.nbytes))
            return copied

        return self.place.receiver.submit(work)

    def wait(self, value: Any) -> None:
        """Waits for a value. Raises the errors of the work."""
        settled(value)

    def fetch(self, value: Any) -> Any:
        """Returns a value to the caller. Raises the errors of the work."""
        return settled(value)


def _part(done: Future[Any], index: int) -> Future[Any]:
    part: Future[Any] = Future()

    def hand_over(future: Future[Any]) -> None:
        if (error := future.exception()) is not None:
            part.set_exception(error)
        else:
            part.set_result(future.result()[index])

    done.add_done_callback(hand_over)
    return part
