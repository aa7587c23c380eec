"""
Replaces hints by their operands, and lowers other `util` ops to arithmetic.

    %y = util.optimization_barrier %x : tensor<4xf32>       =>   %x
    %n = util.assume.int %m<umin = 1> : index               =>   %m
    %c = util.unfoldable_constant 42 : i32                  =>   arith.constant 42 : i32
    %a = util.align %n, %m : index                          =>   (%n + (%m - 1)) & -%m

Runs late: analyses have used the hints on sizes, and barriers have hidden their operands from all
folding passes. IREE: `DropCompilerHints`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects import util


def lower(op: Operation) -> None:
    """Lowers an op if it is one of these four util ops."""
    match op:
        case util.OptimizationBarrierOp() | util.AssumeIntOp():
            Rewriter.replace_op(op, [], op.operands)
        case util.UnfoldableConstantOp():
            Rewriter.replace_op(op, arith.ConstantOp(op.value, op.result.type))
        case util.AlignOp():
            one, zero = (arith.ConstantOp(IntegerAttr(n, op.result.type)) for n in (1, 0))
            rest = arith.SubiOp(op.alignment, one)
            above = arith.AddiOp(op.value, rest)
            mask = arith.SubiOp(zero, op.alignment)
            Rewriter.replace_op(op, [one, zero, rest, above, mask, arith.AndIOp(above, mask)])
        case _:
            pass


@dataclass(frozen=True)
class LowerUtilOpsPass(ModulePass):
    """Drops hints; lowers alignment and hidden constants to arithmetic."""

    name = "irees-lower-util-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            lower(inner)
