"""
The fence around every public entry: only an `IreesError` or an error of the caller's code leaves.

Any other exception is a bug of irees. The fence converts it to an `InternalError` and writes a
reproducer: the entry, its arguments (text and options in full, arrays as dtype and shape), package
versions, and the traceback.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from irees.errors import (
    ArgumentError,
    InternalError,
    IreesError,
    LimitExceededError,
    OutOfMemoryError,
    report_hint,
)

P = ParamSpec("P")
R = TypeVar("R")

MAX_TEXT_BYTES = 64 << 20
"""Maximum bytes of a text in a reproducer."""
MAX_REPR = 300
MAX_ITEMS, MAX_DEPTH = 100, 6
"""Maximum items of an argument, and levels of nesting, in a reproducer."""

_PARTS = ("irees", "xdsl", "numpy", "ml_dtypes", "torch", "jax", "onnx")
_OURS = ("xdsl", "pyo3_runtime")
"""Packages whose exceptions are caught even if they do not derive from `Exception`."""
_CALLERS = "_irees_caller"
_TOO_LARGE = ("array is too big", "Maximum allowed dimension", "iterator is too large",
              "broadcast dimensions too large")  # fmt: skip
"""Prefixes of numpy's ValueErrors for arrays, even empty ones, whose shape exceeds any memory."""


def fenced(entry: Callable[P, R]) -> Callable[P, R]:
    """Decorates an entry so that only an IreesError, or an error of the caller's code, escapes."""

    @wraps(entry)
    def guarded(*args: P.args, **named: P.kwargs) -> R:
        try:
            return entry(*args, **named)
        except InternalError as error:
            raise reproducible(entry.__qualname__, error, args, named) from error.__cause__
        except IreesError:
            raise
        except BaseException as error:
            if isinstance(error, TypeError) and (why := misfit(entry, args, named)):
                raise ArgumentError(f"{entry.__qualname__}: {why}") from None
            if (found := as_irees_error(entry.__qualname__, error, args, named)) is None:
                raise
            raise found from error

    guarded.__fenced__ = True  # pyright: ignore
    return guarded


def misfit(entry: Callable[..., Any], args: Any, named: Any) -> str | None:
    """Returns why the arguments do not match an entry's signature, in Python's words, or None."""
    try:
        signature(entry).bind(*args, **named)
    except TypeError as error:
        return str(error)
    return None


def let_through(callback: Callable[P, R]) -> Callable[P, R]:
    """Wraps a callback of the caller, so that its exceptions pass the fence unchanged."""

    @wraps(callback)
    def marked(*args: P.args, **named: P.kwargs) -> R:
        try:
            return callback(*args, **named)
        except BaseException as error:
            setattr(error, _CALLERS, True)
            raise

    return marked


def rethrow(
    entry: str, error: Exception, args: Any = (), named: Mapping[str, Any] | None = None
) -> NoReturn:
    """Raises the fenced form of an error, for entries where the decorator is too slow."""
    if (found := as_irees_error(entry, error, args, named)) is None:
        raise error
    raise found from error


def reproducible(
    entry: str, error: InternalError, args: Any = (), named: Mapping[str, Any] | None = None
) -> IreesError:
    """
    Converts an InternalError for an entry: adds a reproducer, or changes the type if the cause was
    a lack of memory or stack.
    """
    if isinstance(error.__cause__, MemoryError | RecursionError):
        return as_irees_error(entry, error.__cause__) or error
    if error.reproducer is None and error.hint is None:
        error.reproducer = write_reproducer(entry, error, args, named or {})
        error.hint = report_hint(error.reproducer)
    return error


def as_irees_error(
    entry: str, error: BaseException, args: Any = (), named: Mapping[str, Any] | None = None
) -> IreesError | None:
    """The error that an entry raises instead of `error`; None if `error` passes the fence."""
    if isinstance(error, IreesError) or getattr(error, _CALLERS, False):
        return None
    if isinstance(error, RecursionError):
        return LimitExceededError(f"{entry}: the program or its arguments nest too deeply")
    if isinstance(error, MemoryError) or (
        isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE)
    ):
        return OutOfMemoryError(f"{entry}: out of memory")
    foreign = type(error).__module__.partition(".")[0] in _OURS
    if not isinstance(error, Exception) and not foreign:
        return None
    text = next(iter(str(error).splitlines()), "")
    summary = f"{entry} failed: {type(error).__name__}: {text[:MAX_REPR]}"
    return InternalError(summary, reproducer=write_reproducer(entry, error, args, named or {}))


def write_reproducer(
    entry: str, error: BaseException, args: Any, named: Mapping[str, Any]
) -> str | None:
    """Writes a reproducer to a temporary file; returns its path, None if that fails."""
    trace = "".join(traceback.format_exception(error))
    given = {**{str(i): value for i, value in enumerate(args)}, **named}
    parts = [f"{entry}\n\n{versions()}\n"]
    parts += [f"argument {name}: {describe(value)}\n" for name, value in given.items()]
    try:
        descriptor, path = tempfile.mkstemp(prefix="irees-crash-", suffix=".txt")
        with os.fdopen(descriptor, "w", errors="backslashreplace") as file:
            file.write("\n".join([*parts, trace]))
    except OSError:
        return None
    return path


def versions() -> str:
    """The versions of Python and of the imported packages, and the platform."""
    from importlib.metadata import PackageNotFoundError, version

    lines = [f"python {platform.python_version()} on {platform.platform()}"]
    for name in _PARTS:
        if name in sys.modules:
            try:
                lines.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                lines.append(f"{name} (version unknown)")
    return "\n".join(lines)


def describe(value: Any, depth: int = 0) -> str:
    """Formats an argument for a reproducer: text and modules in full, arrays as their shape."""
    try:
        return _describe(value, depth)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be described: {type(error).__name__}>"


def _describe(value: Any, depth: int) -> str:
    kind = type(value).__name__
    if isinstance(value, str | bytes):
        text = _plain(value)
        short = len(text) <= MAX_REPR and "\n" not in text
        return repr(value) if short else f"{len(value)} long:\n{text}"
    if isinstance(value, Path):
        return f"{value}\n{value.read_bytes()[:MAX_TEXT_BYTES].decode(errors='backslashreplace')}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{kind} {value.dtype} {tuple(value.shape)}"
    if kind == "ModuleOp":
        return f"a module:\n{str(value)[:MAX_TEXT_BYTES]}"
    if isinstance(value, Mapping | list | tuple) and depth < MAX_DEPTH:
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        inner = [f"{k}: {describe(v, depth + 1)}" for k, v in list(items)[:MAX_ITEMS]]
        return f"{kind} of {len(value)} {{{', '.join(inner)}}}"
    return repr(value)[:MAX_REPR]


def _plain(value: str | bytes) -> str:
    cut = value[:MAX_TEXT_BYTES]
    return cut if isinstance(cut, str) else cut.decode(errors="backslashreplace")
