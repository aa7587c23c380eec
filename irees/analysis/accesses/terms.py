"""
Variables with what is known of them, and conditions on polynomials.

A variable stands for a value of the program that is not a polynomial of others: a size, the trips
of a loop, a quotient, a minimum. Its *facts* are polynomials that are at least 0 for every value
that it takes; they use itself and older variables only, so that a proof may eliminate variables
from the newest to the oldest. Its *cases* are the values of which it always is one.

Equal terms are one variable (hash-consing): two computations of `n / 8` cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations

from irees.analysis.accesses.polynomials import Monomial, Polynomial
from irees.target import MOST_TOGETHER

MOST_CONSEQUENCES = 6
"""Facts that are derived from one."""

CONTRADICTION = -1
"""Key of scoped facts that cannot hold: the code that assumes them is never reached."""


@dataclass(frozen=True)
class AtLeast:
    """`polynomial >= 0`"""

    polynomial: Polynomial


@dataclass(frozen=True)
class Every:
    """All parts hold. Without parts: true."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Some:
    """One part holds at least. Without parts: false."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Unknown:
    """A condition that nothing is known of."""

    number: int


@dataclass(frozen=True)
class Within:
    """A condition on values that the machine has as they are only where they `fit`."""

    fit: tuple[Polynomial, ...]
    condition: Condition


Condition = AtLeast | Every | Some | Unknown | Within


def opposite(condition: Condition) -> Condition:
    """What holds where a condition does not."""
    if isinstance(condition, AtLeast):
        return AtLeast(-condition.polynomial - 1)
    if isinstance(condition, Every):
        return Some(tuple(map(opposite, condition.parts)))
    if isinstance(condition, Some):
        return Every(tuple(map(opposite, condition.parts)))
    if isinstance(condition, Within):
        return Within(condition.fit, opposite(condition.condition))
    return condition


def either(condition: Condition, a: Condition, b: Condition) -> Condition:
    """A condition that is `a` where `condition` holds, else `b`."""
    if a == b:
        return a
    return Some((Every((condition, a)), Every((opposite(condition), b))))


@dataclass(frozen=True)
class Case:
    """A value that a variable may be, and what holds where it is."""

    value: Polynomial
    condition: Condition


@dataclass
class Variable:
    """A value that is not a polynomial of others."""

    name: str
    term: Hashable
    low: int | None = None
    high: int | None = None
    facts: list[Polynomial] = field(default_factory=list)
    """At least 0."""
    cases: tuple[Case, ...] = ()
    relates: bool = False
    """Whether a fact about it and an older variable is one about that, too: of entries of tables,
    and of the room that a vector has."""

    @property
    def is_defined(self) -> bool:
        """Whether older variables say what it is."""
        return isinstance(self.term, tuple) and self.term[0] not in ("fresh", "entry")


class Space:
    """All variables of a proof, and what holds where the walk is."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.scoped: dict[int, list[Polynomial]] = {}
        """Variable => facts that hold here, of which it is one of the two newest variables."""
        self.pending: list[Condition] = []
        """These hold here too, but what they say is not decided."""
        self.bounded: dict[Monomial, int] = {}
        """Products of sizes of one buffer, and what they are at most."""
        self.memories: list[dict[Polynomial, object]] = [{}]
        """What was found out in each scope that the walk is in. A prover fills it."""
        self._added: list[int] = []
        """The variables of scoped facts, in the order in which those were added."""
        self._interned: dict[Hashable, int] = {}
        self._unknowns = 0

    def variable(self, term: Hashable, name: str, **known: object) -> Polynomial:
        """The variable for a term: one that there is, or a new one."""
        number = self._interned.get(term)
        if number is None:
            number = len(self.variables)
            self._interned[term] = number
            self.variables.append(Variable(name, term, **known))  # type: ignore[arg-type]
        return Polynomial.variable(number)

    def fresh(self, name: str, low: int | None = None, high: int | None = None) -> Polynomial:
        """A variable that equals no other."""
        term = ("fresh", len(self.variables))
        return self.variable(term, f"{name}.{len(self.variables)}", low=low, high=high)

    def unknown(self) -> Unknown:
        """A condition of which nothing is known."""
        self._unknowns += 1
        return Unknown(self._unknowns)

    def limit(
        self,
        count: Polynomial,
        most: int = MOST_TOGETHER,
        natural: Callable[[int], bool] | None = None,
        *,
        parts: bool = False,
    ) -> None:
        """
        A buffer has `count` elements, so none of the products that it is a sum of is above `most`.

        With `parts`, no product of some sizes is: numpy and PyTorch look at the sizes that are not
        0 of an empty array, too.
        """
        if any(c < 0 for c in count.terms.values()):
            return
        for monomial, factor in count.terms.items():
            if all(map(natural or self._is_natural, monomial)):
                if len(monomial) == 1:
                    self.bound(monomial, most // factor)
                for size in range(2 if parts else len(monomial), min(len(monomial), 8) + 1):
                    for part in combinations(monomial, size):
                        self.bound(part, most)

    def _is_natural(self, number: int) -> bool:
        low = self.variables[number].low
        return low is not None and low >= 0

    def newest_of(self, polynomial: Polynomial) -> Variable:
        """The variable that `polynomial` is."""
        return self.variables[polynomial.newest()]

    def low(self, polynomial: Polynomial) -> int | None:
        """A number that a polynomial is at least, by the intervals of its variables."""
        total = 0
        for monomial, coefficient in polynomial.terms.items():
            low, high = self.interval(monomial)
            end = low if coefficient > 0 else high
            if end is None:
                return None
            total += coefficient * end
        return total

    def high(self, polynomial: Polynomial) -> int | None:
        """A number that a polynomial is at most, by the intervals of its variables."""
        low = self.low(-polynomial)
        return None if low is None else -low

    def interval(self, monomial: Monomial) -> tuple[int | None, int | None]:
        """The smallest and largest value of a product of variables."""
        low: int | None = 1
        high: int | None = 1
        for number in monomial:
            variable = self.variables[number]
            if len(monomial) == 1:
                return variable.low, variable.high
            if variable.low is None or variable.low < 0 or low is None:
                return self._signed(monomial)
            low *= variable.low
            high = None if high is None or variable.high is None else high * variable.high
        limit = self.bounded.get(monomial)
        if limit is not None:
            high = limit if high is None else min(high, limit)
        return low, high

    def _signed(self, monomial: Monomial) -> tuple[int | None, int | None]:
        low = high = 1
        for number in monomial:
            variable = self.variables[number]
            if variable.low is None or variable.high is None:
                return None, None
            ends = [a * b for a in (low, high) for b in (variable.low, variable.high)]
            low, high = min(ends), max(ends)
        return low, high

    def fits(self, polynomial: Polynomial, bits: int = 64) -> bool:
        """
        Whether the machine's value, which wraps, is the polynomial's.

        Sums and products of wrapped values are right again when the total fits. So only what
        looks at a value (a comparison, a quotient, a minimum) has to ask.
        """
        if polynomial.single is not None and bits == 64:
            return True
        low, high = self.low(polynomial), self.high(polynomial)
        limit = 1 << (bits - 1)
        return low is not None and high is not None and -limit <= low and high < limit

    def is_nonnegative(self, polynomial: Polynomial) -> bool:
        """Whether the intervals show that a polynomial is at least 0."""
        low = self.low(polynomial)
        return low is not None and low >= 0

    @contextmanager
    def assuming(self, facts: Sequence[Polynomial]) -> Iterator[None]:
        """Facts that hold inside."""
        pending, before = len(self.pending), len(self._added)
        self._add(facts)
        self.memories.append({})
        try:
            yield
        finally:
            self.memories.pop()
            del self.pending[pending:]
            # Facts that were assumed meanwhile go as well.
            while len(self._added) > before:
                self.scoped[self._added.pop()].pop()

    def narrow(self, number: int, factor: int, constant: int) -> None:
        """`factor * v + constant >= 0`, for a factor of 1 or -1, from here on for good."""
        variable = self.variables[number]
        if factor > 0:
            variable.low = -constant if variable.low is None else max(variable.low, -constant)
        else:
            variable.high = constant if variable.high is None else min(variable.high, constant)

    def replace(self, number: int, value: Polynomial) -> None:
        """A variable equals a polynomial in older ones: what is known of it holds for those."""
        update = {number: value}
        for variable in self.variables[number + 1 :]:
            known = [f.substituted(update) for f in variable.facts if number in f.variables()]
            variable.facts = [*known, *variable.facts]
        facts = [f for known in self.scoped.values() for f in known if number in f.variables()]
        self.assume([value, *(fact.substituted(update) for fact in dict.fromkeys(facts))])
        self.pending[:] = [substituted(condition, update) for condition in self.pending]
        for product, most in list(self.bounded.items()) if len(value.terms) == 1 else ():
            if number in product:
                ((same, factor),) = Polynomial({product: 1}).substituted(update).terms.items()
                if same and factor > 0:
                    self.bound(same, most // factor)

    def bound(self, product: Monomial, most: int) -> None:
        """A product of sizes is at most `most`."""
        if len(product) == 1:
            self.narrow(product[0], -1, most)
        else:
            self.bounded[product] = min(most, self.bounded.get(product, most))

    def consequences(self, fact: Polynomial) -> list[Polynomial]:
        """What follows for older variables from a fact about the newest of it."""
        found = []
        waiting = [fact.tightened()]
        while waiting and len(found) < MOST_CONSEQUENCES:
            first = waiting.pop(0)
            newest = first.newest()
            if newest < 0:
                continue
            found.append(first)
            waiting += [f for f in self._factors_of(first) if f not in found]
            p = first.coefficient_of(newest)[0].constant
            for second in self.definition(newest) if p else ():
                q = second.coefficient_of(newest)[0].constant
                if p and q and (p > 0) != (q > 0):
                    new = (first * abs(q) + second * abs(p)).tightened()
                    if new not in found and not self.is_nonnegative(new):
                        waiting.append(new)
        return found

    def _factors_of(self, fact: Polynomial) -> list[Polynomial]:
        """m n - 1 >= 0  =>  m - 1 >= 0 and n - 1 >= 0, of natural numbers"""
        monomials = [m for m in fact.terms if m]
        if len(monomials) != 1 or len(monomials[0]) < 2:
            return []
        (monomial,) = monomials
        if fact.terms[monomial] < 0 or fact.terms.get((), 0) >= 0:
            return []
        if not all(map(self._is_natural, monomial)):
            return []
        return [Polynomial.variable(v) - 1 for v in dict.fromkeys(monomial)]

    def definition(self, number: int) -> list[Polynomial]:
        """All facts that a variable has wherever it is, its limits among them."""
        variable, one = self.variables[number], Polynomial.variable(number)
        facts = list(variable.facts)
        if variable.high is not None:
            facts.append(-one + variable.high)
        if variable.low is not None:
            facts.append(one - variable.low)
        return facts

    def assume(self, facts: Sequence[Polynomial]) -> None:
        """Facts that hold from here to the end of the scope that the walk is in."""
        self._add(facts)
        self.memories[-1].clear()

    def _add(self, facts: Sequence[Polynomial]) -> None:
        for fact in facts:
            tight = fact.tightened()
            if (high := self.high(tight)) is not None and high < 0:
                self.scoped.setdefault(CONTRADICTION, []).append(tight)
                self._added.append(CONTRADICTION)
            numbers = sorted(tight.variables())[-2:]
            if not any(self.variables[n].relates for n in numbers):
                del numbers[:-1]
            for number in numbers:
                self.scoped.setdefault(number, []).append(tight)
                self._added.append(number)

    def renamed(
        self,
        values: Sequence[Polynomial],
        inside: set[int],
        at: dict[int, Polynomial] | None = None,
    ) -> list[Polynomial]:
        """
        Polynomials for another choice of some variables: `f(i)` becomes `f(j)`, or `f(at[i])`.

        All variables that are defined by `inside` change with them.
        """
        new = self._renaming(values, inside, at or {})
        return [value.substituted(new) for value in values]

    def chosen(
        self, goal: Polynomial, number: int, value: Polynomial
    ) -> tuple[Polynomial, list[Polynomial]]:
        """A goal where a variable has some value, and what is known here of those it defines."""
        new = self._renaming([goal], {number}, {number: value})
        facts = [fact for old in new for fact in self.scoped.get(old, ())]
        return goal.substituted(new), [fact.substituted(new) for fact in facts]

    def _renaming(
        self, values: Sequence[Polynomial], inside: set[int], at: dict[int, Polynomial]
    ) -> dict[int, Polynomial]:
        new = dict(at)
        for number in self._dependent(values, inside):
            if number in new:
                continue
            old = self.variables[number]
            fresh = self.fresh(old.name, old.low, old.high)
            new[number] = fresh
            variable = self.newest_of(fresh)
            variable.relates = old.relates
            variable.facts = [fact.substituted(new).tightened() for fact in old.facts]
            variable.cases = tuple(
                Case(c.value.substituted(new), substituted(c.condition, new)) for c in old.cases
            )
        return new

    def _dependent(self, values: Sequence[Polynomial], inside: set[int]) -> list[int]:
        """Variables of values that are in `inside`, or defined by such, oldest first."""
        needed: set[int] = set()
        waiting = [v for value in values for v in value.variables()]
        while waiting:
            number = waiting.pop()
            if number in needed:
                continue
            needed.add(number)
            waiting += self.defined_by(number)
        found: set[int] = set()
        for number in sorted(needed):
            if number in inside or not found.isdisjoint(self.defined_by(number)):
                found.add(number)
        return sorted(found)

    def choices(self, goal: Polynomial) -> list[int]:
        """Variables with cases that define others of a goal, newest first."""
        return [
            number
            for number in reversed(self._dependent([goal], set(range(len(self.variables)))))
            if self.variables[number].cases and number != goal.newest()
        ]

    def defined_by(self, number: int) -> set[int]:
        """The variables that say what one is."""
        variable = self.variables[number]
        polynomials = [*variable.facts]
        for case in variable.cases:
            polynomials += [case.value, *polynomials_of(case.condition)]
        return {v for p in polynomials for v in p.variables()} - {number}


def substituted(condition: Condition, values: dict[int, Polynomial]) -> Condition:
    """A condition with variables replaced."""
    if isinstance(condition, AtLeast):
        return AtLeast(condition.polynomial.substituted(values))
    if isinstance(condition, Every | Some):
        return type(condition)(tuple(substituted(p, values) for p in condition.parts))
    if isinstance(condition, Within):
        fit = tuple(p.substituted(values) for p in condition.fit)
        return Within(fit, substituted(condition.condition, values))
    return condition


def polynomials_of(condition: Condition) -> Iterator[Polynomial]:
    """All polynomials in a condition."""
    if isinstance(condition, AtLeast):
        yield condition.polynomial
    elif isinstance(condition, Every | Some):
        for part in condition.parts:
            yield from polynomials_of(part)
    elif isinstance(condition, Within):
        yield from condition.fit
        yield from polynomials_of(condition.condition)
