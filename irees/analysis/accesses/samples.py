"""
Assignments of integers to variables that satisfy all facts, to give up false goals early.

A proof of `goal >= 0` from the facts of a scope shows that no assignment that satisfies these facts
makes the goal negative. So a goal that is negative in one *sample* has no proof, and the search
need not look for it. Most questions (is this minimum its first operand? does this sum wrap?) have
the answer no, and most facts that the search tries lead to a false goal.

A sample has a value for each variable, chosen from the oldest to the newest within the bounds that
its facts set. It is kept while it satisfies the facts of a scope. A sample that does not is chosen
again, with those facts as bounds. Samples only prevent searches: a wrong one may cost a proof,
which is a guard at run time, but never adds a proof.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irees.analysis.accesses.polynomials import Monomial, Polynomial
from irees.analysis.accesses.terms import SAMPLES, AtLeast, Condition, Every, Some, Space, Within

SIZES = (40_959, 1_023)
"""
The size of a buffer in each sample, if its bounds allow it. No tile or vector divides these sizes,
so that the loops over rests have iterations, too.
"""

OTHERS = (-1, 0)
"""The value of a number that is not known to be natural: results of divisions by 0 have these."""

IS_LAST = (True, False)
"""Whether variables with bounds are at the upper one: loops in their last iteration."""

NEAR, FAR = 1 << 16, 64
"""A bound that is more than `NEAR` away is not reached: the value is `FAR` away."""

UNEVEN = 5
"""Distance of a size from its upper bound, which may be a multiple of tiles."""

WORD = 1 << 63
"""Bound of the integers that do not wrap."""

Values = dict[int, int | None]
"""Variable => value; None if no value satisfies its facts."""


@dataclass
class Samples:
    """The samples of one scope, and how many of the assumed facts they are known to satisfy."""

    checked: int = 0
    narrowed: int = 0
    kept: list[Values | None] = field(default_factory=lambda: [{} for _ in SIZES])
    broken: dict[int, tuple[Values, int]] = field(default_factory=dict)
    """Sample => its values that do not satisfy some facts, and the oldest to choose again."""


class Sampler:
    """Keeps samples that satisfy the facts of the current scope, in the memory of the scope."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def refutes(self, goal: Polynomial) -> bool:
        """Whether a goal is negative in a sample, hence not provable."""
        for number, values in enumerate(self._here().kept):
            if values is not None:
                found = self._value(goal, values, number)
                if found is not None and found < 0:
                    return True
        return False

    def choose(self) -> None:
        """Replaces the samples that do not satisfy the facts of this scope."""
        here = self._here()
        while here.broken:
            number, (old, first) = here.broken.popitem()
            new = {variable: value for variable, value in old.items() if variable < first}
            facts = (fact for fact in self.space.assumptions if fact.newest() >= first)
            if all(self._satisfies(fact, new, number) for fact in facts):
                here.kept[number] = new

    def _here(self) -> Samples:
        """Returns the samples of the enclosing scope that satisfy the facts of this one, too."""
        memories = self.space.memories
        found = memories[-1].get(SAMPLES)
        if found is None:
            outer = next((m[SAMPLES] for m in reversed(memories) if SAMPLES in m), Samples())
            found = Samples(outer.checked, outer.narrowed, list(outer.kept))
            memories[-1][SAMPLES] = found
        assert isinstance(found, Samples)
        self._check(found)
        return found

    def _check(self, samples: Samples) -> None:
        """Takes out the samples that do not satisfy what was assumed since the last check."""
        facts, narrowed = self.space.assumptions, self.space.narrowed
        if len(facts) == samples.checked and len(narrowed) == samples.narrowed:
            return
        for number, values in enumerate(samples.kept):
            if values is None:
                continue
            broken = [v for v in narrowed[samples.narrowed :] if not self._is_within(v, values)]
            for fact in facts[samples.checked :]:
                if not self._satisfies(fact, values, number):
                    broken.append(fact.newest())
            if broken:
                samples.kept[number], samples.broken[number] = None, (values, min(broken))
        samples.checked, samples.narrowed = len(facts), len(narrowed)

    def _is_within(self, number: int, values: Values) -> bool:
        """Whether the value of a variable, if it has one, is still within its bounds."""
        value, variable = values.get(number), self.space.variables[number]
        return value is None or (
            (variable.low is None or variable.low <= value)
            and (variable.high is None or value <= variable.high)
        )

    def _satisfies(self, fact: Polynomial, values: Values, sample: int) -> bool:
        value = self._value(fact, values, sample)
        return value is not None and value >= 0

    def _value(self, polynomial: Polynomial, values: Values, sample: int) -> int | None:
        """Returns the value of a polynomial in a sample; None if a variable has none."""
        total = 0
        for monomial, coefficient in polynomial.terms.items():
            term = self._term(coefficient, monomial, values, sample)
            if term is None:
                return None
            total += term
        return total

    def _term(
        self, coefficient: int, monomial: Monomial, values: Values, sample: int
    ) -> int | None:
        """Returns the value of a term in a sample; None if a variable has none."""
        for variable in monomial:
            if variable not in values:
                self._choose_with_older(variable, values, sample)
            value = values[variable]
            if value is None:
                return None
            coefficient *= value
        return coefficient

    def _choose_with_older(self, wanted: int, values: Values, sample: int) -> None:
        """Chooses the value of a variable, and first those of the variables that define it."""
        waiting = [wanted]
        while waiting:
            variable = waiting[-1]
            older = [v for v in self._older(variable) if v not in values]
            if older and variable not in values:
                values[variable] = None
                waiting += older
            else:
                values[waiting.pop()] = None
                values[variable] = self._chosen(variable, values, sample)

    def _older(self, number: int) -> set[int]:
        """Returns the variables that bound a variable here."""
        return self.space.defined_by(number).union(*(f.variables() for f in self._scoped(number)))

    def _scoped(self, number: int) -> list[Polynomial]:
        return [f for f in self.space.scoped.get(number, ()) if f.newest() == number]

    def _chosen(self, number: int, values: Values, sample: int) -> int | None:
        """Returns a value of a variable that satisfies its facts, given those of older ones."""
        bounds = self._bounds(number, values, sample)
        if bounds is None:
            return None
        low, high = bounds
        variable = self.space.variables[number]
        if not variable.cases:
            return (_end if variable.facts else _size)(low, high, sample)
        for case in variable.cases if sample % 2 else reversed(variable.cases):
            value = self._value(case.value, values, sample)
            if value is not None and self._may_hold(case.condition, values, sample):
                if (low is None or low <= value) and (high is None or value <= high):
                    return value
        return None

    def _bounds(
        self, number: int, values: Values, sample: int
    ) -> tuple[int | None, int | None] | None:
        """Returns the bounds that the facts of a variable set; None if one cannot hold."""
        variable = self.space.variables[number]
        low, high = variable.low, variable.high
        for fact in (*variable.facts, *self._scoped(number)):
            line = self._line(fact, number, values, sample)
            if line is None:
                return None
            slope, at_0 = line
            if slope == 0 and at_0 < 0:
                return None
            if slope > 0:
                low = -(at_0 // slope) if low is None else max(low, -(at_0 // slope))
            elif slope < 0:
                high = at_0 // -slope if high is None else min(high, at_0 // -slope)
        return None if low is not None and high is not None and low > high else (low, high)

    def _line(
        self, fact: Polynomial, number: int, values: Values, sample: int
    ) -> tuple[int, int] | None:
        """
        Returns the slope of a fact in a variable, and its value at 0; None if it is not linear or
        another variable has no value. As `coefficient_of` does, without its polynomials.
        """
        slope = at_0 = 0
        for monomial, coefficient in fact.terms.items():
            here = monomial.index(number) if number in monomial else None
            rest = monomial if here is None else (*monomial[:here], *monomial[here + 1 :])
            term = self._term(coefficient, rest, values, sample)
            if term is None:
                return None
            if here is None:
                at_0 += term
            else:
                slope += term
        return slope, at_0

    def _may_hold(self, condition: Condition, values: Values, sample: int) -> bool:
        """Whether a condition holds in a sample; opaque conditions may."""
        match condition:
            case AtLeast(polynomial):
                return self._satisfies(polynomial, values, sample)
            case Every(parts):
                return all(self._may_hold(part, values, sample) for part in parts)
            case Some(parts):
                return any(self._may_hold(part, values, sample) for part in parts)
            case Within(fit, inner):
                sizes = [self._value(each, values, sample) for each in fit]
                fits = all(size is not None and -WORD <= size < WORD for size in sizes)
                return fits and self._may_hold(inner, values, sample)
        return True


def _end(low: int | None, high: int | None, sample: int) -> int:
    """Returns one of two bounds, or a value next to 0 if that bound is far away."""
    near = 0 if low is None else max(low, 0)
    near = near if high is None else min(near, high)
    if IS_LAST[sample]:
        return high if high is not None and high - near <= NEAR else near + FAR
    return low if low is not None and near - low <= NEAR else near - FAR


def _size(low: int | None, high: int | None, sample: int) -> int:
    """Returns a size within two bounds, or a small number for what may be negative."""
    if low is None or low < 0:
        size = OTHERS[sample] if high is None else min(OTHERS[sample], high)
        return size if low is None else max(size, low)
    size = max(SIZES[sample], low)
    if high is None or size <= high:
        return size
    return high - UNEVEN if low <= high - UNEVEN else high
