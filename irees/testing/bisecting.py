"""
Bisects a miscompilation to a phase, a pass, a single rewrite, or the printer.

A step is one pass on the module, or, in code generation, on one executable. The interpreter can run
the IR after any step, so the search finds the first step after which its results are wrong, be the
pass mandatory or optional. Within an optional pass, the number of rewrites is bisected in the same
way (`irees.rewrites`). If the IR after the last step is right, the fault is in the printed text or
in the C compiler.

Probes that cannot be interpreted are skipped. LLVM: `-opt-bisect-limit`; MLIR: `mlir-reduce` and
debug counters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from math import inf
from typing import Any, Literal

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from irees.backends.common.program_text import result_records
from irees.backends.reference.backend import recast, specs, stored_dtypes
from irees.compiler import compile
from irees.dialects import get_context
from irees.dialects.flow import ExecutableOp
from irees.dialects.signature import written_results
from irees.errors import ArgumentError, InternalError, RuntimeTrap, UnsupportedError
from irees.frontends.mlir import print_module
from irees.hooks import Hooks
from irees.interpreters import Interpreter
from irees.interpreters.values import MemRef
from irees.options import Options
from irees.phase import PassError, Phase, alone
from irees.pipeline import no_fallback, phases, run_phases
from irees.remarks import collect
from irees.testing.faults import watch_rewrites
from irees.testing.isolation import Died, Raised, isolated

TIMEOUT = 600.0
"""Time limit of one run of the compiled program, in seconds."""
INTERPRETING = 60.0
"""Least time limit of one interpretation, in seconds; a wrong loop may never end."""
SLOWER = 100.0
"""Factor by which interpreting a kernel may be slower than interpreting the source program."""
CONTEXT = 3
"""Lines of IR shown around a change."""

INTERNAL = "InternalError"
OVERWRITTEN = "it writes to an argument that it does not update"

Check = Callable[[Sequence[Any]], list[str]]
"""Compares results with the expected ones; returns one line per difference."""


@dataclass(frozen=True)
class Verdict:
    """Whether a state of the program gives the expected results."""

    state: Literal["good", "bad", "unresolved"]
    detail: str = ""
    kind: str = "differs"
    """How a bad program fails: it differs, dies, or raises an error of this class."""


@dataclass(frozen=True)
class Fault:
    """How a program is wrong; a smaller program with the same fault is wrong for one reason."""

    kind: str
    pass_name: str | None = None
    """The pass that raises, or leaves invalid IR."""
    phase: str | None = None
    """The phase after which the interpreted IR shows the fault; None: the compiled program does."""
    by_rewrites: bool = False
    """Whether the program is right without optional rewrites; only compiled programs tell."""


@dataclass(frozen=True)
class Step:
    """One pass on the module, or on one executable."""

    phase: str
    pass_name: str
    spec: str
    executable: str | None
    rewrites: int
    """Counted rewrites up to the end of this step."""


@dataclass
class Finding:
    """The culprit that bisection found, with the evidence."""

    what: Literal["nothing", "source", "pass", "rewrite", "text", "C compiler", "unknown"]
    detail: str
    step: Step | None = None
    number: int = 0
    """The step, counted from 1, or the rewrite."""
    rewrite: str | None = None
    location: str | None = None
    before: str = ""
    after: str = ""
    kind: str = "differs"
    """How the program is wrong, as in `Verdict`."""
    shows: Fault | None = None
    """How it shows, if not in the interpreted IR after the step: a later pass fails, or only the
    compiled program is wrong."""
    log: list[str] = field(default_factory=list)

    @property
    def diff(self) -> str:
        """The change of the IR, as a unified diff."""
        old, new = self.before.splitlines(), self.after.splitlines()
        return "\n".join(unified_diff(old, new, "before", "after", lineterm="", n=CONTEXT))

    @property
    def lit_case(self) -> str:
        """The IR before the step as an input for the pass."""
        assert self.step is not None
        run = f"// RUN: irees opt %s -p '{self.step.spec}' | filecheck %s"
        return f"{run}\n\n// Wrong after this pass: {self.detail}\n{self.before}"


class Endless(Exception):
    """The interpreter had no results in time."""


class _Stopped(BaseException):
    """Ends a compilation at a step; no handler of errors catches it."""


@dataclass
class Bisection:
    """A program, the arguments of a call, and the check of its results."""

    module: ModuleOp
    options: Options
    function: str
    inputs: Sequence[Any]
    check: Check
    seconds: float | None = None
    """Time limit of one run, be it interpreted or compiled; None: that of a slow one."""
    log: list[str] = field(default_factory=list)
    _interpreting: float = INTERPRETING
    steps: list[Step] = field(default_factory=list)

    def find(self) -> Finding:
        """
        Returns the culprit.

        Raises ArgumentError for a program for several devices, and the errors of a compilation
        that are not a bug of irees.
        """
        if self.options.devices or self.options.target == "reference":
            raise ArgumentError(
                "only programs that are compiled for one device can be bisected",
                hint="omit --device and --target=reference",
            )
        compiled = self._compiled(self.options)
        self.log.append(f"compiled: {compiled.state} {compiled.detail}".strip())
        if compiled.state == "good":
            return self._found("nothing", "the compiled program gives what is expected")
        failure = None
        try:
            with no_fallback():
                self._run_all()
        except InternalError as error:
            failure = error
        return self._among_passes(compiled, failure)

    def _among_passes(self, compiled: Verdict, failure: InternalError | None) -> Finding:
        """
        Returns the culprit of a program that is wrong, or on which a pass or a check fails: an
        earlier pass may have caused the failure.
        """
        shows = None
        if isinstance(failure, PassError):
            shows = Fault(INTERNAL, pass_name=failure.pass_name)
        begin = time.monotonic()
        source = self._interpreted(self.module, inf)
        self._interpreting = max(INTERPRETING, SLOWER * (time.monotonic() - begin))
        if source.state != "good":
            if isinstance(failure, PassError):
                return self._failed(failure)
            return self._found("source", source.detail, kind=compiled.kind)
        end, last = len(self.steps), self._verdict(len(self.steps))
        if last.state == "unresolved":
            end, last = self._last_resolved(end)
        first = self._first_bad(0, end, self._verdict) if last.state == "bad" else None
        if first is not None:
            return replace(self._in_step(self.steps, first), shows=shows)
        if last.state == "good" and end < len(self.steps):
            after = self._verdict(end + 1)
            if failure is None or after.kind != UnsupportedError.__name__:
                found = self._behind_interpreted(end, after, compiled)
                return replace(found, shows=shows or found.shows)
        return self._failed(failure) if failure is not None else self._behind_passes(compiled)

    def _last_resolved(self, end: int) -> tuple[int, Verdict]:
        """Returns the last step whose state can be interpreted."""

        def unresolved(number: int) -> Verdict:
            found = self._verdict(number)
            return Verdict("bad" if found.state == "unresolved" else "good", found.detail)

        first = self._first_bad(0, end, unresolved)
        assert first is not None
        return first - 1, self._verdict(first - 1)

    def _behind_interpreted(self, end: int, after: Verdict, compiled: Verdict) -> Finding:
        """
        Returns the culprit if the IR is right up to a step and cannot be interpreted after it.

        Compiles the program with some of the remaining rewrites. If it is wrong without any of
        them, the search goes on in that program, whose IR the interpreter may support.
        """
        steps, least = self.steps, self.steps[end - 1].rewrites if end else 0

        def verdict(limit: int) -> Verdict:
            return self._compiled(replace(self.options, rewrite_limit=limit))

        if least < steps[-1].rewrites:
            if (plain := verdict(least)).state != "good":
                self.log.append(f"no better with {least} rewrites: {plain.detail}")
                found = replace(self, options=replace(self.options, rewrite_limit=least)).find()
                return replace(found, shows=Fault(compiled.kind))
            limit = self._first_bad(least, steps[-1].rewrites, verdict)
            assert limit is not None
            number = next(i for i, step in enumerate(steps, 1) if step.rewrites >= limit)
            found = self._rewrite(steps[number - 1], number, limit, verdict(limit))
            return replace(found, shows=Fault(compiled.kind, by_rewrites=True))
        if after.kind == UnsupportedError.__name__:
            text = f"right up to {steps[end - 1].pass_name}; what follows cannot be interpreted"
            return self._found("unknown", text, kind=compiled.kind)
        detail = f"the IR cannot be interpreted: {after.detail}"
        found = self._whole_step(end + 1, replace(after, detail=detail, kind=compiled.kind))
        return replace(found, shows=Fault(compiled.kind))

    def fault(self) -> Fault | None:
        """Returns how the program is wrong; None if it is right. Raises as `find` does."""
        found = self.find()
        if found.what == "nothing":
            return None
        if found.shows is not None:
            return found.shows
        if found.step is None:
            return Fault(found.kind)
        if not found.before:
            return Fault(found.kind, pass_name=found.step.pass_name)
        return Fault(found.kind, phase=found.step.phase)

    def has(self, fault: Fault) -> bool:
        """Whether the program is wrong in this way. Runs no more of the compiler than needed."""
        if fault.phase is None and fault.pass_name is None:
            found = self._compiled(self.options)
            if found.state != "bad" or found.kind != fault.kind:
                return False
            plain = replace(self.options, rewrite_limit=0)
            return not fault.by_rewrites or self._compiled(plain).state == "good"
        module = self.module.clone()
        try:
            with no_fallback():
                run_phases(get_context(), module, self.options, to=fault.phase)
        except InternalError as error:
            return error.pass_name == fault.pass_name
        if fault.phase is None:
            return False
        found = self._interpreted(module)
        return found.state == "bad" and found.kind == fault.kind

    def _found(self, what: Any, detail: str, **more: Any) -> Finding:
        return Finding(what, detail, log=self.log, **more)

    def _failed(self, error: InternalError) -> Finding:
        """Returns the finding for a pass that raises or leaves invalid IR."""
        name = str(getattr(error, "pass_name", ""))
        for phase, each in _passes(self.options):
            for one in (one for one in each if one.name == name):
                step = Step(phase.name, name, str(one.pipeline_pass_spec()), None, 0)
                return self._found("pass", error.message, step=step, kind=INTERNAL)
        return self._found("unknown", error.message, kind=INTERNAL)

    def _behind_passes(self, compiled: Verdict) -> Finding:
        """Returns the finding if all passes are right: the printer or the C compiler."""
        if self._compiled(replace(self.options, opt_level=0)).state == "good":
            return self._found("C compiler", compiled.detail, kind=compiled.kind)
        return self._found("text", compiled.detail, kind=compiled.kind)

    def _in_step(self, steps: Sequence[Step], number: int) -> Finding:
        """Narrows a bad step to the first bad rewrite, if it is one."""
        step = steps[number - 1]
        least = steps[number - 2].rewrites if number > 1 else 0

        def verdict(limit: int) -> Verdict:
            return self._verdict(number, limit)

        bad = self._verdict(number)
        if step.rewrites > least and verdict(least).state == "good":
            first = self._first_bad(least, step.rewrites, verdict)
            if first is not None:
                return self._rewrite(step, number, first, verdict(first))
        return self._whole_step(number, bad)

    def _whole_step(self, number: int, bad: Verdict) -> Finding:
        step = self.steps[number - 1]
        before, after = (self._text(self._state(n), step) for n in (number - 1, number))
        change = {"before": before, "after": after, "kind": bad.kind}
        return self._found("pass", bad.detail, step=step, number=number, **change)

    def _rewrite(self, step: Step, number: int, limit: int, bad: Verdict) -> Finding:
        with collect() as remarks:
            before = self._text(self._state(number, limit - 1), step)
        with watch_rewrites() as applied:
            after = self._text(self._state(number, limit), step)
        refused = [r for r in remarks if "is beyond the limit" in r.text]
        return self._found(
            "rewrite",
            bad.detail,
            kind=bad.kind,
            step=step,
            number=limit,
            rewrite=applied[limit - 1].what,
            location=refused[0].location if refused else None,
            before=before,
            after=after,
        )

    def _first_bad(self, good: int, bad: int, verdict: Callable[[int], Verdict]) -> int | None:
        """
        Returns the first bad number after a good one; None if all numbers in between are
        unresolved.
        """
        while bad - good > 1:
            middle = (good + bad) // 2
            # Probe the numbers nearest to the middle first.
            for number in sorted(range(good + 1, bad), key=lambda n: abs(n - middle)):
                found = verdict(number)
                self.log.append(f"{number}: {found.state} {found.detail}".strip())
                if found.state != "unresolved":
                    break
            else:
                return None
            good, bad = (number, bad) if found.state == "good" else (good, number)
        return bad

    def _run_all(self) -> None:
        """Runs all passes and notes the steps. Raises InternalError if a pass or a check fails."""
        self.steps = found = []
        module = self.module.clone()

        with watch_rewrites() as applied:
            todo: list[tuple[Phase, list[Any]]] = []
            place = [0]

            def begin() -> None:
                place[0] = 0
                todo[:] = _passes(self.options)
                found.clear()
                applied.clear()

            def listener(name: str, part: ModuleOp, seconds: float) -> None:
                phase, each = todo[0]
                spec = each[place[0] % len(each)]
                place[0] += 1
                names = [o.sym_name.data for o in part.ops if isinstance(o, ExecutableOp)]
                where = names[0] if phase.each_executable and names else None
                text = str(spec.pipeline_pass_spec())
                found.append(Step(phase.name, name, text, where, len(applied)))

            def after(name: str, part: ModuleOp, seconds: float) -> None:
                place[0] = 0
                del todo[0]

            begin()
            hooks = Hooks(listener=listener, after=after, restarted=begin)
            failed = run_phases(get_context(), module, self.options, hooks=hooks)
        if failed:
            # Steps are numbered in the program without the failed passes.
            self.log.append(f"left out, because they fail: {', '.join(sorted(failed))}")
            disabled = (*self.options.disable_pass, *failed)
            self.options = replace(self.options, disable_pass=disabled)
            self._run_all()

    def _state(self, steps: int, limit: int | None = None) -> ModuleOp:
        """Returns the module after some steps, with at most some optional rewrites."""
        module, count = self.module.clone(), [0]

        def listener(name: str, part: ModuleOp, seconds: float) -> None:
            count[0] += 1
            if count[0] == steps:
                raise _Stopped

        if steps:
            options = self.options if limit is None else replace(self.options, rewrite_limit=limit)
            with suppress(_Stopped):
                run_phases(get_context(), module, options, hooks=Hooks(listener=listener))
        return module

    def _verdict(self, steps: int, limit: int | None = None) -> Verdict:
        return self._interpreted(self._state(steps, limit))

    def _interpreted(self, module: ModuleOp, limit: float | None = None) -> Verdict:
        try:
            limit = self.seconds or limit or self._interpreting
            return self._judged(interpreted(module, self.function, self.inputs, limit))
        except Endless as error:
            return Verdict("bad", str(error), "dies")
        except RuntimeTrap as error:
            return Verdict("bad", f"traps: {error}", "RuntimeTrap")
        except Exception as error:
            if "read-only" in str(error):
                return Verdict("bad", OVERWRITTEN)
            name = type(error).__name__
            return Verdict("unresolved", f"{name}: {error}", name)

    def _compiled(self, options: Options) -> Verdict:
        """Runs the compiled program in a child process, which may die."""
        try:
            limit = self.seconds or TIMEOUT
            results = compiled(self.module, options, self.function, self.inputs, limit)
        except Died as error:
            return Verdict("bad", str(error), "dies")
        except Raised as error:
            return Verdict("bad", str(error), error.kind)
        return self._judged(results)

    def _judged(self, results: Sequence[Any]) -> Verdict:
        found = self.check(results)
        return Verdict("bad", found[0]) if found else Verdict("good")

    def _text(self, module: ModuleOp, step: Step) -> str:
        """Prints the module of a step: one executable where the step is one's."""
        if step.executable is None:
            try:
                return print_module(module, elide_resources=False)
            except Exception:
                # Constants are computed when they are printed; these may be what is wrong.
                return print_module(module, elide_resources=True)
        executable = next(
            o
            for o in module.ops
            if isinstance(o, ExecutableOp) and o.sym_name.data == step.executable
        )
        with alone(executable) as part:
            return print_module(part, elide_resources=False)


