"""`irees bench`: times a function like `iree-benchmark-module`, and tunes it with `--tune`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from irees.runtime.arguments import zeros_or_random
from irees.runtime.artifact import is_artifact
from irees.runtime.program import Program
from irees.runtime.services import num_threads
from irees.tools.common import (
    UsageError,
    add_inputs,
    add_program,
    function_of,
    options_of,
    printed_remarks,
    program_of,
    source_of,
    write_output,
)
from irees.tools.values import parse_values

SEED = 0
BUDGET = 60.0
"""Default tuning time in seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    add_inputs(parser)
    parser.add_argument(
        "--benchmark-min-time", default="0.5s", help="per repetition: 0.5s, or 10x for 10 calls"
    )
    warm = "seconds to run before the measurement (default: 0.1)"
    parser.add_argument("--benchmark-min-warmup-time", type=float, default=0.1, help=warm)
    times = "number of measurements (default: 5)"
    parser.add_argument("--benchmark-repetitions", type=int, default=5, help=times)
    forms = ("console", "json")
    parser.add_argument(
        "--benchmark-format", choices=forms, default=forms[0], help=f"default: {forms[0]}"
    )
    parser.add_argument(
        "--tune", action="store_true", help="search for faster tiles, and time the result"
    )
    budget = f"time for --tune (default: {BUDGET:g})"
    parser.add_argument("--tune-budget", type=float, default=BUDGET, metavar="SECONDS", help=budget)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="save the tuned program (.irees) or tuning (.json)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Times the function and prints the times. Raises an IreesError."""
    seconds, calls = _minimum(arguments.benchmark_min_time)
    if arguments.benchmark_repetitions < 1:
        raise UsageError("--benchmark-repetitions must be at least 1")
    if arguments.output and not arguments.tune:
        raise UsageError("-o requires --tune", hint="use irees compile -o")
    program = program_of(arguments)
    function = function_of(program, arguments.function)
    values = [value for text in arguments.input for value in parse_values(text)]
    if not values:
        random = np.random.default_rng(SEED)
        values = [zeros_or_random(spec, random) for spec in function.arguments]
    if arguments.tune:
        function = function_of(_tuned(arguments, values), function.name)
    first = _time(lambda: function(*values), 1)
    _warm_up(lambda: function(*values), arguments.benchmark_min_warmup_time)
    calls = calls or max(1, round(seconds / max(1e-7, _time(lambda: function(*values), 3))))
    times = [
        _time(lambda: function(*values), calls) * 1e3
        for _ in range(arguments.benchmark_repetitions)
    ]
    report = {
        "name": f"BM_{function.name}/real_time",
        "time_unit": "ms",
        "median": float(np.median(times)),
        "min": min(times),
        "max": max(times),
        "first_call": first * 1e3,
        "iterations": calls,
        "repetitions": len(times),
        "threads": num_threads(),
    }
    if arguments.benchmark_format == "json":
        print(json.dumps({"benchmarks": [report]}, indent=1))
    else:
        print(_row(report))
    return 0


def _tuned(arguments: argparse.Namespace, values: list[Any]) -> Program:
    """Tunes the program with `irees.tune`, and saves it to the `-o` file."""
    from irees.tuning import tune

    path, output = source_of(arguments), arguments.output
    if path != "-" and is_artifact(path):
        raise UsageError("a saved program cannot be tuned", hint="name its source")
    if path == "-":
        raise UsageError("standard input cannot be tuned", hint="name a file")
    if output and Path(output).suffix not in (".irees", ".json"):
        raise UsageError(f"{output} has no known suffix", hint="use .irees or .json")
    options = {**options_of(arguments), "function": arguments.function}
    if options.pop("time_dispatches") or options.pop("trace_dispatch_tensors"):
        raise UsageError("a program that shows its dispatches cannot be tuned")
    with printed_remarks("text"):
        program = tune(Path(path), values, budget=arguments.tune_budget, **options)
    if output and Path(output).suffix == ".json":
        write_output(output, json.dumps(program.tuning, indent=1, sort_keys=True) + "\n")
    elif output:
        program.save(output)
    return program


def _minimum(text: str) -> tuple[float, int | None]:
    try:
        if text.endswith("x") and int(text[:-1]) > 0:
            return 0.0, int(text[:-1])
        if (seconds := float(text.removesuffix("s"))) > 0:
            return seconds, None
    except ValueError:
        pass
    raise UsageError(f"--benchmark-min-time={text} is neither a time nor a count")


def _time(call: Callable[[], Any], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


def _warm_up(call: Callable[[], Any], seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()


def _row(report: dict[str, Any]) -> str:
    return (
        f"{report['name']}  median {report['median']:.4f} ms  min {report['min']:.4f} ms  "
        f"max {report['max']:.4f} ms  first {report['first_call']:.4f} ms  "
        f"({report['repetitions']} x {report['iterations']} calls, {report['threads']} threads)"
    )
