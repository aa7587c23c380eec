"""Loop-carried values and their inductive invariants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument, SSAValue

from irees.analysis.accesses.polynomials import ZERO, Polynomial
from irees.analysis.accesses.scalars import bits_of
from irees.analysis.accesses.terms import Case, Every

if TYPE_CHECKING:
    from irees.analysis.accesses.walk import Walk

LITTLE = 1 << 16
"""Largest step per iteration for which a 64-bit counter cannot wrap in 2^45 iterations."""

COMPARED = 8
"""Largest number of loop-carried integers for which pairwise invariants are tried."""

TRIAL = 100
"""Prover steps for one candidate invariant; most candidates fail."""

MOST_VIEWS = 6
"""Largest number of views of one memref value; with more it is unknown."""

Turn = Callable[[Callable[[], None]], None]
"""Walks one iteration of a loop, and calls its argument at the terminator."""


@dataclass(frozen=True)
class Candidate:
    """A candidate invariant: a lower (`least`) or upper bound of a carried value."""

    at: int
    least: bool
    end: Polynomial


class Carried:
    """The loop-carried values of one loop, with invariants inferred by Houdini."""

    def __init__(
        self,
        walk: Walk,
        pairs: Sequence[tuple[SSAValue, BlockArgument]],
        yielded: Sequence[SSAValue],
        born: int,
    ) -> None:
        self.walk = walk
        self.pairs = pairs
        self.yielded = yielded
        self.born = born
        self.variables: dict[int, Polynomial] = {}
        self.buffers: list[int] = []

    def enter(self, turn: Turn, known: dict[int, Polynomial]) -> None:
        """Binds the block arguments of the body and assumes their inductive invariants."""
        walk = self.walk
        for at, (init, arg) in enumerate(self.pairs):
            bits = bits_of(arg.type)
            if isinstance(arg.type, MemRefType):
                walk.views[arg] = walk.views.get(init, ())
                self.buffers.append(at)
            elif at in known:
                walk.polynomials[arg] = known[at]
            elif bits == 1:
                walk.conditions[arg] = walk.space.unknown()
            elif bits is not None:
                variable = walk.arithmetic.opaque("carried", bits)
                walk.polynomials[arg] = self.variables[at] = variable
        if self.variables or self.buffers:
            self._settle(turn)

    def _candidates(self) -> list[Candidate]:
        found = []
        for at in self.variables:
            start = self.walk.number(self.pairs[at][0])
            if not self.walk.prover.fits(start):
                continue
            ends = [(True, start), (False, start)]
            if start != ZERO and self.walk.prover.holds(start):
                ends.append((True, ZERO))
            found += [Candidate(at, least, end) for least, end in ends]
            for other in self._before(at):
                second = self.walk.number(self.pairs[other][0])
                if not self.walk.prover.fits(second):
                    continue
                for least in (True, False):
                    if self.walk.prover.holds(start - second if least else second - start):
                        found.append(Candidate(at, least, self.variables[other]))
        return found

    def _before(self, at: int) -> list[int]:
        """Returns the earlier carried values to compare with; none if the loop carries many."""
        return [a for a in self.variables if a < at] if len(self.variables) <= COMPARED else []

    def _turned(self) -> list[Candidate]:
        """Returns candidates for alternating values: if the body yields `c - x`, then x <= c."""
        found = []
        for at, variable in self.variables.items():
            start = self.walk.number(self.pairs[at][0])
            if not self.walk.prover.fits(start):
                continue
            for out in self._outs(self._out(at)):
                end = out + variable
                if end.newest() < self.born and self.walk.prover.holds(end - start):
                    found.append(Candidate(at, False, end))
        return found

    def _outs(self, out: Polynomial) -> list[Polynomial]:
        """Returns the possible values of a value with cases."""
        cases = self.walk.space.variables[out.newest()].cases if out.single is not None else ()
        return [v for case in cases for v in self._outs(case.value)] or [out]

    def _settle(self, turn: Turn) -> None:
        """Drops candidates until the body preserves all remaining ones."""
        walk, candidates = self.walk, self._candidates()
        tried = set(candidates)
        recording, walk.recording = walk.recording, False
        try:
            while True:
                self._assume(candidates)
                kept, more, settled = self._try(turn, candidates, tried)
                if settled and not more and len(kept) == len(candidates):
                    return
                candidates = kept + more
                tried.update(more)
        finally:
            walk.recording = recording

    def _try(
        self, turn: Turn, candidates: Sequence[Candidate], tried: set[Candidate]
    ) -> tuple[list[Candidate], list[Candidate], bool]:
        """Returns the preserved candidates, new ones, and whether the views are stable."""
        kept: list[Candidate] = []
        more: list[Candidate] = []
        settled: list[bool] = []

        def end() -> None:
            kept.extend(c for c in candidates if self._is_kept(c))
            more.extend(c for c in self._turned() if c not in tried)
            settled.append(self._merge_views())

        with self.walk.space.assuming([]):
            turn(end)
        return kept, more, all(settled)

    def _out(self, at: int) -> Polynomial:
        return self.walk.number(self.yielded[at])

    def _is_kept(self, candidate: Candidate) -> bool:
        out = {at: self._out(at) for at in self.variables}
        used = candidate.end.variables()
        compared = [at for at, x in self.variables.items() if x.newest() in used]
        if not all(map(self._fits, (candidate.at, *compared))):
            return False
        return self.walk.prover.holds(self._fact(candidate, out), TRIAL)

    def _fits(self, at: int) -> bool:
        """
        Whether the yielded value does not wrap.

        A 64-bit value that changes by at most `LITTLE` per iteration does not: no loop runs that
        long.
        """
        space, out = self.walk.space, self._out(at)
        change = out - self.variables[at]
        low, high = space.low(change), space.high(change)
        start = self.walk.number(self.pairs[at][0])
        wide = (bits_of(self.pairs[at][1].type) or 0) >= 64
        if wide and low is not None and high is not None and max(-low, high) <= LITTLE:
            return self.walk.prover.is_small(start)
        return self.walk.prover.fits(out, bits_of(self.pairs[at][1].type) or 64)

    def _fact(self, candidate: Candidate, values: dict[int, Polynomial]) -> Polynomial:
        new = {self.variables[at].newest(): value for at, value in values.items()}
        end = candidate.end.substituted(new)
        value = values[candidate.at]
        return value - end if candidate.least else end - value

    def _assume(self, candidates: Sequence[Candidate]) -> None:
        space = self.walk.space
        for at, polynomial in self.variables.items():
            variable = space.newest_of(polynomial)
            variable.facts = []
            bits = bits_of(self.pairs[at][1].type) or 64
            variable.low = -(1 << (bits - 1)) if bits < 64 else None
            variable.high = (1 << (bits - 1)) - 1 if bits < 64 else None
        for candidate in candidates:
            fact = self._fact(candidate, self.variables)
            space.variables[fact.newest()].facts.append(fact)
            variable = space.newest_of(self.variables[candidate.at])
            if candidate.least and (low := space.low(candidate.end)) is not None:
                variable.low = low if variable.low is None else max(low, variable.low)
            if not candidate.least and (high := space.high(candidate.end)) is not None:
                variable.high = high if variable.high is None else min(high, variable.high)
        space.forget()

    def _merge_views(self) -> bool:
        """Whether the view of each carried buffer is among its assumed views."""
        walk, settled = self.walk, True
        for at in list(self.buffers):
            arg = self.pairs[at][1]
            before = walk.views[arg]
            new = [v for v in walk.views.get(self.yielded[at], ()) if v not in before]
            if not before or not new:
                continue
            settled = False
            outside = all(view.newest() < self.born for view in new)
            both = (*before, *new)
            walk.views[arg] = both if outside and len(both) <= MOST_VIEWS else ()
            if walk.merged(arg):
                self.buffers.remove(at)
        return settled

    def leave(self, results: Sequence[SSAValue]) -> None:
        """Binds the results of the loop: the initial value or the last yielded value."""
        walk, space = self.walk, self.walk.space
        for at, result in enumerate(results):
            init, arg = self.pairs[at]
            bits = bits_of(result.type)
            if isinstance(result.type, MemRefType):
                walk.views[result] = walk.views.get(arg, ())
            elif bits == 1:
                walk.conditions[result] = space.unknown()
            elif bits is not None:
                start = walk.arithmetic.exact(walk.number(init), bits)
                out = walk.arithmetic.exact(self._out(at), bits)
                (last,) = space.renamed([out], walk.loose(self.born))
                value = space.fresh("result")
                variable = space.newest_of(value)
                variable.cases = (Case(start, Every()), Case(last, Every()))
                variable.low, variable.high = walk.arithmetic.hull(start, last)
                walk.polynomials[result] = value
