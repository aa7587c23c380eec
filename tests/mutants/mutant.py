"""One fault, put back to see that a test finds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault, and the tests (pytest's names, or lit files) that must notice it."""

    name: str
    fault: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
