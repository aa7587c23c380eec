"""
Walks a function op by op: tracks integers and views, and proves accesses in bounds.

The walk visits loops and branches in order, with the facts that hold inside (`control`), and calls
the prover at each access (`memory`). Loops with carried values are visited repeatedly to find their
invariants. An unmodelled value is a fresh variable, bounded by its type alone. An unmodelled op
with memref operands counts as an unproved access.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from irees.analysis.accesses import control, memory, parallel, scalars, views
from irees.analysis.accesses.arithmetic import Arithmetic
from irees.analysis.accesses.buffers import View, prove_inside
from irees.analysis.accesses.control import GUARDED
from irees.analysis.accesses.polynomials import Polynomial
from irees.analysis.accesses.prover import FEW, LOW, Prover, Step
from irees.analysis.accesses.scalars import bits_of
from irees.analysis.accesses.terms import CONTRADICTION, Condition, Space, either
from irees.interfaces import places_of

SUMS = frozenset(("memref.atomic_rmw",))
"""Atomic updates: iterations may share an element."""


@dataclass(frozen=True)
class Goals:
    """The goals of one access and their proofs."""

    goals: tuple[Polynomial, ...]
    proofs: tuple[Step, ...]


@dataclass
class Access:
    """One access of an op to one memref."""

    op: Operation
    writes: bool
    views: tuple[View, ...]
    """Possible views of the memref."""
    indices: tuple[Polynomial, ...]
    lanes: tuple[Polynomial, ...]
    """Number of elements accessed per dim."""
    shown: tuple[Goals, ...] | None
    """Goals and proofs per view; None if one was not found."""
    why: str = ""
    apart: bool = True
    """Whether the access is disjoint from those of other parallel iterations."""


class Walk:
    """Walks ops in order and binds each value to a polynomial, a condition or views."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.prover = Prover(space)
        self.arithmetic = Arithmetic(space, self.prover)
        self.polynomials: dict[SSAValue, Polynomial] = {}
        self.conditions: dict[SSAValue, Condition] = {}
        self.reals: dict[SSAValue, tuple[Polynomial, ...]] = {}
        """Summands, none negative, of sums of products of sizes in f64, hence rounded."""
        self.views: dict[SSAValue, tuple[View, ...]] = {}
        self.accesses: list[Access] = []
        self.parallel: list[parallel.Parallel] = []
        """Enclosing parallel loops, outermost first."""
        self.around: list[Condition] = []
        """Conditions of the enclosing branches."""
        self.recording = True
        """Whether accesses are proved; false while candidate invariants are tried."""

    def block(self, block: Block) -> None:
        """Walks the ops of a block."""
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        """Dispatches one op to its handler."""
        meaning = scalars.MEANINGS.get(op.name)
        if meaning is not None:
            meaning(self, op)
            return
        structure = control.STRUCTURES.get(op.name)
        if structure is not None:
            structure(self, op)
            return
        effect = views.VIEWS.get(op.name) or memory.EFFECTS.get(op.name)
        if effect is not None:
            effect(self, op)
            return
        places = places_of(op, self.number)
        if places is not None:
            memory.instruction(self, op, places)
            return
        memory.other(self, op)
        for region in op.regions:
            for block in region.blocks:
                self.block(block)

    def polynomial(self, value: SSAValue) -> Polynomial | None:
        """Returns the polynomial of an integer or index; None for other types."""
        found = self.polynomials.get(value)
        if found is None:
            bits = bits_of(value.type)
            if bits is None:
                return None
            if bits == 1:
                return self.arithmetic.number(self.condition(value), -1)
            found = self.arithmetic.opaque(value.name_hint or "value", bits)
            self.polynomials[value] = found
        return found

    def number(self, value: SSAValue) -> Polynomial:
        """Returns the polynomial of an integer or index."""
        found = self.polynomial(value)
        assert found is not None
        return found

    def as_the_machine_has_it(self, value: SSAValue) -> None:
        """Replaces a sum that may have wrapped by a fresh variable: the machine value."""
        x = self.polynomial(value)
        if x is not None and bits_of(value.type) == 64:
            self.polynomials[value] = self.arithmetic.exact(x)

    def as_machine_compares(self, value: SSAValue) -> None:
        """
        Evaluates an i1 again so that it gives facts about sums that may have wrapped: its
        comparisons are those of machine values. Comparisons that share such a sum see one value.
        """
        parts = list(_conjunction(value))
        for op in parts:
            if op.name == "arith.cmpi" and not self.prover.facts_of(self.condition(op.results[0])):
                for operand in op.operands:
                    self.as_the_machine_has_it(operand)
        for op in parts:
            scalars.MEANINGS[op.name](self, op)

    def condition(self, value: SSAValue) -> Condition:
        """Returns the condition of an i1."""
        found = self.conditions.get(value)
        if found is None:
            found = self.conditions[value] = self.space.unknown()
        return found

    def mixed(self, static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[Polynomial | None]:
        """Merges static and dynamic sizes."""
        rest = iter(dynamic)
        return [
            self.polynomial(next(rest)) if n == DYNAMIC_INDEX else Polynomial.number(n)
            for n in static
        ]

    def choose(self, result: SSAValue, condition: Condition, a: SSAValue, b: SSAValue) -> None:
        """Binds the result to `a` if the condition holds, else to `b`."""
        bits = bits_of(result.type)
        if bits == 1:
            self.conditions[result] = either(condition, self.condition(a), self.condition(b))
        elif bits is not None:
            x, y = self.number(a), self.number(b)
            self.polynomials[result] = self.arithmetic.select(condition, x, y)
        elif isinstance(result.type, MemRefType):
            found = (self.views.get(a, ()), self.views.get(b, ()))
            both = tuple(dict.fromkeys(view for views in found for view in views))
            self.views[result] = both if all(found) else ()
            if len(self.views[result]) != 1:
                self.merged(result)

    def pass_on(self, arg: SSAValue, value: SSAValue) -> None:
        """Binds a block argument to a value."""
        if isinstance(value.type, MemRefType):
            self.views[arg] = self.views.get(value, ())
        elif bits_of(value.type) == 1:
            self.conditions[arg] = self.condition(value)
        elif bits_of(value.type) is not None:
            self.polynomials[arg] = self.number(value)

    def loose(self, born: int) -> set[int]:
        """Returns the variables from `born` on that may differ in another iteration."""
        variables = self.space.variables
        return {n for n in range(born, len(variables)) if not variables[n].is_defined}

    def known_size(self, value: Polynomial | None) -> Polynomial:
        """Returns the value, or a fresh variable for None."""
        return self.arithmetic.opaque("size") if value is None else value

    def access(
        self,
        op: Operation,
        memory: SSAValue,
        indices: Sequence[Polynomial],
        lanes: Sequence[Polynomial],
        *,
        writes: bool,
        rows: bool = False,
    ) -> None:
        """Proves an access in bounds of each possible view of its memref."""
        if not self.recording:
            return
        found = self.views.get(memory, ())
        shown, why = [], "" if found else "it is not known what the buffer is"
        for view in found:
            with self.prover.thorough() if GUARDED in op.attributes else nullcontext():
                proved = prove_inside(self.prover, view, indices, lanes, rows=rows)
            if proved is None:
                why = f"it is not shown that the place is inside of {view.root.name}"
                break
            goals, proofs = proved
            shown.append(Goals(tuple(goals), tuple(proofs)))
        if why and (never := self.never()) is not None:
            shown, why = [never], ""
        result = None if why else tuple(shown)
        access = Access(op, writes, found, tuple(indices), tuple(lanes), result, why)
        self.accesses.append(access)
        for view in found if self.parallel and op.name not in SUMS else ():
            parallel.touch(self, access, view)

    def never(self) -> Goals | None:
        """Returns a proof that the current op is never reached, or None."""
        asserted = [f for c in self.space.pending for f in self.prover.facts_of(c)]
        for fact in (*self.space.scoped.get(CONTRADICTION, ()), *asserted):
            if self.space.is_nonnegative(-fact - 1):
                return Goals((-fact - 1,), (LOW,))
        for condition in self.around:
            for fact in self.prover.facts_within(condition):
                goal = -fact - 1
                proof = self.prover.prove(goal)
                if proof is not None:
                    return Goals((goal,), (proof,))
        for fact in self.prover.assumed():
            goal = -fact - 1
            proof = self.prover.prove(goal, FEW)
            if proof is not None:
                return Goals((goal,), (proof,))
        return None

    def unmodelled(self, op: Operation, memory: SSAValue) -> None:
        """Records an access by an op without a handler."""
        if self.recording:
            why = f"{op.name} is not modelled"
            views = self.views.get(memory, ())
            self.accesses.append(Access(op, True, views, (), (), None, why))

    def allocated(self, sizes: Sequence[Polynomial]) -> None:
        """Assumes what a successful allocation implies. Overridden for host functions."""

    def merged(self, value: SSAValue) -> bool:
        """Handles a memref with several possible views; returns whether it becomes a root."""
        return False

    def made(self, value: SSAValue) -> None:
        """Binds a memref result of an op without a handler."""
        self.views[value] = ()

    def show_room(self, op: Operation, sizes: Sequence[Polynomial]) -> None:
        """Proves that a typed view fits into its byte buffer. Overridden for host functions."""

    def show_equal(self, op: Operation, a: Sequence[Polynomial], b: Sequence[Polynomial]) -> None:
        """Proves that sizes are pairwise equal."""
        goals = [g for x, y in zip(a, b, strict=True) for g in (x - y, y - x)]
        if self.recording:
            proofs = [self.prover.prove(goal) for goal in goals]
            found = [p for p in proofs if p is not None]
            shown = Goals(tuple(goals), tuple(found)) if len(found) == len(goals) else self.never()
            why = "" if shown else "it is not shown that the sizes are the same"
            self.accesses.append(Access(op, False, (), (), (), (shown,) if shown else None, why))


def _conjunction(value: SSAValue) -> Iterator[Operation]:
    """Yields the comparisons of which an i1 is the conjunction, and each `andi` after its parts."""
    op = value.owner
    if isinstance(op, arith.AndIOp):
        for operand in op.operands:
            yield from _conjunction(operand)
        yield op
    elif isinstance(op, arith.CmpiOp):
        yield op
