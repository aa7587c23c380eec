"""
Computes exact linear forms and bounds of indices, integers and dims.

    bounds = ValueBounds()
    bounds.expression(value)          # exact linear form
    bounds.bound(BoundType.UB, value, stop=...)   # linear form of values accepted by `stop`
    bounds.constant_bounds(value)     # (lower, upper), each None if there is none
    bounds.are_equal(a, b)            # True, False or None (unknown)
    bounds.are_overlapping(slice, other)

Each op has a rule for the exact form of its result (`EXACT`) or for its lower and upper bounds
(`LIMITS`), by op name; `_dim_bounds` has the rules of dims. Comparisons collect the bounds of all
values that both sides depend on, and decide by elimination.

Integers wrap: a result that may overflow its type is unknown. With `wraps=False` the analysis
assumes that no index or integer overflows, as MLIR's does. `are_equal` also compares forms modulo
2^n, since sums wrap equally on both sides. Affine maps are over unbounded integers, both in queries
and in ops (MLIR lowers them with `nsw`); but with `wraps`, a map result that may exceed 64 bits is
unknown. MLIR: `ValueBoundsConstraintSet`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, VectorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from irees.analysis._linear import Linear, definitions, follows
from irees.analysis.integer_ranges import IntegerRanges, width_of
from irees.dialects.sizes import constant_value


class BoundType(Enum):
    """Equal, closed lower bound, open upper bound."""

    EQ = "EQ"
    LB = "LB"
    UB = "UB"


@dataclass(frozen=True)
class Variable:
    """An index or integer value, or a dim of a shaped value."""

    value: SSAValue
    dim: int | None = None


@dataclass(frozen=True)
class Limits:
    """Lower and upper bounds of a variable, all closed."""

    lower: tuple[Linear, ...] = ()
    upper: tuple[Linear, ...] = ()


@dataclass(frozen=True)
class Slice:
    """Offsets, sizes and strides of a slice, as constants or values."""

    offsets: Sequence[SSAValue | int]
    sizes: Sequence[SSAValue | int]
    strides: Sequence[SSAValue | int]


Stop = Callable[[Variable], bool]


def never(variable: Variable) -> bool:
    """The stop condition that never stops."""
    return False


class ValueBounds:
    """Answers queries about values of a program. The program must not change between queries."""

    def __init__(self, *, wraps: bool = True, ranges: IntegerRanges | None = None) -> None:
        self.wraps = wraps
        self.ranges = ranges or IntegerRanges()
        self.stop: Stop = never
        self.root: Variable | None = None
        self._open: set[Variable] = set()
        self._assumed: dict[Variable, Linear] = {}
        self._depth = 0
        self.order: dict[Hashable, int] = {}
        self.promises: list[Linear] = []

    # Forms

    def promise(self, form: Linear) -> None:
        """
        Records the fact form >= 0, guaranteed by an op, for the current query.

        The fact holds only where the op runs: an op in a branch or loop body promises nothing
        outside.
        """
        self.promises.append(form)

    def expression(self, value: SSAValue | int, dim: int | None = None) -> Linear:
        """Returns the exact linear form of a value, or of a dim of a shaped value."""
        if isinstance(value, int):
            return Linear.number(value)
        variable = Variable(value, dim)
        number = self._number(variable)
        if number is not None:
            return Linear.number(number)
        if variable in self._assumed:
            return self._assumed[variable]
        stopped = variable != self.root and self.stop(variable)
        if not stopped and variable not in self._open and self._depth < 100:
            from irees.analysis._bound_rules import exact

            self._open.add(variable)
            self._depth += 1
            try:
                found = exact(self, variable)
            finally:
                self._depth -= 1
                self._open.discard(variable)
            if found is not None:
                return found
        self.order.setdefault(variable, len(self.order))
        return Linear.of(variable)

    def _number(self, variable: Variable) -> int | None:
        type_ = variable.value.type
        if variable.dim is None:
            if self.wraps and width_of(type_) is not None:
                return self.ranges.of(variable.value).value
            return constant_value(variable.value)
        if isinstance(type_, TensorType | MemRefType | VectorType):
            size = type_.get_shape()[variable.dim]
            return None if size == DYNAMIC_INDEX else size
        return None

    def affine(self, expr: AffineExpr, operands: Sequence[Linear], dims: int) -> Linear | None:
        """Applies an affine expression to forms; None if the result is not linear."""
        if isinstance(expr, AffineConstantExpr):
            return Linear.number(expr.value)
        if isinstance(expr, AffineDimExpr):
            return operands[expr.position]
        if isinstance(expr, AffineSymExpr):
            return operands[dims + expr.position]
        assert isinstance(expr, AffineBinaryOpExpr)
        a, b = self.affine(expr.lhs, operands, dims), self.affine(expr.rhs, operands, dims)
        if a is None or b is None:
            return None
        if expr.kind is AffineBinaryOpKind.Add:
            return a + b
        if expr.kind is AffineBinaryOpKind.Mul:
            return product(a, b)
        if not b.is_number or b.constant <= 0:
            return None
        if expr.kind is AffineBinaryOpKind.FloorDiv:
            return a.floordiv(b.constant)
        if expr.kind is AffineBinaryOpKind.CeilDiv:
            return a.ceildiv(b.constant)
        return a.mod(b.constant)

    def map_form(self, map_: AffineMap, operands: Sequence[SSAValue]) -> Linear | None:
        """Applies a map with one result to values, over unbounded integers."""
        forms = [self.expression(value) for value in operands]
        return self.affine(map_.results[0], forms, map_.num_dims)

    def may_leave(self, form: Linear, value: SSAValue) -> bool:
        """Whether an exact result may overflow the type of a value."""
        if not self.wraps:
            return False
        width = width_of(value.type)
        assert width is not None
        low, high = self.form_interval(form)
        half = 1 << (width - 1)
        return low is None or high is None or low < -half or high >= half

    def form_interval(self, form: Linear) -> tuple[int | None, int | None]:
        """Returns constant bounds of a form, by interval arithmetic."""
        low: int | None = form.constant
        high: int | None = form.constant
        for unknown, factor in form.terms:
            if isinstance(unknown, Variable):
                a, b = self._interval(unknown)
            else:
                divisor = unknown.divisor  # type: ignore[union-attr]
                a, b = 0, divisor - 1
                if type(unknown).__name__ == "Quotient":
                    a, b = self.form_interval(unknown.dividend)  # type: ignore[union-attr]
                    a, b = (None if x is None else x // divisor for x in (a, b))
            if factor < 0:
                a, b = b, a
            low = None if low is None or a is None else low + factor * a
            high = None if high is None or b is None else high + factor * b
        return low, high

    def _interval(self, variable: Variable) -> tuple[int | None, int | None]:
        if variable.dim is not None:
            return 0, (1 << 63) - 1 if self.wraps else None
        if width_of(variable.value.type) is None:
            return None, None
        found = self.ranges.of(variable.value)
        if self.wraps:
            return found.smin, found.smax
        half = 1 << (found.width - 1)
        return (
            None if found.smin == -half else found.smin,
            None if found.smax == half - 1 else found.smax,
        )

    def deep(self, variable: Variable) -> Linear:
        """Returns the form of a variable, ignoring the stop condition of the query."""
        stop, root = self.stop, self.root
        self.stop, self.root = never, None
        order, promises = dict(self.order), list(self.promises)
        try:
            return self.expression(variable.value, variable.dim)
        finally:
            self.stop, self.root, self.order, self.promises = stop, root, order, promises

    def stays(self, argument: Variable, following: Variable) -> bool:
        """Whether a loop yields a carried variable unchanged."""
        before, opened, order = self._assumed, self._open, dict(self.order)
        stop, root, promises = self.stop, self.root, list(self.promises)
        mark = Linear.of(argument)
        self._assumed, self._open = {**before, argument: mark}, set()
        self.stop, self.root = never, None
        try:
            return self.expression(following.value, following.dim).same(mark)
        finally:
            self._assumed, self._open, self.order = before, opened, order
            self.stop, self.root, self.promises = stop, root, promises

    # Comparisons

    def facts(self, forms: Sequence[Linear]) -> list[Linear]:
        """Returns all facts known about the unknowns of forms, each >= 0."""
        from irees.analysis._bound_rules import limits

        found: list[Linear] = []
        seen: set[Hashable] = set()
        todo = [unknown for form in forms for unknown in form.unknowns()]
        while todo and len(seen) < 60:
            variable = todo.pop()
            if variable in seen or not isinstance(variable, Variable):
                continue
            seen.add(variable)
            here = Linear.of(variable)
            low, high = self._interval(variable)
            new = [here - low] if low is not None else []
            new += [-here + high] if high is not None else []
            if variable != self.root and self.stop(variable):
                whole = self.deep(variable)
                new += [here - whole, whole - here]
            said = limits(self, variable)
            new += [here - each for each in said.lower] + [each - here for each in said.upper]
            found += new
            todo += [unknown for form in new for unknown in form.unknowns()]
        found += self.promises
        return found + definitions([*forms, *found])

    def at_least(self, a: Linear, b: Linear) -> bool:
        """Whether a >= b is proved."""
        gap = a - b
        if gap.is_number:
            return gap.constant >= 0
        return follows(self.facts([gap]), gap)

    def compare(self, a: Linear, relation: str, b: Linear) -> bool | None:
        """Decides a EQ, LT, LE, GT or GE b: True, False, or None if unknown."""
        if relation in ("GT", "GE"):
            return self.compare(b, relation.replace("G", "L"), a)
        if relation == "LE":
            if self.at_least(b, a):
                return True
            return False if self.at_least(a, b + 1) else None
        if relation == "LT":
            if self.at_least(b, a + 1):
                return True
            return False if self.at_least(a, b) else None
        if self.at_least(a, b) and self.at_least(b, a):
            return True
        return False if self.at_least(a, b + 1) or self.at_least(b, a + 1) else None

    def are_equal(self, a: SSAValue | int, b: SSAValue | int) -> bool | None:
        """Whether two values are equal: True, False, or None if unknown."""
        self.promises.clear()
        found = self.compare(self.expression(a), "EQ", self.expression(b))
        if found is not None or not self.wraps:
            return found
        types = {value.type for value in (a, b) if isinstance(value, SSAValue)}
        width = width_of(types.pop()) if len(types) == 1 else None
        if width is None:
            return None
        # Sums and products wrap equally on both sides: compare forms congruent to the values.
        from irees.analysis._bound_rules import congruent

        gap = congruent(self, a) - congruent(self, b)
        if any(factor % (1 << width) for _, factor in gap.terms):
            return None
        return gap.constant % (1 << width) == 0

    def are_overlapping(self, a: Slice, b: Slice) -> bool | None:
        """Whether two slices of one shaped value have a common element; None if unknown."""
        self.promises.clear()
        apart, common = False, True
        for position in range(len(a.offsets)):
            first, second = self._side(a, position), self._side(b, position)
            if first is None or second is None:
                common = False
                continue
            (alow, ahigh), (blow, bhigh) = first, second
            if self.at_least(blow, ahigh + 1) or self.at_least(alow, bhigh + 1):
                apart = True
            # Overlapping index ranges have a common element if both strides are 1.
            dense = a.strides[position] == 1 and b.strides[position] == 1
            meet = self.at_least(bhigh, alow) and self.at_least(ahigh, blow)
            some = self._some(a, position) and self._some(b, position)
            common = common and some and (alow.same(blow) or (dense and meet))
        if apart:
            return False
        return True if common else None

    def _some(self, part: Slice, position: int) -> bool:
        return self.at_least(self.expression(part.sizes[position]), Linear.number(1))

    def _side(self, part: Slice, position: int) -> tuple[Linear, Linear] | None:
        """Returns the first and last index of a slice along a dim, or None."""
        stride = self.expression(part.strides[position])
        low = self.expression(part.offsets[position])
        length = product(self.expression(part.sizes[position]) - 1, stride)
        if length is None or not stride.is_number or stride.constant <= 0:
            return None
        return low, low + length

    # Bounds

    def bound(
        self, kind: BoundType, value: SSAValue, dim: int | None = None, stop: Stop = never
    ) -> Linear | None:
        """Returns an equal form, a closed lower or an open upper bound over `stop` variables."""
        self.stop, self.root = stop, Variable(value, dim)
        self.order.clear()
        self.promises.clear()
        try:
            form = self.expression(value, dim)
            if kind is BoundType.EQ:
                return form if self._stops(form) else self._pinned(form)
            found = self._limited(form, upper=kind is BoundType.UB, fuel=12)
            if found is None:
                return None
            return found + 1 if kind is BoundType.UB else found
        finally:
            self.stop, self.root = never, None

    def _stops(self, form: Linear) -> bool:
        return all(
            each != self.root and self.stop(cast(Variable, each)) for each in form.unknowns()
        )

    def _pinned(self, form: Linear) -> Linear | None:
        low = self._limited(form, upper=False, fuel=12)
        high = self._limited(form, upper=True, fuel=12)
        return low if low is not None and high is not None and low.same(high) else None

    def _limited(self, form: Linear, *, upper: bool, fuel: int) -> Linear | None:
        """Returns a bound of a form over variables accepted by `stop`; prefers constants."""
        from irees.analysis._bound_rules import limits

        if self._stops(form):
            return form
        if not fuel:
            return None
        for unknown, factor in form.terms:
            if not isinstance(unknown, Variable):
                continue
            if unknown != self.root and self.stop(unknown):
                continue
            said = limits(self, unknown)
            sides = said.upper if upper == (factor > 0) else said.lower
            rest = form - Linear.of(unknown) * factor
            found = [
                limited
                for side in sides
                if (limited := self._limited(rest + side * factor, upper=upper, fuel=fuel - 1))
                is not None
            ]
            numbers = [each for each in found if each.is_number]
            if numbers:
                pick = min if upper else max
                return pick(numbers, key=lambda each: each.constant)
            return found[0] if found else None
        return None

    def constant_bounds(
        self, value: SSAValue, dim: int | None = None
    ) -> tuple[int | None, int | None]:
        """Returns the tightest known constant bounds, both closed."""
        self.promises.clear()
        form = self.expression(value, dim)
        facts = self.facts([form])
        low, high = self.form_interval(form)
        return (
            _tightest(facts, form, low),
            None
            if (up := _tightest(facts, -form, None if high is None else -high)) is None
            else -up,
        )


def _tightest(facts: list[Linear], form: Linear, known: int | None) -> int | None:
    """Returns the largest provable lower bound of a form, by exponential and binary search."""
    if form.is_number:
        return form.constant
    low = known
    if low is None:
        low = next((-(1 << n) for n in range(0, 65, 4) if follows(facts, form + (1 << n))), None)
        if low is None:
            return None
    step = 1
    while step < 1 << 64 and follows(facts, form - (low + step)):
        low += step
        step *= 2
    while step:
        if follows(facts, form - (low + step)):
            low += step
        step //= 2
    return low


def product(a: Linear, b: Linear) -> Linear | None:
    """Returns the product if one factor is constant, else None."""
    if b.is_number:
        return a * b.constant
    return b * a.constant if a.is_number else None
