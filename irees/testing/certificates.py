"""
Checks the proofs of an access certificate, without search and independently of the prover.

A goal is a polynomial that must be >= 0. Each step is polynomial arithmetic: it shows that a
multiple of its goal is at least the next step's goal plus a multiple of a fact that is >= 0.
Polynomials are parsed from text. `check` also returns the assumed facts: those that proofs use but
that do not follow from the variables' definitions, such as conditions that guard an access. It
raises AssertionError at the first step that does not follow.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import gcd
from typing import Any

Monomial = tuple[str, ...]
Poly = dict[Monomial, int]


def read(text: str) -> Poly:
    """Parses a polynomial such as `2*v1*v3-v2+7`."""
    found: Poly = Counter()
    for sign, term in re.findall(r"([+-]?)([^+-]+)", text):
        factors = term.split("*")
        numbers = [int(f) for f in factors if f.isdigit()]
        key = tuple(sorted(f for f in factors if not f.isdigit()))
        value = -1 if sign == "-" else 1
        for number in numbers:
            value *= number
        found[key] = found.get(key, 0) + value
    return {m: c for m, c in found.items() if c}


def plus(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """a + factor * b"""
    total = Counter(a)
    for monomial, value in b.items():
        total[monomial] = total.get(monomial, 0) + factor * value
    return {m: c for m, c in total.items() if c}


def times(a: Poly, b: Poly) -> Poly:
    """a * b"""
    total: Poly = {}
    for m, c in a.items():
        for n, d in b.items():
            key = tuple(sorted(m + n))
            total[key] = total.get(key, 0) + c * d
    return {m: c for m, c in total.items() if c}


def tight(goal: Poly) -> Poly:
    """Divides by the gcd of the non-constant coefficients; the constant is rounded down."""
    divisor = gcd(*(c for m, c in goal.items() if m))
    if divisor <= 1:
        return goal
    rounded = {m: c // divisor for m, c in goal.items()}
    return {m: c for m, c in rounded.items() if c}


class Checker:
    """The variables of a certificate, and the facts that its proofs assume."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.low = {v: limits[1] for v, limits in variables.items()}
        self.high = {v: limits[2] for v, limits in variables.items()}
        self.facts = {v: [read(f) for f in limits[3]] for v, limits in variables.items()}
        self.cases = {v: [read(c) for c in limits[4]] for v, limits in variables.items()}
        self.assumed: list[Poly] = []
        self.unfollowed = 0
        """Number of unchecked steps: those on variables that a case renames, which have no text."""

    def lowest(self, goal: Poly) -> float:
        """Returns a lower bound of a polynomial from the limits of its variables."""
        total = 0.0
        for monomial, factor in goal.items():
            low = high = 1.0
            for v in monomial:
                ends = (self.low.get(v), self.high.get(v))
                a = float("-inf") if ends[0] is None else ends[0]
                b = float("inf") if ends[1] is None else ends[1]
                if len(monomial) > 1 and a < 0:
                    return float("-inf")
                low, high = (a, b) if len(monomial) == 1 else (low * a, high * b)
            total += factor * (low if factor > 0 else high)
        return total

    def is_fact(self, fact: Poly, number: int) -> bool:
        """Whether a fact follows from a variable's definition or limits."""
        v = f"v{number}"
        own = [*self.facts.get(v, ())]
        if self.low.get(v) is not None:
            own.append(plus({(v,): 1}, {(): 1}, -self.low[v]))
        if self.high.get(v) is not None:
            own.append(plus({(): self.high[v]} if self.high[v] else {}, {(v,): 1}, -1))
        return fact in own or tight(fact) in [tight(o) for o in own]

    def step(self, goal: Poly, proof: Any) -> None:
        """Checks one step."""
        goal = tight(goal)
        if proof == "low":
            assert self.lowest(goal) >= 0, f"{goal} may be negative"
            return
        kind, *rest = proof
        if kind == "use":
            self._use(goal, *rest)
        elif kind == "more":
            self.step(plus(goal, read(rest[0]), -1), rest[1])
        elif kind == "drop":
            assert self.lowest(read(rest[0])) >= 0, f"{rest[0]} may be negative"
            self.step(plus(goal, read(rest[0]), -1), rest[1])
        elif kind == "cases":
            self._cases(goal, *rest)
        else:
            assert kind == "choice", kind
            self.unfollowed += 1

    def _use(self, goal: Poly, number: int, text: str, n: str, m: str, *proofs: Any) -> None:
        fact, factor, multiple = read(text), read(n), read(m)
        if not self.is_fact(fact, number):
            self.assumed.append(fact)
        if len(proofs) > 2:
            self.step(multiple, proofs[2])
        else:
            assert self.lowest(multiple) >= 0, f"{multiple} may be negative"
        if len(proofs) > 1:
            self.step(plus(factor, {(): 1}, -1), proofs[1])
        else:
            assert self.lowest(factor) >= 1, f"{factor} may be 0"
        left = plus(plus(times(goal, factor), plus(factor, {(): 1}, -1)), times(multiple, fact), -1)
        self.step(left, proofs[0])

    def _cases(self, goal: Poly, number: int, proofs: list[Any]) -> None:
        v = f"v{number}"
        assert len(proofs) == len(self.cases[v]), f"{v} is one of {len(self.cases[v])}"
        for value, proof in zip(self.cases[v], proofs, strict=True):
            chosen: Poly = {}
            for monomial, factor in goal.items():
                product: Poly = {(): factor}
                for name in monomial:
                    product = times(product, value if name == v else {(name,): 1})
                chosen = plus(chosen, product)
            if isinstance(proof, list) and proof[0] == "never":
                self._never(*proof[1:])
            else:
                self.step(chosen, proof)

    def _never(self, text: str, *proofs: Any) -> None:
        """Checks that a case is impossible: one of its facts is negative."""
        if not (fact := read(text)):
            self.unfollowed += 1
            return
        self.assumed.append(fact)
        self.step(plus({m: -c for m, c in fact.items()}, {(): 1}, -1), proofs[0])


@dataclass
class Followed:
    """Result of checking the proofs of a kernel."""

    goals: int = 0
    assumed: list[str] = field(default_factory=list)
    """Facts that proofs assume to hold at the access."""
    unfollowed: int = 0
    """Number of steps that were not checked."""


def check(certificate: list[Any]) -> Followed:
    """Checks all proofs of a kernel. Raises AssertionError."""
    found = Followed()
    for dispatch in certificate:
        checker = Checker(dispatch["variables"])
        for goal, proof in dispatch["goals"]:
            checker.step(read(goal), proof)
        found.goals += len(dispatch["goals"])
        found.assumed += map(str, checker.assumed)
        found.unfollowed += checker.unfollowed
        for name, kind, needed in dispatch["accesses"]:
            assert kind.partition(",")[0] in ("proved", "guarded"), f"{name} is {kind}"
            assert all(number < len(dispatch["goals"]) for number in needed)
    return found
