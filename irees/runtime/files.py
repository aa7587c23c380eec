"""
Files that irees reads and writes for its callers.

A file is written beside its place and then renamed, so that it appears whole or not at all. A
rename replaces whatever has the name, as root even the node of a device: only a regular file is
replaced.
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
    A caller's path. Raises ArgumentError for what is none.

    A number would be taken for an open file, which `open` reads and then closes.
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
    The place where a file of that path lies, symbolic links followed.

    Raises ArgumentError for one that is there and is no regular file, may not be written, or is a
    link to nothing.
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
    Writes a file, whole or not at all: `write` fills one beside it, which then takes its name.

    Raises ArgumentError when it cannot be written, or something else than a file has the name.
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
