"""
Devices on a Ray cluster: each is an actor on a node that runs its part of the program.

Results stay in Ray's object store. Devices pass references, and Ray moves the bytes: through
shared memory on one node, over the network between nodes. An actor runs requests in the order of
submission, so a stream of requests is pipelined.

Ray restarts an actor that dies, with the same program, and retries its pending requests: a
function computes the same results from the same arguments. An actor whose program keeps state
between calls (a mutable global) is not restarted, because its state is lost. Failures raise
DeviceError at the caller; every wait ends after `TIMEOUT` at the latest.

Node 0 is the head of the cluster, so a caller on the head reads results locally.

This module is imported when a program has a device `ray://HOST:PORT/N`; `pip install irees[ray]`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from irees.errors import DeviceError, IreesError
from irees.runtime.devices import DeviceSpec

TIMEOUT = 600.0
"""Maximum seconds to wait for a result."""
INLINE_BYTES = 64 << 10
"""Maximum size of an array passed inline with a call: storing it first would take longer."""
RESTARTS = 100
"""Maximum restarts of an actor before its device is lost."""


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise DeviceError(
            f"ray cannot be imported: {error}", hint="`pip install irees[ray]`"
        ) from None
    return ray


class _Actor:
    """The Ray actor on a node: runs a program loaded from a saved program's bytes."""

    def __init__(self, image: Any, threads: int):
        os.environ["IREES_NUM_THREADS"] = str(threads)
        from irees.runtime.artifact import load_bytes

        # Constants are read in place from the node's object store.
        self.image = image
        self.program = load_bytes(memoryview(image), "the program of an actor")

    def ready(self) -> int:
        """The process ID, once the program is loaded."""
        return os.getpid()

    def run(self, function: str, *arguments: Any) -> Any:
        """Runs a function; returns one result bare, several as a tuple, none as None."""
        found = self.program.functions[function](*arguments)
        return None if isinstance(found, tuple) and not found else found


def connect(address: str) -> Any:
    """Connects Ray to a cluster. Raises DeviceError if none is found or another is connected."""
    ray = _ray()
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in ("", "auto", "local", here):
            raise DeviceError(
                f"this process is connected to the Ray cluster at {here}, not at {address}",
                hint="call ray.shutdown() first, or use that address",
            )
        return ray
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(
            address=None if address in ("", "local") else address,
            log_to_driver=False,
            include_dashboard=False,
            configure_logging=False,
        )
    except Exception as error:
        raise DeviceError(
            f"there is no Ray cluster at {address!r}: {error}", hint="ray start --head"
        ) from None
    return ray


def nodes_of(ray: Any) -> list[dict[str, Any]]:
    """The live nodes of the cluster with a CPU: the head first, then by address and ID."""
    alive = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU")]

    def rank(node: dict[str, Any]) -> tuple[bool, str, str]:
        head = "node:__internal_head__" in node["Resources"]
        return not head, node["NodeManagerAddress"], node["NodeID"]

    return sorted(alive, key=rank)


