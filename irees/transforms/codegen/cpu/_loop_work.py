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
    """How many of some ops compute a vector."""
    return sum(op.name.startswith(("arith.", "math.")) and _is_vector(op) for op in ops)


def _is_vector(op: Operation) -> bool:
    return isinstance(op.results[0].type, VectorType) and not isinstance(op, arith.ConstantOp)
