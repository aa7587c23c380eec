"""
Matches elementwise ops with a transposed input.

    out[i, j] = f(x[j, i], y[i, j])

No loop of such an op is contiguous for all operands: x is contiguous along i, out along j. Both
loops must be tiled, so that each cache line is used completely before its eviction.
"""

from __future__ import annotations

from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir.affine import AffineDimExpr, AffineMap


def crossing_loops(op: linalg.GenericOp) -> tuple[int, int] | None:
    """
    Returns the loops `across`, contiguous for transposed inputs, and `along`, for outputs.

    None if the op has a reduction, if no input is transposed, or if transposed inputs are
    contiguous along different loops.
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