@dataclass
class RewriteBisection(Bisection):
    """
    Finds the first optional rewrite that makes a compiled program bad, whatever that means: `judge`
    gets a program, and no IR is interpreted. `check` is not used.
    """

    judge: Callable[[Any], Verdict] = field(default=lambda program: Verdict("good"))

    def find(self) -> Finding:
        """Returns the culprit; raises the errors of a compilation."""
        last = self._verdict(0)
        self.log.append(f"compiled: {last.state} {last.detail}".strip())
        if last.state != "bad":
            return self._found("nothing", last.detail or "the compiled program is as expected")
        self._run_all()
        if (first := self._verdict(0, 0)).state != "good":
            detail = f"it is no better without optional rewrites: {first.detail}"
            return self._found("unknown", detail)
        total = self.steps[-1].rewrites
        limit = self._first_bad(0, total, lambda number: self._verdict(0, number))
        if limit is None:
            return self._found("unknown", "no limit of rewrites in between can be judged")
        number = next(i for i, step in enumerate(self.steps, 1) if step.rewrites >= limit)
        return self._rewrite(self.steps[number - 1], number, limit, self._verdict(0, limit))

    def fault(self) -> Fault | None:
        """Returns how the program is wrong; None if it is right or cannot be judged."""
        last = self._verdict(0)
        if last.state != "bad":
            return None
        return Fault(last.kind, by_rewrites=self._verdict(0, 0).state == "good")

    def has(self, fault: Fault) -> bool:
        """Whether the program is bad, and good without optional rewrites if the fault is one's."""
        found = self._verdict(0)
        if found.state != "bad" or found.kind != fault.kind:
            return False
        return not fault.by_rewrites or self._verdict(0, 0).state == "good"

    def _verdict(self, steps: int, limit: int | None = None) -> Verdict:
        options = replace(self.options, rewrite_limit=limit)
        return self.judge(compile(self.module, **options.keywords()))


