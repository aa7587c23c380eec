"""
Proves that polynomials are at least 0, by variable elimination.

To show `g >= 0`, the prover eliminates the newest variable v of g with a fact `f >= 0` about v. It
looks for n > 0 and m >= 0 such that v cancels in

    n · g + (n - 1) - m · f  >=  0

This inequality implies `g >= 0`, since g is an integer. `m` may be a product of nonnegative
variables. If no fact helps, the prover splits on the cases of v (a minimum, a select). Each goal is
divided by the gcd of its coefficients (Farkas' lemma with Chvátal-Gomory cuts; the certificates are
those of micromega, Besson 2006).

Most goals are false: they ask whether an expression can be simplified, or come from a fact that
does not help. `samples` refutes them by a value.

A proof is a tree of `Step`s. `irees.testing.certificates` checks proofs without a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import gcd, inf
from typing import Any

from irees.analysis.accesses.polynomials import ONE, ZERO, Polynomial
from irees.analysis.accesses.samples import Sampler
from irees.analysis.accesses.terms import (
    DECIDED,
    AtLeast,
    Case,
    Condition,
    Every,
    Some,
    Space,
    Within,
    opposite,
)
from irees.target import MOST_TOGETHER

STEPS = 400
"""Step limit of one proof; each step visits one goal."""

QUICK, SHARE = 120, 3
"""
Step limit of the first search, in which each fact gets 1/`SHARE` of the remaining steps. Without
shares, depth-first search may spend all steps on one useless fact before it tries the right one.
"""

ALL, LAST = 20_000, 60
"""After `ALL` steps for one kernel, each further proof gets at most `LAST` steps."""

FEW = 30
"""
Step limit of all proofs but those of accesses. They find facts and simplify expressions; most fail.
"""

DEPTH = 50
"""Depth limit of the search."""

TERMS = 40
"""Largest number of monomials in a goal; larger goals fail unless `_drop` shortens them."""

LONG = 12
"""Smallest number of monomials of a goal that is first tried without unrelated monomials."""

CHOICES = 3
"""Largest number of variables that `prove_by_choice` splits on, each by itself."""

TRIES = 6
"""Largest number of facts about the newest variable tried per goal."""


@dataclass(frozen=True)
class Step:
    """
    One step of a proof that a goal is at least 0. `then` has the proofs of the subgoals.

    `kind` is one of: `low` (interval bound); `use` (continues with `factor` · goal + `factor` - 1 -
    `multiple` · `fact`); `cases` (one subproof per case of `variable`); `choice` (the same, also
    substituting in the variables that it defines); `never` (refutes `fact` of the case; without a
    fact, proves the negation of its condition); `more` (the subgoal is smaller by the constant
    `fact`); `drop` (the subgoal is smaller by `fact`, nonnegative by its interval).
    """

    kind: str
    variable: int = -1
    fact: Polynomial = ZERO
    factor: Polynomial = ONE
    multiple: Polynomial = ONE
    then: tuple[Step, ...] = ()


LOW = Step("low")


@dataclass
class Known:
    """Memoized results for the goals that differ only in their constant."""

    least: float = inf
    """Smallest constant for which the goal was proved."""
    step: Step = LOW
    failed: float = -inf
    """Largest constant for which the search failed."""


def _remembered(
    memories: Iterable[dict[Polynomial, Known]], base: Polynomial, constant: int
) -> Step | None:
    """Returns a known proof of `base + constant >= 0`; one for a constant holds for all larger."""
    for memory in memories:
        if (known := memory.get(base)) is not None and constant >= known.least:
            return known.step if constant == known.least else _more(known, constant)
    return None


def _more(known: Known, constant: int) -> Step:
    """Returns the proof of a goal that exceeds a proved goal by a constant."""
    return Step("more", fact=Polynomial.number(constant - int(known.least)), then=(known.step,))


class Prover:
    """Searches for proofs about the variables of a space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.sampler = Sampler(space)
        self.steps = 0
        self._begun = 0
        self._left = 0
        self._depth = 0
        self._is_thorough = False
        self._is_shared = False
        self._cuts = 0

    @contextmanager
    def thorough(self) -> Iterator[None]:
        """
        Gives each proof its full budget, also after `ALL` steps. Used for guarded accesses: it is
        an error if a guard is not proved to protect its access. These steps do not count towards
        `ALL`, so that a guard does not cost the following accesses their proofs.
        """
        before, self._is_thorough, steps = self._is_thorough, True, self.steps
        try:
            yield
        finally:
            self._is_thorough = before
            self._begun += self.steps - steps

    def begin(self) -> None:
        """Resets the step budget for the next kernel."""
        self._begun = self.steps

    def holds(self, goal: Polynomial, steps: int = FEW) -> bool:
        """Whether a proof of `goal >= 0` was found."""
        return self.prove(goal, steps) is not None

    def prove(self, goal: Polynomial, steps: int = STEPS) -> Step | None:
        """Returns a proof of `goal >= 0`, or None if none was found."""
        if self.space.is_nonnegative(goal):
            return LOW
        exhausted = self.steps - self._begun > ALL and not self._is_thorough
        if exhausted:
            # Bounds compile time: accesses without a proof get a run-time guard.
            steps = min(steps, LAST)
        self._depth = 0
        if steps == FEW and goal in self._missed():
            return None
        self.sampler.choose()
        found = self._quickly(goal) if steps > QUICK else None
        self._left = steps
        found = found or self._search(goal, frozenset())
        if found is None and steps == FEW:
            self._missed().add(goal)
        if found is None and self.space.pending and goal.newest() >= 0 and not exhausted:
            facts = self._decided()
            if facts:
                with self.space.assuming(facts):
                    self._left = steps
                    found = self._search(goal, frozenset())
        return found

    def _related(self, goal: Polynomial) -> Step | None:
        """
        Proves a long goal without its nonnegative monomials, but for those with a fact about a
        negative monomial. The place of a temporary in an arena is such a goal:

            64 q1 + ... + 64 q20 - 16 n m >= 0, of which one q has the fact 64 q >= 16 n m.
        """
        goal = goal.tightened()
        if len(goal.terms) < LONG:
            return None
        parts, negative = self._by_sign(goal)
        dropped = {}
        for term in parts:
            facts = [f for v in term.variables() for f in self.space.variables[v].facts]
            if not any(negative & f.terms.keys() for f in facts):
                dropped |= term.terms
        if not dropped:
            return None
        more = Polynomial(dropped)
        then = self._by_shares(goal - more)
        return None if then is None else Step("drop", fact=more, then=(then,))

    def _by_sign(self, goal: Polynomial) -> tuple[list[Polynomial], set[tuple[int, ...]]]:
        """Returns the terms that are nonnegative by their intervals, and the other monomials."""
        terms = [Polynomial({monomial: factor}) for monomial, factor in goal.terms.items()]
        parts = [term for term in terms if self.space.is_nonnegative(term)]
        return parts, goal.terms.keys() - {m for term in parts for m in term.terms}

    def _quickly(self, goal: Polynomial) -> Step | None:
        return self._related(goal) or self._by_shares(goal)

    def _by_shares(self, goal: Polynomial) -> Step | None:
        """Searches with a step limit per fact (`QUICK`, `SHARE`)."""
        self._left, self._is_shared = QUICK, True
        found = self._search(goal, frozenset())
        self._is_shared = False
        return found

    def prove_by_choice(self, goal: Polynomial) -> Step | None:
        """
        Like `prove`, but may also split on a variable that defines other variables of the goal.

        Values computed from a minimum or a power of two have tighter bounds in each of its cases.
        """
        found = self.prove(goal)
        for number in [] if found is not None else self.space.choices(goal)[:CHOICES]:
            found = self._each_case(goal, number)
            if found is not None:
                break
        return found

    def _each_case(self, goal: Polynomial, number: int) -> Step | None:
        steps = []
        for case in self.space.variables[number].cases:
            chosen, facts = self.space.chosen(goal, number, case.value)
            facts += self.facts_within(case.condition)
            with self.space.assuming([f for fact in facts for f in self.space.consequences(fact)]):
                then = self.prove(chosen)
            then = then or self._never(number, case, frozenset())
            if then is None:
                return None
            steps.append(then)
        return Step("choice", number, then=tuple(steps))

    def _missed(self) -> set[Polynomial]:
        """Returns the goals that failed within `FEW` steps in this scope."""
        return self._scope_memory("missed", set())

    def _scope_memory(self, name: str, empty: Any) -> Any:
        """Returns what is remembered under a name until the scope ends or gets new facts."""
        return self.space.memories[-1].setdefault(name, empty)  # type: ignore

    def _decided(self) -> list[Polynomial]:
        """
        Returns the facts of pending disjunctions with one possible disjunct left. They are
        remembered for the scope: most failed proofs ask for them, and each condition takes proofs.
        """
        known: dict[tuple[Condition, ...], list[Polynomial]] = self._scope_memory("decided", {})
        key = tuple(self.space.pending)
        if key not in known:
            known[key] = self._decide()
        return known[key]

    def _decide(self) -> list[Polynomial]:
        pending, self.space.pending = self.space.pending, []
        try:
            return [fact for condition in pending for fact in self._decided_by(condition)]
        finally:
            self.space.pending = pending

    def _decided_by(self, condition: Condition) -> list[Polynomial]:
        """Returns the facts of a pending condition. What an enclosing scope decided holds here."""
        for memory in self.space.memories:
            known: list[Polynomial] = memory.get(DECIDED, {}).get(condition)  # type: ignore
            if known:
                return known
        facts = self.facts_of(condition)
        found = [f for fact in facts for f in self.space.consequences(self.settled(fact))]
        self._scope_memory(DECIDED, {})[condition] = found
        return found

    def settled(self, polynomial: Polynomial) -> Polynomial:
        """Substitutes each truncation or select that has an implied case by that case."""
        for number in sorted(polynomial.variables(), reverse=True):
            variable = self.space.variables[number]
            if not isinstance(variable.term, tuple) or variable.term[0] not in ("trunc", "select"):
                continue
            for case in variable.cases:
                if self.implied(self._settled_condition(case.condition)):
                    return self.settled(polynomial.substituted({number: case.value}))
        return polynomial

    def _settled_condition(self, condition: Condition) -> Condition:
        if isinstance(condition, AtLeast):
            return AtLeast(self.settled(condition.polynomial))
        if isinstance(condition, Every | Some):
            return type(condition)(tuple(map(self._settled_condition, condition.parts)))
        return condition

    def fits(self, polynomial: Polynomial, bits: int = 64) -> bool:
        """Like `Space.fits`, but also tries a proof."""
        if self.space.fits(polynomial, bits):
            return True
        limit = (1 << (bits - 1)) - 1
        return self.holds(polynomial + limit) and self.holds(-polynomial + limit)

    def is_small(self, polynomial: Polynomial) -> bool:
        """Whether the magnitude of a value is at most `MOST_TOGETHER`, far below 2^63."""
        return self.holds(polynomial + MOST_TOGETHER) and self.holds(-polynomial + MOST_TOGETHER)

    def facts_of(self, condition: Condition) -> list[Polynomial]:
        """Returns polynomials that are at least 0 if the condition holds."""
        if isinstance(condition, AtLeast):
            return [condition.polynomial]
        if isinstance(condition, Every):
            return [fact for part in condition.parts for fact in self.facts_of(part)]
        if isinstance(condition, Some):
            possible = [p for p in condition.parts if not self.implied(opposite(p))]
            if len(possible) == 1:
                return self.facts_of(possible[0])
            if not possible:
                return [Polynomial.number(-1)]
        if isinstance(condition, Within) and all(map(self.fits, condition.fit)):
            return self.facts_of(condition.condition)
        return []

    def implications(self, fact: Polynomial) -> list[Polynomial]:
        """
        Returns the consequences of a fact, and of the case that its newest variable must have.

        select(n > 0, 8, 0) - 1 >= 0  =>  n - 1 >= 0, since 0 - 1 >= 0 does not hold.
        """
        found, newest = self.space.consequences(fact), fact.newest()
        cases = self.space.variables[newest].cases if newest >= 0 else ()
        values = (fact.substituted({newest: case.value}) for case in cases)
        possible = [c for c, v in zip(cases, values, strict=True) if not self.holds(-v - 1)]
        if len(possible) == 1:
            for each in self.facts_of(possible[0].condition):
                found += self.space.consequences(each)
        return found

    def implied(self, condition: Condition) -> bool:
        """Whether a condition is proved to hold within `FEW` steps per inequality."""
        if isinstance(condition, AtLeast):
            return self.holds(condition.polynomial, FEW)
        if isinstance(condition, Every):
            return all(self.implied(part) for part in condition.parts)
        if isinstance(condition, Some):
            return any(self.implied(part) for part in condition.parts)
        if isinstance(condition, Within):
            return all(map(self.fits, condition.fit)) and self.implied(condition.condition)
        return False

    def _search(self, goal: Polynomial, split: frozenset[int]) -> Step | None:
        goal = goal.tightened()
        if self.space.is_nonnegative(goal):
            return LOW
        if self.sampler.refutes(goal):
            return None
        newest = goal.newest()
        if newest < 0:
            return None
        if len(goal.terms) > TERMS:
            return self._drop(goal, split)
        constant = goal.terms.get((), 0)
        base = goal - constant if constant else goal
        memories: list[dict[Polynomial, Known]] = self.space.memories  # type: ignore
        if (proof := _remembered(memories, base, constant)) is not None:
            return proof
        here = memories[-1].get(base)
        if here is not None and constant <= here.failed:
            return None
        if self._left <= 0 or self._depth >= DEPTH:
            self._cuts += 1
            return None
        if here is None:
            here = memories[-1][base] = Known()
        self._left -= 1
        self._depth += 1
        self.steps += 1
        # Marks the goal as failed during its search, so that a proof cannot be circular.
        before, here.failed, cuts = here.failed, constant, self._cuts
        found = self._eliminate(goal, newest, split) or self._split(goal, newest, split)
        self._depth -= 1
        if found is not None:
            here.least, here.step, here.failed = constant, found, before
        elif self._cuts > cuts:
            here.failed = before
        return found

    def _drop(self, goal: Polynomial, split: frozenset[int]) -> Step | None:
        """
        Proves a goal without its nonnegative monomials, if that leaves at most `TERMS` of them.

        Keeps the monomials with a fact that relates them to a negative monomial.
        """
        parts, others = self._by_sign(goal)
        negative = {v for monomial in others for v in monomial}
        dropped = {}
        for term in parts:
            facts = [f for v in term.variables() for f in self.space.variables[v].facts]
            if not negative & term.variables().union(*(f.variables() for f in facts)):
                dropped |= term.terms
        more = Polynomial(dropped)
        if not dropped or len(goal.terms) - len(dropped) > TERMS:
            return None
        then = self._search(goal - more, split)
        return None if then is None else Step("drop", fact=more, then=(then,))

    def _eliminate(self, goal: Polynomial, newest: int, split: frozenset[int]) -> Step | None:
        for fact, factors in self._candidates(goal, newest):
            left = self._left
            given = min(left, max(left // SHARE, SHARE)) if self._is_shared else left
            self._left = given
            found = self._use(goal, newest, fact, factors, split)
            self._left += left - given
            if found is not None:
                return found
        return None

    def _candidates(
        self, goal: Polynomial, newest: int
    ) -> Iterator[tuple[Polynomial, tuple[Polynomial, Polynomial]]]:
        """Returns the facts that can eliminate a variable of a goal, with their factors."""
        a, _ = goal.coefficient_of(newest)
        found = ((fact, self._factors(a, fact, newest)) for fact in self._facts(newest))
        yield from islice(((f, factors) for f, factors in found if factors), TRIES)
        # A goal with x - c q and q may be easier to prove after eliminating q instead of x.
        for fact in self.space.variables[newest].facts:
            for older in fact.variables() & goal.variables() - {newest}:
                factors = self._factors(goal.coefficient_of(older)[0], fact, older)
                if factors is not None:
                    yield fact, factors

    def _use(
        self,
        goal: Polynomial,
        number: int,
        fact: Polynomial,
        factors: tuple[Polynomial, Polynomial],
        split: frozenset[int],
    ) -> Step | None:
        n, m = factors
        multiple = n.constant
        positive = LOW if multiple is not None and multiple > 0 else self._search(n - 1, split)
        if positive is None:
            return None
        natural = LOW if self.space.is_nonnegative(m) else self._search(m, split)
        if natural is None:
            return None
        scaled = goal if multiple == 1 else goal * n + (n - 1)
        then = self._search(scaled - m * fact, split)
        # n >= 1 needs a proof if n is symbolic, m >= 0 if only a scoped fact implies it.
        more = () if positive is LOW else (positive,)
        more = more if natural is LOW else (positive, natural)
        return None if then is None else Step("use", number, fact, n, m, (then, *more))

    def _facts(self, number: int) -> Iterator[Polynomial]:
        variable = self.space.variables[number]
        yield from variable.facts
        yield from self._assumed(number)
        yield from self.space.definition(number)[len(variable.facts) :]

    def _assumed(self, number: int) -> Iterator[Polynomial]:
        """
        Yields the scoped facts of a variable, the latest first, each once.

        A loop or an allocation assumes again what is known. Repeated facts, and bounds that the
        interval of the variable has, would use up `TRIES`.
        """
        for fact in dict.fromkeys(reversed(self.space.scoped.get(number, ()))):
            if sum(map(len, fact.terms)) > 1 or not self.space.is_nonnegative(fact):
                yield fact

    def assumed(self) -> list[Polynomial]:
        """Returns the scoped facts, each once, without bounds that intervals have."""
        numbers = [number for number in self.space.scoped if number >= 0]
        return list(dict.fromkeys(fact for n in numbers for fact in self._assumed(n)))

    def _factors(
        self, a: Polynomial, fact: Polynomial, v: int
    ) -> tuple[Polynomial, Polynomial] | None:
        """Returns n >= 1 and m >= 0 with n · a = m · p; p is the coefficient of v in the fact."""
        p, _ = fact.coefficient_of(v)
        x, y = a.constant, p.constant
        if x is not None and y is not None:
            if x * y <= 0:
                return None
            common = gcd(x, y)
            return Polynomial.number(abs(y) // common), Polynomial.number(abs(x) // common)
        if y is not None:
            n, m = Polynomial.number(abs(y)), a if y > 0 else -a
        elif x is not None:
            # A quotient by a symbolic size d: (g + 1) d - 1 >= 0 implies g >= 0.
            n, m = p if x > 0 else -p, Polynomial.number(abs(x))
        else:
            n, (m, rest) = ONE, a.divided(p)
            if rest.terms or not m.terms:
                return None
        if v in n.variables() or not self._may_be_natural(m):
            return None
        return n, m

    def _may_be_natural(self, factor: Polynomial) -> bool:
        """
        Whether to try to prove that a factor is nonnegative: if it is by its interval, is a
        variable with scoped facts, or is such a polynomial times variables (a b - b, for a >= 1).
        """
        if self.space.is_nonnegative(factor):
            return True
        if factor.single is not None:
            return bool(self.space.scoped.get(factor.newest()))
        return len(factor.terms) > 1 and self.space.is_nonnegative(factor.without_common())

    def _split(self, goal: Polynomial, newest: int, split: frozenset[int]) -> Step | None:
        variable = self.space.variables[newest]
        if not variable.cases or newest in split:
            return None
        found = []
        for case in variable.cases:
            facts = self.facts_within(case.condition)
            with self.space.assuming(facts):
                then = self._search(goal.substituted({newest: case.value}), split | {newest})
            then = then or self._never(newest, case, split | {newest})
            if then is None:
                return None
            found.append(then)
        return Step("cases", newest, then=tuple(found))

    def _never(self, number: int, case: Case, split: frozenset[int]) -> Step | None:
        """Refutes a case of a variable: its condition or a scoped fact does not hold."""
        broken = self.facts_within(case.condition)
        for fact in self.space.scoped.get(number, ()):
            broken.append(fact.substituted({number: case.value}))
        for fact in broken:
            then = self._search(-fact - 1, split)
            if then is not None:
                return Step("never", number, fact, then=(then,))
        return self._not(number, case, split)

    def _not(self, number: int, case: Case, split: frozenset[int]) -> Step | None:
        """Refutes a case by proving the negation of its condition, a disjunction."""
        negation = opposite(case.condition)
        if not isinstance(case.condition, Some) or not _is_of_inequalities(negation):
            return None
        steps = []
        for fact in self.facts_within(negation):
            then = self._search(fact, split)
            if then is None:
                return None
            steps.append(then)
        return Step("never", number, then=tuple(steps)) if steps else None

    def facts_within(self, condition: Condition) -> list[Polynomial]:
        """Like `facts_of`, but ignores disjunctions, so it needs no search."""
        if isinstance(condition, AtLeast):
            return [condition.polynomial]
        if isinstance(condition, Every):
            return [fact for part in condition.parts for fact in self.facts_within(part)]
        return []


def _is_of_inequalities(condition: Condition) -> bool:
    """Whether a condition is a conjunction of inequalities: `facts_within` says all of it."""
    if isinstance(condition, Every):
        return all(map(_is_of_inequalities, condition.parts))
    return isinstance(condition, AtLeast)
