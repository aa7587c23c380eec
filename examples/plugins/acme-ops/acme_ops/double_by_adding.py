"""`acme-double-by-adding`: x * 2 is x + x."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)


class DoubleByAdding(RewritePattern):
    """x * 2.0  =>  x + x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.MulfOp, rewriter: PatternRewriter) -> None:
        factor = op.rhs.owner
        if not isinstance(factor, arith.ConstantOp) or not isinstance(factor.value, FloatAttr):
            return
        if factor.value.value.data == 2.0:
            rewriter.replace_op(op, arith.AddfOp(op.lhs, op.lhs, op.fastmath))


@dataclass(frozen=True)
class DoubleByAddingPass(ModulePass):
    """Replaces multiplications by two."""

    name = "acme-double-by-adding"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(DoubleByAdding()).rewrite_module(op)
