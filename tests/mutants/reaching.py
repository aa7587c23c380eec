"""
Which programs run the lines of a fault: a program that does not cannot show it.

The programs are the public functions of those of `tests/golden` and of `bisect_sample`, each with
arguments. They are compiled once, without a C compiler, while a trace notes which of the mutated
lines run.
"""

from __future__ import annotations

import ast
import signal
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 25
"""Seconds to compile or to interpret a program; one that takes longer is left out."""
MOST_ELEMENTS = 1 << 17
MOST_TEXT = 60_000
"""Characters of a program; larger ones hold weights."""
SIZE = 7
"""Size of a dynamic dim. An odd one: it divides by no tile."""


@dataclass
class Called:
    """A function of a program, alone in its text, with arguments and the right results."""

    name: str
    function: str
    text: str
    inputs: tuple[Any, ...]
    results: list[Any]
    target: str
    seconds: float = 0.0
    mutants: set[str] = field(default_factory=set)
    """Names of the faults whose lines its compilation runs."""


class Late(BaseException):
    """The time is up; no handler of errors catches it."""


@contextmanager
def in_time(seconds: int = SECONDS) -> Generator[None]:
    """Raises Late in the block after some seconds."""

    def stop(*_: Any) -> None:
        raise Late

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def lines_of(mutant: Any) -> set[int]:
    """Returns the lines that run if a changed line of a Python file does."""
    text = (ROOT / mutant.file).read_text()
    first = text[: text.index(mutant.old)].count("\n") + 1
    old, new = mutant.old.splitlines(), mutant.new.splitlines()
    changed: set[int] = set()
    for kind, start, end, _, _ in SequenceMatcher(None, old, new, False).get_opcodes():
        if kind == "insert":
            start, end = max(start - 1, 0), min(start + 1, len(old))
        if kind != "equal":
            changed |= set(range(first + start, first + end))
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    found: set[int] = set()
    for line in changed:
        around = [s for s in statements if s.lineno <= line <= (s.end_lineno or 0)]
        if around:
            inner = max(around, key=lambda s: s.lineno)
            body: list[ast.stmt] = getattr(inner, "body", [])
            end = body[0].lineno - 1 if body else inner.end_lineno or inner.lineno
            found |= set(range(inner.lineno, max(end, inner.lineno) + 1))
    return found


class Trace:
    """Notes which mutated lines run."""

    def __init__(self, mutants: Iterable[Any]):
        self.lines = {
            mutant.name: {(str(ROOT / mutant.file), line) for line in lines_of(mutant)}
            for mutant in mutants
            if mutant.file.endswith(".py")
        }
        self._all = set[tuple[str, int]]().union(*self.lines.values())
        self._known: dict[CodeType, bool] = {}
        self._ran: set[tuple[str, int]] = set()

    @contextmanager
    def __call__(self) -> Generator[set[str]]:
        """Yields a set that has the names of the mutants after the block."""
        self._ran.clear()
        found: set[str] = set()
        sys.settrace(self._call)
        try:
            yield found
        finally:
            sys.settrace(None)
            found |= {name for name, lines in self.lines.items() if lines & self._ran}

    def _call(self, frame: FrameType, event: str, given: Any) -> Any:
        code = frame.f_code
        wanted = self._known.get(code)
        if wanted is None:
            places = {(code.co_filename, line) for _, _, line in code.co_lines() if line}
            wanted = self._known[code] = bool(places & self._all)
        return self._line if wanted else None

    def _line(self, frame: FrameType, event: str, given: Any) -> Any:
        self._ran.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


