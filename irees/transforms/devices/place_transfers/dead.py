"""
Erases dead ops and block arguments, which would cause useless transfers.

    ^bb1(%i: index, %x: tensor<4xf32>):           ^bb1(%i: index):
      %y = linalg.add ins(%x, ...)          =>      cf.br ^bb1(%j : index)
      cf.br ^bb1(%j, %y : ...)

Ops are live if a result, a branch or state depends on them. A block argument that only feeds itself
is erased, with the operands passed to it. Imports stay: only they have the type of a function
argument.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from xdsl.dialects import cf, func
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from irees.analysis.control_flow import branch_edges
from irees.dialects.hal import TensorImportOp
from irees.transforms.devices.utils.places import values_read

_BRANCHES = (cf.BranchOp, cf.ConditionalBranchOp)


def live_in(function: func.FuncOp) -> tuple[set[Operation], set[SSAValue]]:
    """Returns the live ops and the live values of a function."""
    passed: dict[SSAValue, list[SSAValue]] = defaultdict(list)
    ops, values = set[Operation](), set[SSAValue]()
    todo: list[SSAValue] = []
    for op in [op for block in function.body.blocks for op in block.ops]:
        if not would_be_trivially_dead(op) or isinstance(op, TensorImportOp):
            ops.add(op)
            edges = list(branch_edges(op)) if isinstance(op, _BRANCHES) else []
            todo += values_read(op)[: -len(edges) or None]
            for value, argument in edges:
                passed[argument].append(value)
    while todo:
        if (value := todo.pop()) in values:
            continue
        values.add(value)
        if isinstance(value.owner, Block):
            todo += passed[value]
        elif value.owner not in ops:
            ops.add(value.owner)
            todo += values_read(value.owner)
    return ops, values


def _branch(op: cf.BranchOp | cf.ConditionalBranchOp, live: set[SSAValue]) -> None:
    """Replaces a branch that passes dead arguments by one that passes only the live ones."""
    if all(argument in live for block in op.successors for argument in block.args):
        return

    def kept(block: Block, given: Sequence[SSAValue]) -> list[SSAValue]:
        return [v for v, a in zip(given, block.args, strict=True) if a in live]

    if isinstance(op, cf.BranchOp):
        new = cf.BranchOp(op.successor, *kept(op.successor, op.arguments))
    else:
        new = cf.ConditionalBranchOp(
            op.cond,
            op.then_block,
            kept(op.then_block, op.then_arguments),
            op.else_block,
            kept(op.else_block, op.else_arguments),
        )
    Rewriter.replace_op(op, new)


def drop_dead(function: func.FuncOp) -> None:
    """Erases the dead top-level ops and dead block arguments of a function."""
    ops, values = live_in(function)
    blocks = list(function.body.blocks)
    for end in [block.last_op for block in blocks]:
        if isinstance(end, _BRANCHES):
            _branch(end, values)
    dead = [op for block in blocks for op in block.ops if op not in ops and op is not block.last_op]
    for op in dead:
        op.detach()
        op.drop_all_references()
    for block in blocks[1:]:
        for argument in [a for a in block.args if a not in values]:
            block.erase_arg(argument)
