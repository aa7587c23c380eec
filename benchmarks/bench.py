"""
Times irees beside PyTorch, Inductor, ONNX Runtime and IREE, in one run, interleaved.

    python benchmarks/bench.py [--only NAME ...] [--threads 1 2] [--repeat N] [--write FILE]
    python benchmarks/bench.py --cache FOLDER --prepare    # compiles only, for a later run

Every repetition runs each contender in turn, so that a change of the machine's speed falls on
all of them, after a pause and a call that is not counted, and beside irees the peak of multiply-adds
and of copies. The run comes back to each row, so that a minute in which one core or the memory is
slow, which does not fall on all of them alike, is a part of each row and not all of some. Medians
are reported. A contender that is not installed, that fails on a program or is not ready in time is
a dash with the reason below the table. The page and its plot are written after each row, so that a
run that is cut off leaves what it had.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gc
import logging
import os
import platform
import re
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import programs
from contenders import CONTENDERS, Call, Open, TooSlow, time_limit
from report import Heading, Result, page, plot, table

from irees.backends.c.peaks import PeakMeter
from irees.target import cpu_target

PAUSE, IDLE, PAUSES = 0.05, 0.1, 20
"""Before each contender, pauses of so many seconds until in one of them all threads together work
for less than a share IDLE of it: those of ONNX Runtime spin for 60 to 100 ms on an AMD EPYC."""

LEAST, SLOW, SLOW_LEAST = 3, 1.0, 2
"""Repetitions of everything in a visit, but of a call that takes longer than SLOW seconds only two
in the whole run."""

LEAST_LIMIT = 20.0
"""Seconds to get ready that every contender has."""


SHORT = 2e-3
"""Seconds for which a short call is repeated within a repetition."""


@dataclass(frozen=True)
class Suite:
    """Programs by name, who is measured with them, and how their page begins."""

    names: Callable[[], list[str]]
    program: Callable[[str, Path], programs.Program]
    contenders: list[str]
    heading: Heading = field(default_factory=Heading)
    script: str = "bench.py"
    defaults: dict[str, object] = field(default_factory=dict)
    """Of options."""


def timed(call: Call) -> float:
    """Seconds of one call; of a short one the least of those that fit into SHORT seconds."""
    least, spent = float("inf"), 0.0
    while spent < SHORT:
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        least, spent = min(least, took), spent + took
    return least


COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""What makes a terminal print in colour, in messages of exporters."""


def reason(error: BaseException) -> str:
    """The first line of what went wrong, without folders of this machine."""
    text = COLOUR.sub("", next(iter(str(error).splitlines()), ""))
    words = [Path(w).name if w.startswith("/") else w for w in text.split()]
    return f"{type(error).__name__}: {' '.join(words)[:120]}".replace("|", "/")


def settle() -> None:
    """Waits until no thread pool of this process spins any more, or for a second."""
    for _ in range(PAUSES):
        before = time.process_time()
        time.sleep(PAUSE)
        if time.process_time() - before < IDLE * PAUSE:
            return


class Entry:
    """One contender at one program and number of threads, open; `times` are milliseconds."""

    def __init__(self, name: str, call: Call, first: float, times: list[float]):
        self.name = name
        self.call = call
        self.last = first
        self.times = times

    def repeat(self) -> None:
        """One more repetition, unless it is slow and has been timed enough."""
        if timed_enough(self.times):
            return
        # Threads of the one before may still spin, waiting for more work; its own are
        # woken by a call that does not count.
        settle()
        if self.last <= SLOW:
            self.call()
        self.last = timed(self.call)
        self.times.append(self.last * 1e3)


def timed_enough(times: list[float]) -> bool:
    """Whether something of which these are the milliseconds is slow, and they are enough of it."""
    return len(times) >= SLOW_LEAST and min(times) > SLOW * 1e3


def attempt(result: Result, name: str, seconds: float, work: Callable[[], object]) -> object:
    """What `work` returns; None, and the reason in the result, when it fails or takes too long."""
    try:
        with time_limit(seconds), open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
            return work()
    except (Exception, TooSlow) as error:
        result.reasons[name] = reason(error)
        return None


def measure(result: Result, entries: list[Entry], meter: PeakMeter, repeat: int, seconds: float):
    """Interleaved repetitions within a budget; adds times and peaks."""
    begin = time.perf_counter()
    for done in range(repeat):
        spent = time.perf_counter() - begin
        if (done >= LEAST and spent > seconds) or (done >= SLOW_LEAST and spent > 3 * seconds):
            break
        for entry in entries:
            entry.repeat()
            if entry.name == "irees":
                settle()
                result.gflops.append(meter.gflops(result.threads))
                result.gigabytes.append(meter.gigabytes(result.threads))


class Row:
    """A program, the contenders that are ready for it, and the results, one per number of threads."""

    def __init__(self, name: str, threads: list[int], suite: Suite):
        self.name = name
        self.suite = suite
        self.results = [Result(name, count) for count in threads]
        self.ready: dict[str, Open] = {}

    def prepare(self, folder: Path, cache: Path, chosen: list[str], limit: float) -> None:
        """Makes the program and compiles it, as far as that does not depend on the threads."""
        program = self.suite.program(self.name, folder)
        done = Result(self.name, 0)
        for each in chosen:
            maker = CONTENDERS[each](folder, cache)
            opened = attempt(done, each, limit, lambda maker=maker: maker.prepare(program))
            if opened is not None:
                self.ready[each] = opened
            if each == "irees":
                done.flops, done.bytes = maker.flops, maker.bytes
        for result in self.results:
            result.reasons |= done.reasons
            result.flops, result.bytes = done.flops, done.bytes

    def visit(self, result: Result, limit: float) -> list[Entry]:
        """Opens each contender that is to be measured."""
        entries: list[Entry] = []
        for each, opened in self.ready.items():
            times = result.samples.setdefault(each, [])
            if each in result.reasons or timed_enough(times):
                continue

            def start(opened: Open = opened) -> tuple[Call, float]:
                call = opened(result.threads)
                return call, timed(call)

            made = attempt(result, each, limit, start)
            if made is not None:
                entries.append(Entry(each, *made, times))
        return entries


