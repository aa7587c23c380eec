"""Which values branches pass to which arguments of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation, SSAValue


def passed(op: Operation) -> Iterator[tuple[Block, Sequence[SSAValue]]]:
    """Each successor of a terminator, with the values that its arguments become."""
    at = len(op.operands) - sum(len(block.args) for block in op.successors)
    for block in op.successors:
        yield block, op.operands[at : at + len(block.args)]
        at += len(block.args)


def branch_edges(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """What a branch passes, and the arguments that it becomes."""
    for block, values in passed(op):
        yield from zip(values, block.args, strict=True)
