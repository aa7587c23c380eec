"""Decides which operand of a contraction is A, whose rows are broadcast, and which is B."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from irees.analysis.affine_steps import linear_form
from irees.analysis.contraction_tiling import Unsuitable
from irees.analysis.contractions import (
    MultiplyAdd,
    Roles,
    packed_columns,
    packed_depth,
    roles,
    vector_side,
)
from irees.analysis.dot_products import sign


def sides_of(op: linalg.GenericOp, parts: MultiplyAdd, group: int) -> tuple[Roles, int, int]:
    """
    Returns the loops by role, and which operand is A and which is B: that with vectors of columns.

    Raises Unsuitable.
    """
    b, found = vector_side(op, parts), roles(op, parts)
    indexing = [m.data for m in op.indexing_maps]
    if b is None:
        raise Unsuitable("the output is not contiguous along M or N")
    a = parts.lhs
    if b == parts.lhs:
        a, found = parts.rhs, replace(found, m=found.n, n=found.m)
    if not found.k:
        raise Unsuitable("no reduction")
    if packed_depth(indexing[b]) not in (None, group):
        raise Unsuitable("packed for dot products")
    in_panels = packed_columns(indexing[b]) is not None
    for position in (a, b, len(op.operands) - 1):
        if not isinstance(op.operands[position].type, MemRefType):
            raise Unsuitable("an operand is a scalar")
        if position == b and in_panels:
            continue
        if any(linear_form(e) is None for e in indexing[position].results):
            raise Unsuitable("an operand is not indexed linearly")
    return found, a, b


def is_unsigned(casts: tuple[Operation, ...]) -> bool:
    """Whether casts zero-extend. Raises Unsuitable if only some of them do."""
    if casts and sign(casts) is None:
        raise Unsuitable("an operand is widened by casts of different kinds")
    return sign(casts) == "extui"
