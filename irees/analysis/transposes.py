"""
Matches elementwise ops with a transposed input.

    out[i, j] = f(x[j, i], y[i, j])

No loop of such an op is contiguous for all operands: x is contiguous along i, out along j. Both
loops must be tiled, so that each cache line is used completely before its eviction.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    lasts = _last_loops(outputs)
    if lasts is None or len(lasts) != 1:
        return None
    (along,) = lasts
    read = [m for m, argument in zip(inputs, op.body.block.args, strict=False) if argument.uses]
    lasts = _last_loops([m for m in read if along in m.used_dims()])
    across = None if lasts is None else lasts - {along}
    return (*across, along) if across is not None and len(across) == 1 else None


def _last_loops(maps: Iterable[AffineMap]) -> set[int] | None:
    """Returns the loops of the last dims of operands, None if one is not a loop."""
    lasts = [m.results[-1] if m.results else None for m in maps]
    loops = {e.position for e in lasts if isinstance(e, AffineDimExpr)}
    return loops if all(isinstance(e, AffineDimExpr) for e in lasts) else None
