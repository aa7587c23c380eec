"""
Which blocks of a region control comes to, and through which others.

What no way from the first block comes to is dominated by everything, as in MLIR: it never runs, and
what it goes on to is no less dominated for that. (xDSL's `DominanceInfo` counts such ways.)
"""

from __future__ import annotations

from xdsl.ir import Block


def reachable(start: Block, avoiding: Block | None = None) -> dict[Block, None]:
    """The blocks that control can come to from one, itself too, in the order found."""
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
    """The blocks that control comes to, and from `entry` only through one, which is one of them."""
    others = reachable(entry, avoiding=by)
    return {block: None for block in reachable(by) if block not in others}


class Dominance:
    """Answers for the blocks of one region, each found once."""

    def __init__(self, entry: Block):
        self.entry = entry
        self._avoiding: dict[Block, dict[Block, None]] = {}

    def dominates(self, a: Block, b: Block) -> bool:
        """Whether control comes to `b` only through `a`, or not at all."""
        if a not in self._avoiding:
            self._avoiding[a] = reachable(self.entry, avoiding=a)
        return b not in self._avoiding[a]
