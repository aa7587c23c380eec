"""
Random numbers that an export would make constants, and seeds that it would drop.

`torch.export` runs `torch.manual_seed(0)` and `random.random()` once, while it traces. A compiled
program would neither seed PyTorch's generator nor draw another number. The program is refused,
with the line that does it:

    with random_state_refused():
        exported = torch.export.export(module, args)

A number that is drawn and not used changes no program: some models draw in evaluation mode what
only training uses.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import torch

from irees.errors import UnsupportedError

from .lines import is_users

_SEEDS = ("manual_seed", "seed", "set_state")
"""Methods of PyTorch's generator that change its state without drawing a number."""

_WRAPPERS = (
    "/torch/random.py",
    "/torch/_compile.py",
    "/torch/_dynamo/eval_frame.py",
    "/contextlib.py",
)
"""Files of the frames between a program and the methods of PyTorch's generator."""


_SEEDED = (
    "seeds PyTorch's generator, which a compiled program does not",
    "call torch.manual_seed before the program, or use torch.compile(backend='irees'), which "
    "leaves the call in Python",
)
_IN_PLACE = ("seed", "setstate", "set_state", "shuffle")
"""Functions of `random` and `numpy.random` that change what is theirs or the caller's."""

_DRAWN = "use torch.rand and the like, which draw in each call, or pass the number as an argument"


def _users_caller(frame: FrameType | None) -> FrameType | None:
    """The frame that calls a random function; None where PyTorch itself calls it."""
    while frame is not None and frame.f_code.co_filename.endswith(_WRAPPERS):
        frame = frame.f_back
    if frame is None or not is_users(frame.f_code.co_filename):
        return None
    return None if "/sympy/" in frame.f_code.co_filename else frame


class _Exports(threading.local):
    """How many exports a thread is in: the functions are replaced for all threads."""

    depth = 0


_exports = _Exports()
_lock = threading.Lock()
_replaced: list[tuple[Any, str, Any]] = []
"""Modules, names and their functions, while a thread exports."""
_threads = [0]


def _error(what: str, hint: str) -> UnsupportedError | None:
    """The error for a random function that an exported program calls; None for other callers."""
    frame = _users_caller(sys._getframe(2)) if _exports.depth else None
    if frame is None:
        return None
    file = frame.f_code.co_filename
    where = None if file.startswith("<") else f"{file}:{frame.f_lineno}"
    return UnsupportedError(f"the program {what}", location=where, hint=hint)


def _refused(original: Callable[..., Any], what: str, hint: str) -> Callable[..., Any]:
    """A function that raises an error if a program calls it while it is exported."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if (error := _error(what, hint)) is not None:
            raise error
        return original(*args, **kwargs)

    return call


class _Drawn:
    """A number that a program has drawn while it is exported: any use of it raises an error."""

    def __init__(self, error: UnsupportedError):
        self.__dict__["_error"] = error

    def __getattr__(self, name: str) -> Any:
        raise self.__dict__["_error"]


def _use(drawn: _Drawn, *args: Any, **kwargs: Any) -> Any:
    raise drawn.__dict__["_error"]


_USES = """
    lt le gt ge eq ne hash bool int float complex index len iter next contains getitem setitem call
    add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv mod rmod
    divmod rdivmod pow rpow matmul rmatmul and rand or ror xor rxor lshift rlshift rshift rrshift
    neg pos abs invert round trunc floor ceil array format str
"""
for _name in _USES.split():
    setattr(_Drawn, f"__{_name}__", _use)


def _kept(original: Callable[..., Any], what: str, hint: str) -> Callable[..., Any]:
    """A function whose result a program must not use if it calls it while it is exported."""

    def call(*args: Any, **kwargs: Any) -> Any:
        error = _error(what, hint)
        return original(*args, **kwargs) if error is None else _Drawn(error)

    return call


class _Generator:
    """PyTorch's default generator, as the functions of `torch.random` use it."""

    def __init__(self, original: torch.Generator):
        self._original = original
        for name in _SEEDS:
            setattr(self, name, _refused(getattr(original, name), *_SEEDED))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def _drawing(module: Any) -> list[str]:
    """The names of a module's functions that draw from its hidden generator, or seed it."""
    kept = ("getstate", "get_state", "default_rng", "get_bit_generator")
    names = [n for n in module.__all__ if n not in kept]
    return [n for n in names if not isinstance(getattr(module, n), type)]


def _replace() -> None:
    """Replaces the functions. The first thread that exports does it."""
    for module in (random, np.random):
        library = "Python's" if module is random else "numpy's"
        what = f"draws from {library} generator, which would be a constant of the program"
        for name in _drawing(module):
            original = getattr(module, name)
            _replaced.append((module, name, original))
            form = _refused if name in _IN_PLACE else _kept
            setattr(module, name, form(original, what, _DRAWN))
    original = torch.random.default_generator
    _replaced.append((torch.random, "default_generator", original))
    torch.random.default_generator = _Generator(original)  # type: ignore[assignment]


def _restore() -> None:
    while _replaced:
        setattr(*_replaced.pop())


@contextmanager
def random_state_refused() -> Generator[None]:
    """
    Raises UnsupportedError, in the code that runs in it, where a program seeds PyTorch's generator
    or draws from the generators of Python and numpy.
    """
    with _lock:
        _threads[0] += 1
        if _threads[0] == 1:
            _replace()
    _exports.depth += 1
    try:
        yield
    finally:
        _exports.depth -= 1
        with _lock:
            _threads[0] -= 1
            if _threads[0] == 0:
                _restore()
