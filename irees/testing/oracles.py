"""
Test oracles: compare a program's results after a pass, after each phase, or compiled to C.

The reference is the interpreter on the source module. `phases_agree` interprets the module again
after every phase, so a failure names the phase. `compiled_agrees` runs the C code, by default in a
child process, so that a crash or a hang is reported as a failure and the campaign continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.compiler import compile
from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.interpreters import Interpreter
from irees.options import Options
from irees.pipeline import phases, run_phases
from irees.testing.isolation import isolated
from irees.testing.strategies import Program, module_text
from irees.testing.tolerances import EXACT, Tolerance, mismatch

Results = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A function to run: its name, its inputs, and how close its results must be."""

    name: str
    inputs: tuple[np.ndarray, ...]
    tolerances: tuple[Tolerance, ...] = ()

    @staticmethod
    def of(program: Program) -> Case:
        """Returns the case of a random program."""
        tolerances = tuple(r.tolerance for r in program.results)
        return Case(program.name, tuple(program.inputs()), tolerances)


def interpret(module: ModuleOp, cases: Sequence[Case]) -> Results:
    """Returns the results of every case."""
    interpreter = Interpreter(module)
    return {case.name: interpreter.call(case.name, *case.inputs) for case in cases}


def differences(actual: Results, expected: Results, cases: Sequence[Case]) -> list[str]:
    """Returns one line per wrong result."""
    found: list[str] = []
    for case in cases:
        got, wanted = actual[case.name], expected[case.name]
        if len(got) != len(wanted):
            found.append(f"@{case.name}: {len(got)} results instead of {len(wanted)}")
            continue
        for number, (a, e) in enumerate(zip(got, wanted, strict=True)):
            tolerance = case.tolerances[number] if case.tolerances else EXACT
            if isinstance(a, int | float):  # compiled programs return scalars as Python numbers
                a = np.asarray(a, np.asarray(e).dtype)
            if (wrong := mismatch(a, e, tolerance)) is not None:
                found.append(f"@{case.name}, result {number}: {wrong}")
    return found


def passes_agree(
    text: str,
    passes: Sequence[ModulePass],
    *inputs: np.ndarray,
    tolerances: tuple[Tolerance, ...] = (),
) -> tuple[ModuleOp, list[str]]:
    """Returns the module after the passes, verified, and the differences in @main's results."""
    cases = [Case("main", inputs, tolerances)]
    ctx = get_context()
    module = import_mlir(text)
    expected = interpret(module, cases)
    for each in passes:
        each.apply(ctx, module)
        module.verify()
    return module, differences(interpret(module, cases), expected, cases)


def programs_agree(programs: Sequence[Program], passes: Sequence[ModulePass]) -> list[str]:
    """Returns one line per difference of random programs after passes; verifies after each."""
    cases = [Case.of(p) for p in programs]
    ctx = get_context()
    module = import_mlir(module_text(programs))
    expected = interpret(module, cases)
    for each in passes:
        each.apply(ctx, module)
        module.verify()
    return differences(interpret(module, cases), expected, cases)


def phases_agree(
    module: ModuleOp,
    cases: Sequence[Case],
    expected: Results,
    options: Options | None = None,
    *,
    ctx: Context | None = None,
) -> list[str]:
    """Returns the differences after the first phase that has any; rewrites the module in place."""
    options = options or Options()
    ctx = ctx or get_context()
    done: str | None = None
    for phase in phases(options):
        try:
            run_phases(ctx, module, options, start=done, to=phase.name)
            module.verify()
            found = differences(interpret(module, cases), expected, cases)
        except Exception as error:
            return [f"{phase.name}: {type(error).__name__}: {error}"]
        if found:
            return [f"{phase.name}: {line}" for line in found]
        done = phase.name
    return []


def compiled_results(module: ModuleOp, cases: Sequence[Case], **options: Any) -> Results:
    """Returns the results of the compiled program."""
    program = compile(module, **options)
    results: Results = {}
    for case in cases:
        out = program.functions[case.name](*(a.copy() for a in case.inputs))  # pyright: ignore
        results[case.name] = out if isinstance(out, tuple) else (out,)
    return results


def compiled_agrees(
    module: ModuleOp,
    cases: Sequence[Case],
    expected: Results,
    *,
    isolate: bool = True,
    timeout: float = 60.0,
    **options: Any,
) -> list[str]:
    """Returns the differences of the compiled program's results."""

    def run() -> Results:
        return compiled_results(module, cases, **options)

    try:
        actual = isolated(run, timeout) if isolate else run()
    except Exception as error:
        return [f"compiled: {type(error).__name__}: {error}"]
    return [f"compiled: {line}" for line in differences(actual, expected, cases)]


def pipeline_agrees(
    programs: Sequence[Program], *, phases: bool = True, compiled: bool = True, **options: Any
) -> list[str]:
    """
    Compares random programs with every phase and with the compiled program, if requested. Returns
    one line per difference.
    """
    module = import_mlir(module_text(programs))
    cases = [Case.of(p) for p in programs]
    expected = interpret(module, cases)
    found: list[str] = []
    if phases:
        found = phases_agree(module.clone(), cases, expected, Options.make(**options))
    if found or not compiled:
        return found
    return compiled_agrees(module, cases, expected, **options)


def report(programs: Sequence[Program], found: Sequence[str]) -> str:
    """Formats a failure with the programs and inputs that reproduce it."""
    lines = [*found, ""]
    for program in programs:
        lines.append(program.text)
        for argument, array in zip(program.arguments, program.inputs(), strict=True):
            shown = array.tolist() if array.size <= 64 else "..."
            lines.append(f"// {argument.name}: {argument.type} of shape {argument.shape}: {shown}")
    return "\n".join(lines)
