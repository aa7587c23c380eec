"""
Polynomials with integer coefficients over numbered variables.

A monomial is the sorted tuple of its variables, with repetition: `(3, 3, 7)` is v3² · v7, and `()`
is 1. A polynomial maps monomials to nonzero coefficients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import reduce
from math import gcd
from operator import and_

Monomial = tuple[int, ...]


class Polynomial:
    """A sum of products of variables. Immutable."""

    __slots__ = ("_hash", "_newest", "terms")

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms
        self._hash: int | None = None

    @staticmethod
    def number(value: int) -> Polynomial:
        """Returns a constant polynomial."""
        return Polynomial({(): value} if value else {})

    @staticmethod
    def variable(number: int) -> Polynomial:
        """Returns the polynomial of one variable."""
        return Polynomial({(number,): 1})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    @property
    def constant(self) -> int | None:
        """The value if the polynomial is constant, else None."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def single(self) -> int | None:
        """The variable if the polynomial is a single variable, else None."""
        if len(self.terms) != 1:
            return None
        ((monomial, coefficient),) = self.terms.items()
        return monomial[0] if coefficient == 1 and len(monomial) == 1 else None

    def newest(self) -> int:
        """Returns the variable with the largest number, or -1."""
        try:
            return self._newest
        except AttributeError:
            self._newest = max((m[-1] for m in self.terms if m), default=-1)
            return self._newest

    def degree(self) -> int:
        """Returns the factors of the longest monomial."""
        return max(map(len, self.terms), default=0)

    def variables(self) -> set[int]:
        """Returns all variables."""
        return {v for monomial in self.terms for v in monomial}

    def without_common(self) -> Polynomial:
        """Returns the polynomial divided by all variables that are in each of its monomials."""
        shared = reduce(and_, map(Counter, self.terms))
        common = tuple(sorted(shared.elements()))
        return self.divided(Polynomial({common: 1}))[0] if common else self

    def __add__(self, other: Polynomial | int) -> Polynomial:
        terms = dict(self.terms)
        items = other.terms.items() if isinstance(other, Polynomial) else (((), other),)
        for monomial, coefficient in items:
            total = terms.get(monomial, 0) + coefficient
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
        return Polynomial(terms)

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        number = other if isinstance(other, int) else other.constant
        if number == 1:
            return self
        if number is not None:
            return Polynomial({m: c * number for m, c in self.terms.items()} if number else {})
        assert isinstance(other, Polynomial)
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                key = tuple(sorted(m + n)) if m and n else m or n
                terms[key] = terms.get(key, 0) + c * d
        return Polynomial({m: c for m, c in terms.items() if c})

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        terms = dict(self.terms)
        items = other.terms.items() if isinstance(other, Polynomial) else (((), other),)
        for monomial, coefficient in items:
            total = terms.get(monomial, 0) - coefficient
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
        return Polynomial(terms)

    def coefficient_of(self, variable: int) -> tuple[Polynomial, Polynomial]:
        """Returns (a, b) with self = a · variable + b, without the variable in b."""
        inside: dict[Monomial, int] = {}
        outside: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms.items():
            if variable in monomial:
                at = monomial.index(variable)
                inside[monomial[:at] + monomial[at + 1 :]] = coefficient
            else:
                outside[monomial] = coefficient
        return Polynomial(inside), Polynomial(outside)

    def tightened(self) -> Polynomial:
        """
        p = g · q + c  =>  q + floor(c / g), which is at least 0 if and only if p is.

        `g` is the gcd of all coefficients except the constant (a Chvátal-Gomory cut).
        """
        divisor = gcd(*(c for m, c in self.terms.items() if m))
        if divisor <= 1:
            return self
        terms = {m: c // divisor for m, c in self.terms.items() if m}
        if rest := self.terms.get((), 0) // divisor:
            terms[()] = rest
        return Polynomial(terms)

    def substituted(self, values: dict[int, Polynomial]) -> Polynomial:
        """Substitutes polynomials for variables."""
        if values.keys().isdisjoint(self.variables()):
            return self
        total = Polynomial({})
        for monomial, coefficient in self.terms.items():
            product = Polynomial.number(coefficient)
            for variable in monomial:
                product = product * values.get(variable, Polynomial.variable(variable))
            total = total + product
        return total

    def divided(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """
        Returns (q, r) with self = q · divisor + r, by long division.

        Monomials are ordered by degree, then by variables. A term whose coefficient is not
        divisible goes to the remainder.
        """
        if not divisor.terms:
            return Polynomial({}), self
        lead, factor = max(divisor.terms.items(), key=lambda term: _order(term[0]))
        quotient, rest, kept = Polynomial({}), self, Polynomial({})
        while rest.terms:
            monomial, coefficient = max(rest.terms.items(), key=lambda term: _order(term[0]))
            ratio = without(monomial, lead)
            if ratio == () and not monomial and coefficient % factor:
                # Constants are divided with remainder.
                whole = coefficient // factor
                quotient, kept = quotient + whole, kept + (coefficient - whole * factor)
                break
            if ratio is None or coefficient % factor:
                term = Polynomial({monomial: coefficient})
                kept, rest = kept + term, rest - term
                continue
            term = Polynomial({ratio: coefficient // factor})
            quotient, rest = quotient + term, rest - term * divisor
        return quotient, kept

    def text(self, name: Callable[[int], str]) -> str:
        """Prints the polynomial in infix notation with the given variable names."""
        if not self.terms:
            return "0"
        parts = []
        for monomial, coefficient in sorted(self.terms.items(), key=lambda t: (not t[0], t[0])):
            factors = [name(v) for v in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+"
            parts.append(f"{sign} {'*'.join(factors)}")
        return " ".join(parts).removeprefix("+ ")


def _order(monomial: Monomial) -> tuple[int, Monomial]:
    return len(monomial), monomial


def without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """Returns the quotient of two monomials, None if `part` does not divide `monomial`."""
    left = list(monomial)
    for variable in part:
        if variable not in left:
            return None
        left.remove(variable)
    return tuple(left)


def total(summands: Iterable[Polynomial]) -> Polynomial:
    """Returns the sum of polynomials."""
    return sum(summands, ZERO)


def product(factors: Iterable[Polynomial]) -> Polynomial:
    """Returns the product of all factors."""
    found = ONE
    for factor in factors:
        found = found * factor
    return found


ZERO, ONE = Polynomial.number(0), Polynomial.number(1)
