"""
A process that compiles one mutated text after the other, and what watches it.

The worker is a fork of a process that has imported the compiler, so it starts in milliseconds. It
writes a line of JSON before each text and one after it. A text that takes too long, or that ends
the process, costs that worker; the next one goes on with the next text.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fuzzing.outcomes import TARGETS, Outcome, outcome

WARM_UP = """func.func @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.exp ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
"""
"""A text that is compiled before the first fork, so that workers import nothing."""

TEXTS = 4000
"""How many texts a worker compiles: xDSL's caches grow, and a new worker begins with none."""

Case = Callable[[int], tuple[str, str]]
"""The text of a number, and the target to compile it for."""

_WARM = set[str]()


@dataclass(frozen=True)
class Limits:
    """What one text may take; `seconds` are of the processor, as others may use it, too."""

    seconds: float = 20.0
    patience: float = 10.0
    """How many times the seconds a text may take by the clock, as one that sleeps does."""
    megabytes: int = 6144
    """Address space that a worker may map beyond what it is forked with."""


def address_space() -> int:
    """Returns the bytes that this process has mapped."""
    pages = Path("/proc/self/statm").read_text().split()[0]
    return int(pages) * resource.getpagesize()


class Worker:
    """One forked process, and the texts that it has to compile."""

    def __init__(self, case: Case, limits: Limits):
        self.case, self.limits = case, limits
        self.folder = Path(tempfile.mkdtemp(prefix="irees-fuzz-"))
        self.process, self.pipe, self.rest = 0, -1, b""
        for target in TARGETS - _WARM:
            assert outcome(WARM_UP, target).kind == "ok"
            _WARM.add(target)

    def outcomes(self, numbers: range) -> Iterator[tuple[int, Outcome]]:
        """The outcome of each text, in order."""
        try:
            while numbers:
                begun = self._start(numbers[:TEXTS])
                for number, made in self._watch():
                    begun = number
                    yield number, made
                numbers = numbers[numbers.index(begun) + 1 :]
        finally:
            self._end(signal.SIGKILL)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, numbers: range) -> int:
        receive, send = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if self.process == 0:
            os.close(receive)
            status = 1
            try:
                self._serve(numbers, send)
                status = 0
            finally:
                os._exit(status)
        os.close(send)
        self.pipe, self.rest = receive, b""
        return numbers[0]

    def _serve(self, numbers: range, send: int) -> None:
        """What the forked process does."""
        trace = open(self.folder / "trace", "w")
        faulthandler.register(signal.SIGUSR1, file=trace, all_threads=False)
        faulthandler.enable(file=trace, all_threads=False)
        tempfile.tempdir = str(self.folder)  # for the reproducers of InternalErrors
        # A process that ran other tests has mapped much already.
        bound = address_space() + (self.limits.megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        gc.freeze()
        for number in numbers:
            text, target = self.case(number)
            os.write(send, f"{number}\n".encode())
            made = outcome(text, target)
            os.write(send, json.dumps([number, made.record()]).encode() + b"\n")

    def _watch(self) -> Iterator[tuple[int, Outcome]]:
        """The outcomes of a worker until it ends, is ended, or loses one text."""
        number = -1
        while True:
            begin = time.perf_counter()
            line = self._line()
            if line is None or line == b"":
                # What a worker leaves undone between two texts is the next one's.
                seconds = round(time.perf_counter() - begin, 1)
                status = self._end(signal.SIGUSR1 if line is None else None)
                if number >= 0:
                    yield number, self._lost(line is None, status, seconds)
                return
            told = json.loads(line)
            if isinstance(told, int):
                number = told
            else:
                number = -1
                yield told[0], Outcome(**told[1])

    def _line(self) -> bytes | None:
        """The next line of the worker; nothing at its end, None when it takes too long."""
        begin, used = time.monotonic(), self._used()
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.pipe], [], [], self.limits.seconds / 4)
            if not ready:
                waited = time.monotonic() - begin
                if self._used() - used >= self.limits.seconds:
                    return None
                if waited >= self.limits.seconds * self.limits.patience:
                    return None
                continue
            data = os.read(self.pipe, 1 << 16)
            if not data:
                return b""
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def _used(self) -> float:
        """Seconds of the processor that the worker has used."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _end(self, why: int | None) -> int:
        """Ends the worker, on `SIGUSR1` after it has written where it is; returns its status."""
        if not self.process:
            return 0
        if why is not None:
            os.kill(self.process, why)
            time.sleep(0.2 if why == signal.SIGUSR1 else 0.0)
            os.kill(self.process, signal.SIGKILL)
        status = os.waitpid(self.process, 0)[1]
        os.close(self.pipe)
        self.process = 0
        return status

    def _lost(self, hangs: bool, status: int, seconds: float) -> Outcome:
        """The outcome of a text whose worker had to be ended, or ended itself."""
        trace = (self.folder / "trace").read_text()
        frames = [
            line.strip() for line in trace.splitlines() if "/irees/" in line or "/xdsl/" in line
        ]
        places = [frame.rpartition("/")[2].replace('"', "") for frame in frames]
        if hangs:
            return Outcome("hang", " ".join(places[-12:][:3]), trace[:3000], seconds)
        name = signal.Signals(status).name if 0 < status < 65 else f"status {status}"
        return Outcome("signal", f"{name} {' '.join(places[:2])}", trace[:3000], seconds)
