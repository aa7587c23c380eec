"""
Runs PyTorch's operator database through irees and counts.

    python tests/coverage/operators.py --dtype float32 --limit 2 --jobs 2 --out results.json

Samples run in worker processes, which are replaced when one dies or hangs. Each sample is PASS,
WRONG (with what differs), UNSUPPORTED (irees' own typed error), ERROR (any other exception: a
defect), CRASH or TIMEOUT. `--mode compile` goes through `torch.compile(backend="irees")`.
A sample that is right, of which operators or graphs ran in PyTorch, is PASS with the reason.
`--out` is written every ten seconds; with `--reuse` the next run skips the samples that pass in it.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from workers import Fallbacks

TIMEOUT = 120
SAVED = 10
"""Seconds between two writes of the results."""

FINE = ("PASS", "EAGER")
"""Verdicts that are not failures."""


def verdict(case: Any, mode: str, target: str, fallbacks: Fallbacks) -> str:
    """What irees makes of one sample; `fallbacks` hears irees' warnings."""
    import torch

    import irees
    from irees.errors import InternalError, IreesError

    function, tensors = case.program()
    fallbacks.notes.clear()
    torch.manual_seed(0)
    try:
        want = function(*[t.clone() for t in tensors])
    except Exception as error:
        return f"EAGER {type(error).__name__}"
    try:
        if mode == "compile":
            torch._dynamo.reset()
            options = {"target": target}
            run = torch.compile(function, backend="irees", options=options)
            got = run(*[t.clone() for t in tensors])
        else:
            got = irees.compile(function, tuple(tensors), target=target)(*tensors)
    except InternalError as error:
        return f"ERROR InternalError {' '.join(str(error).split())[:300]}"
    except IreesError as error:
        return f"UNSUPPORTED {type(error).__name__} {' '.join(str(error).split())[:300]}"
    except Exception as error:
        return f"ERROR {type(error).__name__} {' '.join(str(error).split())[:300]}"
    if (why := case.compare(got, want)) is not None:
        return f"WRONG {why}"
    return " ".join(["PASS", *list(dict.fromkeys(fallbacks.notes))[:3]])


def worker(arguments: Any) -> None:
    """Answers lines `[name, first sample, samples to leave out]` with a line of JSON for each."""
    warnings.filterwarnings("ignore")
    from samples import cases

    fallbacks = Fallbacks()
    logging.getLogger("irees").addHandler(fallbacks)
    for line in sys.stdin:
        name, skip, known = json.loads(line)
        for case in cases(arguments.dtype, arguments.limit, name, exact=True):
            if case.number < skip or case.number in known:
                continue
            print(json.dumps([name, case.number, None]), flush=True)
            begin = time.perf_counter()
            found = verdict(case, arguments.mode, arguments.target, fallbacks)
            print(json.dumps([name, case.number, found, time.perf_counter() - begin]), flush=True)
        print(json.dumps([name, None, "DONE"]), flush=True)


class Worker:
    """A process that runs samples; replaced when it dies."""

    def __init__(self, command: list[str]):
        self.command = command
        self.process: Any = None

    def run(self, name: str, results: dict[str, str]) -> None:
        """All samples of an operator."""
        skip = 0
        known = [int(n.split("#")[1]) for n in list(results) if n.split("#")[0] == name]
        while True:
            if self.process is None:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, text=True, env={**os.environ, "IREES_NUM_THREADS": "1"},
                )  # fmt: skip
            self.process.stdin.write(json.dumps([name, skip, known]) + "\n")
            self.process.stdin.flush()
            current = self._answers(name, skip, results)
            if current is None:
                return
            skip = current + 1

    def _answers(self, name: str, skip: int, results: dict[str, str]) -> int | None:
        """Reads results; the number of a sample that ended the process, None at the end."""
        current, timed_out = skip, False

        def kill() -> None:
            nonlocal timed_out
            timed_out = True
            self.process.kill()

        while True:
            timer = threading.Timer(TIMEOUT, kill)
            timer.start()
            line = self.process.stdout.readline()
            timer.cancel()
            if not line:
                code = self.process.wait()
                keep(results, f"{name}#{current}", "TIMEOUT" if timed_out else f"CRASH {code}")
                self.process = None
                return current
            record = json.loads(line)
            if record[2] == "DONE":
                return None
            current = record[1]
            if record[2] is not None:
                keep(results, f"{name}#{current}", record[2])


def keep(results: dict[str, str], sample: str, found: str) -> None:
    """Adds a verdict, and prints it if it is a failure."""
    results[sample] = found
    if found.split()[0] not in FINE or "a graph runs in PyTorch" in found:
        print(sample, found, flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="part of an operator's name")
    parser.add_argument("--names", type=Path, help="a file of operators' names, one a line")
    parser.add_argument("--mode", default="program", choices=["program", "compile"])
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--reuse", action="store_true", help="skip what passes in --out")
    parser.add_argument("--worker", action="store_true")
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments)
        return
    import torch
    from samples import NO_TENSOR, op_db

    kind = getattr(torch, arguments.dtype)
    names = [
        f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        for op in op_db
        if kind in op.dtypes and op.name not in NO_TENSOR and not op.name.startswith("jiterator")
    ]
    names = [n for n in dict.fromkeys(names) if arguments.only in n]
    if arguments.names:
        wanted = set(arguments.names.read_text().split())
        names = [n for n in names if n in wanted]
    queue = collections.deque(names)
    results: dict[str, str] = {}
    if arguments.reuse and arguments.out.exists():
        old = json.loads(arguments.out.read_text())
        results = {n: f for n, f in old.items() if f.split()[0] in FINE}
    command = [sys.executable, __file__, *sys.argv[1:], "--worker"]

    def serve() -> None:
        mine = Worker(command)
        while True:
            try:
                name = queue.popleft()
            except IndexError:
                break
            mine.run(name, results)
        if mine.process is not None:
            mine.process.stdin.close()
            mine.process.wait()

    threads = [threading.Thread(target=serve) for _ in range(arguments.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(SAVED)
            save(results, arguments.out)
    report(results)


def save(results: dict[str, str], path: Path | None) -> None:
    """Writes the results so far, if there is a path."""
    if path is not None:
        path.write_text(json.dumps(dict(results), indent=1, sort_keys=True))


def report(results: dict[str, str]) -> None:
    """Prints counts."""
    counts = collections.Counter(found.split()[0] for found in results.values())
    operators = {name.split("#")[0] for name in results}
    failing = {n.split("#")[0] for n, f in results.items() if f.split()[0] not in FINE}
    print(f"{len(operators) - len(failing)} of {len(operators)} operators pass;", dict(counts))


if __name__ == "__main__":
    main()
