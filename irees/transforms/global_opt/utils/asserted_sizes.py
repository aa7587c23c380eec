"""What asserts on the host say about sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from xdsl.dialects import arith, cf
from xdsl.ir import Operation, SSAValue

from irees.dialects.sizes import Size, constant_value, folded
from irees.transforms.utils.shapes import IndexBuilder, same_size

AT_MOST, AT_LEAST = ("eq", "sle", "slt"), ("eq", "sge", "sgt")
"""Predicates of `a <= b` and `a >= b` for signed numbers, or of something stronger."""


def is_at_most(size: Size, extent: Size, condition: SSAValue) -> bool:
    """Whether a condition implies size <= extent."""
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        return any(is_at_most(size, extent, part) for part in op.operands)
    if not isinstance(op, arith.CmpiOp):
        return False
    sides = [folded(op.lhs), folded(op.rhs)]
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    orders = [sides] * (predicate in AT_MOST) + [sides[::-1]] * (predicate in AT_LEAST)
    return any(same_size(a, size) and same_size(b, extent) for a, b in orders)


BELOW = {"sgt": 0, "ugt": 0, "sge": 1, "uge": 1}
"""Predicates of `size > c` => the least c for which the size is positive."""

ABOVE = {"slt": 0, "ult": 0, "sle": 1, "ule": 1}
"""The same for the predicates of `c < size`."""


def is_positive(condition: SSAValue, size: Size, loops: Sequence[Size]) -> bool:
    """Whether a condition implies that a size is positive, or that one of `loops` is empty."""
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        return any(is_positive(part, size, loops) for part in op.operands)
    if isinstance(op, arith.OrIOp):
        return all(is_positive(part, size, loops) for part in op.operands)
    if not isinstance(op, arith.CmpiOp):
        return False
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    if predicate == "eq" and constant_value(op.rhs) == 0:
        return any(same_size(op.lhs, loop) for loop in loops)
    for value, other, least in ((op.lhs, op.rhs, BELOW), (op.rhs, op.lhs, ABOVE)):
        bound = constant_value(other)
        if bound is not None and bound >= least.get(predicate, inf) and same_size(value, size):
            return True
    return False


def require_elements(size: SSAValue, loops: Sequence[SSAValue], here: IndexBuilder) -> cf.AssertOp:
    """Asserts that a size is positive, or that one of `loops` is empty."""
    zero = here.value(0)
    fine = here.insert(arith.CmpiOp(size, zero, "sgt")).results[0]
    for loop in loops:
        empty = here.insert(arith.CmpiOp(loop, zero, "eq")).results[0]
        fine = here.insert(arith.OrIOp(fine, empty)).results[0]
    op = cf.AssertOp(fine, "an index is out of bounds for a dim of size 0")
    here.insert(op)
    return op


def conditions_before(op: Operation, asserts: Sequence[cf.AssertOp]) -> list[SSAValue]:
    """Returns the conditions of asserts that have run when an op runs."""
    return [a.arg for a in asserts if a.parent is not None and a.parent.is_ancestor(op)]
