"""
The limits of a compilation: a table, and a work budget for all passes of a compilation.

The limits bound the time and memory that untrusted text can take. `Options.limits` overrides
single entries. A compilation starts a budget (`budgeted`). Constructs that a program can repeat
(inlining, initializers, folding, printing) call `spend` before they do the work. All of them draw
on `work`, so two expensive constructs do not add up to twice the limit.
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
    """One limit: its default, its unit, and the quantity that it bounds."""

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
    Limit("import_seconds", 120, "seconds", "torch-mlir's work on an ONNX model"),
    Limit("map_terms", 1 << 8, "terms", "the operators in the results of one affine map"),
    Limit("work", 30_000_000, "steps", "the work that a program asks for by repetition, see below"),
)
"""All limits. The defaults are at least ten times the needs of the largest models tested."""

LIMITS = {limit.name: limit for limit in TABLE}


@dataclass(frozen=True)
class Cost:
    """The cost of one repetition of a construct, in steps of `work`."""

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
Costs in `work`. A step is about one microsecond of compile time: the default budget is 30 s.
"""

ELEMENTS_PER_STEP = 64
"""Tensor elements that the interpreter computes per step of `work`."""


OPTIONAL_SHARE = 10
"""Inverse of the fraction of the remaining budget that one optional piece of work may take."""


class Budget:
    """The limits of a compilation, and the remaining steps of `work`."""

    def __init__(self, overrides: Mapping[str, int] | None = None):
        self.limits = {each.name: each.default for each in TABLE} | dict(overrides or {})
        self.left = self.limits["work"]


_BUDGET: ContextVar[Budget | None] = ContextVar("irees_budget", default=None)
_DEFAULTS = Budget()


@contextmanager
def budgeted(overrides: Mapping[str, int] | None = None) -> Generator[Budget]:
    """Starts the budget of a compilation; a nested one without overrides uses the outer budget."""
    if _BUDGET.get() is not None and not overrides:
        yield _BUDGET.get() or _DEFAULTS
        return
    token = _BUDGET.set(budget := Budget(overrides))
    try:
        yield budget
    finally:
        _BUDGET.reset(token)


def limit(name: str) -> int:
    """The limit of that name in the current compilation; the default outside of one."""
    return (_BUDGET.get() or _DEFAULTS).limits[name]


def exceeded(name: str, what: str, **where: Any) -> LimitExceededError:
    """The error for an exceeded limit; `what` describes the excess, with the number."""
    where.setdefault("hint", f"raise it with limits={{{name!r}: ...}} if you trust the program")
    return LimitExceededError(
        f"{what} (limit {name!r}: {limit(name)} {LIMITS[name].unit})", **where
    )


def check(name: str, amount: int, what: str, **where: Any) -> None:
    """Raises LimitExceededError if an amount is above the limit of that name."""
    if amount > limit(name):
        raise exceeded(name, what, **where)


def spend(construct: str, count: int, **where: Any) -> None:
    """
    Charges `count` repetitions of a construct of `COSTS` to the budget of the compilation.

    Raises LimitExceededError, with the construct and its location, when the budget is spent. Does
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
    `spend` for optional work: returns False, without a charge, if it costs more than a tenth of
    the remaining budget.
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
    """Overrides (a mapping or JSON) as sorted JSON; None if empty. Raises ArgumentError."""
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
