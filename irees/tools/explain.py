"""`irees explain`: the phases of the compiler, or what it chose for one program and why."""

from __future__ import annotations

import argparse
import textwrap

from irees.remarks import collect
from irees.tools.common import add_options, import_source, options_of, progress, source_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("source", nargs="?", help="a program; without one, the phases are listed")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the phases, or the remarks and sizes of a program. Raises an IreesError."""
    if arguments.source is None:
        print(_phases())
        return 0
    from irees.compiler import compile

    with collect() as remarks, progress() as listener:
        module = import_source(source_of(arguments))
        program = compile(module, listener=listener, **options_of(arguments))
    print("functions:")
    for function in program.functions.values():
        print(f"  {function!r}")
    print(f"kernels: {sum(name.startswith('irees_k') for name in program.sources)}")
    print("memory:")
    for name, value in program.memory_analysis().items():
        print(f"  {name}: {value}")
    print("remarks:" if remarks else "remarks: none")
    for line in remarks:
        print(f"  {line}")
    return 0


def _phases() -> str:
    from irees.pipeline import PHASES

    lines: list[str] = []
    for phase in PHASES:
        lines.append(f"{phase.name}: {phase.meaning}")
        names = ", ".join(each.name for each in phase.passes) or "no passes"
        lines += textwrap.wrap(names, 96, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
