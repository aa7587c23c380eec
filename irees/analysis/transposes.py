"""
Which elementwise ops read along one loop and write along another.

    out[i, j] = f(x[j, i], y[i, j])

No loop of such an op is contiguous for all of its operands: x is along i, out along j. Both have to
be cut into blocks, so that every line of either is used whole while it is in the cache.
"""

from __future__ import annotations

from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir.affine import AffineDimExpr, AffineMap


def crossing_loops(op: linalg.GenericOp) -> tuple[int, int] | None:
    """
    The loops `across`, along which inputs are contiguous, and `along`, along which outputs are.

    None where an op reduces, or where every input that moves along the outputs' last dim is
    contiguous there, or where inputs are contiguous along different other loops.
    """
    if any(kind.data is not IteratorType.PARALLEL for kind in op.iterator_types):
        return None
    indexing = [m.data for m in op.indexing_maps]
    inputs, outputs = indexing[: len(op.inputs)], indexing[len(op.inputs) :]
    lasts = {m.results[-1].position for m in outputs if _ends_in_loop(m)}
    if len(lasts) != 1 or not all(_ends_in_loop(m) for m in outputs):
        return None
    (along,) = lasts
    across: set[int] = set()
    for position, mapping in enumerate(inputs):
        if not op.body.block.args[position].uses or along not in mapping.used_dims():
            continue
        last = mapping.results[-1]
        if isinstance(last, AffineDimExpr) and last.position != along:
            across.add(last.position)
        elif not isinstance(last, AffineDimExpr):
            return None
    return (across.pop(), along) if len(across) == 1 else None


def _ends_in_loop(mapping: AffineMap) -> bool:
    return bool(mapping.results) and isinstance(mapping.results[-1], AffineDimExpr)
