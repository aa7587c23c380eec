"""`irees report`: writes one HTML file that shows how a program is compiled."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from irees.errors import ArgumentError
from irees.options import Options
from irees.tools.common import (
    add_inputs,
    add_program,
    import_source,
    options_of,
    source_of,
    write_output,
)
from irees.tools.explain import inputs_of

RESOURCES = "{-#"
"""Start of the section of MLIR text that has the weights."""
MOST_CHARACTERS = 2000
"""Maximum characters of a source line that the page shows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    parser.add_argument("-o", "--output", default="report.html", help="default: report.html")
    add_inputs(parser)
    parser.add_argument(
        "--measure", action=argparse.BooleanOptionalAction, default=True, help="time kernels"
    )


def run(arguments: argparse.Namespace) -> int:
    """Compiles the program, times its kernels and writes the page. Raises an IreesError."""
    from irees.reports.page import page

    path = source_of(arguments)
    options = Options.make(**options_of(arguments))
    if options.devices or options.target == "reference":
        raise ArgumentError(
            "a report covers one device only", hint="omit --device and name a target"
        )
    write_output(arguments.output, page(report(path, options, arguments)))
    print(arguments.output)
    return 0


def report(path: str, options: Options, arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the data of the page."""
    from importlib.metadata import version

    from irees.compiler import compile
    from irees.reports.record import recorded

    module = import_source(path)
    timed = arguments.measure and not options.trace_dispatch_tensors
    program: Any = compile(module, **options.keywords() | {"time_dispatches": bool(timed)})
    inputs = inputs_of(program, arguments) if timed else None
    explained = program.explain(inputs, function=arguments.function, as_data=True)
    data = recorded(module, replace(options, time_dispatches=False))
    rows = {row["name"]: row for row in explained["dispatches"]}
    for kernel in data["kernels"]:
        kernel |= _kernel(rows.get(kernel["name"], {}))
    return data | {
        "schema": 1,
        "irees": version("irees"),
        "target": str(options.target),
        "source": {"name": path, "text": _shown(path)},
        "memory": explained["memory"],
    }


def _shown(path: str) -> str:
    """The text of the program, without weights."""
    lines: list[str] = []
    if path != "-":
        with Path(path).open(errors="replace") as file:
            while line := file.readline(MOST_CHARACTERS):
                if line.startswith(RESOURCES):
                    break
                lines.append(line.rstrip("\n"))
                while not line.endswith("\n") and (line := file.readline(MOST_CHARACTERS)):
                    pass
    return "\n".join(lines)


def _kernel(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the data that the page shows for a kernel, from a row of `Program.explain`."""
    facts = [
        f"{group['strategy']} {'x'.join(map(str, group['tiles']))}"
        for group in row.get("groups", ())
    ]
    facts += [f"vector {row['vector']}"] if row.get("vector") else []
    facts += [f"{row['gflops']:.1f} GFLOP/s"] if row.get("gflops") else []
    facts += [f"{row['gigabytes']:.1f} GB/s"] if row.get("gigabytes") else []
    seconds = row.get("seconds")
    return {
        "summary": row.get("summary"),
        "facts": facts,
        "rejected": [str(each) for each in row.get("rejected", ())],
        "ms": None if seconds is None else 1000 * seconds,
    }
