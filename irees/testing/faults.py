"""
Fault injection: makes any one rewrite of a compilation raise, as a bug in it would.

    with watch_rewrites() as rewrites:
        irees.compile(module)
    for number in range(1, len(rewrites) + 1):
        with fail_rewrite(number):
            irees.compile(module)  # still right

Pass a module, not text: text may come from the program cache, and then no rewrite runs.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from irees.rewrites import watched


@dataclass(frozen=True)
class AppliedRewrite:
    """A rewrite of a compilation: its number (from 1), its pass and its description."""

    number: int
    pass_name: str
    what: str


class InjectedFault(RuntimeError):
    """Raised by a rewrite that `fail_rewrite` makes fail."""


@contextmanager
def watch_rewrites() -> Generator[list[AppliedRewrite]]:
    """Yields a list to which every counted rewrite inside the block is appended."""
    applied: list[AppliedRewrite] = []

    def watcher(number: int, pass_name: str, what: str) -> None:
        applied.append(AppliedRewrite(number, pass_name, what))

    with watched(watcher):
        yield applied


@contextmanager
def fail_rewrite(number: int) -> Generator[list[AppliedRewrite]]:
    """
    Makes rewrite `number` raise InjectedFault once; yields the list of rewrites that raised.

    A pattern raises after its rewrite; other rewrites raise before.
    """
    raised: list[AppliedRewrite] = []

    def watcher(reached: int, pass_name: str, what: str) -> None:
        if reached == number and not raised:
            raised.append(AppliedRewrite(reached, pass_name, what))
            raise InjectedFault(f"rewrite {number} was made to fail")

    with watched(watcher):
        yield raised
