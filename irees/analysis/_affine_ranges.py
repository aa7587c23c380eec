"""Interval arithmetic for affine expressions and linear indices; None if 64 bits may overflow."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from irees.analysis._range_rules import Interval, Rule, Sem, add, ceiled, floored, mul

_LIMIT = 1 << 63
_SEM = Sem()
_KINDS: dict[AffineBinaryOpKind, Rule] = {
    AffineBinaryOpKind.Add: add,
    AffineBinaryOpKind.Mul: mul,
    AffineBinaryOpKind.FloorDiv: floored,
    AffineBinaryOpKind.CeilDiv: ceiled,
}


def _checked(low: int, high: int) -> Interval | None:
    return (low, high) if -_LIMIT <= low and high < _LIMIT else None


def modulo(a: Interval, b: Interval) -> Interval | None:
    """Returns the remainder of floor division by a positive number; None if it may not be."""
    if b[0] <= 0:
        return None
    if a[0] >= 0 and a[1] < b[0]:
        return a
    if b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
        return a[0] % b[0], a[1] % b[0]
    return 0, b[1] - 1


def expression_interval(
    expr: AffineExpr, dims: Sequence[Interval], symbols: Sequence[Interval]
) -> Interval | None:
    """Returns the interval of an affine expression; None if unknown or if it may overflow."""
    if isinstance(expr, AffineConstantExpr):
        return expr.value, expr.value
    if isinstance(expr, AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, AffineSymExpr):
        return symbols[expr.position]
    assert isinstance(expr, AffineBinaryOpExpr)
    a = expression_interval(expr.lhs, dims, symbols)
    b = expression_interval(expr.rhs, dims, symbols)
    if a is None or b is None:
        return None
    if expr.kind is AffineBinaryOpKind.Mod:
        return modulo(a, b)
    low, high, known = _KINDS[expr.kind](_SEM, a, b, 64)
    return _checked(low, high) if known else None


def map_intervals(
    results: Sequence[AffineExpr], dims: Sequence[Interval], symbols: Sequence[Interval]
) -> list[Interval] | None:
    """Returns the intervals of all results of a map; None if one is unknown."""
    found = [expression_interval(expr, dims, symbols) for expr in results]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def delinearized(
    index: Interval, inner: Sequence[Interval], outer: Interval | None
) -> list[Interval | None]:
    """Returns the coordinates of an index in the basis (outer, *inner), outermost first."""
    found: list[Interval | None] = []
    rest: Interval | None = index
    for size in reversed(inner):
        if rest is None or size[0] <= 0:
            found.append(None)
            rest = None
            continue
        found.append(modulo(rest, size))
        low, high, _ = floored(_SEM, rest, size, 64)
        rest = (low, high)
    if rest is not None and outer is not None and outer[0] > 0:
        # The op guarantees that the index is within the basis.
        low, high = max(rest[0], 0), min(rest[1], outer[1] - 1)
        rest = (low, high) if low <= high else (0, outer[1] - 1)
    found.append(rest)
    return found[::-1]


def linearized(
    coordinates: Sequence[Interval], basis: Sequence[Interval], disjoint: bool
) -> Interval | None:
    """Returns the linear index of coordinates; the basis may omit the outermost size."""
    sizes = list(basis) if len(basis) < len(coordinates) else list(basis[1:])
    total: Interval | None = (0, 0)
    stride: Interval | None = (1, 1)
    for position, coordinate in enumerate(reversed(coordinates)):
        place = len(basis) - 1 - position
        if disjoint and place >= 0:
            low, high = max(coordinate[0], 0), min(coordinate[1], basis[place][1] - 1)
            coordinate = (low, high) if low <= high else coordinate
        if total is None or stride is None:
            return None
        low, high, _ = mul(_SEM, coordinate, stride, 64)
        low, high, _ = add(_SEM, total, (low, high), 64)
        total = _checked(low, high)
        if position < len(sizes):
            low, high, _ = mul(_SEM, stride, sizes[len(sizes) - 1 - position], 64)
            stride = _checked(low, high)
    return total
