"""
Reachability and dominance of blocks in a region.

As in MLIR, unreachable blocks are dominated by every block, and edges from unreachable blocks do
not affect the dominance of their successors. (xDSL's `DominanceInfo` counts such edges.)
"""

from __future__ import annotations

from xdsl.ir import Block


def reachable(start: Block, avoiding: Block | None = None) -> dict[Block, None]:
    """Returns the blocks reachable from `start`, itself included, in depth-first order."""
    found: dict[Block, None] = {}
    todo = [start] if start is not avoiding else []
    while todo:
        if (block := todo.pop()) in found:
            continue
        found[block] = None
        last = block.last_op
        successors = list(last.successors) if last is not None else []
        todo += [each for each in reversed(successors) if each is not avoiding]
    return found


def dominated(entry: Block, by: Block) -> dict[Block, None]:
    """Returns the blocks reachable from `by` that it dominates, itself included."""
    others = reachable(entry, avoiding=by)
    return {block: None for block in reachable(by) if block not in others}


class Dominance:
    """Dominance of the blocks of one region, with cached results."""

    def __init__(self, entry: Block):
        self.entry = entry
        self._avoiding: dict[Block, dict[Block, None]] = {}

    def dominates(self, a: Block, b: Block) -> bool:
        """Whether every path from the entry to `b` passes through `a`."""
        if a not in self._avoiding:
            self._avoiding[a] = reachable(self.entry, avoiding=a)
        return b not in self._avoiding[a]
