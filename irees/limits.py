"""
The limits of a compilation: one table, and the budget that the passes of a compilation share.

Untrusted text must not take more time or memory than stated here. `Options.limits` overrides
single entries. A compilation begins a budget (`budgeted`); whatever repeats work by what the
program says (inlining, initializers, folding, printing) calls `spend` before it does
the work. All of them draw on `work`, so two expensive constructs do not add up to twice the limit.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from irees.errors import ArgumentError, LimitExceededError


@dataclass(frozen=True)
class Limit:
    """One limit: its default in a unit, and what it bounds."""

    name: str
    default: int
    unit: str
    bounds: str


TABLE = (
    Limit("text_bytes", 1 << 28, "bytes", "the text of a program, without its resources"),
    Limit("nesting", 64, "brackets", "the nesting depth of brackets in a text"),
    Limit("digits", 400, "digits", "the length of one number (2^1024 has 309 digits)"),
    Limit("integer_bits", 128, "bits", "the width of an integer type"),
    Limit("alias_tokens", 1 << 16, "tokens", "an alias with the aliases in it written out"),
    Limit("ops", 1 << 20, "ops", "the ops of a program, nested ones included"),
    Limit(
        "constant_bytes", 1 << 30, "bytes", "a tensor that is computed at compile time, or state"
    ),
    Limit("map_terms", 1 << 8, "terms", "the operators in the results of one affine map"),
    Limit("work", 30_000_000, "steps", "the work that a program asks for by repetition, see below"),
)
"""Every limit. The defaults admit the largest models that are known to compile, ten times over."""

LIMITS = {limit.name: limit for limit in TABLE}


@dataclass(frozen=True)
class Cost:
    """What one repetition of a construct takes of `work`."""

    steps: int
    per: str


COSTS = {
    "aliases": Cost(1, "token of an alias that is used, if it has more than 64"),
    "inlining": Cost(2000, "op of a function that is copied to a further call"),
    "initializers": Cost(8, "op that an initializer runs, or block that it branches to"),
    "folding": Cost(1, "64 elements of a tensor that is computed at compile time"),
    "printing": Cost(1, "op of the IR that a listener or a flag prints"),
}
"""
What takes `work`. A step is about one microsecond of the compiler: all of it is half a minute.
"""

ELEMENTS_PER_STEP = 64
"""Elements of a tensor that the interpreter computes in about one step of `work`."""


OPTIONAL_SHARE = 10
"""One optional piece of work may take this fraction (1/10) of the budget that is left."""


class Budget:
    """The limits of a compilation, and how much of `work` is left."""

    def __init__(self, overrides: Mapping[str, int] | None = None):
        self.limits = {each.name: each.default for each in TABLE} | dict(overrides or {})
        self.left = self.limits["work"]


_BUDGET: ContextVar[Budget | None] = ContextVar("irees_budget", default=None)
_DEFAULTS = Budget()


@contextmanager
def budgeted(overrides: Mapping[str, int] | None = None) -> Generator[Budget]:
    """Begins the budget of a compilation; one inside another draws on the outer one."""
    if _BUDGET.get() is not None and not overrides:
        yield _BUDGET.get() or _DEFAULTS
        return
    token = _BUDGET.set(budget := Budget(overrides))
    try:
        yield budget
    finally:
        _BUDGET.reset(token)


def limit(name: str) -> int:
    """The limit of that name in the current compilation, its default outside of one."""
    return (_BUDGET.get() or _DEFAULTS).limits[name]


def exceeded(name: str, what: str, **where: Any) -> LimitExceededError:
    """The error for a limit; `what` says what is too large, with the number."""
    where.setdefault("hint", f"raise it with limits={{{name!r}: ...}} if you trust the program")
    return LimitExceededError(
        f"{what} (limit {name!r}: {limit(name)} {LIMITS[name].unit})", **where
    )


def check(name: str, amount: int, what: str, **where: Any) -> None:
    """Raises LimitExceededError when an amount is above the limit of that name."""
    if amount > limit(name):
        raise exceeded(name, what, **where)


def spend(construct: str, count: int, **where: Any) -> None:
    """
    Takes `count` repetitions of a construct of `COSTS` off the budget of the compilation.

    Raises LimitExceededError, with the construct and where it stands, when nothing is left. Does
    nothing outside of a compilation.
    """
    budget = _BUDGET.get()
    if budget is None:
        return
    budget.left -= count * COSTS[construct].steps
    if budget.left < 0:
        raise exceeded("work", f"{construct} takes too much work", **where)


def afford(construct: str, count: int) -> bool:
    """
    `spend` for work that may be left undone: False, and nothing taken, for more than a tenth of
    what is left.
    """
    budget = _BUDGET.get()
    if budget is None:
        return True
    cost = count * COSTS[construct].steps
    if cost * OPTIONAL_SHARE > budget.left:
        return False
    budget.left -= cost
    return True


def canonical_limits(limits: Any) -> str | None:
    """Overridden limits, a mapping or JSON, as sorted JSON; None without any."""
    data: Any = None
    try:
        data = json.loads(limits) if isinstance(limits, str) else dict(limits or {})
    except (TypeError, ValueError, RecursionError):
        pass
    known = ", ".join(LIMITS)
    if type(data) is not dict:
        raise ArgumentError("limits must map names of limits to numbers", hint=f"use {known}")
    for name, value in data.items():
        if name not in LIMITS:
            raise ArgumentError(f"limit {name!r} is unknown", hint=f"use {known}")
        if type(value) is not int or not 0 < value < 1 << 63:
            raise ArgumentError(f"limit {name!r} is {value!r}, but must be a positive number")
    return json.dumps(data, sort_keys=True) if data else None
