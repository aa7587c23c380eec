"""Values that branches pass to block arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation, SSAValue


def passed(op: Operation) -> Iterator[tuple[Block, Sequence[SSAValue]]]:
    """Yields each successor of a terminator with the operands passed to its arguments."""
    at = len(op.operands) - sum(len(block.args) for block in op.successors)
    for block in op.successors:
        yield block, op.operands[at : at + len(block.args)]
        at += len(block.args)


def branch_edges(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Yields pairs of an operand of a branch and the block argument that it is passed to."""
    for block, values in passed(op):
        yield from zip(values, block.args, strict=True)
