"""Copies of ops with new operands."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue


def same_op(
    op: Operation, operands: Sequence[SSAValue], result_types: Sequence[Attribute]
) -> Operation:
    """
    Returns a copy of `op` with new operands and result types, not inserted. Properties, attributes
    and location are kept, and regions are cloned.
    """
    new = type(op).create(
        operands=operands,
        result_types=result_types,
        properties=dict(op.properties),
        attributes=dict(op.attributes),
        regions=[region.clone() for region in op.regions],
    )
    new.location = op.location
    return new
