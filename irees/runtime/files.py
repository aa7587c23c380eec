"""
Files that irees reads and writes for its callers.

A file is written under a temporary name in the same folder and then renamed, so the write is
atomic. A rename would replace any file of that name, and for root even a device node, so only
regular files are replaced.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from irees.errors import ArgumentError

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_MODE = 0o666


def path_of(value: Any, what: str) -> Path:
    """
    Checks a caller's path. Raises ArgumentError if it is none.

    A number is rejected: `open` would take it as a file descriptor and close it.
    """
    text = value
    try:
        text = os.fspath(value) if not isinstance(value, str) else value
    except Exception:
        pass
    if not isinstance(text, str):
        raise ArgumentError(
            f"cannot {what} a {type(value).__name__}", hint="give a path: a str or a pathlib.Path"
        )
    if not text or "\0" in text:
        reason = "has a NUL character" if text else "is empty"
        raise ArgumentError(f"cannot {what} {text!r}: the path {reason}")
    return Path(text)


def replaceable(path: Path) -> Path:
    """
    The path to replace, with symbolic links resolved.

    Raises ArgumentError if it exists and is not a regular file, is read-only, or is a dangling
    link.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return path
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if stat.S_ISLNK(found.st_mode):
        try:
            target = Path(os.path.realpath(path, strict=True))
            found, path = os.stat(target), target
        except OSError as error:
            raise _unwritable(path, error, "the link leads nowhere: ") from None
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for test, name in _KINDS if test(found.st_mode)), "no regular file")
        raise ArgumentError(f"cannot write {path}: it is {kind}", hint="name a file")
    if not os.access(path, os.W_OK):
        raise ArgumentError(f"cannot write {path}: it is read-only", hint="name another file")
    return path


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """
    Writes a file atomically: `write` fills a temporary file, which is then renamed.

    Raises ArgumentError when it cannot be written, or the path is not a regular file.
    """
    path = replaceable(path)
    private = None
    try:
        descriptor, private = tempfile.mkstemp(prefix=".irees-", dir=path.parent)
        with os.fdopen(descriptor, "w+b") as file:
            write(file)
        os.chmod(private, _MODE & ~_umask())
        os.replace(private, path)
        private = None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    finally:
        if private is not None:
            Path(private).unlink(missing_ok=True)


def _unwritable(path: Path, error: Exception, why: str = "") -> ArgumentError:
    reason = getattr(error, "strerror", None) or str(error)
    return ArgumentError(f"cannot write {path}: {why}{reason}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
