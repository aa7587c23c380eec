"""Bounds checks for indices of affine maps. Part of `irees-insert-shape-checks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)
from xdsl.rewriter import InsertPoint

from irees.analysis.affine_steps import linear_form
from irees.dialects.shape_relations import MAX_SIZE
from irees.dialects.sizes import Window
from irees.errors import VerifyError
from irees.transforms.global_opt.insert_shape_checks.requirements import Requirement, number_of
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import affine_value

LARGEST = 1 << 58
"""Largest term of an index: a sum of 32 terms fits in 64 bits."""


@dataclass(frozen=True)
class Ends:
    """The minimum and maximum of an index; some iteration attains each."""

    low: Size
    high: Size
    dense: bool
    """Whether the index also takes every value in between."""


def dims_in(expr: AffineExpr) -> frozenset[int]:
    """Returns the loops that an index depends on."""
    return frozenset(e.position for e in expr.dfs() if isinstance(e, AffineDimExpr))


Bounds = tuple[int | None, int | None]
"""Constant lower and upper bounds of an index, None if unknown."""


def interval(expr: AffineExpr, loops: Mapping[int, Size]) -> Bounds:
    """Returns constant bounds of an index over non-empty loops."""
    if isinstance(expr, AffineConstantExpr):
        return expr.value, expr.value
    if isinstance(expr, AffineDimExpr):
        size = number_of(loops[expr.position])
        return 0, size - 1 if isinstance(size, int) else None
    assert isinstance(expr, AffineBinaryOpExpr)
    left, right = interval(expr.lhs, loops), interval(expr.rhs, loops)
    if expr.kind is AffineBinaryOpKind.Add:
        return _plus(left[0], right[0]), _plus(left[1], right[1])
    c = right[0]
    if c is None or c != right[1] or c < 0:
        return None, None
    if expr.kind is AffineBinaryOpKind.Mul:
        return _mapped(left, lambda n: n * c)
    if c == 0:
        return None, None
    if expr.kind is AffineBinaryOpKind.Mod:
        return _remainders(left, c)
    more = c - 1 if expr.kind is AffineBinaryOpKind.CeilDiv else 0
    return _mapped(left, lambda n: (n + more) // c)


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _mapped(bounds: Bounds, increasing: Callable[[int], int]) -> Bounds:
    """Returns the bounds of an increasing function of an index."""
    low, high = (None if n is None else increasing(n) for n in bounds)
    return low, high


def _remainders(bounds: Bounds, c: int) -> Bounds:
    """Returns the bounds of an index modulo c > 0."""
    a, b = bounds
    within = a is not None and b is not None and 0 <= a and b < c
    return (a, b) if within else (0, c - 1)


@dataclass(frozen=True)
class WindowCheck:
    """Asserts that all values of an affine expression are in bounds of a dim."""

    window: Window
    op: Operation
    b: IndexBuilder
    loops: dict[int, Size]
    extent: Size

    def run(self) -> None:
        """Emits the asserts. Raises VerifyError if the map is out of bounds or not checkable."""
        constants = [e.value for e in self.window.expr.dfs() if isinstance(e, AffineConstantExpr)]
        if any(abs(number) >= LARGEST for number in constants):
            raise self._refused("but has a constant beyond 2^58")
        if missing := sorted(dims_in(self.window.expr) - set(self.loops)):
            raise self._refused(f"but no operand says how far loop {missing[0]} goes")
        if self._is_inside():
            return
        found = self._ends(self.window.expr)
        if found is None:
            if any(abs(number) * MAX_SIZE > LARGEST << 4 for number in constants):
                raise self._refused("but has a constant beyond 2^15")
            self._each_point()
            return
        self._require(0, found.low, self.b)
        self._require(self.b.add(found.high, 1), self.extent, self.b)

    def _is_inside(self) -> bool:
        """Whether constant bounds prove that all values are in bounds."""
        low, high = interval(self.window.expr, self.loops)
        extent = number_of(self.extent)
        return (
            low is not None
            and low >= 0
            and isinstance(extent, int)
            and (high is not None and high < extent)
        )

    def _refused(self, why: str) -> VerifyError:
        message = f"{self.window.message}, {why}"
        return VerifyError(message, op=self.op.name, location=self.op.location)

    def _require(self, lhs: Size, rhs: Size, b: IndexBuilder) -> None:
        empty = list(self.loops.values())
        Requirement(lhs, "sle", rhs, self.window.message, unless=empty).check(self.op, b)

    def _times(self, size: Size, factor: int) -> Size:
        """Returns size * factor, after an assert that it does not exceed LARGEST."""
        if not isinstance(size, int) and abs(factor) * MAX_SIZE > LARGEST:
            self._require(size, LARGEST // abs(factor), self.b)
        return self.b.mul(size, factor)

    def _ends(self, expr: AffineExpr) -> Ends | None:
        """Returns the exact bounds of an index over non-empty loops; None if they are unknown."""
        form = linear_form(expr)
        if form is not None:
            return self._ends_of_sum(*form)
        assert isinstance(expr, AffineBinaryOpExpr)
        left, right = self._ends(expr.lhs), self._ends(expr.rhs)
        if left is None or right is None:
            return None
        if expr.kind is AffineBinaryOpKind.Add:
            if dims_in(expr.lhs) & dims_in(expr.rhs):
                return None
            low, high = self.b.add(left.low, right.low), self.b.add(left.high, right.high)
            return Ends(low, high, left.dense and right.dense)
        if isinstance(right.low, int) and right.low == right.high:
            return self._ends_by(expr.kind, left, right.low)
        return None

    def _ends_of_sum(self, factors: dict[int, int], constant: int) -> Ends:
        """Returns the bounds of constant + sum(factor * loop)."""
        low: Size = constant
        high: Size = constant
        for loop, factor in factors.items():
            reach = self._times(self.b.sub(self.loops[loop], 1), factor)
            if factor > 0:
                high = self.b.add(high, reach)
            else:
                low = self.b.add(low, reach)
        return Ends(low, high, all(abs(factor) <= 1 for factor in factors.values()))

    def _ends_by(self, kind: AffineBinaryOpKind, of: Ends, number: int) -> Ends | None:
        """Returns the bounds of an index `kind` a constant (mul, div, mod), None if unknown."""
        if kind is AffineBinaryOpKind.Mul:
            found = self._times(of.low, number), self._times(of.high, number)
            return Ends(*(found if number >= 0 else found[::-1]), dense=False)
        if number <= 0 or not isinstance(of.low, int) or of.low < 0:
            return None
        if kind is AffineBinaryOpKind.Mod:
            if of.low != 0 or not of.dense:
                return None
            return Ends(0, self.b.minimum(of.high, number - 1), dense=True)
        divide = self.b.ceildiv if kind is AffineBinaryOpKind.CeilDiv else self.b.floordiv
        return Ends(divide(of.low, number), divide(of.high, number), of.dense)

    def _each_point(self) -> None:
        """Asserts the bounds at every iteration, in a loop nest on the host."""
        point: dict[int, SSAValue] = {}
        zero, one, inner = self.b.value(0), self.b.value(1), self.b
        for loop in sorted(dims_in(self.window.expr)):
            body = Block(arg_types=[IndexType()])
            inner.insert(scf.ForOp(zero, inner.value(self.loops[loop]), one, [], Region(body)))
            body.add_op(last := scf.YieldOp())
            point[loop] = body.args[0]
            inner = IndexBuilder(InsertPoint.before(last))
        dims = [point.get(loop, 0) for loop in range(max(self.loops, default=-1) + 1)]
        at = affine_value(self.window.expr, dims, inner)
        # If another loop is empty, there are no iterations to check.
        others = [size for loop, size in self.loops.items() if loop not in point]
        for lhs, rhs in ((0, at), (inner.add(at, 1), self.extent)):
            bound = Requirement(lhs, "sle", rhs, self.window.message, unless=others)
            bound.check(self.op, inner)
