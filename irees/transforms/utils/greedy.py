"""
Greedy pattern driver: xDSL's `PatternRewriteWalker`, with counted and bounded rewrites.

Patterns match and rewrite in one step. So once `irees.rewrites` reaches its limit, no pattern is
tried on the module; the next rewrite is found on a clone, for the remark. MLIR:
`applyPatternsGreedily` with debug counters, which skip actions, and `maxIterations`, which bounds
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.folder import Folder
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.traits import ConstantLike, HasFolder
from xdsl.transforms.dead_code_elimination import is_trivially_dead, region_dce

from irees.rewrites import Fuel, count_rewrite, limit_reached, refused_is_told, tell_refused

PatternsOf = Callable[[Operation], Sequence[RewritePattern]]


@dataclass
class CountedRewrites(RewritePattern):
    """op  =>  its fold, or the result of the first matching pattern; dead op  =>  nothing"""

    pass_name: str
    module: ModuleOp
    patterns_of: PatternsOf
    folder: Folder | None
    fuel: Fuel
    _copies: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if self.fuel.is_spent:
            return
        if limit_reached():
            self._look_ahead(op, lambda twin: self._apply(twin, PatternRewriter(twin)))
            return
        what = self._apply(op, rewriter)
        if what is not None:
            self.fuel.burn(what)
            count_rewrite(self.pass_name, op, what)

    def sweep(self, region: Region, listener: PatternRewriterListener) -> bool:
        """region  =>  region without dead ops and blocks; counts as one rewrite"""
        if limit_reached():
            self._look_ahead(self.module, _dead_code_of)
            return False
        if not region_dce(region, listener):
            return False
        count_rewrite(self.pass_name, self.module, "dead code elimination")
        return True

    def _apply(self, op: Operation, rewriter: PatternRewriter) -> str | None:
        """Rewrites an op; returns a description of the rewrite, or None if none applies."""
        if is_trivially_dead(op):
            rewriter.erase(op)
            return f"erasure of dead {op.name}"
        if self.folder is not None and _can_fold(op):
            folded = self.folder.try_fold(op)
            if folded is not None:
                rewriter.replace(op, new_ops=folded[1], new_results=folded[0])
                return f"fold of {op.name}"
        for pattern in self.patterns_of(op):
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                return f"{type(pattern).__name__} of {op.name}"
        return None

    def _look_ahead(self, op: Operation, act: Callable[[Operation], str | None]) -> None:
        """Reports the rewrite that `act` would apply to an op, unless one was reported before."""
        if refused_is_told():
            return
        if not self._copies:
            # The module no longer changes, so the clone stays in sync.
            pairs = zip(self.module.walk(), self.module.clone().walk(), strict=True)
            self._copies.update(pairs)
        what = act(self._copies[op])
        if what is not None:
            tell_refused(self.pass_name, op, what)


def _dead_code_of(module: Operation) -> str | None:
    return "dead code elimination" if region_dce(module.regions[0]) else None


def _can_fold(op: Operation) -> bool:
    # A constant folds to itself, endlessly.
    return op.has_trait(HasFolder, value_if_unregistered=False) and not op.has_trait(
        ConstantLike, value_if_unregistered=True
    )


def rewrite_greedily(
    pass_name: str,
    module: ModuleOp,
    patterns: Sequence[RewritePattern] | PatternsOf,
    *,
    fold_with: Context | None = None,
    walk_reverse: bool = False,
    sweep: bool = False,
) -> None:
    """
    Applies patterns to a fixpoint; `patterns` is a list for all ops, or a function of the op.

    With `fold_with`, the context that creates constants, ops are folded, too. `sweep` erases dead
    code after each walk, including cycles and unreachable blocks.
    """
    rewrites = CountedRewrites(
        pass_name,
        module,
        patterns if callable(patterns) else lambda op: patterns,
        Folder(fold_with) if fold_with is not None else None,
        Fuel.of(pass_name, module),
    )
    PatternRewriteWalker(
        rewrites, walk_reverse=walk_reverse, post_walk_func=rewrites.sweep if sweep else None
    ).rewrite_module(module)
