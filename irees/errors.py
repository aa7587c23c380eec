"""
Every error that irees raises, and its exit code on the command line.

All messages have the form `location: error: op: what is required; hint`. No other exceptions
escape: a raw Python exception that reaches a user is a bug, and so is an `InternalError`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_INTERNAL = 70


def describe_location(location: Any) -> str | None:
    """`file:line:col` of an MLIR location (or a string), None if unknown."""
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


def _place_of(op: Any) -> str | None:
    """Returns the location of an op, or of the innermost op around it that has one."""
    while op is not None:
        if (found := describe_location(getattr(op, "location", None))) is not None:
            return found
        op = op.parent_op() if hasattr(op, "parent_op") else None
    return None


class IreesError(Exception):
    """
    The base class of all irees errors.

    `op` is an operation or the name of one; an operation also provides the default location.
    `hint` tells the user how to proceed.
    """

    exit_code = 1

    def __init__(
        self, message: str, *, location: Any = None, op: Any = None, hint: str | None = None
    ):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.op = op if op is None or isinstance(op, str) else str(op.name)
        if location is None and not isinstance(op, str):
            location = _place_of(op)
        self.location = describe_location(location)

    def _text(self, *prefix: str | None) -> str:
        text = ": ".join(part for part in (*prefix, self.op, self.message) if part)
        return f"{text}; {self.hint}" if self.hint else text

    def __str__(self) -> str:
        return self._text(self.location, "error") if self.location else self._text()

    def diagnostic(self) -> str:
        """The line for a terminal: like `str`, but always with a location and `error`."""
        return self._text(self.location or "irees", "error")


class ParseError(IreesError):
    """The text is not valid MLIR, or uses an unknown dialect."""


class VerifyError(IreesError):
    """The IR violates a constraint of one of its ops."""


class UnsupportedError(IreesError):
    """The input is valid, but irees does not support it or the target yet."""

    exit_code = 3


class LimitExceededError(IreesError):
    """A limit was exceeded; the message has the amount and the limit."""

    exit_code = 5


class OutOfMemoryError(LimitExceededError, MemoryError):
    """An allocation failed, or its size does not fit in 63 bits."""


class ArgumentError(IreesError, TypeError, ValueError):
    """An argument or option has the wrong count, type, rank, size or value."""


class PluginError(IreesError):
    """A requested plug-in is missing or fails, or an inserted pass fails."""


class RuntimeTrap(IreesError, RuntimeError):
    """The program trapped: a failed `cf.assert`, a bad size, an index out of bounds."""

    exit_code = 6


class ToolchainError(IreesError):
    """There is no C compiler, or it failed; the message has the command and its output."""

    exit_code = 4


class DeviceError(IreesError):
    """A device is missing, busy or lost."""

    exit_code = 4


def report_hint(reproducer: Path | str | None) -> str | None:
    """The hint for a bug: report it with the reproducer."""
    return None if reproducer is None else f"please report it with the file {reproducer}"


class InternalError(IreesError):
    """
    A bug of irees. `reproducer` is the path of a file to reproduce it, `pass_name` the pass that
    raised the error.
    """

    exit_code = EXIT_INTERNAL
    pass_name: str | None = None

    def __init__(self, message: str, *, reproducer: Path | str | None = None, **where: Any):
        if reproducer is not None and where.get("hint") is None:
            where["hint"] = report_hint(reproducer)
        super().__init__(message, **where)
        self.reproducer = reproducer
