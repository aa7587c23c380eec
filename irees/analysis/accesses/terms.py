"""
Variables with their facts and cases, and conditions on polynomials.

A variable stands for a value that is not a polynomial of other variables: a size, an induction
variable, a quotient, a minimum. Its *facts* are polynomials that are always at least 0. They use
the variable itself and older ones only, so that a proof can eliminate variables from the newest to
the oldest. Its *cases* are its possible values, each with a condition.

Terms are hash-consed: two computations of `n / 8` give the same variable, hence cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations

from irees.analysis.accesses.polynomials import Monomial, Polynomial
from irees.target import MOST_TOGETHER

MOST_CONSEQUENCES = 6
"""Largest number of facts derived from one fact, itself included."""

SAMPLES, DECIDED = "samples", "decided by"
"""
Keys of a scope's memory: its samples, and the facts of its pending conditions. Both outlast facts
that are added.
"""

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
    """At least one part holds. Without parts: false."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Unknown:
    """An opaque condition."""

    number: int


@dataclass(frozen=True)
class Within:
    """A condition on integers, which holds for the machine values if all of `fit` do not wrap."""

    fit: tuple[Polynomial, ...]
    condition: Condition


Condition = AtLeast | Every | Some | Unknown | Within


def opposite(condition: Condition) -> Condition:
    """Returns the negation of a condition."""
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
    """Returns a condition equal to `a` if `condition` holds, else to `b`."""
    if a == b:
        return a
    return Some((Every((condition, a)), Every((opposite(condition), b))))


@dataclass(frozen=True)
class Case:
    """A possible value of a variable, and the condition under which the variable has it."""

    value: Polynomial
    condition: Condition


@dataclass
class Variable:
    """An integer that is not a polynomial of other variables."""

    name: str
    term: Hashable
    low: int | None = None
    high: int | None = None
    facts: list[Polynomial] = field(default_factory=list)
    """Polynomials that are at least 0."""
    cases: tuple[Case, ...] = ()
    relates: bool = False
    """Whether scoped facts with this variable are stored under the next older one too. Set for
    table entries and maxima."""

    @property
    def is_defined(self) -> bool:
        """Whether older variables determine the value."""
        return isinstance(self.term, tuple) and self.term[0] not in ("fresh", "entry")


