"""Emits sums as `affine.apply`; values become symbols (MLIR: `makeComposedFoldedAffineApply`)."""

from __future__ import annotations

from xdsl.dialects import affine
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from irees.analysis.affine_sums import Sum
from irees.transforms.utils.shapes import IndexBuilder, Size


def build_sum(total: Sum, builder: IndexBuilder) -> Size:
    """Returns the sum as a number, as a single SSA value, or as a new `affine.apply`."""
    if (known := total.constant()) is not None:
        return known
    if len(total.terms) == 1:
        factors, coefficient = total.terms[0]
        if coefficient == 1 and len(factors) == 1 and isinstance(factors[0], SSAValue):
            return factors[0]
    symbols: list[SSAValue] = []
    map_ = AffineMap(0, 0, (total.expression(symbols),))
    map_ = AffineMap(0, len(symbols), map_.results)
    return builder.insert(affine.ApplyOp(symbols, AffineMapAttr(map_))).results[0]
