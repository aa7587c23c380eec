"""
Infers static dims of operands from the indexing maps of an op.

Canonicalization patterns of the iree_linalg_ext ops with indexing maps. IREE:
`StaticizeLinalgExtOp`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from irees.dialects import iree_linalg_ext as ext


def uncast(value: SSAValue) -> SSAValue:
    """Returns the source of a tensor.cast if all static dims of the result are static in it."""
    owner = value.owner
    if not isinstance(owner, tensor.CastOp):
        return value
    if not isinstance(owner.source.type, TensorType) or not isinstance(value.type, TensorType):
        return value
    here, before = _shape(value), _shape(owner.source)
    # Keep a cast that makes one dim static and another dynamic.
    return owner.source if all(n in (DYNAMIC_INDEX, m) for n, m in zip(here, before)) else value


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType)
    return value.type.get_shape()


class MakeShapesStatic(RewritePattern):
    """attention(x : ?x8, y : 4x8)  =>  attention(cast x : 4x8, y), if one loop indexes both"""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: ext.AttentionOp | ext.OnlineAttentionOp, rewriter: PatternRewriter, /
    ) -> None:
        indexing = [m.data for m in op.indexing_maps.data]
        if not all(isinstance(o.type, TensorType) for o in op.outputs):
            return
        if not all(isinstance(e, AffineDimExpr) for m in indexing for e in m.results):
            return
        loops = [[e.position for e in m.results if isinstance(e, AffineDimExpr)] for m in indexing]
        values = [uncast(v) for v in op.operands]
        types = zip(values, static_types(values, loops), strict=True)
        values = [_cast(value, kind, rewriter) for value, kind in types]
        if values == list(op.operands):
            return
        first = len(values) - len(op.outputs)
        new = type(op).create(
            operands=values,
            result_types=[value.type for value in values[first:]],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=[rewriter.move_region_contents_to_new_regions(op.body)],
        )
        rewriter.insert(new)
        results = zip(new.results, op.results, strict=True)
        rewriter.replace(op, [], [_cast(result, old.type, rewriter) for result, old in results])


def static_types(values: Sequence[SSAValue], loops: Sequence[Sequence[int]]) -> list[Attribute]:
    """Returns the types of operands, given the loop of each dim: static if any dim of it is."""
    sizes = {
        loop: size
        for value, places in zip(values, loops, strict=True)
        if isinstance(value.type, TensorType)
        for loop, size in zip(places, _shape(value), strict=True)
        if size != DYNAMIC_INDEX
    }
    types: list[Attribute] = []
    for value, places in zip(values, loops, strict=True):
        kind = value.type
        if isinstance(kind, TensorType):
            shape = [
                sizes.get(loop, DYNAMIC_INDEX) if size == DYNAMIC_INDEX else size
                for loop, size in zip(places, kind.get_shape(), strict=True)
            ]
            kind = TensorType(kind.get_element_type(), shape)
        types.append(kind)
    return types


def _cast(value: SSAValue, type: Attribute, rewriter: PatternRewriter) -> SSAValue:
    """Returns the value as another type."""
    if value.type == type:
        return value
    return rewriter.insert(tensor.CastOp(value, type)).results[0]


PATTERNS: dict[str, tuple[RewritePattern, ...]] = {
    ext.AttentionOp.name: (MakeShapesStatic(),),
    ext.OnlineAttentionOp.name: (MakeShapesStatic(),),
}
