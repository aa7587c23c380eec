"""
`irees bisect`: finds the pass, the rewrite or the printer that makes a program wrong.

Ends with 0 if something was found, and with 1 if the program is right.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from irees.options import Options
from irees.tools.common import (
    add_inputs,
    add_program,
    import_source,
    options_of,
    source_of,
    takes_colors,
    write_output,
)
from irees.tools.expectations import add_expectation, case_of, expectation_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    add_inputs(parser)
    add_expectation(parser)
    parser.add_argument("-o", "--output", metavar="CASE", help="write a lit case of the bad pass")
    parser.add_argument("--log", action="store_true", help="print each probe")


def run(arguments: argparse.Namespace) -> int:
    """Prints the finding. Raises an IreesError."""
    from irees.build import make_interpretable
    from irees.phase import PassError
    from irees.testing.reducing import Case

    options = Options.make(**options_of(arguments))
    expectation = expectation_of(arguments, options)
    module = import_source(source_of(arguments))
    try:
        make_interpretable(module, options)
    except PassError as error:
        print(f"wrong after {error.pass_name}, before anything is interpreted: {error.message}")
        return 0
    # A command needs no call.
    no_call = arguments.command is not None
    case = Case(module, "", ()) if no_call else case_of(module, arguments, expectation)
    finding = expectation.search(case).find()
    if arguments.log:
        print("\n".join(finding.log))
    print(_report(finding))
    if arguments.output is not None and finding.before:
        write_output(arguments.output, finding.lit_case)
        print(f"{arguments.output}: a lit case of {finding.step.spec}")
    return 1 if finding.what == "nothing" else 0


def _report(finding: Any) -> str:
    from irees.reports.differences import colored

    step = finding.step
    if step is None:
        return {
            "nothing": f"nothing to find: {finding.detail}",
            "source": f"the program is wrong before the first pass: {finding.detail}",
            "text": "all passes are right: the printed text is wrong\n" + finding.detail,
            "C compiler": "all passes are right, and so is -O0: the C compiler, or undefined "
            f"behaviour in the text\n{finding.detail}",
            "unknown": f"nothing can be said: {finding.detail}",
        }[finding.what]
    where = f" on {step.executable}" if step.executable else ""
    lines = [f"wrong after {step.pass_name}{where}, in phase {step.phase}: {finding.detail}"]
    if finding.rewrite is not None:
        place = f" at {finding.location}" if finding.location else ""
        lines.append(f"rewrite {finding.number}: {finding.rewrite}{place}")
        lines.append(f"right with --rewrite-limit={finding.number - 1}")
    paint = colored if takes_colors(sys.stdout) else str
    return "\n".join([*lines, *map(paint, finding.diff.splitlines())])
