"""`irees explain`: prints the phases of the compiler, or its decisions for one program."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from typing import Any

import numpy as np

from irees.errors import ArgumentError
from irees.options import Options
from irees.runtime.arguments import zeros_or_random
from irees.runtime.artifact import is_artifact, load
from irees.runtime.device_program import DeviceProgram
from irees.runtime.program import Program
from irees.runtime.services import num_threads, set_num_threads
from irees.tools.common import (
    add_inputs,
    add_program,
    function_of,
    options_of,
    progress,
    source_for,
    source_of,
)
from irees.tools.values import parse_values

SEED = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    add_inputs(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument(
        "--measure", action=argparse.BooleanOptionalAction, default=True, help="time dispatches"
    )


def run(arguments: argparse.Namespace) -> int:
    """
    Prints the phases, or the dispatches of a program with their strategies, times and fractions of
    peak. For a multi-device program, prints transfers but no times. Raises an IreesError.
    """
    if arguments.source is None and arguments.module is None:
        print(_phases(Options.make(**options_of(arguments))))
        return 0
    program = _program(arguments)
    as_json = arguments.format == "json"
    if isinstance(program, DeviceProgram):
        if arguments.input:
            raise ArgumentError(
                "a program for several devices cannot be measured here",
                hint="`irees run --trace-devices=FILE` has the times of its functions",
            )
        made = program.explain(as_data=as_json)
        print(json.dumps(made, indent=1) if as_json else made)
        return 0
    inputs = inputs_of(program, arguments)
    peaks, function = None, arguments.function
    if inputs is not None:
        from irees.backends.c.peaks import measure_peaks

        function = function_of(program, function).name
        found = measure_peaks(num_threads())
        peaks = (found.gflops, found.gigabytes)
    made = program.explain(inputs, function=function, peaks=peaks, as_data=as_json)
    print(json.dumps(made, indent=1) if as_json else made)
    return 0


def _program(arguments: argparse.Namespace) -> Program | DeviceProgram:
    """Loads a saved program, or compiles a source, with timing of dispatches."""
    path = source_of(arguments)
    if arguments.num_threads is not None:
        set_num_threads(arguments.num_threads)
    if path != "-" and is_artifact(path):
        return load(path)
    from irees.compiler import compile

    options = options_of(arguments)
    if arguments.measure and not (options["trace_dispatch_tensors"] or options["devices"]):
        options["time_dispatches"] = options["target"] != "reference"
    with progress():
        program = compile(source_for(path, arguments), **options)
    assert isinstance(program, Program | DeviceProgram)
    return program


def inputs_of(program: Program, arguments: argparse.Namespace) -> list[Any] | None:
    """The arguments for the measurement; None if it is disabled or not possible."""
    given = [value for text in arguments.input for value in parse_values(text)]
    if not arguments.measure or not program.manifest.get("time_dispatches"):
        if given:
            raise ArgumentError(
                "the program does not time its dispatches",
                hint="name its source, or compile it with --time-dispatches",
            )
        return None
    try:
        function = function_of(program, arguments.function)
        random = np.random.default_rng(SEED)
        return given or [zeros_or_random(spec, random) for spec in function.arguments]
    except ArgumentError as error:
        if arguments.function is not None:
            raise
        print(f"not measured: {error.diagnostic()}", file=sys.stderr)
        return None


def _phases(options: Options) -> str:
    """The phases with their passes, and the anchors at which passes can be inserted."""
    from irees.pipeline import phases
    from irees.places import ANCHORS

    lines: list[str] = []
    for phase in phases(options):
        lines.append(f"{phase.name}: {phase.meaning}")
        names = ", ".join(each.name for each in phase.passes) or "no passes"
        lines += textwrap.wrap(names, 96, initial_indent="    ", subsequent_indent="    ")
    lines += ["", "anchors for --insert, as in --insert after:structured=cse:"]
    lines += [f"    {name:10}  {anchor.holds}" for name, anchor in ANCHORS.items()]
    return "\n".join(lines)
