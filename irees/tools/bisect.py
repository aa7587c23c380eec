"""
`irees bisect`: finds the pass, the rewrite or the printer that makes a program wrong.

Ends with 0 if something was found, and with 1 if the program is right.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError
from irees.options import Options
from irees.runtime.arguments import zeros_or_random
from irees.tools.common import (
    UsageError,
    add_inputs,
    add_program,
    import_source,
    options_of,
    source_of,
    takes_colors,
    write_output,
)
from irees.tools.run import add_tolerance, expected_values, tolerance_of
from irees.tools.values import Tolerance, compare, parse_values

SEED = 0
SHARES = {"float64": 1e-4, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Tolerance by element type: the allowed difference as a fraction of the largest element."""
AGAINST = ("reference", "opt0")
TIMEOUT = 600.0
"""Time limit of --command, in seconds."""
CANNOT_TELL = 125
"""Exit code of --command for a program that it cannot judge, as for `git bisect run`."""
ROUNDS, CALLS = 5, 11
"""Of --faster-than: the first calls after a compilation are slow, and others may use the cores."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=True)
    add_inputs(parser)
    parser.add_argument(
        "--expected-output", action="append", default=[], help="per result: a value or (ignored)"
    )
    parser.add_argument(
        "--against",
        choices=AGAINST,
        default=AGAINST[0],
        help="the reference without --expected-output: the interpreted program, or the program "
        "compiled without optional rewrites",
    )
    parser.add_argument(
        "--command",
        help="a program is right if this command, called with its .irees file, exits with 0, "
        "wrong if with another code; 125: cannot be judged. Bisects the optional rewrites",
    )
    parser.add_argument(
        "--faster-than",
        metavar="TIME",
        help="a program is right if a call takes less time, as in 2ms or 300us. Bisects the "
        "optional rewrites",
    )
    parser.add_argument("-o", "--output", metavar="CASE", help="write a lit case of the bad pass")
    parser.add_argument("--log", action="store_true", help="print each probe")
    add_tolerance(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the finding. Raises an IreesError."""
    from irees.build import make_interpretable

    module = import_source(source_of(arguments))
    options = Options.make(**options_of(arguments))
    make_interpretable(module, options)
    finding = _bisection(module, options, arguments).find()
    if arguments.log:
        print("\n".join(finding.log))
    print(_report(finding))
    if arguments.output is not None and finding.before:
        write_output(arguments.output, finding.lit_case)
        print(f"{arguments.output}: a lit case of {finding.step.spec}")
    return 1 if finding.what == "nothing" else 0


def _bisection(module: Any, options: Options, arguments: argparse.Namespace) -> Any:
    """Returns the search that a command line asks for."""
    from irees.testing.bisecting import Bisection, RewriteBisection

    judges = [arguments.command is not None, arguments.faster_than is not None]
    judges.append(bool(arguments.expected_output) or arguments.against != AGAINST[0])
    if sum(judges) > 1:
        raise UsageError(
            "two expectations are given",
            hint="use one of --command, --faster-than, --expected-output and --against",
        )
    if arguments.command is not None:
        judge = _by_command(arguments.command)
        return RewriteBisection(module, options, "", (), lambda _: [], judge=judge)
    name, inputs = call_of(module, arguments)
    if arguments.faster_than is not None:
        judge = _by_time(name, inputs, _seconds(arguments.faster_than))
        return RewriteBisection(module, options, name, inputs, lambda _: [], judge=judge)
    expected = expected_values(arguments.expected_output) or _right(module, name, inputs, arguments)
    rules = tolerance_of(arguments)
    return Bisection(
        module, options, name, inputs, lambda found: differences(found, expected, rules)
    )


def _by_command(command: str) -> Any:
    """Returns a judge that calls a command with the saved program."""
    from irees.testing.bisecting import Verdict

    def judge(program: Any) -> Verdict:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.irees"
            program.save(path)
            words = [*shlex.split(command), str(path)]
            try:
                answer = subprocess.run(words, capture_output=True, timeout=TIMEOUT, check=False)
            except subprocess.TimeoutExpired:
                return Verdict("bad", f"{words[0]} did not end within {TIMEOUT:g} s")
            except OSError as error:
                raise ArgumentError(f"cannot run {words[0]}: {error.strerror}") from None
        code = answer.returncode
        said = f"{words[0]} exits with {code}"
        if code == CANNOT_TELL:
            return Verdict("unresolved", said)
        return Verdict("bad" if code else "good", said)

    return judge


