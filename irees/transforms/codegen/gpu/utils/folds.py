"""
Combines partial results of a reduction. Part of `irees-gpu-select-strategy` and
`irees-gpu-lower-reductions`.

A reduction either combines each output with its own combiner (a sum, a maximum), or selects the
first best element and its payload (an argmax):

    best', where' = max(x, best), (x > best ? i : where)

Partial results of a selection also carry the linear index of their element, so that ties resolve to
the earlier element in any combining order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from irees.transforms.utils.combiners import combine, combiners, neutral_element
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import iterators

LAST = (1 << 63) - 1
"""The index of an empty partial result: after every element."""

GREATER = {"arith.cmpf": (2,), "arith.cmpi": (4, 8)}
LESS = {"arith.cmpf": (4,), "arith.cmpi": (2, 6)}
"""Strict ordered predicates by op: equal and unordered elements do not win."""

EXTREMES = frozenset(
    """
    arith.maximumf arith.minimumf arith.maxsi arith.minsi arith.maxui arith.minui
    """.split()
)


@dataclass
class Combined:
    """A reduction whose outputs each have a combiner."""

    op: linalg.GenericOp
    combiners: list[Operation]

    is_selection = False

    @property
    def block(self) -> Block:
        """The body of one iteration: maps inputs and partial results to partial results."""
        return self.op.body.block

    @property
    def kinds(self) -> list[Attribute]:
        """The types of a partial result."""
        return [c.results[0].type for c in self.combiners]

    @property
    def is_exact(self) -> bool:
        """Whether the combining order cannot change the result (no float outputs)."""
        return not any(isinstance(kind, AnyFloat) for kind in self.kinds)

    def open(self, sizes: Sequence[Size], at: IndexBuilder) -> None:
        """Prepares the body for loops of the given sizes; nothing to do here."""

    def close(self) -> None:
        """Cleans up after the op is lowered; nothing to do here."""

    def neutral(self, at: IndexBuilder) -> list[SSAValue]:
        """Returns the neutral elements."""
        return [at.insert(neutral_element(c)).results[0] for c in self.combiners]

    def combined(
        self, a: Sequence[SSAValue], b: Sequence[SSAValue], at: IndexBuilder
    ) -> list[SSAValue]:
        """Combines two partial results."""
        return [
            at.insert(combine(c, x, y)).results[0]
            for c, x, y in zip(self.combiners, a, b, strict=True)
        ]

    def finished(
        self, before: Sequence[SSAValue], values: Sequence[SSAValue], at: IndexBuilder
    ) -> list[SSAValue]:
        """Combines the initial values of the outputs with the partial result."""
        return self.combined(before, values, at)

    def needs_order(self, values: Sequence[SSAValue], at: IndexBuilder) -> SSAValue | None:
        """Returns None: the result never depends on the order."""
        return None


@dataclass
class Selected:
    """A reduction that selects the best value of one output and its payload in the others."""

    op: linalg.GenericOp
    best: int
    wins: arith.CmpfOp | arith.CmpiOp
    is_greater: bool
    extreme: Operation | None
    """The max or min op that computes the best value, or None if a select does."""
    block: Block = field(init=False)

    is_selection = True
    is_exact = True

    @property
    def _results(self) -> list[BlockArgument]:
        return list(self.op.body.block.args[len(self.op.inputs) :])

    @property
    def kinds(self) -> list[Attribute]:
        """The types of a partial result: the outputs' and the element's index."""
        return [*(a.type for a in self._results), IndexType()]

    def open(self, sizes: Sequence[Size], at: IndexBuilder) -> None:
        """Clones the body into one that also tracks the index of the best element."""
        values: dict[SSAValue, SSAValue] = {}
        self.region = Region()
        self.op.body.clone_into(self.region, None, values)
        self.block = self.region.block
        before = self.block.insert_arg(IndexType(), len(self.block.args))
        terminator = self.block.last_op
        assert isinstance(terminator, linalg.YieldOp)
        b = IndexBuilder(InsertPoint.before(terminator))
        number: Size = 0
        for loop, kind in enumerate(iterators(self.op)):
            if kind != "parallel":
                point = b.insert(linalg.IndexOp(loop)).results[0]
                number = b.add(b.mul(number, sizes[loop]), point)
        kept = arith.SelectOp(values[self.wins.result], b.value(number), before)
        b.insert(kept)
        terminator.operands = [*terminator.operands, kept.result]

    def close(self) -> None:
        """Drops the body that `open` made."""
        for op in reversed(list(self.block.ops)):
            op.detach()
            op.erase(safe_erase=False)

    def neutral(self, at: IndexBuilder) -> list[SSAValue]:
        """Returns the neutral elements: the worst value, zero payloads, the last index."""
        found: list[SSAValue] = []
        for number, argument in enumerate(self._results):
            value = self._worst(argument.type) if number == self.best else _zero(argument.type)
            found.append(at.insert(arith.ConstantOp(value)).results[0])
        return [*found, at.value(LAST)]

    def _worst(self, kind: Attribute) -> Attribute:
        if isinstance(kind, AnyFloat):
            return FloatAttr(float("-inf" if self.is_greater else "inf"), kind)
        width = kind.width.data if isinstance(kind, IntegerType) else 64
        signed = self.wins.predicate.value.data < 6
        least, most = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, -1)
        return IntegerAttr(least if self.is_greater else most, kind)  # type: ignore[arg-type]

    def _compare(self, a: SSAValue, b: SSAValue, at: IndexBuilder) -> SSAValue:
        """Whether a is better."""
        strict = (GREATER if self.is_greater else LESS)[self.wins.name]
        predicate = self.wins.predicate.value.data
        # The two integer predicates are signed and unsigned, in this order.
        unsigned = isinstance(self.wins, arith.CmpiOp) and predicate >= 6
        return at.insert(type(self.wins)(a, b, strict[-1 if unsigned else 0])).results[0]

    def combined(
        self, a: Sequence[SSAValue], b: Sequence[SSAValue], at: IndexBuilder
    ) -> list[SSAValue]:
        """Selects the better of two partial results, and the earlier one of equals."""
        better = self._compare(b[self.best], a[self.best], at)
        equal_to = arith.CmpfOp if isinstance(self.wins, arith.CmpfOp) else arith.CmpiOp
        equal = at.insert(
            equal_to(b[self.best], a[self.best], "oeq" if equal_to is arith.CmpfOp else "eq")
        ).results[0]
        earlier = at.insert(arith.CmpiOp(b[-1], a[-1], "slt")).results[0]
        tie = at.insert(arith.AndIOp(equal, earlier)).results[0]
        return self._chosen(at.insert(arith.OrIOp(better, tie)).results[0], a, b, at)

    def finished(
        self, before: Sequence[SSAValue], values: Sequence[SSAValue], at: IndexBuilder
    ) -> list[SSAValue]:
        """Combines the initial values with the partial result; on ties the initial values win."""
        better = self._compare(values[self.best], before[self.best], at)
        return self._chosen(better, before, values[:-1], at)

    def _chosen(
        self, wins: SSAValue, a: Sequence[SSAValue], b: Sequence[SSAValue], at: IndexBuilder
    ) -> list[SSAValue]:
        return [
            at.insert(combine(self.extreme, x, y)).results[0]
            if number == self.best and self.extreme is not None
            else at.insert(arith.SelectOp(wins, y, x)).results[0]
            for number, (x, y) in enumerate(zip(a, b, strict=True))
        ]

    def needs_order(self, values: Sequence[SSAValue], at: IndexBuilder) -> SSAValue | None:
        """Returns whether the best value is NaN: then the payload depends on the order."""
        best = values[self.best]
        if self.extreme is None or not isinstance(best.type, AnyFloat):
            return None
        return at.insert(arith.CmpfOp(best, best, "uno")).results[0]


Folds = Combined | Selected


def folds_of(op: linalg.GenericOp) -> Folds | None:
    """Returns how to combine partial results of a reduction, or None if it is not supported."""
    found = combiners(op)
    return selection_of(op) if found is None else Combined(op, found)


def selection_of(op: linalg.GenericOp) -> Selected | None:
    """Matches a body that selects the first best element, or returns None."""
    block, terminator = op.body.block, op.body.block.last_op
    assert terminator is not None
    results = list(block.args[len(op.inputs) :])
    for wins in block.ops:
        if not isinstance(wins, arith.CmpfOp | arith.CmpiOp):
            continue
        sides = list(wins.operands)
        held = [i for i, side in enumerate(sides) if side in results]
        if len(held) != 1:
            continue
        predicate, first = wins.predicate.value.data, held[0] == 1
        is_greater = predicate in (GREATER if first else LESS)[wins.name]
        if not is_greater and predicate not in (LESS if first else GREATER)[wins.name]:
            continue
        best = results.index(sides[held[0]])  # type: ignore[arg-type]
        extreme = terminator.operands[best].owner
        if not isinstance(extreme, Operation):
            return None
        found = Selected(op, best, wins, is_greater, _extreme(extreme, is_greater))
        return found if _keeps(found, sides[1 - held[0]]) else None
    return None


def _extreme(op: Operation, is_greater: bool) -> Operation | None:
    """Returns the op if it is a max (or min) op of the right direction, else None."""
    if op.name not in EXTREMES or (".max" in op.name) is not is_greater:
        return None
    return op


def _keeps(found: Selected, candidate: SSAValue) -> bool:
    """Whether each output is selected by the comparison, and has no other uses in the body."""
    terminator, results = found.op.body.block.last_op, found._results
    assert terminator is not None
    asking: set[Operation] = {found.wins}
    new: list[SSAValue] = [candidate]
    for number, value in enumerate(terminator.operands):
        maker = value.owner
        if number == found.best and maker is found.extreme:
            if set(maker.operands) != {candidate, results[number]} or not _agrees(found, maker):
                return False
        elif not isinstance(maker, arith.SelectOp) or maker.cond is not found.wins.result:
            return False
        elif maker.rhs is not results[number]:
            return False
        elif number == found.best and maker.lhs is not candidate:
            return False
        else:
            new.append(maker.lhs)
        asking.add(maker)
    if any(u.operation not in asking for r in results for u in r.uses):
        return False
    return not any(_depends(value, results) for value in new)


def _agrees(found: Selected, extreme: Operation) -> bool:
    """Whether an extreme of integers has the signedness of the comparison."""
    unsigned = extreme.name.endswith("ui")
    return not isinstance(found.wins, arith.CmpiOp) or unsigned is (
        found.wins.predicate.value.data >= 6
    )


def _depends(value: SSAValue, results: Sequence[SSAValue]) -> bool:
    """Whether a value of the body depends on the current values of the outputs."""
    if value in results:
        return True
    owner = value.owner
    if not isinstance(owner, Operation) or isinstance(owner, arith.ConstantOp):
        return False
    inside = [o for inner in owner.walk() for o in inner.operands]
    return any(_depends(o, results) for o in inside)


def _zero(kind: Attribute) -> Attribute:
    if isinstance(kind, AnyFloat):
        return FloatAttr(0.0, kind)
    return IntegerAttr(0, kind)  # type: ignore[arg-type]