def functions(text: str) -> Iterator[tuple[str, str]]:
    """Yields the public functions of a program, each with the text of what it uses."""
    from xdsl.dialects import func
    from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
    from xdsl.rewriter import Rewriter

    from irees.build import import_source
    from irees.frontends.mlir import print_module

    def symbol(op: Any) -> str | None:
        name = op.properties.get("sym_name") or op.attributes.get("sym_name")
        return name.data if isinstance(name, StringAttr) else None

    module = import_source(text).module
    named = {symbol(op): op for op in module.ops}
    for name, op in named.items():
        if not isinstance(op, func.FuncOp) or ((v := op.sym_visibility) and v.data != "public"):
            continue
        kept, todo = set[str | None](), [name]
        while todo:
            if (one := todo.pop()) in kept or one not in named:
                continue
            kept.add(one)
            for inner in named[one].walk():
                values = [*inner.attributes.values(), *inner.properties.values()]
                todo += [v.root_reference.data for v in values if isinstance(v, SymbolRefAttr)]
        alone = module.clone()
        for other in list(alone.ops):
            if symbol(other) is not None and symbol(other) not in kept:
                Rewriter.erase_op(other, safe_erase=False)
        yield str(name), print_module(alone, elide_resources=False)


def inputs_for(specs: Sequence[Any]) -> tuple[Any, ...]:
    """Returns random arguments. Raises ValueError for one that is no tensor, or too many."""
    import numpy as np

    random = np.random.default_rng(0)
    found: list[Any] = []
    for spec in specs:
        if spec is None:
            raise ValueError("an argument is neither a tensor nor a number")
        shape = tuple(SIZE if size is None else size for size in spec.shape)
        kind = spec.dtype
        if not spec.is_tensor:
            found.append(1.5 if kind.name.startswith("float") else 2)
        elif kind.kind == "b" or kind.name.startswith(("int", "uint")):
            found.append(random.integers(0, 2 if kind.kind == "b" else 4, shape).astype(kind))
        else:
            found.append(random.standard_normal(shape).astype(kind))
    if sum(np.size(value) for value in found) > MOST_ELEMENTS:
        raise ValueError("the arguments are too large")
    return tuple(found)


def corpus(mutants: Sequence[Any], texts: dict[str, str]) -> Iterator[Called]:
    """Yields the functions of programs that can be compiled and interpreted, for each target."""
    trace, seen = Trace(mutants), set[str]()
    for title, whole in texts.items():
        try:
            parts = list(functions(whole))
        except Exception:
            continue  # many lit files hold what no program may
        for name, text in parts:
            if text in seen:
                continue
            seen.add(text)
            try:
                with in_time():
                    inputs, results = _interpreted(name, text)
            except (Exception, Late):
                continue
            for target in ("cpu", "cuda-emulated"):
                begin = time.monotonic()
                try:
                    with in_time(), trace() as ran:
                        _printed(text, target)
                except (Exception, Late):
                    continue
                call = Called(title, name, text, inputs, results, target)
                call.seconds, call.mutants = time.monotonic() - begin, ran
                yield call


def _interpreted(name: str, text: str) -> tuple[tuple[Any, ...], list[Any]]:
    from irees.backends.reference.backend import ReferenceProgram
    from irees.build import import_source, make_interpretable
    from irees.options import Options
    from irees.testing.bisecting import interpreted

    module = import_source(text).module
    make_interpretable(module, Options())
    inputs = inputs_for(ReferenceProgram(module.clone()).functions[name].arguments)
    return inputs, interpreted(module, name, inputs)


def _printed(text: str, target: str) -> None:
    """Compiles a program up to the text of its kernels."""
    from irees.backends.c.backend import BACKEND as C
    from irees.backends.common.program_text import print_program
    from irees.backends.cuda.backend import BACKEND as CUDA
    from irees.build import import_source, make_interpretable, return_updates
    from irees.dialects import get_context
    from irees.options import Options
    from irees.pipeline import run_phases

    options = Options(target=target)
    module = import_source(text).module
    make_interpretable(module, options)
    return_updates(module, options)
    run_phases(get_context(), module, options)
    print_program(module, C if target == "cpu" else CUDA)
