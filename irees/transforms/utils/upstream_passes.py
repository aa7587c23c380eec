"""
xDSL's `canonicalize` and `cse` with counted rewrites, and `lower-affine` without DCE.

The pipeline and `irees opt` run these passes under xDSL's names. The rewrites and their order are
xDSL's.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import getmembers, isclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.traits import HasCanonicalizationPatternsTrait
from xdsl.transforms import lower_affine
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
    CSEDriver,
)
from xdsl.transforms.lower_affine import LowerAffinePass

from irees.rewrites import may_rewrite
from irees.transforms.utils.greedy import rewrite_greedily


def patterns_of_class(cls: type[Operation]) -> tuple[RewritePattern, ...]:
    """Returns the canonicalization patterns of a class of ops."""
    traits = cls.get_traits_of_type(HasCanonicalizationPatternsTrait)
    return tuple(pattern for trait in traits for pattern in trait.get_patterns(cls))


@dataclass(frozen=True)
class CountedCanonicalizePass(CanonicalizePass):
    """Applies all canonicalization patterns."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_greedily(
            self.name, op, lambda each: patterns_of_class(type(each)), fold_with=ctx, sweep=True
        )


class CountedCSEDriver(CSEDriver):
    """op equal to an earlier one  =>  the earlier op; dead op  =>  nothing"""

    _replaced: Operation | None = None

    def _replace_and_delete(self, op: Operation, existing: Operation) -> None:
        what = f"reuse of an equal {op.name}"
        if may_rewrite(CommonSubexpressionElimination.name, op, what):
            self._replaced = op
            super()._replace_and_delete(op, existing)

    def _mark_erasure(self, op: Operation) -> None:
        # Erasing a replaced op is part of its replacement, so it is not counted.
        what = f"erasure of dead {op.name}"
        if op is self._replaced or may_rewrite(CommonSubexpressionElimination.name, op, what):
            super()._mark_erasure(op)


@dataclass(frozen=True)
class CountedCommonSubexpressionElimination(CommonSubexpressionElimination):
    """Replaces ops by earlier, equal ops."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        CountedCSEDriver().simplify(op)


@dataclass(frozen=True)
class KeepingLowerAffinePass(LowerAffinePass):
    """
    Lowers affine to scf, arith and memref.

    Keeps dead ops: the sizes of their operands are not checked yet, and a violated size constraint
    is an error whether or not the result is used.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [
            each()
            for _, each in getmembers(lower_affine, isclass)
            if each.__module__ == lower_affine.__name__ and issubclass(each, RewritePattern)
        ]
        applier = GreedyRewritePatternApplier(patterns, dce_enabled=False)
        PatternRewriteWalker(applier).rewrite_module(op)


OWN: dict[str, type[ModulePass]] = {
    each.name: each
    for each in (
        CountedCanonicalizePass,
        CountedCommonSubexpressionElimination,
        KeepingLowerAffinePass,
    )
}
"""Pass name => the class that replaces xDSL's."""
