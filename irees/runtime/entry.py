"""The function that a call of a program runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from irees.errors import ArgumentError

F = TypeVar("F")


def sole_function(functions: Mapping[str, F]) -> F | None:
    """`main`, or the only function; None if there is neither."""
    if "main" not in functions and len(functions) == 1:
        return next(iter(functions.values()))
    return functions.get("main")


def main_function(functions: Mapping[str, F]) -> F:
    """`main`, or the only function. Raises ArgumentError when there is neither."""
    if (found := sole_function(functions)) is None:
        names = ", ".join(functions) or "none"
        raise ArgumentError(
            f"the program has no single function to call (it has {names})",
            hint="choose one of program.functions",
        )
    return found
