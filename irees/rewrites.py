"""
Counts rewrites, so that each application of an optional rewrite can be disabled or made to fail.

Optional passes call `may_rewrite` before each application, after all other checks. The n-th query
of a compilation is always about the same rewrite. If a program is wrong at limit n and right at
n - 1, the rewrite named in the remark of limit n - 1 broke it: bisection takes log2(count)
compilations. LLVM: `-opt-bisect-limit` and `DebugCounter`; MLIR: `-mlir-debug-counter`.

Rewrites are counted only inside of `with limited(...)`, in the current thread or task; every
compilation uses it.

`Fuel` bounds the rewrites of a fixpoint driver: the number of ops in the module times a factor
that no terminating set of patterns comes near.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from irees.remarks import remark

FUEL_PER_OP, LEAST_FUEL = 32, 1024

Watcher = Callable[[int, str, str], None]
"""Called with the number of a rewrite (from 1), its pass and its name; may raise."""


@dataclass
class Counter:
    """The number of applied rewrites, and their limit."""

    limit: int | None = None
    count: int = 0
    told: bool = False
    """Whether the first rewrite beyond the limit was reported in a remark."""


_COUNTER: ContextVar[Counter | None] = ContextVar("irees_rewrites", default=None)
_WATCHER: ContextVar[Watcher | None] = ContextVar("irees_rewrite_watcher", default=None)


@contextmanager
def limited(limit: int | None) -> Generator[Counter]:
    """
    Counts the rewrites inside the block from 0, and denies those beyond the limit.

    A nested block without a limit continues with the outer count and limit; if it raises, its
    count is discarded.
    """
    outer = _COUNTER.get() if limit is None else None
    counter = Counter(limit) if outer is None else replace(outer)
    token = _COUNTER.set(counter)
    try:
        yield counter
        if outer is not None:
            outer.count, outer.told = counter.count, counter.told
    finally:
        _COUNTER.reset(token)


def is_observed() -> bool:
    """Whether a limit or a watcher applies to a compilation that starts now."""
    counter = _COUNTER.get()
    return _WATCHER.get() is not None or (counter is not None and counter.limit is not None)


@contextmanager
def watched(watcher: Watcher) -> Generator[None]:
    """Calls the watcher for every rewrite counted inside the block."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def may_rewrite(pass_name: str, op: Any, what: str) -> bool:
    """Whether the rewrite `what` of `op` may be applied; if so, counts it."""
    if limit_reached():
        tell_refused(pass_name, op, what)
        return False
    count_rewrite(pass_name, op, what)
    return True


def limit_reached() -> bool:
    """Whether the limit is reached, so that no further rewrite may be applied."""
    counter = _COUNTER.get()
    return counter is not None and counter.limit is not None and counter.count >= counter.limit


def count_rewrite(pass_name: str, op: Any, what: str) -> None:
    """Counts a rewrite. Raises the errors of the watcher."""
    counter = _COUNTER.get()
    if counter is None:
        return
    counter.count += 1
    if (watcher := _WATCHER.get()) is not None:
        watcher(counter.count, pass_name, what)


def refused_is_told() -> bool:
    """Whether the remark about the first rewrite beyond the limit was emitted or is not needed."""
    counter = _COUNTER.get()
    return counter is None or counter.told


def tell_refused(pass_name: str, op: Any, what: str) -> None:
    """Emits a remark about the first rewrite beyond the limit, once."""
    counter = _COUNTER.get()
    if counter is None or counter.told:
        return
    counter.told = True
    text = f"rewrite {counter.count + 1} ({what}) is beyond the limit, as are all after it"
    remark("missed", pass_name, op, text)


@dataclass
class Fuel:
    """The number of rewrites that a driver may still apply."""

    pass_name: str
    module: Any
    left: int
    given: int

    @staticmethod
    def of(pass_name: str, module: Any) -> Fuel:
        """Returns enough fuel for any terminating set of patterns on a module of that size."""
        given = LEAST_FUEL + FUEL_PER_OP * sum(1 for _ in module.walk())
        return Fuel(pass_name, module, given, given)

    @property
    def is_spent(self) -> bool:
        """Whether the driver has to stop."""
        return self.left <= 0

    def burn(self, what: str) -> None:
        """Uses fuel for one rewrite; emits a remark with its name when the fuel is spent."""
        self.left -= 1
        if self.left == 0:
            text = f"stopped after {self.given} rewrites, the last {what}: they may not terminate"
            remark("failed", self.pass_name, self.module, text)
