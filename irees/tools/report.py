"""`irees report`: writes one HTML file that shows how a program is compiled."""

from __future__ import annotations

import argparse

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    parser.add_argument("-o", "--output", default="report.html", help="default: report.html")
    add_inputs(parser)
    parser.add_argument("--trace", help="also write the timeline of a call, for Perfetto")
    parser.add_argument(
        "--measure", action=argparse.BooleanOptionalAction, default=True, help="time kernels"
    )


def run(arguments: argparse.Namespace) -> int:
    """Compiles the program, times its kernels and writes the page. Raises an IreesError."""
    from irees.reports.page import page
    from irees.reports.report import compiled, described, one_device

    path = source_of(arguments)
    options = one_device(Options.make(**options_of(arguments)))
    module = import_source(path)
    timed = arguments.measure and not options.trace_dispatch_tensors
    program = compiled(module, options, timed)
    inputs = inputs_of(program, arguments) if timed else None
    made = described(module, program, options, path, inputs, arguments.function)
    write_output(arguments.output, page(made.data))
    if arguments.trace is not None:
        made.save_trace(arguments.trace)
    print(arguments.output)
    return 0
