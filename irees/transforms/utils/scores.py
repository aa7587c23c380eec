"""Computes one attention score, as scalar IR."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.tensors import ScalarBuilder


def score_of(
    op: ext.AttentionOp | ext.OnlineAttentionOp,
    product: SSAValue,
    scale: SSAValue,
    wide: Attribute,
    s: ScalarBuilder,
) -> SSAValue:
    """region(product * scale) in `wide`, with the region in the units of `RegionUnits`"""
    units, scale = ext.RegionUnits.of(op), s.cast(scale, wide)
    score = s.op(arith.MulfOp, product, scale) if units.scaled else product
    if units.factor != 1:
        score = s.op(arith.MulfOp, score, s.number(units.factor, wide))
    score = s.cast(score, op.body.block.args[0].type)
    score = s.cast(inline_region(op.body.block, [score], s)[0], wide)
    if units.factor != 1:
        score = s.op(arith.MulfOp, score, s.number(1 / units.factor, wide))
    return score if units.scaled else s.op(arith.MulfOp, score, scale)
