"""
Counting rewrites: every application of an optional one can be switched off, or made to fail.

The optional passes ask `may_rewrite` before each application, when all guards have passed. The
n-th answer of a compilation is always about the same rewrite, so a program that is wrong at limit
n and right at n - 1 was broken by the rewrite that the remark of limit n - 1 names: log2(count)
compilations find it. LLVM: `-opt-bisect-limit` and `DebugCounter`; MLIR: `-mlir-debug-counter`.

Nothing is counted unless somebody began to, for the length of a `with limited(...)` and in the
current thread or task only; a compilation always does.

`Fuel` is how many rewrites a driver that repeats itself may make: as many as the module has ops,
times a factor that no terminating set of patterns comes near.
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
"""Called with the number of a rewrite (from 1), its pass and its name; it may raise."""


@dataclass
class Counter:
    """How many rewrites were applied, and how many may be."""

    limit: int | None = None
    count: int = 0
    told: bool = False
    """The first rewrite beyond the limit has had its remark."""


_COUNTER: ContextVar[Counter | None] = ContextVar("irees_rewrites", default=None)
_WATCHER: ContextVar[Watcher | None] = ContextVar("irees_rewrite_watcher", default=None)


@contextmanager
def limited(limit: int | None) -> Generator[Counter]:
    """
    Counts the rewrites inside the block from 0, and refuses those beyond the limit.

    Without a limit, a block inside of another goes on with the other's count and limit; what
    it counted is forgotten if it raises.
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
    """Whether somebody limits or watches the rewrites of a compilation that begins now."""
    counter = _COUNTER.get()
    return _WATCHER.get() is not None or (counter is not None and counter.limit is not None)


@contextmanager
def watched(watcher: Watcher) -> Generator[None]:
    """Tells the watcher of every rewrite that is counted inside the block."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def may_rewrite(pass_name: str, op: Any, what: str) -> bool:
    """Whether the rewrite `what` of `op` may be applied; it counts as applied if so."""
    if limit_reached():
        tell_refused(pass_name, op, what)
        return False
    count_rewrite(pass_name, op, what)
    return True


def limit_reached() -> bool:
    """Whether no rewrite may be applied any more."""
    counter = _COUNTER.get()
    return counter is not None and counter.limit is not None and counter.count >= counter.limit


def count_rewrite(pass_name: str, op: Any, what: str) -> None:
    """Counts a rewrite. Raises what the watcher raises."""
    counter = _COUNTER.get()
    if counter is None:
        return
    counter.count += 1
    if (watcher := _WATCHER.get()) is not None:
        watcher(counter.count, pass_name, what)


def refused_is_told() -> bool:
    """Whether the first rewrite beyond the limit has had its remark."""
    counter = _COUNTER.get()
    return counter is None or counter.told


def tell_refused(pass_name: str, op: Any, what: str) -> None:
    """Makes a remark of the first rewrite beyond the limit."""
    counter = _COUNTER.get()
    if counter is None or counter.told:
        return
    counter.told = True
    text = f"rewrite {counter.count + 1} ({what}) is beyond the limit, as are all after it"
    remark("missed", pass_name, op, text)


@dataclass
class Fuel:
    """The rewrites that a driver may still make."""

    pass_name: str
    module: Any
    left: int
    given: int

    @staticmethod
    def of(pass_name: str, module: Any) -> Fuel:
        """Enough for any set of patterns that ends, on a module of that size."""
        given = LEAST_FUEL + FUEL_PER_OP * sum(1 for _ in module.walk())
        return Fuel(pass_name, module, given, given)

    @property
    def is_spent(self) -> bool:
        """Whether the driver has to stop."""
        return self.left <= 0

    def burn(self, what: str) -> None:
        """Takes account of one rewrite; a remark names the one that was the last."""
        self.left -= 1
        if self.left == 0:
            text = f"stopped after {self.given} rewrites, the last {what}: do they ever end?"
            remark("failed", self.pass_name, self.module, text)
