"""
How much code an op's body becomes.

The time of a C compiler grows with the square of a function's length, and a `math` op becomes
some dozen instructions. Passes that fuse bodies stop at `MAX_WEIGHT`, so that a chain of ten
thousand ops becomes several kernels.
"""

from __future__ import annotations

from xdsl.ir import Operation

MATH_WEIGHT = 16
"""Weight of a `math` op, in ops of `arith`."""

MAX_WEIGHT = 2048
"""
Weight of bodies that share a kernel. An attention layer has 50, random numbers have 600, a sum of
five special functions of PyTorch (digamma, zeta, Bessel) has 1,200.
"""


def weight(op: Operation) -> int:
    """The weight of the bodies of an op."""
    found = 0
    stack = [block.first_op for region in op.regions for block in region.blocks]
    while stack:
        inner = stack.pop()
        while inner is not None:
            found += MATH_WEIGHT if inner.name.startswith("math.") else 1
            for region in inner.regions:
                stack += [block.first_op for block in region.blocks]
            inner = inner.next_op
    return found


class Weights:
    """The weights of ops that are put together one by one, each body weighed once."""

    def __init__(self):
        self._known: dict[Operation, int] = {}

    def of(self, op: Operation) -> int:
        """The weight of an op, or what `put_together` said."""
        if (found := self._known.get(op)) is None:
            found = self._known[op] = weight(op)
        return found

    def too_heavy(self, *ops: Operation) -> bool:
        """Whether the bodies of these ops are too much code for one kernel."""
        return sum(map(self.of, ops)) > MAX_WEIGHT

    def put_together(self, made: Operation, *ops: Operation) -> None:
        """Notes an op that has the bodies of others, which are gone."""
        self._known[made] = sum(self._known.pop(op, 0) for op in ops)