def _by_time(name: str, inputs: Sequence[Any], limit: float) -> Any:
    """Returns a judge that times calls: the least of the medians of `ROUNDS` is compared."""
    from irees.testing.bisecting import Verdict

    def judge(program: Any) -> Verdict:
        function = program.functions[name]
        found: list[float] = []
        for _ in range(ROUNDS):
            times: list[float] = []
            for _ in range(CALLS):
                begin = time.perf_counter()
                function(*inputs)
                times.append(time.perf_counter() - begin)
            found.append(statistics.median(times))
        least = min(found)
        return Verdict("good" if least < limit else "bad", f"a call takes {1e3 * least:.4g} ms")

    return judge


def _seconds(text: str) -> float:
    """Parses a time such as `2ms`."""
    for unit, factor in (("ms", 1e-3), ("us", 1e-6), ("s", 1.0)):
        with suppress(ValueError):
            if text.endswith(unit) and (found := float(text.removesuffix(unit)) * factor) > 0:
                return found
    raise UsageError(f"--faster-than={text} is no time", hint="as in 2ms, 300us or 1.5s")


def differences(results: Sequence[Any], expected: Sequence[Any], rules: Tolerance) -> list[str]:
    """
    Returns a line for each result that is wrong.

    Without a tolerance on the command line, floats may differ by a fraction of the largest element
    (`SHARES`): fast math sums in another order than the interpreter.
    """
    if len(results) != len(expected):
        return [f"{len(results)} results instead of {len(expected)}"]
    found: list[str] = []
    for i, (actual, right) in enumerate(zip(results, expected, strict=True)):
        if right is not None:
            found += compare(i, actual, right, _scaled(rules, right))
    return found


def _scaled(rules: Tolerance, right: Any) -> Tolerance:
    array = np.asarray(right)
    share = SHARES.get(array.dtype.name)
    if rules.exact or rules.atol is not None or share is None or not array.size:
        return rules
    size = np.abs(array.astype(np.float64))
    return replace(rules, atol=share * float(np.max(size[np.isfinite(size)], initial=1.0)))


def call_of(module: Any, arguments: argparse.Namespace) -> tuple[str, list[Any]]:
    """Returns the function that a command line names, and values for its arguments."""
    from irees.backends.reference.backend import ReferenceProgram

    functions = ReferenceProgram(module.clone()).functions
    name = arguments.function or ("main" if "main" in functions else None)
    if name is None and len(functions) == 1:
        name = next(iter(functions))
    if name not in functions:
        have = ", ".join(functions) or "none"
        raise ArgumentError(f"there is no function {name!r} (there are {have})")
    given = [value for text in arguments.input for value in parse_values(text)]
    specs = functions[name].arguments
    if given and len(given) != len(specs):
        raise UsageError(f"{name} has {len(specs)} arguments, but {len(given)} are given")
    return name, given or example_inputs(name, specs)


def example_inputs(name: str, specs: Sequence[Any]) -> list[Any]:
    """Returns random values for arguments. Raises ArgumentError for one of another type."""
    random = np.random.default_rng(SEED)
    for number, spec in enumerate(specs):
        if spec is None:
            raise ArgumentError(f"argument {number} of {name} is neither a tensor nor a number")
    return [zeros_or_random(spec, random) for spec in specs]


def _right(module: Any, name: str, inputs: list[Any], arguments: argparse.Namespace) -> list[Any]:
    """Returns the reference results."""
    from irees.compiler import compile

    options = options_of(arguments)
    if arguments.against == "reference":
        options = {"target": "reference", "limits": options["limits"]}
    else:
        options |= {"rewrite_limit": 0, "opt_level": 0}
    program: Any = compile(module, **options)
    results = program.functions[name](*inputs)
    return list(results) if isinstance(results, tuple) else [results]


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
