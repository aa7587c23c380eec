"""
Index arithmetic as sums of products of values, in normal form.

    Sum.of(%offset) + Sum.of(%i) * 3            => %offset + 3 * %i
    Sum.of(affine.apply(s0 * 512)).ceildiv(512) => s0

Values defined by an `affine.apply` or a constant are expanded, so equal terms cancel, and the
coefficients show whether a sum is a multiple of a number. A division splits off the terms that are
divisible; the remaining terms become one opaque factor. Arithmetic is that of affine maps: integers
without overflow. `transforms/utils/affine_sums.py` emits a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, scf
from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from irees.dialects.sizes import Size, constant_value
from irees.dialects.upstream.scf import ForallOp

_DIVISIONS = {
    AffineBinaryOpKind.FloorDiv: "floordiv",
    AffineBinaryOpKind.CeilDiv: "ceildiv",
    AffineBinaryOpKind.Mod: "mod",
}


@dataclass(frozen=True)
class _Quotient:
    """A division of a sum that is not known to be exact."""

    kind: str
    of: Sum
    divisor: int


_Factor = SSAValue | _Quotient


@dataclass(frozen=True)
class Sum:
    """Products of factors, each with a coefficient, in the order in which they were added."""

    terms: tuple[tuple[tuple[_Factor, ...], int], ...]

    @staticmethod
    def _make(pairs: Iterable[tuple[tuple[_Factor, ...], int]]) -> Sum:
        merged: dict[frozenset[tuple[_Factor, int]], tuple[tuple[_Factor, ...], int]] = {}
        for factors, coefficient in pairs:
            key = frozenset((f, factors.count(f)) for f in factors)
            first, before = merged.get(key, (factors, 0))
            merged[key] = (first, before + coefficient)
        return Sum(tuple(term for term in merged.values() if term[1]))

    @staticmethod
    def of(value: Size) -> Sum:
        """Returns the sum of a number or a value; constants and `affine.apply` are expanded."""
        known = value if isinstance(value, int) else constant_value(value)
        if known is not None:
            return Sum._make([((), known)])
        assert isinstance(value, SSAValue)
        if isinstance(value, OpResult) and isinstance(value.op, affine.ApplyOp):
            map_ = value.op.map.data
            arguments = [Sum.of(v) for v in value.op.mapOperands]
            found = evaluate(map_.results[0], arguments, map_.num_dims)
            if found is not None:
                return found
        return Sum((((value,), 1),))

    def __add__(self, other: Sum | Size) -> Sum:
        other = other if isinstance(other, Sum) else Sum.of(other)
        return Sum._make((*self.terms, *other.terms))

    def __mul__(self, other: Sum | Size) -> Sum:
        other = other if isinstance(other, Sum) else Sum.of(other)
        return Sum._make((f + g, a * b) for f, a in self.terms for g, b in other.terms)

    def divisible(self, divisor: int) -> bool:
        """Whether the sum is a multiple of `divisor` for all values."""
        return divisor != 0 and all(c % divisor == 0 for _, c in self.terms)

    def floordiv(self, divisor: int) -> Sum:
        """Returns the quotient, rounded down; divisor > 0."""
        return self._divided(divisor, "floordiv")

    def ceildiv(self, divisor: int) -> Sum:
        """Returns the quotient, rounded up; divisor > 0."""
        return self._divided(divisor, "ceildiv")

    def mod(self, divisor: int) -> Sum:
        """Returns the remainder of `floordiv`; divisor > 0."""
        rest = [t for t in self.terms if t[1] % divisor]
        if all(not factors for factors, _ in rest):
            return Sum._make([((), sum(c for _, c in rest) % divisor)])
        return Sum((((_Quotient("mod", Sum(tuple(rest)), divisor),), 1),))

    def _divided(self, divisor: int, kind: str) -> Sum:
        even = [(f, c // divisor) for f, c in self.terms if c % divisor == 0]
        rest = [t for t in self.terms if t[1] % divisor]
        if not rest:
            return Sum._make(even)
        if all(not factors for factors, _ in rest):
            number = sum(c for _, c in rest)
            number = number // divisor if kind == "floordiv" else -(-number // divisor)
            return Sum._make([*even, ((), number)])
        return Sum._make([*even, ((_Quotient(kind, Sum(tuple(rest)), divisor),), 1)])

    def constant(self) -> int | None:
        """Returns the value of a constant sum, or None."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    def expression(self, symbols: list[SSAValue]) -> AffineExpr:
        """Returns the affine expression; appends the values that it uses to `symbols`."""
        total: AffineExpr | None = None
        # MLIR writes the constant last.
        for factors, coefficient in sorted(self.terms, key=lambda t: not t[0]):
            product: AffineExpr | None = None
            for factor in factors:
                one = _factor_expression(factor, symbols)
                product = one if product is None else product * one
            if product is None:
                product = AffineExpr.constant(coefficient)
            elif coefficient != 1:
                product = product * coefficient
            total = product if total is None else total + product
        return AffineExpr.constant(0) if total is None else total


def _factor_expression(factor: _Factor, symbols: list[SSAValue]) -> AffineExpr:
    if isinstance(factor, SSAValue):
        if factor not in symbols:
            symbols.append(factor)
        return AffineExpr.symbol(symbols.index(factor))
    inner = factor.of.expression(symbols)
    if factor.kind == "floordiv":
        return inner // factor.divisor
    return inner.ceil_div(factor.divisor) if factor.kind == "ceildiv" else inner % factor.divisor


def evaluate(expression: AffineExpr, arguments: Sequence[Sum], dims: int) -> Sum | None:
    """Returns the sum of an affine expression, or None if it divides by a non-constant."""
    if isinstance(expression, AffineConstantExpr):
        return Sum.of(expression.value)
    if isinstance(expression, AffineDimExpr):
        return arguments[expression.position]
    if isinstance(expression, AffineSymExpr):
        return arguments[dims + expression.position]
    assert isinstance(expression, AffineBinaryOpExpr)
    lhs = evaluate(expression.lhs, arguments, dims)
    rhs = evaluate(expression.rhs, arguments, dims)
    if lhs is None or rhs is None:
        return None
    if expression.kind == AffineBinaryOpKind.Add:
        return lhs + rhs
    if expression.kind == AffineBinaryOpKind.Mul:
        return lhs * rhs
    divisor = rhs.constant()
    if divisor is None or divisor <= 0:
        return None
    return getattr(lhs, _DIVISIONS[expression.kind])(divisor)


def is_multiple(total: Sum, divisor: int) -> bool:
    """Whether a sum is a multiple of `divisor`, given the steps of the loops around it."""
    return all(
        c % divisor == 0 or (len(f) == 1 and _steps_by(f[0], divisor)) for f, c in total.terms
    )


def _steps_by(value: object, divisor: int) -> bool:
    """Whether a value is the induction variable of a loop over multiples of `divisor`."""
    if not isinstance(value, BlockArgument):
        return False
    loop = value.block.parent_op()
    if isinstance(loop, ForallOp) and value.index < loop.num_loops:
        lower, _, step = (b[value.index] for b in loop.bounds())
    elif isinstance(loop, scf.ForOp) and value.index == 0:
        lower, step = loop.lb, loop.step
    else:
        return False
    return Sum.of(lower).divisible(divisor) and Sum.of(step).divisible(divisor)
