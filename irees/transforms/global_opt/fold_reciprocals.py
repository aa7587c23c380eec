"""
Replaces a multiplication by a reciprocal by a division if the reciprocal has no other use.

    %r = arith.divf %one, %d : f32
    %y = arith.mulf %x, %r : f32
  =>
    %y = arith.divf %x, %d : f32

Frameworks write SiLU, x / (1 + exp(-x)), as x times a sigmoid. Both forms divide once per element,
so the pass saves a multiplication and a rounding. It keeps a reciprocal with other users, and one
whose divisor is invariant in some loop of the op, such as the sum of a row: there one reciprocal
serves many elements. The pass runs after elementwise fusion, which brings both ops into one body.
Results are rounded once instead of twice, so the pass does not run with `fp=strict`. LLVM:
InstCombine, `fmul (fdiv 1, y), x` under `arcp`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees_target import is_strict, target_of
from irees.rewrites import may_rewrite
from irees.transforms.utils.structured import iterators, maps

NAME = "irees-fold-reciprocals"


def divisor_of(value: SSAValue) -> SSAValue | None:
    """Returns %d of a value 1 / %d that has a single use, or None."""
    division = value.owner
    if not isinstance(division, arith.DivfOp) or not value.has_one_use():
        return None
    one = division.lhs.owner
    if not isinstance(one, arith.ConstantOp) or not isinstance(one.value, FloatAttr):
        return None
    return division.rhs if one.value.value.data == 1.0 else None


def changes_everywhere(op: linalg.GenericOp, value: SSAValue) -> bool:
    """Whether a value of the body depends on an operand that every loop of the op indexes."""
    indexing, loops = maps(op), set(range(len(iterators(op))))
    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, BlockArgument):
            results = indexing[current.index].results if current.block is op.body.block else ()
            if {e.position for e in results if isinstance(e, AffineDimExpr)} == loops:
                return True
            continue
        todo += current.owner.operands
    return False


def fold(op: linalg.GenericOp, product: arith.MulfOp) -> None:
    """x * (1 / d)  =>  x / d"""
    for factor, reciprocal in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        divisor = divisor_of(reciprocal)
        if divisor is None or not changes_everywhere(op, divisor):
            continue
        if not may_rewrite(NAME, product, "a product by a reciprocal"):
            return
        division = reciprocal.owner
        assert isinstance(division, arith.DivfOp)
        Rewriter.replace_op(product, arith.DivfOp(factor, divisor, division.fastmath))
        Rewriter.erase_op(division)
        return


@dataclass(frozen=True)
class FoldReciprocalsPass(ModulePass):
    """Replaces multiplications by reciprocals with a single use by divisions."""

    name = "irees-fold-reciprocals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None or is_strict(op):
            return
        for generic in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            for inner in list(generic.body.block.ops):
                if isinstance(inner, arith.MulfOp):
                    fold(generic, inner)