def interpreted(
    module: ModuleOp, function: str, inputs: Sequence[Any], seconds: float = inf
) -> list[Any]:
    """
    Interprets a call, at any phase; returns all results, with those that are written into
    arguments.

    Raises RuntimeTrap, Endless, and any other error for a module that cannot be interpreted.
    """
    end = time.monotonic() + seconds

    def spend(block: Block, ops: int) -> None:
        if time.monotonic() > end:
            raise Endless(f"the interpreter has no results after {seconds:.0f} s")

    entry = next(
        op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == function
    )
    copies, updates = _copies(inputs), written_results(entry)
    for number, dtype in stored_dtypes(entry).items():
        copies[number] = recast(copies[number], dtype)
    # All other arguments are read-only for the interpreter.
    given = [MemRef.of(v) if i in updates.values() else v for i, v in enumerate(copies)]
    results = list(Interpreter(module, spend).call(function, *given))
    kinds = specs(result_records(entry, entry.function_type.outputs))
    found = [r if kind is None else recast(r, kind.dtype) for r, kind in zip(results, kinds)]
    written = {i: recast(copies[i], inputs[i].dtype) for i in updates.values()}
    return _with_updates(found, updates, written)


def compiled(
    module: ModuleOp,
    options: Options,
    function: str,
    inputs: Sequence[Any],
    seconds: float = TIMEOUT,
) -> list[Any]:
    """
    Compiles a module and calls it in a child process; returns all results, with those that are
    written into arguments.

    Raises Died, and Raised for an error in the child.
    """

    def run() -> list[Any]:
        with no_fallback():
            program: Any = compile(module, **options.keywords())
        entry, copies = program.functions[function], _copies(inputs)
        results = entry(*copies)
        given = list(results) if isinstance(results, tuple) else [results]
        updates = dict(entry.updates)
        for i, (copy, value) in enumerate(zip(copies, inputs, strict=True)):
            if i not in updates.values() and _bytes(copy) != _bytes(value):
                raise ValueError(OVERWRITTEN)
        return _with_updates(given, updates, dict(enumerate(copies)))

    return isolated(run, seconds)


def _copies(inputs: Sequence[Any]) -> list[Any]:
    """Returns the inputs, in arrays that may be written to."""
    return [np.array(v) if isinstance(v, np.ndarray) else v for v in inputs]


def _with_updates(
    results: Sequence[Any], updates: Mapping[int, int], written: Mapping[int, Any]
) -> list[Any]:
    """Returns all results in order, including those that were written into arguments."""
    found = [each for each in results if each is not None]
    for result, argument in sorted(updates.items()):
        found.insert(result, written[argument])
    return found


def _bytes(value: Any) -> bytes:
    return np.asarray(value).tobytes()


def _passes(options: Options) -> list[tuple[Phase, list[Any]]]:
    """Returns the phases with the passes that are not disabled."""
    return [
        (phase, [p for p in phase.passes if p.name not in options.disable_pass])
        for phase in phases(options)
    ]
