"""Strides and offsets of memrefs; None means dynamic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

Known = int | None


@dataclass(frozen=True)
class Layout:
    """Strided layout of a memref, in elements."""

    strides: tuple[Known, ...]
    offset: Known


def times(a: Known, b: Known) -> Known:
    """a * b"""
    return None if a is None or b is None else a * b


def plus(a: Known, b: Known) -> Known:
    """a + b"""
    return None if a is None or b is None else a + b


def size(number: int) -> Known:
    """Returns a dim, None if it is dynamic."""
    return None if number == DYNAMIC_INDEX else number


def row_major(shape: Sequence[int]) -> tuple[Known, ...]:
    """Returns the strides of a contiguous row-major layout."""
    strides: list[Known] = []
    step: Known = 1
    for number in reversed(shape):
        strides.append(step)
        step = times(step, size(number))
    return tuple(reversed(strides))


def layout_of(kind: MemRefType) -> Layout | None:
    """Returns the layout of a memref, or None if it is not strided."""
    layout = kind.layout
    if isinstance(layout, NoneAttr):
        return Layout(row_major(kind.get_shape()), 0)
    if isinstance(layout, StridedLayoutAttr):
        return Layout(tuple(layout.get_strides()), layout.get_offset())
    return _strided(layout.data) if isinstance(layout, AffineMapAttr) else None


def _strided(layout: AffineMap) -> Layout | None:
    if len(layout.results) != 1:
        return None
    found = _terms(layout.results[0], layout.num_dims)
    return None if found is None else Layout(tuple(found[:-1]), found[-1])


def _terms(expr: AffineExpr, dims: int) -> list[Known] | None:
    """Returns the coefficient of each dim and the constant term, or None if not affine in dims."""
    found: list[Known] = [0] * (dims + 1)
    if isinstance(expr, AffineDimExpr):
        found[expr.position] = 1
        return found
    if isinstance(expr, AffineConstantExpr | AffineSymExpr):
        found[-1] = expr.value if isinstance(expr, AffineConstantExpr) else None
        return found
    if not isinstance(expr, AffineBinaryOpExpr):
        return None
    lhs, rhs = _terms(expr.lhs, dims), _terms(expr.rhs, dims)
    if lhs is None or rhs is None:
        return None
    if expr.kind == AffineBinaryOpKind.Add:
        return [plus(a, b) for a, b in zip(lhs, rhs, strict=True)]
    return _product(lhs, rhs) if expr.kind == AffineBinaryOpKind.Mul else None


def _product(lhs: list[Known], rhs: list[Known]) -> list[Known] | None:
    """Returns the terms of a product, or None if both sides depend on dims."""
    if any(f != 0 for f in rhs[:-1]):
        lhs, rhs = rhs, lhs
    if any(f != 0 for f in rhs[:-1]):
        return None
    return [0 if f == 0 else times(f, rhs[-1]) for f in lhs]
