"""The same op on other operands."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue


def same_op(
    op: Operation, operands: Sequence[SSAValue], result_types: Sequence[Attribute]
) -> Operation:
    """
    An op of the same kind, with other operands and result types: its properties, attributes and
    location are those of `op`, its regions copies. It is not inserted.
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
