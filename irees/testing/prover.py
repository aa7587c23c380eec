"""
Proofs of integer rules with z3, which the extra `verify` installs.

`prove` shows that the negation of a claim is unsatisfiable. `Terms` implements the `Sem` of
`irees.analysis` on z3 formulas.
"""

from __future__ import annotations

from importlib import import_module
from itertools import combinations, product
from typing import Any

z3: Any = import_module("z3")

WIDTHS = (*range(1, 17), 32)
TIMEOUT = 60_000


def prove(claim: Any, *given: Any) -> None:
    """Asserts that `given` implies the claim, and that `given` is not contradictory."""
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT)
    solver.add(*given)
    assert solver.check() != z3.unsat, "what is given is never true"
    solver.add(z3.Not(claim))
    answer = solver.check()
    assert answer != z3.unknown, f"unknown: {solver.reason_unknown()}"
    assert answer == z3.unsat, f"refuted by {solver.model()}"


def refuted(claim: Any, *given: Any) -> bool:
    """Whether the claim has a counterexample."""
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT)
    solver.add(*given, z3.Not(claim))
    return solver.check() == z3.sat


class Terms:
    """
    `irees.analysis._range_rules.Sem` on z3's unbounded integers.

    Quotients and powers are uninterpreted functions, constrained only by the lemmas that
    `test_range_rules` proves. `lemmas` instantiates these for all terms seen.
    """

    def __init__(self) -> None:
        integers = [z3.IntSort()] * 3
        self.quotients = {
            name: z3.Function(name, *integers) for name in ("floor", "ceil", "truncate")
        }
        self.two_to = z3.Function("two_to", z3.IntSort(), z3.IntSort())
        self.met: dict[str, list[tuple[Any, Any]]] = {name: [] for name in self.quotients}
        self.exponents: list[Any] = []

    def lowest(self, *values: Any) -> Any:
        result = values[0]
        for value in values[1:]:
            result = z3.If(value < result, value, result)
        return result

    def greatest(self, *values: Any) -> Any:
        result = values[0]
        for value in values[1:]:
            result = z3.If(value > result, value, result)
        return result

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        return z3.If(condition, yes, no)

    def both(self, *conditions: Any) -> Any:
        return z3.And(*conditions)

    def either(self, *conditions: Any) -> Any:
        return z3.Or(*conditions)

    def magnitude(self, a: Any) -> Any:
        return z3.If(a < 0, -a, a)

    def _quotient(self, name: str, a: Any, b: Any) -> Any:
        self.met[name].append((a, b))
        return self.quotients[name](a, b)

    def floor(self, a: Any, b: Any) -> Any:
        return self._quotient("floor", a, b)

    def ceil(self, a: Any, b: Any) -> Any:
        return self._quotient("ceil", a, b)

    def truncate(self, a: Any, b: Any) -> Any:
        return self._quotient("truncate", a, b)

    def power(self, a: Any) -> Any:
        self.exponents.append(a)
        return self.two_to(a)

    def lemmas(self) -> list[Any]:
        """Returns the proved lemmas, instantiated for every quotient and power seen."""
        found: list[Any] = []
        for name, pairs in self.met.items():
            q = self.quotients[name]
            xs = list(dict.fromkeys(x for x, _ in pairs))
            ys = list(dict.fromkeys(y for _, y in pairs))
            for y, (a, b) in product(ys, combinations(xs, 2)):
                for low, high in ((a, b), (b, a)):
                    up = z3.Implies(y > 0, q(low, y) <= q(high, y))
                    down = z3.Implies(y < 0, q(low, y) >= q(high, y))
                    found.append(z3.Implies(low <= high, z3.And(up, down)))
            for x, (a, b) in product(xs, combinations(ys, 2)):
                for low, high in ((a, b), (b, a)):
                    up = z3.Implies(x <= 0, q(x, low) <= q(x, high))
                    down = z3.Implies(x >= 0, q(x, low) >= q(x, high))
                    same_sign = z3.Or(low > 0, high < 0)
                    found.append(z3.Implies(z3.And(low <= high, same_sign), z3.And(up, down)))
        for a, b in combinations(self.exponents, 2):
            for low, high in ((a, b), (b, a)):
                grows = self.two_to(low) <= self.two_to(high)
                found.append(z3.Implies(z3.And(0 <= low, low <= high), grows))
        found += [z3.Implies(a >= 0, self.two_to(a) >= 1) for a in self.exponents]
        return found


def division(mode: str, x: Any, y: Any, q: Any, r: Any) -> Any:
    """Returns the formula that q and r are quotient and remainder of x by y, rounded by mode."""
    exact = z3.And(y != 0, q * y + r == x)
    floor = z3.If(y > 0, z3.And(0 <= r, r < y), z3.And(y < r, r <= 0))
    ceil = z3.If(y > 0, z3.And(-y < r, r <= 0), z3.And(0 <= r, r < -y))
    if mode == "floor":
        return z3.And(exact, floor)
    if mode == "ceil":
        return z3.And(exact, ceil)
    size = z3.If(y > 0, y, -y)
    toward = z3.If(x >= 0, z3.And(0 <= r, r < size), z3.And(-size < r, r <= 0))
    return z3.And(exact, toward)
