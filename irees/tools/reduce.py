"""`irees reduce`: reduces a program to a small one that is wrong in the same way."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError
from irees.options import Options
from irees.tools.bisect import call_of, differences
from irees.tools.common import (
    add_inputs,
    add_program,
    import_source,
    options_of,
    source_of,
    write_output,
)
from irees.tools.run import add_tolerance, tolerance_of
from irees.tools.values import format_value

SHOWN = 64
"""Maximum elements of an array whose values are printed in the text of a case."""
TIMEOUT = 120
"""Time limit of a command for one case, in seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    add_inputs(parser)
    parser.add_argument(
        "--command",
        help="keep cases for which this command, called with the case's file, exits with 0; "
        "by default, cases that differ from the interpreted program",
    )
    parser.add_argument("--seconds", type=float, default=180.0, help="stop after this time")
    parser.add_argument("-o", "--output", help="a file (default: standard output)")
    parser.add_argument("--log", action="store_true", help="print the progress of each step")
    add_tolerance(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes the reduced program. Raises ArgumentError for a program that is not wrong."""
    from irees.build import make_interpretable
    from irees.testing.reducing import Case, Reduction

    module = import_source(source_of(arguments))
    options = Options.make(**options_of(arguments))
    make_interpretable(module, options)
    name, inputs = call_of(module, arguments)
    case = Case(module, name, tuple(inputs))
    interesting = (
        _by_command(arguments.command)
        if arguments.command
        else _wrong(case, options, tolerance_of(arguments))
    )
    if not interesting(case):
        raise ArgumentError(
            "the program is right, so there is nothing to reduce",
            hint="give the inputs, the options and the tolerance with which it is wrong",
        )
    reduction = Reduction(case, interesting, arguments.seconds)
    found = reduction.run()
    if arguments.log:
        print("\n".join(reduction.log))
    write_output(arguments.output, text_of(found))
    return 0


def text_of(case: Any) -> str:
    """Returns the text of a case, with the flags of its call in a comment."""
    from irees.frontends.mlir import print_module

    flags = " ".join(f"--input='{_shown(value)}'" for value in case.inputs)
    body = print_module(case.module, elide_resources=False)
    return f"// irees run FILE --function={case.function} {flags}\n{body}"


def _shown(value: Any) -> str:
    """Formats a value for the command line; only the type of a large array."""
    if not isinstance(value, np.ndarray) or value.size <= SHOWN:
        return format_value(value)
    return format_value(value, 0).partition("=")[0] + "=1"


def _by_command(command: str) -> Any:
    def interesting(case: Any) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "case.mlir"
            path.write_text(text_of(case))
            words = [*shlex.split(command), str(path)]
            try:
                answer = subprocess.run(words, capture_output=True, timeout=TIMEOUT, check=False)
            except subprocess.TimeoutExpired:
                return False
            except OSError as error:
                raise ArgumentError(f"cannot run {words[0]}: {error.strerror}") from None
            return answer.returncode == 0

    return interesting


def _wrong(first: Any, options: Options, rules: Any) -> Any:
    """
    Returns whether a case differs from the interpreted program: after the phase in which the first
    case turns wrong, which needs no C compiler, else compiled.
    """
    from irees.testing.bisecting import Bisection
    from irees.testing.reducing import is_defined

    def bisection(case: Any) -> Bisection:
        from irees.interpreters import Interpreter

        expected = list(Interpreter(case.module).call(case.function, *case.inputs))

        def check(results: Any) -> list[str]:
            return differences(results, expected, rules)

        return Bisection(case.module, options, case.function, case.inputs, check)

    finding = bisection(first).find()
    if finding.what == "nothing":
        return lambda case: False
    phase = finding.step.phase if finding.what in ("pass", "rewrite") and finding.before else None
    kind = finding.kind
    return lambda case: is_defined(case) and bisection(case).fault(phase) == kind
