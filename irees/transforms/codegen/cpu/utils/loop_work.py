"""
How much a loop computes: whether memory holds it up. Part of `irees-use-nontemporal-stores`,
`irees-prefetch-streams` and `irees-interleave-chains`, which treat the two kinds differently.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

MOST_WORK = 16
"""Vector operations for each store of a loop that memory holds up."""


def vector_work(ops: Iterable[Operation]) -> int:
    """How many of some ops compute a vector; a multiply-add is two, as it is of `arith`."""
    return sum(
        2 if op.name == "math.fma" else 1
        for op in ops
        if op.name.startswith(("arith.", "math.", "irees.")) and _is_vector(op)
    )


def _is_vector(op: Operation) -> bool:
    if isinstance(op, arith.ConstantOp):
        return False
    return any(isinstance(result.type, VectorType) for result in op.results)
