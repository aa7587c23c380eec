"""
Every error that irees raises, and the exit code that the command line gives it.

A message has one shape, `location: error: op: what is required; way out`, whatever part of
irees found the fault. Nothing else escapes: a raw Python exception that reaches a user is
a bug, and so is an `InternalError`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_INTERNAL = 70


def describe_location(location: Any) -> str | None:
    """`file:line:col` of an MLIR location (or of a string), None when it is not known."""
    if location is None or isinstance(location, str):
        return location or None
    if (filename := getattr(location, "filename", None)) is not None:
        line, column = getattr(location, "line", None), getattr(location, "column", None)
        parts = (filename, line, column)
        return ":".join(str(getattr(part, "data", part)) for part in parts if part is not None)
    for inner in ("location", "callee", "locations"):
        if (found := getattr(location, inner, None)) is not None:
            children = getattr(found, "data", (found,))
            return next((text for child in children if (text := describe_location(child))), None)
    return None


class IreesError(Exception):
    """
    The base of all errors of irees.

    `op` is an operation or the name of one; an operation also gives the location when none is
    passed. `hint` says the way out.
    """

    exit_code = 1

    def __init__(
        self, message: str, *, location: Any = None, op: Any = None, hint: str | None = None
    ):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.op = op if op is None or isinstance(op, str) else str(op.name)
        if location is None and op is not None and not isinstance(op, str):
            location = getattr(op, "location", None)
        self.location = describe_location(location)

    def _text(self, *prefix: str | None) -> str:
        text = ": ".join(part for part in (*prefix, self.op, self.message) if part)
        return f"{text}; {self.hint}" if self.hint else text

    def __str__(self) -> str:
        return self._text(self.location, "error") if self.location else self._text()

    def diagnostic(self) -> str:
        """The line for a terminal: like `str`, and always with a place and `error`."""
        return self._text(self.location or "irees", "error")


class ParseError(IreesError):
    """The text is not MLIR, or not of a dialect that irees knows."""


class VerifyError(IreesError):
    """The IR breaks a rule of one of its ops."""


class UnsupportedError(IreesError):
    """Valid input that irees cannot compile yet, or a target that it does not have."""

    exit_code = 3


class LimitExceededError(IreesError):
    """Something is larger than a stated limit; the message has the number and the limit."""

    exit_code = 5


class OutOfMemoryError(LimitExceededError, MemoryError):
    """An allocation failed, or its size does not fit in 63 bits."""


class ArgumentError(IreesError, TypeError, ValueError):
    """An argument or an option that does not fit: count, type, rank, size or value."""


class RuntimeTrap(IreesError, RuntimeError):
    """The program stopped itself: a failed `cf.assert`, a bad size, an index out of bounds."""

    exit_code = 6


class ToolchainError(IreesError):
    """No C compiler, or it failed: the message has the command and what it printed."""

    exit_code = 4


class DeviceError(IreesError):
    """A device is missing, busy or lost."""

    exit_code = 4


def report_hint(reproducer: Path | str | None) -> str | None:
    """What to do about a bug."""
    return None if reproducer is None else f"please report it with the file {reproducer}"


class InternalError(IreesError):
    """Always a bug of irees. `reproducer` is the path of a file that shows it again."""

    exit_code = EXIT_INTERNAL

    def __init__(self, message: str, *, reproducer: Path | str | None = None, **where: Any):
        if reproducer is not None and where.get("hint") is None:
            where["hint"] = report_hint(reproducer)
        super().__init__(message, **where)
        self.reproducer = reproducer
