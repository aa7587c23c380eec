"""
Faults on purpose: any one rewrite of a compilation raises, as a bug in it would.

    with watch_rewrites() as rewrites:
        irees.compile(module)
    for number in range(1, len(rewrites) + 1):
        with fail_rewrite(number):
            irees.compile(module)  # still right

A module is compiled each time; text may come from the cache, where nothing is rewritten.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from irees.rewrites import watched


@dataclass(frozen=True)
class AppliedRewrite:
    """The number of a rewrite in its compilation, from 1, its pass and what it did."""

    number: int
    pass_name: str
    what: str


class InjectedFault(RuntimeError):
    """What a rewrite raises that was made to fail."""


@contextmanager
def watch_rewrites() -> Generator[list[AppliedRewrite]]:
    """Yields the list to which every counted rewrite inside the block is appended."""
    applied: list[AppliedRewrite] = []

    def watcher(number: int, pass_name: str, what: str) -> None:
        applied.append(AppliedRewrite(number, pass_name, what))

    with watched(watcher):
        yield applied


@contextmanager
def fail_rewrite(number: int) -> Generator[list[AppliedRewrite]]:
    """
    Makes rewrite `number` raise InjectedFault, once; yields the list of what raised.

    The rewrite of a pattern has happened by then, any other is about to.
    """
    raised: list[AppliedRewrite] = []

    def watcher(reached: int, pass_name: str, what: str) -> None:
        if reached == number and not raised:
            raised.append(AppliedRewrite(reached, pass_name, what))
            raise InjectedFault(f"rewrite {number} was made to fail")

    with watched(watcher):
        yield raised
