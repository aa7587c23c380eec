"""
Infers static dims of operands from the indexing maps of an op.

Canonicalization patterns of the iree_linalg_ext ops with indexing maps. IREE:
`StaticizeLinalgExtOp`.
"""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from irees.dialects import iree_linalg_ext as ext


def uncast(value: SSAValue) -> SSAValue:
    """Returns the source of a tensor.cast if all static dims of the result are static in it."""
    owner = value.owner
    if not isinstance(owner, tensor.CastOp) or not isinstance(owner.source.type, TensorType):
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
        values = [uncast(v) if isinstance(v.type, TensorType) else v for v in op.operands]
        loops = [[e.position for e in m.results if isinstance(e, AffineDimExpr)] for m in indexing]
        sizes = {
            loop: size
            for value, places in zip(values, loops, strict=True)
            if isinstance(value.type, TensorType)
            for loop, size in zip(places, _shape(value), strict=True)
            if size != DYNAMIC_INDEX
        }
        for position, (value, places) in enumerate(zip(values, loops, strict=True)):
            if not isinstance(value.type, TensorType):
                continue
            shape = [
                sizes.get(loop, n) if n == DYNAMIC_INDEX else n
                for loop, n in zip(places, _shape(value), strict=True)
            ]
            kind = TensorType(value.type.get_element_type(), shape)
            if kind != value.type:
                values[position] = rewriter.insert(tensor.CastOp(value, kind)).results[0]
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
        results = [
            result if result.type == old.type else rewriter.insert(tensor.CastOp(result, old.type))
            for result, old in zip(new.results, op.results, strict=True)
        ]
        rewriter.replace(op, [], [r if isinstance(r, SSAValue) else r.results[0] for r in results])


PATTERNS: dict[str, tuple[RewritePattern, ...]] = {
    ext.AttentionOp.name: (MakeShapesStatic(),),
    ext.OnlineAttentionOp.name: (MakeShapesStatic(),),
}
