"""
Classifies loops as bandwidth-bound or compute-bound by their vector operations. Part of
`irees-use-nontemporal-stores`, `irees-prefetch-streams` and `irees-interleave-chains`.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation


def vector_work(ops: Iterable[Operation]) -> int:
    """Returns the number of ops that compute a vector; an FMA counts as two."""
    return sum(
        2 if op.name == "math.fma" else 1
        for op in ops
        if op.name.startswith(("arith.", "math.", "irees.")) and _is_vector(op)
    )


def _is_vector(op: Operation) -> bool:
    if isinstance(op, arith.ConstantOp):
        return False
    return any(isinstance(result.type, VectorType) for result in op.results)
