"""
Runs PyTorch's operator database through irees and counts.

    python tests/coverage/operators.py --dtype float32 --limit 2 --jobs 2 --out results.json

Samples run in worker processes, which are replaced when one dies or hangs. Each sample is PASS,
WRONG (with what differs), UNSUPPORTED (irees' own typed error), ERROR (any other exception: a
defect), CRASH or TIMEOUT. `--mode compile` goes through `torch.compile(backend="irees")`.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
TIMEOUT = 120


def verdict(case: Any, mode: str, target: str) -> str:
    """What irees makes of one sample."""
    import torch

    import irees
    from irees.errors import InternalError, IreesError

    function, tensors = case.program()
    torch.manual_seed(0)
    try:
        want = function(*[t.clone() for t in tensors])
    except Exception as error:
        return f"EAGER {type(error).__name__}"
    try:
        if mode == "compile":
            torch._dynamo.reset()
            got = torch.compile(function, backend="irees")(*[t.clone() for t in tensors])
        else:
            got = irees.compile(function, tuple(tensors), target=target)(*tensors)
    except InternalError as error:
        return f"ERROR InternalError {' '.join(str(error).split())[:300]}"
    except IreesError as error:
        return f"UNSUPPORTED {type(error).__name__} {' '.join(str(error).split())[:300]}"
    except Exception as error:
        return f"ERROR {type(error).__name__} {' '.join(str(error).split())[:300]}"
    why = case.compare(got, want)
    return "PASS" if why is None else f"WRONG {why}"


def worker(arguments: Any) -> None:
    """Answers lines `name` with a line of JSON for each sample."""
    warnings.filterwarnings("ignore")
    from samples import cases

    for line in sys.stdin:
        name, skip = json.loads(line)
        for case in cases(arguments.dtype, arguments.limit, name, exact=True):
            if case.number < skip:
                continue
            print(json.dumps([name, case.number, None]), flush=True)
            begin = time.perf_counter()
            found = verdict(case, arguments.mode, arguments.target)
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
        while True:
            if self.process is None:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, text=True, env={**os.environ, "IREES_NUM_THREADS": "1"},
                )  # fmt: skip
            current = self._answers(name, skip, results)
            if current is None:
                return
            skip = current + 1

    def _answers(self, name: str, skip: int, results: dict[str, str]) -> int | None:
        """Reads results; the number of a sample that ended the process, None at the end."""
        self.process.stdin.write(json.dumps([name, skip]) + "\n")
        self.process.stdin.flush()
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
    if found.split()[0] not in ("PASS", "EAGER"):
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
        thread.join()
    report(results)
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1, sort_keys=True))


def report(results: dict[str, str]) -> None:
    """Prints counts."""
    counts = collections.Counter(found.split()[0] for found in results.values())
    operators = {name.split("#")[0] for name in results}
    failing = {n.split("#")[0] for n, f in results.items() if f.split()[0] not in ("PASS", "EAGER")}
    print(f"{len(operators) - len(failing)} of {len(operators)} operators pass;", dict(counts))


if __name__ == "__main__":
    main()
