"""`irees diff`: shows what a part of the pipeline changes, or how two programs differ."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from irees.errors import ArgumentError
from irees.options import Options
from irees.tools.common import UsageError, add_options, import_source, options_of, takes_colors

BEFORE_PRINTING = "before:emit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("sources", nargs="+", metavar="source", help="one MLIR file, or two")
    parser.add_argument(
        "--at", action="append", default=[], metavar="PLACE",
        help="a place such as after:fused; two of them for one file (default: its begin, and "
        f"{BEFORE_PRINTING}), one for two files (default: {BEFORE_PRINTING})",
    )  # fmt: skip
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints a unified diff per function or kernel. Raises an IreesError."""
    from irees.reports.differences import colored, differences, state_at

    options = Options.make(**options_of(arguments))
    if options.devices or options.target == "reference":
        raise ArgumentError("a diff covers one device only", hint="omit --device and name a target")
    sides = pairs(arguments.sources, arguments.at)
    modules = {path: import_source(path) for path in set(arguments.sources)}
    states = [state_at(modules[path].clone(), options, place) for path, place in sides]
    paint = colored if takes_colors(sys.stdout) else str
    count = 0
    for name, lines in differences(*states):
        count += 1
        print(paint(f"@ {name}"))
        print("\n".join(map(paint, lines)))
    print(f"{count} of {len(states[0].keys() | states[1].keys())} functions and kernels differ")
    return 0


def pairs(sources: list[str], places: list[str]) -> list[tuple[str, str]]:
    """
    Returns the file and the place of both sides.

    Raises UsageError for a number of files or places without a meaning, ArgumentError for a file
    that does not exist.
    """
    if len(sources) > 2 or len(places) > 3 - len(sources):
        raise UsageError(
            "a diff is of one file at two places, or of two files at one",
            hint="as in irees diff x.mlir --at after:structured --at after:fused",
        )
    for path in sources:
        if path != "-" and not Path(path).is_file():
            reason = "is a folder" if Path(path).is_dir() else "does not exist"
            raise ArgumentError(f"{path} {reason}")
    if len(sources) == 2:
        return [(path, (places or [BEFORE_PRINTING])[0]) for path in sources]
    given = [*places, BEFORE_PRINTING] if len(places) < 2 else places
    given = given if len(given) == 2 else ["before:input", *given]
    return [(sources[0], place) for place in given]
