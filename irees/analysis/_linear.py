"""
Linear forms over integer unknowns, and implication between linear inequalities.

An unknown is any hashable object, or the quotient or remainder of a linear form by a positive
constant. `follows` searches for a proof by Fourier-Motzkin elimination with integer rounding: True
means proved, False means that no proof was found.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

MAX_INEQUALITIES = 600


@dataclass(frozen=True)
class Linear:
    """A sum of unknowns with integer coefficients, plus a constant."""

    terms: tuple[tuple[Hashable, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(unknown: Hashable) -> Linear:
        """Returns the form of one unknown."""
        return Linear(((unknown, 1),))

    @staticmethod
    def number(value: int) -> Linear:
        """Returns a constant form."""
        return Linear((), value)

    @property
    def is_number(self) -> bool:
        """Whether the form is constant."""
        return not self.terms

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.constant + other)
        factors = dict(self.terms)
        for unknown, factor in other.terms:
            factors[unknown] = factors.get(unknown, 0) + factor
        kept = tuple((u, f) for u, f in factors.items() if f)
        return Linear(kept, self.constant + other.constant)

    def __mul__(self, factor: int) -> Linear:
        if not factor:
            return Linear()
        return Linear(tuple((u, f * factor) for u, f in self.terms), self.constant * factor)

    def __neg__(self) -> Linear:
        return self * -1

    def __sub__(self, other: Linear | int) -> Linear:
        return self + (-other)

    def same(self, other: Linear) -> bool:
        """Whether two forms are equal up to the order of terms."""
        return self.constant == other.constant and dict(self.terms) == dict(other.terms)

    def floordiv(self, divisor: int) -> Linear:
        """Returns the quotient by a positive constant, rounded down."""
        whole, rest = self._split(divisor)
        if rest.is_number:
            return whole + rest.constant // divisor
        return whole + Linear.of(Quotient(rest, divisor))

    def ceildiv(self, divisor: int) -> Linear:
        """Returns the quotient by a positive constant, rounded up."""
        return (self + (divisor - 1)).floordiv(divisor)

    def mod(self, divisor: int) -> Linear:
        """Returns the remainder of `floordiv`."""
        _, rest = self._split(divisor)
        if rest.is_number:
            return Linear.number(rest.constant % divisor)
        return Linear.of(Remainder(rest, divisor))

    def _split(self, divisor: int) -> tuple[Linear, Linear]:
        """Returns q and r with form = q * divisor + r; q takes the terms that divide evenly."""
        whole = tuple((u, f // divisor) for u, f in self.terms if f % divisor == 0)
        rest = tuple((u, f) for u, f in self.terms if f % divisor)
        return (
            Linear(whole, self.constant // divisor),
            Linear(tuple(sorted(rest, key=lambda t: hash(t[0]))), self.constant % divisor),
        )

    def unknowns(self) -> Iterator[Hashable]:
        """Yields the unknowns, including those inside quotients and remainders."""
        for unknown, _ in self.terms:
            if isinstance(unknown, Quotient | Remainder):
                yield from unknown.dividend.unknowns()
            else:
                yield unknown


@dataclass(frozen=True)
class Quotient:
    """dividend floordiv divisor"""

    dividend: Linear
    divisor: int


@dataclass(frozen=True)
class Remainder:
    """dividend mod divisor"""

    dividend: Linear
    divisor: int


def definitions(forms: Iterable[Linear]) -> list[Linear]:
    """Returns the defining inequalities of all quotients and remainders in forms, each >= 0."""
    found: list[Linear] = []
    seen: set[Hashable] = set()

    def visit(form: Linear) -> None:
        for unknown, _ in form.terms:
            if unknown in seen or not isinstance(unknown, Quotient | Remainder):
                continue
            seen.add(unknown)
            dividend, divisor = unknown.dividend, unknown.divisor
            quotient, rest = Quotient(dividend, divisor), Remainder(dividend, divisor)
            seen.update((quotient, rest))
            remainder = Linear.of(rest)
            found.extend((remainder, remainder * -1 + (divisor - 1)))
            exact = Linear.of(quotient) * divisor + remainder - dividend
            found.extend((exact, -exact))
            visit(dividend)

    for form in forms:
        visit(form)
    return found


def _tight(form: Linear) -> Linear | None:
    """Divides `form >= 0` by the gcd of its coefficients; None if it is trivially true."""
    if form.is_number:
        return None if form.constant >= 0 else Linear.number(-1)
    common = gcd(*(f for _, f in form.terms))
    return Linear(tuple((u, f // common) for u, f in form.terms), form.constant // common)


def _key(form: Linear) -> frozenset[tuple[Hashable, int]]:
    return frozenset(form.terms)


def _fewest_pairs(rows: Iterable[Linear]) -> tuple[Hashable, int]:
    """Returns the unknown whose elimination makes the fewest inequalities, and their number."""
    above: dict[Hashable, int] = {}
    below: dict[Hashable, int] = {}
    for row in rows:
        for unknown, factor in row.terms:
            table = above if factor > 0 else below
            table[unknown] = table.get(unknown, 0) + 1
    pairs = {u: above.get(u, 0) * below.get(u, 0) for u in (*above, *below)}
    return min(pairs.items(), key=lambda item: item[1])


def contradictory(facts: Sequence[Linear]) -> bool:
    """Whether the facts are proved to have no integer solution with all of them >= 0."""
    best: dict[frozenset[tuple[Hashable, int]], Linear] = {}

    def keep(form: Linear) -> bool:
        tight = _tight(form)
        if tight is None:
            return False
        if tight.is_number:
            return True
        key = _key(tight)
        if key not in best or best[key].constant > tight.constant:
            best[key] = tight
        return False

    if any([keep(form) for form in facts]):
        return True
    while best:
        rows = list(best.values())
        victim, pairs = _fewest_pairs(rows)
        if pairs > MAX_INEQUALITIES:
            return False
        best = {}
        lower: list[tuple[Linear, int]] = []
        upper: list[tuple[Linear, int]] = []
        for row in rows:
            factor = dict(row.terms).get(victim, 0)
            if factor == 0:
                if keep(row):
                    return True
            else:
                (lower if factor > 0 else upper).append((row, abs(factor)))
        for low, a in lower:
            for high, b in upper:
                if keep(low * b + high * a):
                    return True
        if len(best) > MAX_INEQUALITIES:
            return False
    return False


def follows(facts: Sequence[Linear], form: Linear) -> bool:
    """Whether form >= 0 is proved to follow from all facts being >= 0."""
    return contradictory([*facts, -form - 1])
