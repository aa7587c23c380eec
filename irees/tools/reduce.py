"""`irees reduce`: reduces a program to a small one that is wrong in the same way."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError
from irees.options import Options
from irees.tools.common import (
    UsageError,
    add_inputs,
    add_program,
    import_source,
    options_of,
    source_of,
    write_bytes,
    write_output,
)
from irees.tools.expectations import (
    add_expectation,
    case_of,
    exit_code,
    expectation_of,
    words_of,
)
from irees.tools.values import exact_value, type_name

SHOWN = 4096
"""Maximum characters of an array in the file of a case; a larger one is saved beside it."""
TIMEOUT = 120
"""Time limit of --keep-if for one case, in seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    add_inputs(parser)
    add_expectation(parser)
    parser.add_argument(
        "--keep-if",
        metavar="COMMAND",
        help="instead of an expectation: keep the cases for which this command, called with the "
        "case's .mlir file, exits with 0",
    )
    parser.add_argument("--seconds", type=float, default=180.0, help="stop after this time")
    parser.add_argument("-o", "--output", help="a file (default: standard output)")
    parser.add_argument("--log", action="store_true", help="print the progress of each step")


def run(arguments: argparse.Namespace) -> int:
    """Writes the reduced program. Raises ArgumentError for a program that is not wrong."""
    from irees.build import make_interpretable
    from irees.testing.reducing import Reduction

    if not arguments.seconds > 0:
        raise UsageError(f"--seconds={arguments.seconds:g} is no time", hint="as in --seconds=60")
    options = Options.make(**options_of(arguments))
    expectation = expectation_of(arguments, options)
    module = import_source(source_of(arguments))
    make_interpretable(module, options)
    case = case_of(module, arguments, expectation)
    if arguments.keep_if is not None:
        interesting = _kept_by(words_of(arguments.keep_if, "--keep-if"), options)
        if not interesting(case):
            raise ArgumentError("--keep-if does not keep the whole program")
    else:
        interesting = expectation.same_fault(case)
    if interesting is None:
        raise ArgumentError(
            "the program is right, so there is nothing to reduce",
            hint="give the inputs, the options and the expectation with which it is wrong",
        )
    reduction = Reduction(case, interesting, arguments.seconds)
    found = reduction.run()
    if arguments.log:
        print("\n".join(reduction.log))
    path = None if arguments.output in (None, "-") else Path(arguments.output)
    write_output(arguments.output, text_of(found, options, path))
    return 0


def text_of(case: Any, options: Options, path: Path | None) -> str:
    """
    Returns the text of a case, with its call in the first line. Large arrays are saved beside the
    file `path`, if there is one.
    """
    from irees.frontends.mlir import print_module

    inputs = [f"--input='{_shown(v, i, path)}'" for i, v in enumerate(case.inputs)]
    words = [f"--function={case.function}", *inputs, *_flags(options)]
    body = print_module(case.module, elide_resources=False)
    return f"// irees run {path.name if path else 'FILE'} {' '.join(words)}\n{body}"


def _flags(options: Options) -> list[str]:
    """Returns the flags of the options that are not the default's."""
    found: list[str] = []
    for option in fields(options):
        value = getattr(options, option.name)
        flag = option.metadata.get("flag", "--" + option.name.replace("_", "-"))
        if value == option.default:
            continue
        if isinstance(value, bool):
            found.append(flag)
        elif option.name in ("limits", "devices"):
            found += [f"{flag}='{name}={each}'" for name, each in json.loads(value).items()]
        elif isinstance(value, str | int):
            found.append(f"{flag}='{value}'" if option.name != "tuning" else "--tuning=FILE")
        elif option.name in ("disable_pass", "plugins"):
            found.append(f"{flag}={','.join(value)}")
        elif option.name == "passes":
            found += [f"{flag}='{each.place}={each.spec}'" for each in value]
    return found


def _shown(value: Any, number: int, path: Path | None) -> str:
    """Formats a value for the command line, exactly."""
    text = exact_value(value)
    if path is None or len(text) <= SHOWN:
        return text
    beside = path.with_suffix(f".{number}.npy")
    file = BytesIO()
    np.save(file, np.asarray(value), allow_pickle=False)
    write_bytes(beside, file.getvalue())
    return f"{type_name(value)}=@{beside.name}"


def _kept_by(command: list[str], options: Options) -> Any:
    """Returns the predicate of cases for whose text a command exits with 0."""

    def interesting(case: Any) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "case.mlir"
            path.write_text(text_of(case, options, path))
            try:
                return exit_code([*command, str(path)], TIMEOUT) == 0
            except subprocess.TimeoutExpired:
                return False

    return interesting
