"""
Text of a symbolic size: a program that computes from it is compiled for one size.

PyTorch writes a dynamic size as a symbol, so a trace of this program would see 3 characters:

    width = len(str(x.shape[0]))    # "s77"; eager sees "5"

While active, the program's own code sees the number, and PyTorch gives the size this one value: a
dim that is declared dynamic is refused at this line, and calls check one that may be static. The
symbol stays in statements that only report: `print`, calls of a logger, `warn`, `raise`, `assert`.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    torch.SymInt: int,
    torch.SymFloat: float,
    torch.SymBool: bool,
}
_OTHERS = frozenset(
    {"torch", "irees", "sympy", "logging", "warnings", "traceback", "pprint", "reprlib"}
)
"""Packages that write symbols for themselves, or for a report."""

_REPORTS = frozenset(
    {"print", "debug", "info", "warn", "warning", "error", "exception", "critical", "log",
     "warning_once", "warning_advice", "info_once"}
)  # fmt: skip
"""Names of functions and methods that report text."""


@functools.lru_cache(maxsize=64)
def _statements(file: str) -> tuple[ast.stmt, ...]:
    """All statements of a source file; none if it cannot be read."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _statement(frame: FrameType) -> ast.stmt | None:
    """The innermost statement that a frame runs."""
    line = frame.f_lineno
    around = [
        s
        for s in _statements(frame.f_code.co_filename)
        if s.lineno <= line <= s.end_lineno  # type: ignore[operator]
    ]
    return max(around, key=lambda s: (s.lineno, s.col_offset), default=None)


def _reports(statement: ast.stmt | None) -> bool:
    """Whether a statement only reports text."""
    if isinstance(statement, ast.Raise | ast.Assert):
        return True
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
    return name in _REPORTS


def _computes(frame: FrameType) -> bool:
    """Whether a frame belongs to the program and may compute from the text that it asks for."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package not in _OTHERS and not _reports(_statement(frame))


@contextmanager
def text_of_numbers() -> Generator[None]:
    """Makes text of symbolic numbers that of their values for the program's own code."""
    originals = {kind: kind.__repr__ for kind in _CONVERSIONS}

    def shown(number: Any) -> str:
        kind = type(number)
        if not _computes(sys._getframe(1)):
            return originals[kind](number)
        return repr(_CONVERSIONS[kind](number))

    for kind in originals:
        kind.__repr__ = shown  # type: ignore[method-assign]
    try:
        yield
    finally:
        for kind, original in originals.items():
            kind.__repr__ = original  # type: ignore[method-assign]
