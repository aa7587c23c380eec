"""Worker processes that judge one model or module at a time, replaced when they die or hang."""

from __future__ import annotations

import collections
import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

MODELS_PER_PROCESS = 40
"""Models after which a worker is replaced: PyTorch keeps memory of each."""


class Fallbacks(logging.Handler):
    """Collects the operators that `torch.compile` leaves to PyTorch."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.notes: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if "runs in PyTorch" in message:
            self.notes.append(" ".join(message.split())[:200])


def answer(verdict: Callable[[str, str], dict[str, Any]]) -> None:
    """What a worker process runs: answers each line, a name and a mode, with a line of JSON."""
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    # What programs print must not end among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(verdict(*json.loads(line))), file=answers, flush=True)


class Worker:
    """A process that answers a name and a mode with a verdict."""

    def __init__(self, command: Sequence[str], timeout: float):
        self.command, self.timeout = list(command), timeout
        self.process: Any = None
        self.answered = 0

    def run(self, name: str, mode: str) -> dict[str, Any]:
        """The verdict on one model."""
        if self.process is None or self.answered >= MODELS_PER_PROCESS:
            self.close()
            errors = None if os.environ.get("ZOO_TRACE") else subprocess.DEVNULL
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True,
            )  # fmt: skip
            self.answered = 0
        self.answered += 1
        expired = threading.Event()

        def kill() -> None:
            expired.set()
            self.process.kill()

        timer = threading.Timer(self.timeout, kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps([name, mode]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        timer.cancel()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.process = None
        if expired.is_set():
            return {"verdict": "TIMEOUT", "why": f"more than {self.timeout:.0f} s"}
        return {"verdict": "CRASH", "why": f"the process ended with {code}"}

    def close(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def run_all(
    command: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    jobs: int,
    timeout: float,
    done: Callable[[str, str, dict[str, Any]], None],
) -> None:
    """Runs pairs of model and mode by `jobs` workers; `done` hears of each result."""
    queue = collections.deque(pairs)
    lock = threading.Lock()

    def serve() -> None:
        mine = Worker(command, timeout)
        while True:
            with lock:
                if not queue:
                    break
                name, mode = queue.popleft()
            found = mine.run(name, mode)
            with lock:
                done(name, mode, found)
        mine.close()

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
