"""
Symbolic sizes over dims and index operands, and constraints on them: `Relation` and `Window`.

The rows of `shape_relations` yield the constraints. The interpreter evaluates them with `Numbers`;
passes emit index arithmetic for them with an `IndexBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import AffineExpr

Size = int | SSAValue
"""A dim: static, or an SSA value of type index."""


@dataclass(frozen=True)
class Dim:
    """The size of one dim of a value."""

    value: SSAValue
    axis: int


@dataclass(frozen=True)
class Scalar:
    """The value of an operand of type index, or of element `at` of a rank-1 operand."""

    value: SSAValue
    at: int | None = None


@dataclass(frozen=True)
class Term:
    """`add`, `sub`, `mul`, `floordiv`, `ceildiv` or `maximum` of two sizes."""

    kind: str
    lhs: Expr
    rhs: Expr


Expr = int | Dim | Scalar | Term
"""A size: a number or a symbolic expression."""


class Arithmetic(Protocol):
    """The operations of `Term`: `IndexBuilder` emits them, `Numbers` evaluates them."""

    def add(self, a: Any, b: Any) -> Any: ...
    def sub(self, a: Any, b: Any) -> Any: ...
    def mul(self, a: Any, b: Any) -> Any: ...
    def floordiv(self, a: Any, b: Any) -> Any: ...
    def ceildiv(self, a: Any, b: Any) -> Any: ...
    def maximum(self, a: Any, b: Any) -> Any: ...


class Numbers:
    """Arithmetic on sizes that are ints."""

    def add(self, a: int, b: int) -> int:
        """a + b"""
        return a + b

    def sub(self, a: int, b: int) -> int:
        """a - b"""
        return a - b

    def mul(self, a: int, b: int) -> int:
        """a * b"""
        return a * b

    def floordiv(self, a: int, b: int) -> int:
        """floor(a / b)"""
        return a // b

    def ceildiv(self, a: int, b: int) -> int:
        """ceil(a / b)"""
        return -(-a // b)

    def maximum(self, a: int, b: int) -> int:
        """max(a, b)"""
        return max(a, b)


def term(kind: str, lhs: Expr, rhs: Expr) -> Expr:
    """Returns a term, folded if both sides are numbers or one is the neutral element."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return getattr(Numbers(), kind)(lhs, rhs)
    if kind == "mul" and 1 in (lhs, rhs):
        return rhs if lhs == 1 else lhs
    if kind == "add" and 0 in (lhs, rhs):
        return rhs if lhs == 0 else lhs
    if kind == "floordiv" and rhs == 1:
        return lhs
    return Term(kind, lhs, rhs)


def total(sizes: Iterable[Expr]) -> Expr:
    """Returns the sum."""
    result: Expr = 0
    for size in sizes:
        result = term("add", result, size)
    return result


def product(sizes: Iterable[Expr]) -> Expr:
    """Returns the product."""
    result: Expr = 1
    for size in sizes:
        result = term("mul", result, size)
    return result


def evaluate(expr: Expr, leaf: Callable[[Dim | Scalar], Any], numbers: Arithmetic) -> Any:
    """Evaluates a size; `leaf` gives the values of dims and scalars."""
    if isinstance(expr, int):
        return expr
    if not isinstance(expr, Term):
        return leaf(expr)
    lhs, rhs = evaluate(expr.lhs, leaf, numbers), evaluate(expr.rhs, leaf, numbers)
    return getattr(numbers, expr.kind)(lhs, rhs)


@dataclass(frozen=True)
class Relation:
    """`lhs == rhs` ("eq") or `lhs <= rhs` ("sle"), unless a size in `unless` is 0."""

    lhs: Expr
    predicate: str
    rhs: Expr
    message: str
    unless: tuple[Expr, ...] = ()

    def holds(self, leaf: Callable[[Dim | Scalar], int]) -> bool:
        """Whether the relation holds for these sizes."""
        lhs, rhs, *unless = (
            evaluate(e, leaf, Numbers()) for e in (self.lhs, self.rhs, *self.unless)
        )
        return 0 in unless or (lhs == rhs if self.predicate == "eq" else lhs <= rhs)


@dataclass(frozen=True)
class Window:
    """`0 <= expr < extent` in all iterations of the loops; `loops` has their trip counts."""

    expr: AffineExpr
    loops: dict[int, Expr] = field(hash=False)
    extent: Expr
    message: str
    own: frozenset[int] = frozenset()
    """Loops that the operand's map uses; the access is invariant in all others."""


def constant_value(value: SSAValue) -> int | None:
    """Returns the integer of an `arith.constant`, or None."""
    if (
        isinstance(value, OpResult)
        and isinstance(value.op, arith.ConstantOp)
        and isinstance(value.op.value, IntegerAttr)
    ):
        return value.op.value.value.data
    return None


def folded(size: SSAValue) -> Size:
    """Returns an index value as an int if it is a constant."""
    number = constant_value(size)
    return size if number is None else number


def mixed(static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[Size]:
    """Returns the static sizes with each `?` replaced by the next dynamic value."""
    values = iter(dynamic)
    return [next(values) if size == DYNAMIC_INDEX else size for size in static]


def kept_dims(sizes: Sequence[object], result_shape: Sequence[int]) -> list[int]:
    """
    Returns the dims of a slice that its rank-reduced result keeps, one per result dim.

    Scans from the front and drops static unit dims that do not match the next result dim, as MLIR's
    `computeRankReductionMask` does. A symbolic size never counts as 1.
    """
    kept: list[int] = []
    for position, size in enumerate(sizes):
        remaining = len(sizes) - position
        missing = len(result_shape) - len(kept)
        if missing == 0:
            break
        is_one = isinstance(size, int) and size == 1
        if is_one and remaining > missing and result_shape[len(kept)] != 1:
            continue
        kept.append(position)
    return kept
