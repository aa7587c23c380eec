"""
Lowers scf ops that span devices to blocks and branches.

Loops and branches on a single device are kept, and that device runs them. A loop that contains a
transfer, or ops on different devices, becomes control flow of the schedule.

    %r = scf.for %i = %lo to %hi step %s iter_args(%x = %a) -> (tensor<4xf32>) { ... yield %y }
  =>
      cf.br ^test(%lo, %a)
    ^test(%i: index, %x: tensor<4xf32>):
      cf.cond_br (%i < %hi), ^body, ^end
    ^body:  ... cf.br ^test(%i + %s, %y)
    ^end:   // %r is %x

Runs before transfers are placed, since values may have to be transferred before a branch passes
them. MLIR: `convert-scf-to-cf`, for all control flow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import cf, func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import BlockInsertPoint, Rewriter
from xdsl.transforms.convert_scf_to_cf import ForLowering, IfLowering

from irees.analysis.affinity import devices_of, explicit_affinity
from irees.dialects.flow import TensorTransferOp

_LOWERINGS = {
    scf.ForOp: ForLowering,
    scf.IfOp: IfLowering,
}


def spans(op: Operation) -> bool:
    """Whether an op contains a transfer or ops on several devices."""
    devices: set[str] = set()
    for inner in op.walk():
        if isinstance(inner, TensorTransferOp):
            return True
        if inner is not op and (found := explicit_affinity(inner)) is not None:
            devices |= devices_of(found)
    return len(devices) > 1


def _lower_while(op: scf.WhileOp) -> None:
    """scf.while  =>  br ^before ; ^before: cond_br ^after, ^end ; ^after: br ^before"""
    here = op.parent_block()
    assert here is not None
    rest = here.split_before(op)
    before, after = op.before_region.block, op.after_region.block
    condition, end = before.last_op, after.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert isinstance(end, scf.YieldOp)
    values = list(condition.operands)[1:]
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    for argument, value in zip(list(after.args), values, strict=True):
        argument.replace_all_uses_with(value)
        after.erase_arg(argument)
    Rewriter.replace_op(
        condition, cf.ConditionalBranchOp(condition.operands[0], after, (), rest, ())
    )
    Rewriter.replace_op(end, cf.BranchOp(before, *end.operands))
    Rewriter.inline_region(op.before_region, BlockInsertPoint.before(rest))
    Rewriter.inline_region(op.after_region, BlockInsertPoint.before(rest))
    here.add_op(cf.BranchOp(before, *op.arguments))
    Rewriter.erase_op(op)


def _spanning(function: func.FuncOp) -> Iterator[Operation]:
    """Yields the outermost scf ops of a function that span devices."""
    for block in function.body.blocks:
        for op in block.ops:
            if (isinstance(op, scf.WhileOp) or type(op) in _LOWERINGS) and spans(op):
                yield op


@dataclass(frozen=True)
class LowerSpanningScfPass(ModulePass):
    """Lowers structured control flow that spans devices to branches."""

    name = "irees-lower-spanning-scf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            while (found := next(_spanning(function), None)) is not None:
                if isinstance(found, scf.WhileOp):
                    _lower_while(found)
                else:
                    lowering = _LOWERINGS[type(found)]()
                    lowering.match_and_rewrite(found, PatternRewriter(found))