def parser_of(suite: Suite, description: str) -> argparse.ArgumentParser:
    """The options of a suite."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", nargs="*", default=[], help="programs, of all")
    parser.add_argument("--skip", nargs="*", default=[], help="contenders to leave out")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--visits", type=int, default=3, help="how often it comes back to a row")
    parser.add_argument("--repeat", type=int, default=10, help="at most, in a visit")
    parser.add_argument("--seconds", type=float, default=6.0, help="budget of a row, of all visits")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds to get ready")
    parser.add_argument("--minutes", type=float, default=43.0, help="budget of the whole run")
    parser.add_argument("--cache", type=Path, help="keeps what IREE and Inductor compile")
    parser.add_argument("--prepare", action="store_true", help="compiles, and measures nothing")
    parser.add_argument("--write", type=Path, help="the page; the plot is stored beside it")
    parser.add_argument("--list", action="store_true", help="the names of the programs")
    parser.set_defaults(**suite.defaults)
    return parser


def main(suite: Suite, description: str) -> None:
    """Measures, prints a line per row, and writes the page."""
    parser = parser_of(suite, description)
    options = parser.parse_args()
    if options.list:
        print("\n".join(suite.names()))
        return
    if unknown := set(options.only) - set(suite.names()):
        parser.error(f"no program {', '.join(sorted(unknown))}; see --list")
    if options.write and not options.write.parent.is_dir():
        parser.error(f"no folder {options.write.parent} to write to")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    chosen = [name for name in suite.contenders if name not in options.skip]
    rows = [Row(name, options.threads, suite) for name in options.only or suite.names()]
    with tempfile.TemporaryDirectory() as temporary:
        results = run(rows, Path(temporary), chosen, options, suite)
    if results and not options.prepare:
        print(page(results, chosen, cpu_target().l3_bytes, how(suite), suite.heading))


def run(
    rows: list[Row], folder: Path, chosen: list[str], options: argparse.Namespace, suite: Suite
) -> list[Result]:
    """Visits each row as often as there is time for; the results of those that were measured."""
    meter, cache_bytes = PeakMeter(), cpu_target().l3_bytes
    cache = (options.cache or folder).absolute()
    cache.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    end = time.perf_counter() + 60 * options.minutes
    for visit in range(1 if options.prepare else options.visits):
        for place, row in enumerate(rows):
            left = end - time.perf_counter()
            if left <= 0:
                names = " ".join(row.name for row in rows[place:])
                print(f"out of time in visit {visit + 1}: {names}", file=sys.stderr)
                return results
            # A program may take three times its share to get ready, of those that are left.
            limit = min(options.limit, max(LEAST_LIMIT, 3 * left / (len(rows) - place)))
            try:
                if visit == 0:
                    row.prepare(folder, cache, chosen, limit)
                for result in row.results:
                    entries = row.visit(result, limit)
                    if options.prepare:
                        print(row.name, result.threads, result.reasons, flush=True)
                        continue
                    seconds = options.seconds / options.visits
                    measure(result, entries, meter, options.repeat, seconds)
                    del entries
                    gc.collect()
                    if visit == 0:
                        results.append(result)
                    print(table([result], chosen, cache_bytes)[2], flush=True)
                    if options.write:
                        write(options.write, results, chosen, cache_bytes, suite)
            except Exception as error:
                print(f"{row.name}: {reason(error)}", file=sys.stderr, flush=True)
                row.results.clear()
            for path in filter(Path.is_file, folder.iterdir()):
                # ONNX Runtime reads its own again in the next visit.
                if ".onnx" not in path.suffixes:
                    path.unlink()
    return results


def write(
    path: Path, results: list[Result], chosen: list[str], cache_bytes: int, suite: Suite
) -> None:
    """The page and the plot of what there is so far."""
    picture = path.with_suffix(".svg")
    heading = suite.heading
    path.write_text(page(results, chosen, cache_bytes, how(suite), heading, picture.name))
    picture.write_text(plot(heading.ordered(results)))


def how(suite: Suite) -> str:
    """When, where and by which command."""
    # Folders are this machine's own.
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    command = shlex.join(["python", f"benchmarks/{suite.script}", *words])
    return (
        f"Made on {datetime.date.today()}, on {platform.machine()} ({processor()}), "
        f"{os.cpu_count()} cores, by `{command}`."
    )


def processor() -> str:
    """The name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    lines = (line for line in text.splitlines() if line.startswith("model name"))
    return next((line.partition(":")[2].strip() for line in lines), "unknown")


PEERS = ["irees", "PyTorch", "Inductor", "ONNX Runtime", "IREE"]
SUITE = Suite(programs.names, programs.program, PEERS)

if __name__ == "__main__":
    main(SUITE, __doc__.split("\n")[1])
