"""
Estimates the code size of an op's body.

C compile time grows quadratically with the length of a function, and a `math` op expands to about a
dozen instructions. Passes that fuse bodies stop at `COMMON.most_weight`, so that a chain of ten
thousand ops is split into several kernels.
"""

from __future__ import annotations

from xdsl.ir import Operation

from irees.targets.common import COMMON


def weight(op: Operation) -> int:
    """Returns the weight of the bodies of an op."""
    found = 0
    stack = [block.first_op for region in op.regions for block in region.blocks]
    while stack:
        inner = stack.pop()
        while inner is not None:
            found += COMMON.math_weight if inner.name.startswith("math.") else 1
            for region in inner.regions:
                stack += [block.first_op for block in region.blocks]
            inner = inner.next_op
    return found


class Weights:
    """Cached weights of ops that are fused step by step."""

    def __init__(self):
        self._known: dict[Operation, int] = {}

    def of(self, op: Operation) -> int:
        """Returns the weight of an op."""
        if (found := self._known.get(op)) is None:
            found = self._known[op] = weight(op)
        return found

    def too_heavy(self, *ops: Operation) -> bool:
        """Whether the total weight of ops exceeds `COMMON.most_weight`."""
        return sum(map(self.of, ops)) > COMMON.most_weight

    def put_together(self, made: Operation, *ops: Operation) -> None:
        """Records the weight of an op fused from `ops`, which are erased."""
        self._known[made] = sum(self._known.pop(op, 0) for op in ops)
