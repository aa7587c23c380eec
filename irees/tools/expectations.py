"""
What makes a program right: one expectation for `irees bisect` and `irees reduce`.

A program is right if its results are those of a referee or those given, if a command exits with 0
for it, or if a call takes less than a time. The referees are the interpreter, and the program
compiled without optional rewrites.
"""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irees.errors import ArgumentError, IreesError
from irees.options import Options
from irees.runtime.arguments import zeros_or_random
from irees.tools.common import UsageError
from irees.tools.run import add_tolerance, expected_values, tolerance_of
from irees.tools.values import Tolerance, compare, parse_values

if TYPE_CHECKING:
    from irees.testing.bisecting import Bisection, Verdict
    from irees.testing.reducing import Case, Interesting

SEED = 0
EXAMPLES = 4
"""Bound of the integers that are made up for arguments."""
SHARES = {"float64": 1e-4, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Tolerance by element type: the allowed difference as a fraction of the largest element."""
REFEREES = ("reference", "opt0")
TIMEOUT = 600.0
"""Time limit of --command, in seconds."""
LIMIT, LEAST_LIMIT = 3.0, 3.0
"""Time limit of a run of a smaller program: a factor of the first program's, and seconds."""
CANNOT_TELL = 125
"""Exit code of --command for a program that it cannot judge, as for `git bisect run`."""
ROUNDS, CALLS = 5, 11
"""Of --faster-than: the first calls after a compilation are slow, and others may use the cores."""

Judge = Callable[[str, Sequence[Any]], Callable[[Any], "Verdict"]]
"""Given a function and its inputs, returns what judges a compiled program."""


@dataclass(frozen=True)
class Expectation:
    """What makes a program right."""

    options: Options
    rules: Tolerance = field(default_factory=Tolerance)
    referee: str = REFEREES[0]
    stored: tuple[Any, ...] = ()
    """The given results of the whole program; None for one that is ignored."""
    judge: Judge | None = None
    seconds: float | None = None
    """Time limit of one run of a program; None: that of bisection."""

    def search(self, case: Case) -> Bisection:
        """Returns the search for what makes a case wrong. Raises an IreesError without results."""
        from irees.testing.bisecting import Bisection, RewriteBisection

        parts: Any = (case.module, self.options, case.function, case.inputs)
        if self.judge is not None:
            judge = self.judge(case.function, case.inputs)
            return RewriteBisection(*parts, lambda _: [], judge=judge)
        right = self.stored or self.results(case)
        check = lambda found: differences(found, right, self.rules)  # noqa: E731
        return Bisection(*parts, check, self.seconds)

    def results(self, case: Case) -> list[Any]:
        """Returns the referee's results. Raises an IreesError if it has none."""
        from irees.testing import bisecting
        from irees.testing.bisecting import compiled, interpreted
        from irees.testing.isolation import Died, Raised

        call = (case.function, case.inputs)
        if self.referee == REFEREES[0]:
            return interpreted(case.module, *call, self.seconds or math.inf)
        options = replace(self.options, rewrite_limit=0, opt_level=0)
        try:
            return compiled(case.module, options, *call, self.seconds or bisecting.TIMEOUT)
        except (Died, Raised) as error:
            raise ArgumentError(
                f"--against=opt0 has no results: {error}", hint="use --against=reference"
            ) from None

    def same_fault(self, case: Case) -> Interesting | None:
        """
        Returns the predicate of cases that are wrong in the same way; None if the case is right.
        Raises an IreesError if nothing judges smaller programs.
        """
        from irees.testing.bisecting import INTERNAL
        from irees.testing.reducing import is_defined

        fault = self.search(case).fault()
        if fault is None:
            return None
        if self.judge is not None or fault.kind == INTERNAL:
            return lambda each: self._without_results(each).has(fault)
        smaller = self._for_smaller(case) if self.stored else self
        begin = time.monotonic()
        smaller.search(case).has(fault)
        # A reduced loop may never end.
        limit = LEAST_LIMIT + LIMIT * (time.monotonic() - begin)
        smaller = replace(smaller, seconds=limit)
        return lambda each: is_defined(each, limit) and smaller.search(each).has(fault)

    def _without_results(self, case: Case) -> Bisection:
        """Returns the search for a fault that shows before there are results."""
        return self.search(case) if self.judge else replace(self, stored=(None,)).search(case)

    def _for_smaller(self, case: Case) -> Expectation:
        """
        Returns the expectation of smaller programs, for which no results are given: those of the
        first referee that gives the stored ones.
        """
        for referee in REFEREES:
            found = replace(self, referee=referee, stored=())
            with suppress(ArgumentError):
                if not differences(found.results(case), self.stored, self.rules):
                    return found
        raise ArgumentError(
            "neither the interpreter nor --rewrite-limit=0 gives the expected output, so nothing "
            "tells the right results of smaller programs",
            hint="use --keep-if with a command that tells whether a program is wrong",
        )


def add_expectation(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of an expectation."""
    parser.add_argument(
        "--expected-output", action="append", default=[], help="per result: a value or (ignored)"
    )
    parser.add_argument(
        "--against",
        choices=REFEREES,
        default=REFEREES[0],
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
    add_tolerance(parser)


def expectation_of(arguments: argparse.Namespace, options: Options) -> Expectation:
    """Returns the expectation of a command line. Raises UsageError for two of them."""
    judges = [arguments.command is not None, arguments.faster_than is not None]
    judges += [bool(arguments.expected_output), arguments.against != REFEREES[0]]
    judges.append(getattr(arguments, "keep_if", None) is not None)
    if sum(judges) > 1:
        also = ", --keep-if" if hasattr(arguments, "keep_if") else ""
        raise UsageError(
            "two expectations are given",
            hint=f"use one of --command, --faster-than{also}, --expected-output and --against",
        )
    judge = None
    if arguments.command is not None:
        judge = by_command(words_of(arguments.command, "--command"))
    elif arguments.faster_than is not None:
        judge = by_time(_seconds(arguments.faster_than))
    stored = tuple(expected_values(arguments.expected_output))
    return Expectation(options, tolerance_of(arguments), arguments.against, stored, judge)


def words_of(command: str, flag: str) -> list[str]:
    """Splits a command into words. Raises UsageError for none, or an open quote."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{flag}: {str(error).lower()}", hint="check the quotes") from None
    if not words:
        raise UsageError(f"{flag} is empty", hint="name a command")
    return words


def by_command(command: Sequence[str]) -> Judge:
    """Returns the judge that calls a command with the saved program."""
    from irees.testing.bisecting import Verdict

    def judge(program: Any) -> Verdict:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.irees"
            program.save(path)
            try:
                code = exit_code([*command, str(path)], TIMEOUT)
            except subprocess.TimeoutExpired:
                return Verdict("bad", f"{command[0]} did not end within {TIMEOUT:g} s")
        said = f"{command[0]} exits with {code}"
        if code == CANNOT_TELL:
            return Verdict("unresolved", said)
        return Verdict("bad" if code else "good", said)

    return lambda function, inputs: judge


def exit_code(words: Sequence[str], timeout: float) -> int:
    """Runs a command. Raises ArgumentError if there is none, and subprocess.TimeoutExpired."""
    try:
        return subprocess.run(words, capture_output=True, timeout=timeout, check=False).returncode
    except OSError as error:
        raise ArgumentError(f"cannot run {words[0]}: {error.strerror}") from None


def by_time(limit: float) -> Judge:
    """Returns the judge that times calls: the least of the medians of `ROUNDS` is compared."""
    from irees.testing.bisecting import Verdict

    def timed(name: str, inputs: Sequence[Any]) -> Callable[[Any], Verdict]:
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
            state = "good" if least < limit else "bad"
            return Verdict(state, f"a call takes {1e3 * least:.4g} ms")

        return judge

    return timed


def _seconds(text: str) -> float:
    """Parses a time such as `2ms`."""
    for unit, factor in (("ms", 1e-3), ("us", 1e-6), ("s", 1.0)):
        with suppress(ValueError):
            found = float(text.removesuffix(unit)) * factor if text.endswith(unit) else 0.0
            if 0 < found < math.inf:
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


def case_of(module: Any, arguments: argparse.Namespace, expectation: Expectation) -> Case:
    """
    Returns the call of a command line: the function that it names, and values for its arguments.
    Raises ArgumentError or UsageError where they do not fit.
    """
    from irees.testing.reducing import Case

    name, function = _function_of(module, arguments)
    given = [value for text in arguments.input for value in parse_values(text)]
    if given and len(given) != len(function.arguments):
        count = len(function.arguments)
        raise UsageError(f"{name} has {count} arguments, but {len(given)} are given")
    stored, count = expectation.stored, len(function.results)
    if stored and len(stored) != count:
        text = f"{name} has {count} results, but --expected-output is given {len(stored)} times"
        raise UsageError(text, hint="use (ignored) for a result that may be anything")
    inputs = given or _examples(module, name, function.arguments)
    # A number is given for a tensor without dims, too.
    fitting = [
        value if spec is None else spec.checked(value)
        for spec, value in zip(function.arguments, inputs, strict=True)
    ]
    return Case(module, name, tuple(fitting))


def _function_of(module: Any, arguments: argparse.Namespace) -> tuple[str, Any]:
    """Returns the function of a command line. Raises ArgumentError if there is none."""
    from irees.backends.reference.backend import ReferenceProgram

    functions = ReferenceProgram(module.clone()).functions
    name = arguments.function or ("main" if "main" in functions else None)
    if name is None and len(functions) == 1:
        name = next(iter(functions))
    if name in functions:
        return name, functions[name]
    have = ", ".join(functions) or "none"
    what = "no single function" if name is None else f"no function {name!r}"
    hint = "use --function=" if functions else "a function without `private` can be called"
    raise ArgumentError(f"the program has {what} (it has {have})", hint=hint)


def example_inputs(name: str, specs: Sequence[Any]) -> list[Any]:
    """
    Returns random values for arguments; integers of several bytes are small and not negative, since
    most are sizes and indices. Raises ArgumentError for an argument of another type, or of a
    dynamic size.
    """
    random = np.random.default_rng(SEED)
    for number, spec in enumerate(specs):
        if spec is None:
            raise ArgumentError(f"argument {number} of {name} is neither a tensor nor a number")
    return [_example(spec, random) for spec in specs]


def _example(spec: Any, random: np.random.Generator) -> Any:
    value = np.asarray(zeros_or_random(spec, random), spec.dtype)
    if has_integers(spec):
        # In a tensor, zeros that are indices stay likely; bytes are quantized numbers.
        bounds = (-128, 128) if spec.dtype.itemsize == 1 else (0 if spec.shape else 1, EXAMPLES)
        value = random.integers(*bounds, value.shape).astype(spec.dtype)
    elif not spec.is_tensor:
        value = random.standard_normal(()).astype(spec.dtype)
    return value if spec.is_tensor else value[()].item()


def has_integers(spec: Any) -> bool:
    """Whether an argument is an integer or has integer elements."""
    return spec is not None and spec.dtype.name.startswith(("int", "uint", "bool"))


def _examples(module: Any, name: str, specs: Sequence[Any]) -> list[Any]:
    """Returns random arguments with which the program runs; integers are 0 where it does not."""
    from irees.testing.bisecting import interpreted

    inputs = example_inputs(name, specs)
    if any(map(has_integers, specs)):
        try:
            interpreted(module.clone(), name, inputs)
        except IreesError:
            zeros = [np.zeros_like(v) if has_integers(s) else v for s, v in zip(specs, inputs)]
            return [z if s.is_tensor else np.asarray(z).item() for s, z in zip(specs, zeros)]
    return inputs
