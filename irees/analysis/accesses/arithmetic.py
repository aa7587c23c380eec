"""
Integer operations on polynomials.

Sums, differences and products are exact modulo 2^bits. All other operations need the machine values
of their operands, so they first check that the polynomials do not wrap (`Space.fits`). If they may
wrap, the result is a fresh variable bounded by its type.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import gcd
from typing import cast

from irees.analysis.accesses.polynomials import ZERO, Polynomial
from irees.analysis.accesses.prover import FEW, Prover
from irees.analysis.accesses.terms import (
    AtLeast,
    Case,
    Condition,
    Every,
    Some,
    Space,
    Unknown,
    Within,
    opposite,
)

MOST_POWERS = 32
"""Largest number of cases of a power of two; one with more possible values gets no cases."""

ROUNDINGS = 8
"""Eliminations that look for a rounded bound of one quotient."""


class Arithmetic:
    """Operations on polynomials over the variables of a space."""

    def __init__(self, space: Space, prover: Prover) -> None:
        self.space = space
        self.prover = prover
        self._quotients: dict[tuple[Polynomial, bool], dict[int, Polynomial]] = {}
        """Dividend, and whether it is known to be nonnegative => divisor => quotient."""
        self._divided: dict[int, tuple[Polynomial, int]] = {}
        """Variable of a quotient => dividend and divisor."""

    def opaque(self, name: str, bits: int = 64) -> Polynomial:
        """Returns a fresh signed value of some width."""
        limit = 1 << (bits - 1)
        return self.space.fresh(name, -limit, limit - 1)

    def natural(self, name: str, bits: int = 64) -> Polynomial:
        """Returns a fresh unsigned value of some width."""
        return self.space.fresh(name, 0, (1 << bits) - 1)

    def exact(self, x: Polynomial, bits: int = 64) -> Polynomial:
        """Returns the machine value: x, or a fresh variable if x may have wrapped."""
        return x if self.prover.fits(x, bits) else self.opaque("sum", bits)

    def is_natural(self, x: Polynomial) -> bool:
        """Whether a value is at least 0 and does not wrap."""
        return self.prover.fits(x) and self.prover.holds(x)

    def floor(self, x: Polynomial, d: Polynomial) -> Polynomial:
        """Returns floor(x / d), for d >= 1."""
        c = d.constant
        if c is None:
            return self._symbolic_floor(x, d)
        whole, rest, c = _whole_and_rest(x, c)
        if (number := rest.constant) is not None:
            return whole + number // c
        natural = self.prover.holds(rest, FEW)
        if natural and self.prover.holds(-rest + (c - 1), FEW):
            return whole
        inner = self._divided.get(rest.single if rest.single is not None else -1)
        if inner is not None:
            # floor(floor(x / b) / c) = floor(x / (b c))
            return whole + self.floor(inner[0], Polynomial.number(inner[1] * c))
        return whole + self._floor_variable(rest, c, natural=natural)

    def _floor_variable(self, rest: Polynomial, c: int, *, natural: bool) -> Polynomial:
        """Returns a variable for floor(rest / c) with its bounds; `natural` if rest >= 0."""
        low, high = self.space.low(rest), self.space.high(rest)
        # `natural` is in the key: rest >= 0 may hold in this scope only.
        quotient = self.space.variable(("div", rest, c, natural), "floor")
        variable = self.space.newest_of(quotient)
        if not variable.facts:
            variable.low = None if low is None else low // c
            if natural:
                variable.low = max(0, variable.low or 0)
            variable.high = None if high is None else high // c
            variable.facts = [rest - quotient * c, quotient * c + (c - 1) - rest]
            variable.facts = [*self._cuts(rest, quotient * c), *variable.facts]
            variable.facts += self._siblings((rest, natural), c, quotient)
        return quotient

    def _siblings(
        self, key: tuple[Polynomial, bool], c: int, quotient: Polynomial
    ) -> list[Polynomial]:
        """
        Relates quotients of one dividend: floor(x / 8) = floor(floor(x / 4) / 2)

        Quotients of a dividend known to be nonnegative are related among themselves only, since
        x >= 0 may hold in this scope only.
        """
        facts = []
        others = self._quotients.setdefault(key, {})
        for other, number in others.items():
            inner, outer, ratio = quotient, number, other // c
            if c % other == 0:
                inner, outer, ratio = number, quotient, c // other
            elif other % c:
                continue
            facts += [inner - outer * ratio, outer * ratio + (ratio - 1) - inner]
        others[c] = quotient
        self._divided[quotient.newest()] = (key[0], c)
        return facts

    def _cuts(self, x: Polynomial, multiple: Polynomial) -> list[Polynomial]:
        """
        Turns bounds of x into bounds of its quotient that are tighter by rounding.

        31 q <= x and x <= 31 n - 1  =>  q <= n - 1

        The bound of x may be that of its parts: the offset of a tile plus a place in the tile.
        """
        quotient = multiple.newest()
        found, rest = [], deque([x - multiple])
        for _ in range(ROUNDINGS):
            if not rest:
                break
            for sharp in self._without_newest(rest.popleft(), quotient):
                is_bound = sharp.coefficient_of(quotient)[0].constant == -1
                (found if is_bound else rest).append(sharp)
        return found

    def _without_newest(self, natural: Polynomial, quotient: int) -> Iterator[Polynomial]:
        """Eliminates the newest other variable of a polynomial that is >= 0, by its facts."""
        newest = max(natural.variables() - {quotient}, default=-1)
        a = natural.coefficient_of(newest)[0].constant if newest >= 0 else None
        if a is None or a <= 0:
            return
        for fact in self.space.variables[newest].facts:
            p = fact.coefficient_of(newest)[0].constant
            if p is not None and p < 0:
                yield (natural * -p + fact * a).tightened()

    def _symbolic_floor(self, x: Polynomial, d: Polynomial) -> Polynomial:
        whole, rest = x.divided(d)
        natural = self.prover.holds(rest, FEW)
        if natural and self.prover.holds(d - rest - 1, FEW):
            return whole
        if not natural:
            whole, rest, natural = ZERO, x, self.prover.holds(x)
            if natural and self.prover.holds(d - x - 1, FEW):
                return ZERO
        quotient = self.space.variable(("div", rest, d, natural), "floor")
        variable = self.space.newest_of(quotient)
        if not variable.facts:
            variable.low = 0 if natural else None
            variable.high = self.space.high(rest) if natural else None
            facts = [*self._symbolic_cuts(rest, d, quotient), rest - quotient * d]
            facts.append(quotient * d + d - 1 - rest)
            if variable.low == 0:
                # q <= x, since d is at least 1.
                facts.append(rest - quotient)
            variable.facts = facts
        return whole + quotient

    def _symbolic_cuts(
        self, x: Polynomial, d: Polynomial, quotient: Polynomial
    ) -> list[Polynomial]:
        """x <= d w - 1  =>  floor(x / d) <= w - 1"""
        newest, found = x.newest(), []
        if newest < 0 or x.single is None:
            return []
        for fact in self.space.variables[newest].facts:
            p, most = fact.coefficient_of(newest)
            if p.constant != -1:
                continue
            times, rest = most.divided(d)
            if times.terms and rest.constant == -1:
                found.append(times - 1 - quotient)
        return found

    def _divides(self, d: Polynomial) -> bool:
        """Whether a divisor is nonnegative and not the constant 0; it may still be 0."""
        return d != ZERO and self.prover.fits(d) and self.prover.holds(d)

    def divided(
        self, x: Polynomial, d: Polynomial, bits: int = 64, *, signed: bool = False
    ) -> Polynomial:
        """divui, or divsi if `signed`. Exact in scopes that imply x >= 0 and d >= 1."""
        if not (self._divides(d) and self.prover.fits(x)):
            return self._quotient(d, bits, signed=signed)
        positive = self.prover.holds(d - 1)
        if positive and self.prover.holds(x):
            return self.floor(x, d)
        # Cases, since a scope that uses the result may know that x >= 0 or that d >= 1.
        negative = self._quotient(d, bits, signed=signed)
        if signed and positive:
            negative = -self.floor(-x, d)
        result = self.space.variable(("trunc", x, d, signed, positive), "trunc")
        variable = self.space.newest_of(result)
        if not variable.cases:
            known = AtLeast(x) if positive else Every((AtLeast(d - 1), AtLeast(x)))
            quotient = self.floor(x, d)
            variable.cases = (Case(quotient, known), Case(negative, opposite(known)))
            if signed and positive:
                variable.low, variable.high = self.hull(quotient, negative)
            elif self.is_natural(x):
                # A division by 0 gives -1, and the remainder is all of x.
                variable.low, variable.high = -1, self.space.high(x)
                variable.facts = [x - result * d, x - result]
            elif not signed and self._is_halved(d):
                variable.low, variable.high = 0, ((1 << bits) - 1) // d.constant  # type: ignore
        return result

    def _is_halved(self, d: Polynomial) -> bool:
        """Whether the divisor is a constant >= 2, so that unsigned quotients have no sign bit."""
        return d.constant is not None and d.constant >= 2

    def _quotient(self, d: Polynomial, bits: int, *, signed: bool) -> Polynomial:
        """Returns a fresh quotient of an unknown dividend."""
        if signed or not self._is_halved(d):
            return self.opaque("quotient", bits)
        return self.space.fresh("quotient", 0, ((1 << bits) - 1) // d.constant)  # type: ignore

    def remainder(
        self, x: Polynomial, d: Polynomial, bits: int = 64, *, signed: bool = False
    ) -> Polynomial:
        """remui, or remsi if `signed`. Exact in scopes that imply x >= 0 and d >= 1."""
        if not (self._divides(d) and self.prover.fits(x)):
            # The remainder has the sign of x, and at most its magnitude.
            return self.below(x) if self.is_natural(x) else self.opaque("remainder", bits)
        if self._is_halved(d) and not self.prover.holds(x):
            # As unsigned, a negative x is large, so only the divisor bounds the remainder.
            most = cast(int, d.constant) - 1
            return self.space.fresh("remainder", -most if signed else 0, most)
        return x - self.divided(x, d, bits, signed=signed) * d

    def floordivsi(self, x: Polynomial, d: Polynomial, bits: int = 64) -> Polynomial:
        """floordivsi, exact if d >= 1."""
        if self.prover.fits(d) and self.prover.holds(d - 1) and self.prover.fits(x):
            return self.floor(x, d)
        return self.opaque("quotient", bits)

    def ceildiv(self, x: Polynomial, d: Polynomial, bits: int = 64) -> Polynomial:
        """ceildivui and ceildivsi, exact if x >= 0 and d >= 1."""
        if self.prover.fits(d) and self.prover.holds(d - 1) and self.is_natural(x):
            return self.floor(x + d - 1, d)
        return self.opaque("quotient", bits)

    def minimum(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """minsi, or minui of nonnegative operands."""
        if not (self.prover.fits(a) and self.prover.fits(b)):
            return self.opaque("minimum")
        if self.prover.holds(b - a, FEW):
            return a
        if self.prover.holds(a - b, FEW):
            return b
        if (common := _common_factor(a, b)) > 1:
            return self.minimum(_over(a, common), _over(b, common)) * common
        a, b = _ordered(a, b)
        natural = self.prover.holds(a, FEW) and self.prover.holds(b, FEW)
        result = self.space.variable(("min", a, b, natural), "min")
        variable = self.space.newest_of(result)
        if not variable.facts:
            lows, highs = self._ends(a, b)
            variable.low = None if None in lows else min(lows)  # type: ignore[type-var]
            if natural:
                variable.low = max(0, variable.low or 0)
            variable.high = min((h for h in highs if h is not None), default=None)
            variable.facts = [a - result, b - result]
            variable.cases = (Case(a, AtLeast(b - a)), Case(b, AtLeast(a - b)))
        return result

    def maximum(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """maxsi, or maxui of nonnegative operands."""
        if not (self.prover.fits(a) and self.prover.fits(b)):
            return self.opaque("maximum")
        if self.prover.holds(b - a, FEW):
            return b
        if self.prover.holds(a - b, FEW):
            return a
        if (common := _common_factor(a, b)) > 1:
            return self.maximum(_over(a, common), _over(b, common)) * common
        a, b = _ordered(a, b)
        result = self.space.variable(("max", a, b), "max")
        variable = self.space.newest_of(result)
        if not variable.facts:
            lows, highs = self._ends(a, b)
            variable.low = max((x for x in lows if x is not None), default=None)
            variable.high = None if None in highs else max(highs)  # type: ignore[type-var]
            variable.relates = True
            variable.facts = [result - a, result - b]
            variable.cases = (Case(a, AtLeast(a - b)), Case(b, AtLeast(b - a)))
        return result

    def _ends(self, a: Polynomial, b: Polynomial) -> tuple[list[int | None], list[int | None]]:
        low, high = self.space.low, self.space.high
        return [low(a), low(b)], [high(a), high(b)]

    def hull(self, a: Polynomial, b: Polynomial) -> tuple[int | None, int | None]:
        """Returns the bounds of a value that equals a or b."""
        lows, highs = self._ends(a, b)
        low = None if None in lows else min(lows)  # type: ignore[type-var]
        high = None if None in highs else max(highs)  # type: ignore[type-var]
        return low, high

    def select(self, condition: Condition, a: Polynomial, b: Polynomial) -> Polynomial:
        """Returns a if the condition holds, else b."""
        if a == b or self.prover.implied(condition):
            return a
        if self.prover.implied(opposite(condition)):
            return b
        a, b = self.exact(a), self.exact(b)
        result = self.space.variable(("select", condition, a, b), "select")
        variable = self.space.newest_of(result)
        if not variable.cases:
            variable.low, variable.high = self.hull(a, b)
            variable.cases = (Case(a, condition), Case(b, opposite(condition)))
        return result

    def compare(self, predicate: str, a: Polynomial, b: Polynomial) -> Condition:
        """Returns the condition of `arith.cmpi`."""
        if not (self.prover.fits(a) and self.prover.fits(b)):
            # A scope that uses the condition may know that the operands do not wrap.
            if predicate[0] == "u":
                return self.space.unknown()
            return Within((a, b), self._signed_order(predicate, a, b))
        if predicate[0] == "u":
            return self._unsigned(predicate, a, b)
        return self._signed_order(predicate, a, b)

    def _signed_order(self, predicate: str, a: Polynomial, b: Polynomial) -> Condition:
        if predicate == "eq":
            return Every((AtLeast(a - b), AtLeast(b - a)))
        if predicate == "ne":
            return Some((AtLeast(a - b - 1), AtLeast(b - a - 1)))
        order = {"slt": b - a - 1, "sle": b - a, "sgt": a - b - 1, "sge": a - b}
        return AtLeast(order[predicate])

    def _unsigned(self, predicate: str, a: Polynomial, b: Polynomial) -> Condition:
        if predicate in ("ugt", "uge"):
            return self._unsigned({"ugt": "ult", "uge": "ule"}[predicate], b, a)
        signed = AtLeast(b - a - (predicate == "ult"))
        naturals = self.prover.holds(a), self.prover.holds(b)
        if all(naturals):
            return signed
        # As unsigned, negative numbers exceed all nonnegative ones.
        if naturals[1]:
            return Every((AtLeast(a), signed))
        if naturals[0]:
            return Some((AtLeast(-b - 1), signed))
        return self.space.unknown()

    def masked(self, x: Polynomial, mask: int, bits: int = 64) -> Polynomial:
        """`x & mask`"""
        if mask >= 0 and self.space.low(x) is None:
            return self.space.fresh("masked", 0, mask)
        if mask >= 0 and mask & (mask + 1) == 0 and self.prover.fits(x, bits):
            size = Polynomial.number(mask + 1)
            return x - self.floor(x, size) * size
        if mask < 0 and -mask & (-mask - 1) == 0 and self.prover.fits(x, bits):
            size = Polynomial.number(-mask)
            return self.floor(x, size) * size
        if mask >= 0:
            return self.space.fresh("masked", 0, mask)
        return self.opaque("masked", bits)

    def below(self, x: Polynomial) -> Polynomial:
        """Returns a fresh value between 0 and a nonnegative x."""
        result = self.space.fresh("below", 0, self.space.high(x))
        self.space.newest_of(result).facts = [x - result]
        return result

    def shifted(self, x: int, by: Polynomial, bits: int) -> Polynomial:
        """`x << by`, for a positive constant x."""
        least, most = self.space.low(by), self.space.high(by)
        if least is None or most is None or least < 0 or most + x.bit_length() >= bits:
            return self.opaque("shifted", bits)
        result = self.space.variable(("shifted", x, by), "shifted")
        variable = self.space.newest_of(result)
        if variable.low is None:
            variable.low, variable.high = x << least, x << most
            if most - least < MOST_POWERS:
                powers = (x << n for n in range(least, most + 1))
                variable.cases = tuple(Case(Polynomial.number(p), Every()) for p in powers)
        return result

    def is_power(self, x: Polynomial) -> bool:
        """Whether a value is 2^n with variable n."""
        term = self.space.variables[x.newest()].term if x.single is not None else None
        return isinstance(term, tuple) and term[:2] == ("shifted", 1)

    def joined(self, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
        """`a | b` or `a ^ b`; for nonnegative operands, below the next power of two."""
        common = _common_factor(a, b)
        low = common & -common
        if low > 1:
            return self.joined(_over(a, low), _over(b, low), bits) * low
        if not (self.is_natural(a) and self.is_natural(b)):
            return self.opaque("joined", bits)
        widths = [self._width(a, bits), self._width(b, bits)]
        return self.space.fresh("joined", 0, (1 << max(widths)) - 1)

    def _width(self, x: Polynomial, bits: int) -> int:
        """Returns an upper bound of the bit length of a nonnegative x."""
        high = self.space.high(x)
        width = bits - 1 if high is None else high.bit_length()
        while width and self.prover.holds(-x + ((1 << (width - 1)) - 1)):
            width -= 1
        return width

    def narrowed(self, x: Polynomial, bits: int) -> Polynomial:
        """Wraps the exact result of a sum, difference or product to a width."""
        if bits >= 64 or self.prover.fits(x, bits):
            return x
        return self.opaque("wrapped", bits)

    def unsigned(self, x: Polynomial, bits: int) -> Polynomial:
        """Zero-extends a value of some width."""
        return x if self.prover.holds(x) else self.natural("extended", bits)

    def number(self, condition: Condition, one: int) -> Polynomial:
        """Converts a condition to a number: `one` (1 or -1) if it holds, else 0."""
        if isinstance(condition, Unknown):
            return self.space.fresh("bit", min(0, one), max(0, one))
        return self.select(condition, Polynomial.number(one), Polynomial.number(0))


def _common_factor(a: Polynomial, b: Polynomial) -> int:
    return gcd(*a.terms.values(), *b.terms.values())


def _over(x: Polynomial, divisor: int) -> Polynomial:
    """Divides a polynomial by a common divisor of its coefficients."""
    return Polynomial({m: c // divisor for m, c in x.terms.items()})


def _ordered(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Sorts the operands of a commutative operation, so that equal terms are found."""
    return (a, b) if sorted(a.terms.items()) <= sorted(b.terms.items()) else (b, a)


def _whole_and_rest(x: Polynomial, c: int) -> tuple[Polynomial, Polynomial, int]:
    """Returns (whole, rest, d) so that floor(x / c) = whole + floor(rest / d), d the smallest."""
    whole = Polynomial({m: k // c for m, k in x.terms.items() if m and k % c == 0})
    rest = Polynomial({m: k for m, k in x.terms.items() if not m or k % c})
    constant = rest.terms.get((), 0)
    whole, rest = whole + constant // c, rest + (constant % c - constant)
    common = gcd(c, *(k for m, k in rest.terms.items() if m))
    if common > 1:
        constant = rest.terms.get((), 0)
        rest = Polynomial({m: k // common for m, k in rest.terms.items() if m})
        c, rest = c // common, rest + constant // common
    return whole, rest, c
