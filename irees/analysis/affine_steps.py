"""
Finds the loop steps at which an index expression advances by a constant.

`d0` advances by 1 per step of 1, `d0 floordiv 32` by 1 per step of 32, `d0 mod 32` by 0 per step of
32. The view of a tile starts at the expression's value at the tile offset, and is indexed relative
to it. This is correct only if the tile offset is a multiple of the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, lcm

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

DIVISIONS = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv)


@dataclass(frozen=True)
class Step:
    """An expression grows by `by` whenever the loop advances by `every`."""

    every: int
    by: int


def step_of(expr: AffineExpr, loop: int) -> Step | None:
    """Returns the step of an expression along a loop; None if there is none."""
    if loop not in expr.used_dims():
        return Step(1, 0)
    if isinstance(expr, AffineDimExpr):
        return Step(1, 1)
    if not isinstance(expr, AffineBinaryOpExpr):
        return None
    lhs, rhs = step_of(expr.lhs, loop), step_of(expr.rhs, loop)
    if lhs is None or rhs is None:
        return None
    if expr.kind == AffineBinaryOpKind.Add:
        every = lcm(lhs.every, rhs.every)
        return Step(every, lhs.by * every // lhs.every + rhs.by * every // rhs.every)
    if not isinstance(expr.rhs, AffineConstantExpr) or expr.rhs.value <= 0:
        return _product(lhs, expr)
    number = expr.rhs.value
    if expr.kind == AffineBinaryOpKind.Mul:
        return Step(lhs.every, lhs.by * number)
    times = number // gcd(number, lhs.by)
    if expr.kind == AffineBinaryOpKind.Mod:
        return Step(lhs.every * times, 0)
    assert expr.kind in DIVISIONS
    return Step(lhs.every * times, lhs.by * times // number)


def _product(step: Step, expr: AffineBinaryOpExpr) -> Step | None:
    """Returns the step of a product with a constant <= 0; None for other expressions."""
    if expr.kind == AffineBinaryOpKind.Mul and isinstance(expr.rhs, AffineConstantExpr):
        return Step(step.every, step.by * expr.rhs.value)
    return None


def even_tile(tile: int, indices: Iterable[tuple[AffineExpr, int]]) -> int | None:
    """
    Returns the smallest tile size >= `tile` that is a multiple of the steps of all index
    expressions along their loops. None if an expression has no step.
    """
    every = 1
    for expr, loop in indices:
        if (step := step_of(expr, loop)) is None:
            return None
        every = lcm(every, step.every)
    return -(-tile // every) * every


def linear_form(expr: AffineExpr) -> tuple[dict[int, int], int] | None:
    """Returns the coefficients by dim and the constant of a linear expression, or None."""
    if isinstance(expr, AffineConstantExpr):
        return {}, expr.value
    if isinstance(expr, AffineDimExpr):
        return {expr.position: 1}, 0
    if not isinstance(expr, AffineBinaryOpExpr):
        return None
    lhs, rhs = linear_form(expr.lhs), linear_form(expr.rhs)
    if lhs is None or rhs is None:
        return None
    if expr.kind is AffineBinaryOpKind.Add:
        terms = dict(lhs[0])
        for position, factor in rhs[0].items():
            terms[position] = terms.get(position, 0) + factor
        return terms, lhs[1] + rhs[1]
    if expr.kind is AffineBinaryOpKind.Mul:
        if lhs[0] and rhs[0]:
            return None
        factor, (terms, constant) = (lhs[1], rhs) if not lhs[0] else (rhs[1], lhs)
        return {p: f * factor for p, f in terms.items()}, constant * factor
    return None
