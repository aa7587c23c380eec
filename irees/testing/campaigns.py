"""
Fuzzes passes: compares interpreted random programs before and after, and counts the rewritten ones.

    from irees.testing.campaigns import fuzz

    def test_my_pass():
        fuzz(MyPass())

A campaign in which the pass changed no program fails too: it tested nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, Verbosity, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.dialects import get_context
from irees.errors import IreesError
from irees.frontends.mlir import import_mlir, print_module
from irees.testing.oracles import Case, differences, interpret, report
from irees.testing.peepholes import alone, peepholes, sweep
from irees.testing.strategies import FLOATS, INTEGERS, Program, module_text, modules

EXAMPLES = 500
"""Default number of programs to draw."""


@dataclass
class Campaign:
    """Counts of a campaign: programs that ran, and programs that some pass changed."""

    programs: int = 0
    changed: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.programs} programs, {self.changed} changed, {self.seconds:.1f} s"


class WrongRewriteError(AssertionError):
    """A pass changed the results of a program, raised an error, or left invalid IR."""


class NeverRewroteError(AssertionError):
    """The passes changed no program, so the campaign tested nothing."""


def fuzz(
    *passes: ModulePass,
    examples: int = EXAMPLES,
    seconds: float | None = None,
    max_ops: int = 6,
    ops: Sequence[str] = (),
) -> Campaign:
    """
    Runs passes, in order, on random programs and compares their results before and after.

    First runs each scalar op on each pair of special numbers and arguments (`sweep`). Half of the
    random programs are bodies of several scalar ops (`peepholes`), half are tensor programs with
    dynamic shapes (`modules`). `ops` restricts both, to builders such as "matmul" or to scalar ops
    such as "arith.mulf". No new program is drawn after `seconds`.

    Raises WrongRewriteError with the smallest failing program, and NeverRewroteError if no
    pass changed any program.
    """
    done, start = Campaign(), time.monotonic()
    strategy = _strategy(max_ops, ops)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(programs: Sequence[Program]) -> None:
        if seconds is not None and time.monotonic() - start > seconds:
            return
        done.programs += len(programs)
        found, changed = _compare(programs, passes)
        done.changed += changed
        if found:
            raise WrongRewriteError(report(programs, found))

    try:
        _sweep(passes, ops, done)
        run()
    finally:
        done.seconds = time.monotonic() - start
    if not done.changed:
        names = ", ".join(each.name for each in passes)
        raise NeverRewroteError(
            f"{names} changed none of {done.programs} programs: restrict the programs by ops=, or "
            "write a strategy that builds what it matches (docs/fuzzing.md)"
        )
    return done


def _sweep(passes: Sequence[ModulePass], ops: Sequence[str], done: Campaign) -> None:
    """Runs the passes on each scalar op. Raises WrongRewriteError for the first wrong one."""
    scalars = [op for op in ops if "." in op]
    if ops and not scalars:
        return
    for element in (*FLOATS, *INTEGERS):
        for program in sweep(element, scalars):
            found, changed = _compare([program], passes)
            done.programs += 1
            done.changed += changed
            if not found:
                continue
            for small in alone(program):
                if found_small := _compare([small], passes)[0]:
                    raise WrongRewriteError(report([small], found_small))
            raise WrongRewriteError(report([program], found))


def _strategy(max_ops: int, ops: Sequence[str]) -> st.SearchStrategy[list[Program]]:
    scalars = [op for op in ops if "." in op]
    builders = [op for op in ops if "." not in op]
    bodies = peepholes("p0", max_ops, scalars).map(lambda program: [program])
    whole = modules(1, 2, max_ops, builders)
    if scalars and not builders:
        return bodies
    return whole if builders and not scalars else st.one_of(bodies, whole)


def _compare(programs: Sequence[Program], passes: Sequence[ModulePass]) -> tuple[list[str], int]:
    """Returns the differences after the passes, and how many functions these changed."""
    cases, ctx = [Case.of(program) for program in programs], get_context()
    module = import_mlir(module_text(programs))
    expected, before = interpret(module, cases), _texts(module)
    for each in passes:
        try:
            each.apply(ctx, module)
            module.verify()
        except Exception as error:
            kind = error.message if isinstance(error, IreesError) else error
            return [f"{each.name}: {type(error).__name__}: {kind}"], len(programs)
    after = _texts(module)
    changed = sum(text != after.get(name) for name, text in before.items())
    return differences(interpret(module, cases), expected, cases), changed


def _texts(module: ModuleOp) -> dict[str, str]:
    functions = [op for op in module.ops if "sym_name" in op.properties]
    return {op.properties["sym_name"].data: print_module(op) for op in functions}  # type: ignore
