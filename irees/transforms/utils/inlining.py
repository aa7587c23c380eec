"""Inlines blocks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter


def splice(block: Block, point: InsertPoint, values: Sequence[SSAValue] = ()) -> list[SSAValue]:
    """
    { ^(%a): .. yield %x }  =>  ..

    Moves the ops of a block to `point` and replaces its arguments by `values`. Erases the
    terminator and returns its operands.
    """
    end = block.last_op
    assert end is not None
    mapping = dict(zip(block.args, values, strict=True))
    results = [mapping.get(value, value) for value in end.operands]
    Rewriter.erase_op(end)
    Rewriter.inline_block(block, point, values)
    return results