class RayDevice:
    """A device whose program runs in an actor."""

    def __init__(
        self,
        name: str,
        spec: DeviceSpec,
        program: Any,
        ray: Any,
        node: Mapping[str, Any],
        *,
        stateful: bool,
    ):
        self.stateful = stateful
        self.name = name
        self.spec = spec
        self.program = program
        self.ray = ray
        self.threads = max(1, int(node["Resources"]["CPU"]))
        self.actor: Any = None
        strategies = import_module("ray.util.scheduling_strategies")
        self._on = strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        if program is not None:
            self._start()

    def _start(self) -> None:
        from irees.runtime.artifact import bytes_of

        restarts = 0 if self.stateful else RESTARTS
        self.image = self.ray.put(np.frombuffer(bytes_of(self.program), np.uint8))
        kind = self.ray.remote(_Actor).options(
            num_cpus=0,
            scheduling_strategy=self._on,
            max_restarts=restarts,
            max_task_retries=-1 if restarts else 0,
            max_concurrency=1,
        )
        self.actor = kind.remote(self.image, self.threads)

    def process(self) -> int:
        """The actor's process ID. Raises DeviceError when the actor is lost."""
        return self._get(self.actor.ready.remote())

    def run(
        self, function: str, arguments: Sequence[Any], results: int, note: Callable[..., Any]
    ) -> list[Any]:
        """Enqueues a function; returns references to its results, or one of its completion."""
        try:
            made = self.actor.run.options(num_returns=max(1, results)).remote(function, *arguments)
        except Exception as error:
            raise self._typed(error) from error
        return [made] if results <= 1 else list(made)

    def take(self, value: Any) -> Any:
        """Imports an argument of the caller; large arrays go to the object store."""
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        large = isinstance(value, np.ndarray) and value.nbytes > INLINE_BYTES
        return self.ray.put(value) if large else value

    def receive(
        self, value: Any, source: RayDevice, size: int | None, note: Any, count: Callable[..., Any]
    ) -> Any:
        """Receives a value: only the reference is passed, Ray transfers the data."""
        if source.spec != self.spec:
            count(source.name, self.name, size or 0)
        return value

    def wait(self, value: Any) -> None:
        """Waits for a value. Raises DeviceError or the errors of the work."""
        try:
            ready, _ = self.ray.wait([value], timeout=TIMEOUT, fetch_local=False)
        except Exception as error:
            raise self._typed(error) from error
        if not ready:
            raise DeviceError(
                f"device @{self.name} ({self.spec}) did not respond within {TIMEOUT} s"
            )

    def fetch(self, value: Any) -> Any:
        """Returns a value to the caller. Raises DeviceError or the errors of the work."""
        if isinstance(value, self.ray.ObjectRef):
            return self._get(value)
        # An argument returned unchanged must not alias the caller's array.
        return value.copy() if isinstance(value, np.ndarray) else value

    def _get(self, reference: Any) -> Any:
        try:
            return self.ray.get(reference, timeout=TIMEOUT)
        except Exception as error:
            raise self._typed(error) from error

    def _typed(self, error: Exception) -> IreesError:
        # Each device that passed the error on has wrapped it once.
        cause: Any = error
        while not isinstance(cause, IreesError) and getattr(cause, "cause", None) is not None:
            cause = cause.cause
        if isinstance(cause, IreesError):
            return cause
        text = (str(cause).strip() or type(cause).__name__).splitlines()[0]
        return DeviceError(f"device @{self.name} ({self.spec}) failed: {text}")

    def close(self) -> None:
        """Kills the actor. After a shutdown of Ray it is gone, and a call would start Ray again."""
        actor, self.actor = self.actor, None
        if actor is not None and self.ray.is_initialized():
            with contextlib.suppress(Exception):
                self.ray.kill(actor)

    def __del__(self):
        self.close()


def open_cluster(
    specs: Mapping[str, DeviceSpec],
    makers: Mapping[str, Callable[[None], Any]],
    stateful: Collection[str],
) -> dict[str, RayDevice]:
    """Starts an actor per device, on its node. Raises DeviceError for a missing node."""
    addresses = {spec.address for spec in specs.values()}
    if len(addresses) > 1:
        raise DeviceError(f"a program cannot span several clusters: {', '.join(sorted(addresses))}")
    ray = connect(addresses.pop())
    nodes = nodes_of(ray)
    found: dict[str, RayDevice] = {}
    for name, spec in specs.items():
        if spec.index >= len(nodes):
            raise DeviceError(f"device @{name} ({spec}): the cluster has only {len(nodes)} nodes")
        program = makers[name](None) if name in makers else None
        found[name] = RayDevice(
            name, spec, program, ray, nodes[spec.index], stateful=name in stateful
        )
    for device in found.values():
        if device.program is not None:
            device.process()
    return found