class Space:
    """All variables of a proof, and the facts that hold at the current op of the walk."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.scoped: dict[int, list[Polynomial]] = {}
        """Variable => facts that hold here, stored under their newest or two newest variables."""
        self.pending: list[Condition] = []
        """Disjunctions and `Within`s that hold here, but give no facts yet."""
        self.bounded: dict[Monomial, int] = {}
        """Products of variables => upper bounds."""
        self.memories: list[dict[Polynomial | str, object]] = [{}]
        """The prover's memoized results, one table per enclosing scope."""
        self.assumptions: list[Polynomial] = []
        """The facts of `scoped` in the order of insertion, each once."""
        self.narrowed: list[int] = []
        """Variables in the order in which their intervals were narrowed."""
        self._added: list[int] = []
        """Keys of `scoped` in the order of insertion, for undoing."""
        self._interned: dict[Hashable, int] = {}
        self._unknowns = 0

    def variable(self, term: Hashable, name: str, **known: object) -> Polynomial:
        """Returns the variable of a term, and creates it if needed."""
        number = self._interned.get(term)
        if number is None:
            number = len(self.variables)
            self._interned[term] = number
            self.variables.append(Variable(name, term, **known))  # type: ignore[arg-type]
        return Polynomial.variable(number)

    def fresh(self, name: str, low: int | None = None, high: int | None = None) -> Polynomial:
        """Creates a variable without a definition."""
        term = ("fresh", len(self.variables))
        return self.variable(term, f"{name}.{len(self.variables)}", low=low, high=high)

    def unknown(self) -> Unknown:
        """Creates an opaque condition."""
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
        Bounds each monomial of `count`, an element count of at most `most`, if none is negative.

        With `parts`, also bounds the product of each subset of the sizes: numpy and PyTorch limit
        the product of the nonzero sizes of empty arrays too.
        """
        # A negative monomial would make room for the others.
        are_natural = all(map(natural or self._is_natural, count.variables()))
        if not are_natural or any(c < 0 for c in count.terms.values()):
            return
        for monomial, factor in count.terms.items():
            if len(monomial) == 1:
                self.bound(monomial, most // factor)
            for size in range(2 if parts else len(monomial), min(len(monomial), 8) + 1):
                for part in combinations(monomial, size):
                    self.bound(part, most)

    def _is_natural(self, number: int) -> bool:
        low = self.variables[number].low
        return low is not None and low >= 0

    def newest_of(self, polynomial: Polynomial) -> Variable:
        """Returns the newest variable of a polynomial."""
        return self.variables[polynomial.newest()]

    def low(self, polynomial: Polynomial) -> int | None:
        """Returns a lower bound of a polynomial by interval arithmetic, or None."""
        total = 0
        for monomial, coefficient in polynomial.terms.items():
            if len(monomial) == 1:
                variable = self.variables[monomial[0]]
                low, high = variable.low, variable.high
            else:
                low, high = self.interval(monomial)
            end = low if coefficient > 0 else high
            if end is None:
                return None
            total += coefficient * end
        return total

    def high(self, polynomial: Polynomial) -> int | None:
        """Returns an upper bound of a polynomial by interval arithmetic, or None."""
        low = self.low(-polynomial)
        return None if low is None else -low

    def interval(self, monomial: Monomial) -> tuple[int | None, int | None]:
        """Returns the bounds of a product of variables, by interval arithmetic and `bounded`."""
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
        Whether the intervals show that the machine value, which wraps, equals the polynomial.

        Sums and products are exact modulo 2^bits, hence correct if the total fits. Only ops that
        depend on the value itself (comparison, quotient, minimum) need this check.
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
        """Opens a scope in which facts hold; also drops facts assumed inside on exit."""
        pending, before, assumed = len(self.pending), len(self._added), len(self.assumptions)
        self._add(facts)
        self.memories.append({})
        try:
            yield
        finally:
            self.memories.pop()
            del self.pending[pending:]
            del self.assumptions[assumed:]
            while len(self._added) > before:
                self.scoped[self._added.pop()].pop()

    def narrow(self, number: int, factor: int, constant: int) -> None:
        """Narrows the interval of v permanently by `factor * v + constant >= 0`, factor 1 or -1."""
        variable = self.variables[number]
        if factor > 0:
            variable.low = -constant if variable.low is None else max(variable.low, -constant)
        else:
            variable.high = constant if variable.high is None else min(variable.high, constant)
        self.narrowed.append(number)

    def forget(self) -> None:
        """Forgets what was remembered: facts of variables were replaced."""
        self.memories[-1].clear()
        for memory in self.memories:
            memory.pop(SAMPLES, None)

    def replace(self, number: int, value: Polynomial) -> None:
        """Substitutes a polynomial of older variables for a variable in all facts and bounds."""
        update = {number: value}
        for variable in self.variables[number + 1 :]:
            known = [f.substituted(update) for f in variable.facts if number in f.variables()]
            variable.facts = [*known, *variable.facts]
        self.forget()
        facts = [f for known in self.scoped.values() for f in known if number in f.variables()]
        self.assume([value, *(fact.substituted(update) for fact in dict.fromkeys(facts))])
        self.pending[:] = [substituted(condition, update) for condition in self.pending]
        for product, most in list(self.bounded.items()) if len(value.terms) == 1 else ():
            if number in product:
                ((same, factor),) = Polynomial({product: 1}).substituted(update).terms.items()
                if same and factor > 0:
                    self.bound(same, most // factor)

    def bound(self, product: Monomial, most: int) -> None:
        """Bounds a product of variables from above by `most`."""
        if len(product) == 1:
            self.narrow(product[0], -1, most)
        else:
            self.bounded[product] = min(most, self.bounded.get(product, most))

    def consequences(self, fact: Polynomial) -> list[Polynomial]:
        """Returns a fact and its consequences for older variables, by elimination of the newest."""
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
        """m n - 1 >= 0  =>  m - 1 >= 0 and n - 1 >= 0, for natural m and n"""
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
        """Returns the unscoped facts of a variable, including its bounds."""
        variable, one = self.variables[number], Polynomial.variable(number)
        facts = list(variable.facts)
        if variable.high is not None:
            facts.append(-one + variable.high)
        if variable.low is not None:
            facts.append(one - variable.low)
        return facts

    def assume(self, facts: Sequence[Polynomial]) -> None:
        """Assumes facts up to the end of the current scope."""
        self._add(facts)
        memory = self.memories[-1]
        kept = {key: memory[key] for key in (SAMPLES, DECIDED) if key in memory}
        memory.clear()
        memory.update(kept)

    def _add(self, facts: Sequence[Polynomial]) -> None:
        for fact in facts:
            tight = fact.tightened()
            self.assumptions.append(tight)
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
        Renames the variables `inside`: `f(i)` becomes `f(j)` for a fresh j, or `f(at[i])`.

        Also renames the variables that depend on them.
        """
        new = self._renaming(values, inside, at or {})
        return [value.substituted(new) for value in values]

    def chosen(
        self, goal: Polynomial, number: int, value: Polynomial
    ) -> tuple[Polynomial, list[Polynomial]]:
        """Returns a goal for one value of a variable, and the scoped facts renamed likewise."""
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
        """Returns the variables in `inside` or dependent on them that values use, oldest first."""
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
        """Returns the variables with cases that a goal depends on, except its newest one."""
        return [
            number
            for number in reversed(self._dependent([goal], set(range(len(self.variables)))))
            if self.variables[number].cases and number != goal.newest()
        ]

    def defined_by(self, number: int) -> set[int]:
        """Returns the variables in the facts and cases of a variable."""
        variable = self.variables[number]
        polynomials = [*variable.facts]
        for case in variable.cases:
            polynomials += [case.value, *polynomials_of(case.condition)]
        return {v for p in polynomials for v in p.variables()} - {number}


def substituted(condition: Condition, values: dict[int, Polynomial]) -> Condition:
    """Substitutes variables in a condition."""
    if isinstance(condition, AtLeast):
        return AtLeast(condition.polynomial.substituted(values))
    if isinstance(condition, Every | Some):
        return type(condition)(tuple(substituted(p, values) for p in condition.parts))
    if isinstance(condition, Within):
        fit = tuple(p.substituted(values) for p in condition.fit)
        return Within(fit, substituted(condition.condition, values))
    return condition


def polynomials_of(condition: Condition) -> Iterator[Polynomial]:
    """Yields all polynomials of a condition."""
    if isinstance(condition, AtLeast):
        yield condition.polynomial
    elif isinstance(condition, Every | Some):
        for part in condition.parts:
            yield from polynomials_of(part)
    elif isinstance(condition, Within):
        yield from condition.fit
        yield from polynomials_of(condition.condition)
