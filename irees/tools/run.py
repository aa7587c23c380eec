"""`irees run`: calls a function with values from the command line, like `iree-run-module`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError
from irees.tools.common import add_program, add_remarks, function_of, printed_remarks, program_of
from irees.tools.values import Tolerance, compare, format_value, parse_values


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    parser.add_argument("--input", action="append", default=[], help="4x8xf32=1,2,... or @x.npy")
    parser.add_argument(
        "--output", action="append", default=[], help="per result: -, @x.npy, +x.npy, @x.bin or ''"
    )
    parser.add_argument(
        "--expected-output", action="append", default=[], help="per result: a value or (ignored)"
    )
    most: dict[str, Any] = {"type": int, "default": 1024, "help": "elements to print (1024)"}
    parser.add_argument("--output-max-element-count", **most)
    parser.add_argument(
        "--trace-devices",
        metavar="FILE",
        help="write a trace of device work and transfers, for Perfetto or chrome://tracing",
    )
    add_tolerance(parser)
    add_remarks(parser)


def add_tolerance(parser: argparse.ArgumentParser) -> None:
    """Adds the flags for the comparison of results."""
    modes = ("approximate", "exact")
    parser.add_argument(
        "--equality-mode", choices=modes, default=modes[0], help=f"default: {modes[0]}"
    )
    parser.add_argument(
        "--expected-rtol", type=float, default=0.0, help="relative tolerance (default: 0)"
    )
    parser.add_argument(
        "--expected-atol",
        "--expected-f32-threshold",
        type=float,
        help="absolute tolerance (default: by dtype)",
    )


def tolerance_of(arguments: argparse.Namespace) -> Tolerance:
    """The tolerance of a command line."""
    exact = arguments.equality_mode == "exact"
    return Tolerance(exact, arguments.expected_rtol, arguments.expected_atol)


def run(arguments: argparse.Namespace) -> int:
    """Runs the function; returns 1 if a result is not as expected. Raises an IreesError."""
    values = [value for text in arguments.input for value in parse_values(text)]
    expected = expected_values(arguments.expected_output)
    with printed_remarks(arguments.remarks):
        program = program_of(arguments)
    function = function_of(program, arguments.function)
    results = _traced(program, function, values, arguments.trace_devices)
    results = list(results) if isinstance(results, tuple) else [results]
    for result, argument in getattr(function, "updates", ()):
        # An argument that the call updated in place.
        results[result] = values[argument]
    for option, name in ((expected, "--expected-output"), (arguments.output, "--output")):
        if option and len(option) != len(results):
            raise ArgumentError(
                f"{function.name} has {len(results)} results, but {name} is given "
                f"{len(option)} times"
            )
    _show(function, results, arguments)
    if not expected:
        return 0
    rules = tolerance_of(arguments)
    failures = [
        line
        for i, (actual, wanted) in enumerate(zip(results, expected))
        if wanted is not None
        for line in compare(i, actual, wanted, rules)
    ]
    for line in failures:
        print(line)
    if not failures:
        print("[SUCCESS] all function outputs matched their expected values.")
    return 1 if failures else 0


def _traced(program: Any, function: Any, values: list[Any], path: str | None) -> Any:
    """Calls the function; writes a trace of the devices to `path`, if given."""
    if path is None:
        return function(*values)
    from irees.runtime.device_program import DeviceProgram
    from irees.runtime.events import write_trace

    if not isinstance(program, DeviceProgram):
        raise ArgumentError(
            "tracing requires a program for several devices", hint="use --device NAME=DEVICE"
        )
    with program.trace() as events:
        results = function(*values)
    write_trace(events, path)
    return results


def expected_values(texts: Sequence[str]) -> list[Any]:
    """Parses expected outputs; None for one that is ignored."""
    return [_expected(text) for text in texts]


def _expected(text: str) -> Any:
    if text == "(ignored)":
        return None
    values = parse_values(text)
    if len(values) != 1:
        raise ArgumentError(f"{text!r} is {len(values)} values, but one is expected")
    return values[0]


def _show(function: Any, results: list[Any], arguments: argparse.Namespace) -> None:
    outputs = arguments.output or ["-"] * len(results)
    if arguments.expected_output and not arguments.output:
        return
    print(f"EXEC @{function.name}")
    for i, (value, output) in enumerate(zip(results, outputs)):
        if output == "-":
            kind = "hal.buffer_view" if isinstance(value, np.ndarray) else "scalar"
            print(f"result[{i}]: {kind}")
            print(format_value(value, arguments.output_max_element_count))
        elif output:
            _save(output, np.asarray(value))


def _save(output: str, value: np.ndarray[Any, Any]) -> None:
    path = Path(output[1:])
    if output[0] not in "@+" or not output[1:]:
        raise ArgumentError(f"unknown output --output={output}", hint="use -, @file, +file or ''")
    try:
        with path.open("ab" if output[0] == "+" else "wb") as file:
            if path.suffix == ".npy":
                np.save(file, value, allow_pickle=False)
            else:
                file.write(value.tobytes())
    except OSError as error:
        raise ArgumentError(f"cannot write {path}: {error.strerror}") from None
