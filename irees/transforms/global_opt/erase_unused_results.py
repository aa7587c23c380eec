"""
Drops results that nobody uses from ops with several.

    %m:2 = linalg.generic ... outs(%v, %i) { max, and the index of it }    // only %m#0 is used
  =>
    %m = linalg.generic ... outs(%v) { max }

A result of `linalg.generic` goes when its accumulator feeds nothing but its own yield and
when the other operands still bound every loop. An operand of a sort goes, with its pair
of comparator arguments, when the comparator reads neither: a key that is compared stays
even where only the positions are wanted. Code of a body that no longer leads to a yield
goes first. Equal operands of a generic become one, and one that its body does not read goes
when the loops are bounded without it. The patterns are those of `canonicalize`; an op of
which nothing is used is dead and left to it. IREE:
`RemoveUnusedSortOpResults`; MLIR: `EraseUnusedOperandsAndResults`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.transforms.utils.greedy import rewrite_greedily
from irees.transforms.utils.unused_results import PATTERNS


@dataclass(frozen=True)
class EraseUnusedResultsPass(ModulePass):
    """Unused operands and results of generics, sorts and top-ks go, with what only they needed."""

    name = "irees-erase-unused-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [pattern for of_op in PATTERNS.values() for pattern in of_op]
        # Users first: what they let go of may be all that an op before them was used for.
        rewrite_greedily(self.name, op, patterns, walk_reverse=True)
