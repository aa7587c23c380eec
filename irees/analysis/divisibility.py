"""
Computes known divisors of integer values, read as unsigned (`udiv`) and as signed (`sdiv`).

`IntegerDivisibility().of(value)` walks the use-def chain of a value and caches its results. Divisor
0 means that the value is 0. Arithmetic wraps: only the power of two in a divisor survives overflow
modulo 2^n, so a result that may overflow keeps that power only. (The unsigned difference of two
multiples of 3 need not be a multiple of 3.) IREE's analysis assumes that nothing overflows, as does
`wraps=False`. The divisor of a loop-carried value is the fixed point over its initial and yielded
values.

IREE: `IntegerDivisibilityAnalysis`. The rules are `RULES`; their proofs are in `tests/proofs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import cast

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from irees.analysis.integer_ranges import IntegerRanges, width_of
from irees.dialects.upstream.affine import DelinearizeIndexOp
from irees.dialects.upstream.affine import MaxOp as AffineMaxOp
from irees.dialects.upstream.scf import ForallOp
from irees.dialects.util import AssumeIntOp


def sum_rule(a: int, b: int) -> int:
    """a | x and b | y  =>  gcd(a, b) | x + y, x - y, and either of x and y"""
    return gcd(a, b)


def product_rule(a: int, b: int) -> int:
    """a | x and b | y  =>  a b | x y"""
    return a * b


def quotient_rule(a: int, c: int) -> int:
    """a | x and c | a  =>  a / c | x / c, which is exact; 1 if c does not divide a"""
    return a // c if a % c == 0 else 1


def modulo_rule(a: int, c: int) -> int:
    """a | x  =>  gcd(a, c) | x mod c, which is 0 if c | a"""
    return 0 if a % c == 0 else gcd(a, c)


def wrapped_rule(a: int, width: int) -> int:
    """a | x  =>  gcd(a, 2^width) | x mod 2^width"""
    return gcd(a, 1 << width)


RULES: tuple[Callable[[int, int], int], ...] = (
    sum_rule,
    product_rule,
    quotient_rule,
    modulo_rule,
    wrapped_rule,
)
"""All rules of this module; a test checks that each has a proof."""


@dataclass(frozen=True)
class Divisibility:
    """Largest known divisors of a value, unsigned and signed; 0 if the value is 0."""

    udiv: int = 1
    sdiv: int = 1

    def union(self, other: Divisibility) -> Divisibility:
        """Returns the divisors common to both."""
        return Divisibility(sum_rule(self.udiv, other.udiv), sum_rule(self.sdiv, other.sdiv))

    def __str__(self) -> str:
        return f"udiv = {self.udiv}, sdiv = {self.sdiv}"


UNKNOWN = Divisibility()


class IntegerDivisibility:
    """Divisors of values, computed on demand and cached."""

    def __init__(self, ranges: IntegerRanges | None = None, *, wraps: bool = True) -> None:
        self.ranges = ranges or IntegerRanges()
        self.wraps = wraps
        self._known: dict[SSAValue, Divisibility] = {}
        self._open: set[SSAValue] = set()
        self._depth = 0

    def forget(self) -> None:
        """Clears the cache after a change of the program."""
        self._known.clear()
        self.ranges.forget()

    def of(self, value: SSAValue | int) -> Divisibility:
        """Returns the divisors of an integer or index value, or of a constant."""
        if isinstance(value, int):
            return Divisibility(abs(value), abs(value))
        found = self._known.get(value)
        if found is not None:
            return found
        if value in self._open or self._depth > 200 or width_of(value.type) is None:
            return UNKNOWN
        self._open.add(value)
        self._depth += 1
        try:
            found = self._find(value)
        finally:
            self._depth -= 1
            self._open.discard(value)
        if not self._open or found != UNKNOWN:
            self._known[value] = found
        return found

    def _find(self, value: SSAValue) -> Divisibility:
        if isinstance(value, OpResult):
            transfer = TRANSFERS.get(value.op.name)
            return UNKNOWN if transfer is None else transfer(self, value)
        block = value.owner
        assert isinstance(block, Block)
        parent = block.parent_op()
        position = block.args.index(value)  # type: ignore[arg-type]
        if isinstance(parent, scf.ForOp):
            if position == 0:
                return self._stepped(parent.lb, parent.step)
            return self._carried(parent, position - 1)
        if isinstance(parent, ForallOp) and position < parent.num_loops:
            lower, _, step = parent.bounds()
            return self._stepped(lower[position], step[position])
        if isinstance(parent, scf.ParallelOp) and position < len(parent.lowerBound):
            return self._stepped(parent.lowerBound[position], parent.step[position])
        if isinstance(parent, affine.ForOp) and position == 0:
            return self._affine_stepped(parent)
        return UNKNOWN

    def _stepped(self, lower: SSAValue | int, step: SSAValue | int) -> Divisibility:
        # An induction variable stays below its bound, so it does not wrap; it may be negative.
        found = self.of(lower).union(self.of(step))
        if not self.wraps:
            return found
        if self.ranges.interval(lower)[0] >= 0:
            return Divisibility(found.sdiv, found.sdiv)
        width = 64 if isinstance(lower, int) else width_of(lower.type) or 1
        return Divisibility(wrapped_rule(found.sdiv, width), found.sdiv)

    def _affine_stepped(self, op: affine.ForOp) -> Divisibility:
        results = op.lowerBoundMap.data.results
        if len(results) != 1:
            return UNKNOWN
        dims = op.lowerBoundMap.data.num_dims
        operands = [self.of(each) for each in op.lowerBoundOperands]
        start = self.expression(results[0], operands[:dims], operands[dims:])
        step = cast(IntegerAttr, op.step).value.data
        return self.limited(start.union(self.of(step)), overflows=True, width=64)

    def _carried(self, op: scf.ForOp, position: int) -> Divisibility:
        block = op.body.block
        assert block.last_op is not None
        found = self.of(op.iter_args[position])
        for _ in range(70):
            trial = IntegerDivisibility(self.ranges, wraps=self.wraps)
            trial._known = {**self._known, block.args[position + 1]: found}
            trial._depth = self._depth + 20
            joined = found.union(trial.of(block.last_op.operands[position]))
            if joined == found:
                return found
            found = joined
        return UNKNOWN

    def limited(self, found: Divisibility, *, overflows: bool, width: int) -> Divisibility:
        """Returns divisors of the wrapped result, given those of the exact result."""
        if not self.wraps or not overflows:
            return found
        common = wrapped_rule(gcd(found.udiv, found.sdiv), width)
        return Divisibility(common, common)

    def expression(
        self, expr: AffineExpr, dims: list[Divisibility], symbols: list[Divisibility]
    ) -> Divisibility:
        """Returns the divisors of an affine expression that does not overflow."""
        if isinstance(expr, AffineConstantExpr):
            return self.of(expr.value)
        if isinstance(expr, AffineDimExpr):
            return dims[expr.position]
        if isinstance(expr, AffineSymExpr):
            return symbols[expr.position]
        assert isinstance(expr, AffineBinaryOpExpr)
        a = self.expression(expr.lhs, dims, symbols)
        if expr.kind in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul):
            b = self.expression(expr.rhs, dims, symbols)
            rule = sum_rule if expr.kind is AffineBinaryOpKind.Add else product_rule
            return Divisibility(rule(a.udiv, b.udiv), rule(a.sdiv, b.sdiv))
        if not isinstance(expr.rhs, AffineConstantExpr) or not expr.rhs.value:
            return UNKNOWN
        by = abs(expr.rhs.value)
        rule = modulo_rule if expr.kind is AffineBinaryOpKind.Mod else quotient_rule
        return Divisibility(rule(a.udiv, by), rule(a.sdiv, by))


def _fits(analysis: IntegerDivisibility, op: Operation) -> tuple[bool, bool]:
    """Whether the exact result of a sum, difference or product fits, unsigned and signed."""
    a, b = (analysis.ranges.of(each) for each in op.operands)
    f = {
        "arith.addi": lambda x, y: x + y,
        "arith.subi": lambda x, y: x - y,
        "arith.muli": lambda x, y: x * y,
    }[op.name]
    full = (1 << a.width) - 1
    half = 1 << (a.width - 1)
    us = [f(x, y) for x in (a.umin, a.umax) for y in (b.umin, b.umax)]
    ss = [f(x, y) for x in (a.smin, a.smax) for y in (b.smin, b.smax)]
    return 0 <= min(us) and max(us) <= full, -half <= min(ss) and max(ss) < half


def _ring(rule: Callable[[int, int], int]):
    def transfer(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
        op = value.op
        a, b = (analysis.of(each) for each in op.operands)
        exact = Divisibility(rule(a.udiv, b.udiv), rule(a.sdiv, b.sdiv))
        if not analysis.wraps:
            return exact
        width = width_of(value.type)
        assert width is not None
        # Signed and unsigned values share their low bits, so each power of two divides both.
        unsigned, signed = _fits(analysis, op)
        u, s = wrapped_rule(exact.udiv, width), wrapped_rule(exact.sdiv, width)
        common = u if s % max(u, 1) else s
        return Divisibility(exact.udiv if unsigned else common, exact.sdiv if signed else common)

    return transfer


def _either(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    a, b = (analysis.of(each) for each in value.op.operands[-2:])
    return a.union(b)


def _constant(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    attribute = cast(arith.ConstantOp, value.op).value
    width = width_of(value.type)
    if not isinstance(attribute, IntegerAttr) or width is None:
        return UNKNOWN
    bits = attribute.value.data & ((1 << width) - 1)
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return Divisibility(bits, abs(signed))


def _known(analysis: IntegerDivisibility, value: SSAValue, *, signed: bool) -> int | None:
    found = analysis.ranges.of(value)
    if signed:
        return found.value
    return found.umin if found.umin == found.umax else None


def _divui(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    by = _known(analysis, value.op.operands[1], signed=False)
    if not by:
        return UNKNOWN
    found = analysis.of(value.op.operands[0])
    if not analysis.wraps:
        return Divisibility(quotient_rule(found.udiv, by), quotient_rule(found.sdiv, by))
    exact = quotient_rule(found.udiv, by)
    width = width_of(value.type)
    assert width is not None
    # The sign bit of the result can be set only if the divisor is 1.
    return Divisibility(exact, exact if by > 1 else found.sdiv)


def _divsi(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    by = _known(analysis, value.op.operands[1], signed=True)
    if not by or by == -1:
        return UNKNOWN
    return _as_signed(analysis, value, quotient_rule(_signed_divisor(analysis, value), abs(by)))


def _remsi(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    by = _known(analysis, value.op.operands[1], signed=True)
    if not by:
        return UNKNOWN
    return _as_signed(analysis, value, modulo_rule(_signed_divisor(analysis, value), abs(by)))


def _remui(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    by = _known(analysis, value.op.operands[1], signed=False)
    if not by:
        return UNKNOWN
    divisor = modulo_rule(analysis.of(value.op.operands[0]).udiv, by)
    width = width_of(value.type)
    assert width is not None
    positive = by <= 1 << (width - 1)
    return Divisibility(divisor, divisor if positive else wrapped_rule(divisor, width))


def _signed_divisor(analysis: IntegerDivisibility, value: OpResult) -> int:
    return analysis.of(value.op.operands[0]).sdiv


def _as_signed(analysis: IntegerDivisibility, value: OpResult, divisor: int) -> Divisibility:
    """Returns a divisor of the signed value, and the implied divisor of the unsigned value."""
    width = width_of(value.type)
    assert width is not None
    if analysis.ranges.of(value).smin >= 0 or not analysis.wraps:
        return Divisibility(divisor, divisor)
    return Divisibility(wrapped_rule(divisor, width), divisor)


def _cast(signed: bool):
    def transfer(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
        source = value.op.operands[0]
        old, new = width_of(source.type), width_of(value.type)
        if old is None or new is None:
            return UNKNOWN
        found = analysis.of(source)
        if not analysis.wraps:
            return found
        around = analysis.ranges.of(source)
        if new >= old:
            if around.smin >= 0:
                return found
            if signed:
                return Divisibility(wrapped_rule(found.sdiv, old), found.sdiv)
            return Divisibility(found.udiv, found.udiv if new > old else found.sdiv)
        common = Divisibility(wrapped_rule(found.udiv, new), wrapped_rule(found.udiv, new))
        if around.umax < 1 << (new - 1):
            return Divisibility(found.udiv, found.udiv)
        return common

    return transfer


def assumed_divisor(op: AssumeIntOp, position: int) -> int | None:
    """Returns the divisor that `util.assume.int` states for an operand; ignores rows that are 0."""
    found: int | None = None
    for row in op.assumptions.data[position]:
        divisor = row.get("udiv")
        if divisor is None:
            if row.get("umin") == 0 and row.get("umax") == 0:
                continue
            return None
        found = divisor if found is None else sum_rule(found, divisor)
    return found


def _assume(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    op = cast(AssumeIntOp, value.op)
    known = analysis.of(op.operands[value.index])
    said = assumed_divisor(op, value.index)
    if said is None:
        return known
    width = width_of(value.type)
    assert width is not None
    # Assumptions are about the unsigned value.
    positive = not analysis.wraps or analysis.ranges.of(value).smin >= 0
    return Divisibility(_both(known.udiv, said), said if positive else wrapped_rule(said, width))


def _both(a: int, b: int) -> int:
    """Returns the least common multiple."""
    return a * b // gcd(a, b) if a and b else 0


def _affine(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    op = cast(affine.ApplyOp | affine.MinOp | AffineMaxOp, value.op)
    dims = op.map.data.num_dims
    operands = [analysis.of(each) for each in op.operands]
    if analysis.wraps:
        # Affine expressions are signed.
        operands = [Divisibility(each.sdiv, each.sdiv) for each in operands]
    each = [
        analysis.expression(expr, operands[:dims], operands[dims:]) for expr in op.map.data.results
    ]
    found = each[0]
    for other in each[1:]:
        found = found.union(other)
    if not analysis.wraps:
        return found
    if analysis.ranges.results(op.map, op.operands) is not None:
        return _as_signed(analysis, value, found.sdiv)
    # A quotient of a wrapped value is unrelated to the exact quotient.
    divides = any(
        isinstance(part, AffineBinaryOpExpr)
        and part.kind not in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)
        for expr in op.map.data.results
        for part in expr.dfs()
    )
    return UNKNOWN if divides else analysis.limited(found, overflows=True, width=64)


def _delinearize(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    op = cast(DelinearizeIndexOp, value.op)
    basis = op.basis[1:] if op.has_outer_bound else op.basis
    sizes = [analysis.ranges.interval(each) for each in basis]
    divisor = analysis.of(op.linear_index[0]).sdiv
    for position in range(len(op.res) - 1, -1, -1):
        low, high = sizes[position - 1] if position else (1, 1)
        constant = low == high and low > 0
        if position == value.index:
            if position == 0:
                return _as_signed(analysis, value, divisor)
            return _as_signed(analysis, value, modulo_rule(divisor, low) if constant else 1)
        if not constant:
            return UNKNOWN
        divisor = quotient_rule(divisor, low)
    return UNKNOWN


def _align(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    alignment = value.op.operands[1]
    by = analysis.of(alignment)
    if not analysis.wraps:
        return by
    width = width_of(value.type)
    assert width is not None
    # An alignment is a power of two, which divides the result even if it wraps to 0.
    common = wrapped_rule(by.udiv, width) if analysis.ranges.of(alignment).umin else 1
    return Divisibility(common, common)


def _if(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    op = cast(scf.IfOp, value.op)
    yes, no = op.true_region.block.last_op, op.false_region.block.last_op
    assert yes is not None
    assert no is not None
    return analysis.of(yes.operands[value.index]).union(analysis.of(no.operands[value.index]))


def _for(analysis: IntegerDivisibility, value: OpResult) -> Divisibility:
    op = value.op
    if isinstance(op, scf.ForOp):
        return analysis.of(op.body.block.args[value.index + 1])
    return UNKNOWN


Transfer = Callable[[IntegerDivisibility, OpResult], Divisibility]
TRANSFERS: dict[str, Transfer] = {
    "arith.constant": _constant,
    "arith.addi": _ring(sum_rule),
    "arith.subi": _ring(sum_rule),
    "arith.muli": _ring(product_rule),
    "arith.divui": _divui,
    "arith.divsi": _divsi,
    "arith.floordivsi": _divsi,
    "arith.ceildivsi": _divsi,
    "arith.ceildivui": _divui,
    "arith.remsi": _remsi,
    "arith.remui": _remui,
    "arith.minsi": _either,
    "arith.maxsi": _either,
    "arith.minui": _either,
    "arith.maxui": _either,
    "arith.select": _either,
    "arith.index_cast": _cast(True),
    "arith.index_castui": _cast(False),
    "arith.extsi": _cast(True),
    "arith.extui": _cast(False),
    "arith.trunci": _cast(False),
    "util.assume.int": _assume,
    "util.align": _align,
    "affine.apply": _affine,
    "affine.min": _affine,
    "affine.max": _affine,
    "affine.delinearize_index": _delinearize,
    "scf.if": _if,
    "scf.for": _for,
}
"""Transfer functions by op name."""
