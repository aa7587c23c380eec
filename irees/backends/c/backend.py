"""
The C backend: kernel IR to C texts, a manifest and constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target as XdslTarget

from irees.backends.c import emit
from irees.backends.common.emit_ops import Expressions
from irees.backends.common.printer import Printer, Unit
from irees.backends.common.program_text import (
    Backend,
    Sources,
    host_support,
    joined_texts,
    print_program,
    unit_text,
)


@cache
def _header(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


def _kernel(
    function: func.FuncOp, name: str, unit: Unit
) -> tuple[dict[str, str], str, Expressions]:
    """Prints each kernel as a separate text, so that they compile in parallel."""
    text, expressions = emit.kernel(function, name, unit)
    if expressions.dots:
        text = f"{_header('irees_dots.h')}\n{text}"
    if expressions.halves:
        text = f"{_header('irees_halves.h')}\n{text}"
    return {name: unit_text(text, expressions, "".join(expressions.headers))}, "", Expressions()


BACKEND = Backend(Printer, _kernel)


def emit_program(module: ModuleOp) -> Sources:
    """
    Prints a module that was lowered through all phases: one text per kernel, one for the host.

    Raises UnsupportedError for an op or type without a C form.
    """
    return print_program(module, BACKEND)


@dataclass(frozen=True)
class IreesCTarget(XdslTarget):
    """Prints a module lowered by `irees-pipeline` as C (`xdsl-opt -t irees-c`)."""

    name = "irees-c"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        text = joined_texts(emit_program(module).texts)
        output.write(text.removeprefix(host_support()))
