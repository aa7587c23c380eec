"""
Drops unused results from ops with several results, and generics without iterations.

    %m:2 = linalg.generic ... outs(%v, %i) { max, and the index of it }    // only %m#0 is used
  =>
    %m = linalg.generic ... outs(%v) { max }

The pass drops a result of `linalg.generic` if its accumulator feeds only its own yield and the
other operands still bound every loop. It drops an operand of a sort, with its pair of comparator
arguments, if the comparator reads neither argument: a compared key stays even if only the positions
are used. First it erases dead code in bodies. It merges equal operands of a generic, and drops
an operand that the body does not read if the loops are bounded without it. A generic with a loop
of static size 0 is replaced by its inits, since its kernel would compute no element. The patterns
are those of `canonicalize`, which also erases ops without any used result. IREE:
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
    """Drops unused operands and results of generics, sorts and top-ks."""

    name = "irees-erase-unused-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [pattern for of_op in PATTERNS.values() for pattern in of_op]
        # Users first: an operand that they drop may be the last use of an earlier result.
        rewrite_greedily(self.name, op, patterns, walk_reverse=True)
