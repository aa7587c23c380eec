"""
Runs a function in a child process, which may be killed by a signal or never end.

Imports only irees and the standard library: `irees bisect` must run without Hypothesis.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from typing import Any


class Died(Exception):
    """A child process was killed by a signal, or timed out."""


class Raised(RuntimeError):
    """The function in the child process raised an error; `kind` is the name of its class."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def isolated(function: Callable[[], Any], timeout: float) -> Any:
    """Runs a function in a child process. Raises Died, or Raised if the function raises."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            answer: Any = (True, function())
        except BaseException as error:  # the parent reports it
            answer = (False, type(error).__name__, str(error))
        try:
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(answer, pipe)
        finally:
            os._exit(0)
    os.close(write)
    data = _read_all(read, time.monotonic() + timeout)
    if data is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if data is None:
        raise Died(f"no answer after {timeout:g} seconds")
    if os.WIFSIGNALED(status):
        raise Died(f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    answer = pickle.loads(data)
    if not answer[0]:
        raise Raised(*answer[1:])
    return answer[1]


def _read_all(read: int, deadline: float) -> bytes | None:
    parts: list[bytes] = []
    with os.fdopen(read, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            part = pipe.read(1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
