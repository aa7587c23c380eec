"""
Decomposes attention into two contractions and a softmax.

    %r = iree_linalg_ext.attention {indexing_maps = [(b, m, n, k1, k2) -> (b, m, k1), ...]}
        ins(%q, %k, %v, %scale, %mask) outs(%o) { ^bb0(%score): yield f(%score) }
  =>
    %s = linalg.generic {sum of q * k over k1} : tensor<b x m x k2>
    %t = linalg.generic {f(s * scale) + mask} ins(%s, %scale, %mask)
    %p = exp(t - max over k2) / sum over k2, as irees-decompose-softmax does, and its `reciprocal`
    %r = linalg.generic {sum of p * v over k2} outs(0 : tensor<b x m x n>)

The loops of the op determine the role of each dim: query and key share K1, key and value share K2,
and the output has neither; the other loops of query and key index a row of scores. Scores,
exponentials and sums are f32, or f64 if an operand is f64. Each score is rounded to the type of
the region's argument, and each weight to the type of the values if that has 16 bits. An integer
mask is boolean: 0 makes the score -infinity. With `zero_masked_rows`, the maximum of a row of
-infinity is replaced by 0 and its sum by 1.

`online_attention` starts from a running maximum and sum, and does not divide:

    M = max(m, max(t)); s' = s * exp(m - M) + sum(exp(t - M)); o' = o * exp(m - M) + exp(t - M) . v

The pass skips memrefs, and dims that only query, key or value have. It also skips an attention
whose scores take more than `largest` bytes (0: no limit) if a workgroup can compute it in tiles
(`irees-gpu-lower-attention`). IREE: `AttentionOp::decomposeOperation`, which uses exp2, so the
maximum of its online attention is scaled by log2(e); here it is the maximum of the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from irees.analysis.attention import roles_of
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import is_strict, target_of
from irees.errors import UnsupportedError
from irees.remarks import remark
from irees.targets.nvidia import NVIDIA
from irees.transforms.utils.attention import Scores, contract, dims_of, scores_of
from irees.transforms.utils.shapes import dim
from irees.transforms.utils.softmax import Form, rescaling, softmax
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import TensorBuilder


def is_kept(op: ext.AttentionOp, scores: Scores, largest: int) -> bool:
    """Whether scores take more than `largest` bytes, and the attention can be tiled instead."""
    roles = roles_of(op)
    shape = [] if roles is None else [roles.sizes[d] for d in scores.loops]
    if roles is None or min(shape) < 0 or 4 * prod(shape) <= largest:
        return False
    reason, most = None, NVIDIA.tiled_features
    if any(isinstance(inner, ext.IndexOp) for inner in op.body.walk()):
        reason = "its region reads a loop index"
    elif len(roles.k2) > 1 or min(roles.sizes) < 0:
        reason = "it has several K2 loops or dynamic sizes"
    elif max(prod(roles.sizes[d] for d in loops) for loops in (roles.k1, roles.n)) > most:
        reason = f"it has more than {most} features"
    if reason is not None:
        remark("missed", "irees-decompose-attention", op, f"scores are stored in memory: {reason}")
    return reason is None


def refuse(op: ext.AttentionOp | ext.OnlineAttentionOp) -> None:
    """Raises UnsupportedError for an op on tensors: nothing else lowers it."""
    if isinstance(op.query.type, TensorType):
        raise UnsupportedError(
            "its operands are not floats, or its indexing maps are not those of an attention",
            op=op,
            hint="K1 is in query and key, K2 in key and value, N in value and output, M in query"
            " and output",
        )


@dataclass
class DecomposeAttention(RewritePattern):
    """attention(q, k, v)  =>  softmax(region(q . k * scale) + mask) . v"""

    largest: int = 0
    reciprocal: bool = False

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.AttentionOp, rewriter: PatternRewriter) -> None:
        scores = scores_of(op)
        if scores is None:
            refuse(op)
            return
        if self.largest and is_kept(op, scores, self.largest):
            return
        b = TensorBuilder(op)
        sizes, wide = scores.sizes(scores.loops, b), scores.wide
        rows = scores.compute(b)
        over, init = scores.places(scores.over), b.empty(scores.weights, sizes)
        form = Form(reciprocal=self.reciprocal, zero_masked_rows=op.zero_masked_rows is not None)
        parts = softmax(rows, over, sizes, init, b, form)
        output, value = dims_of(op.output_map.data), dims_of(op.indexing_maps.data[2].data)
        zeros = b.filled(0, wide, scores.sizes(output, b))
        result = contract((parts, scores.loops), (op.value, value), (zeros, output), b)
        rewriter.replace(op, [], [b.stored(result, op.output)])


class DecomposeOnlineAttention(RewritePattern):
    """online_attention(q, k, v, o, m, s)  =>  (o * f + p . v, M, s * f + sum(p))"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.OnlineAttentionOp, rewriter: PatternRewriter) -> None:
        scores = scores_of(op)
        if scores is None:
            refuse(op)
            return
        out, most, total = (dims_of(m.data) for m in op.indexing_maps.data[-3:])
        if {*most} != {*scores.rows} or {*total} != {*scores.rows}:
            refuse(op)
            return
        b = TensorBuilder(op)
        wide, sizes = scores.wide, scores.sizes(scores.loops, b)
        whole, most_map, total_map = (scores.map(x) for x in (scores.loops, most, total))
        values = scores.compute(b)
        start = [widen(v, wide, b) for v in op.outputs]
        (largest,) = b.compute(
            [values],
            [start[1]],
            [whole, most_map],
            lambda s, v: [s.op(arith.MaximumfOp, v[0], v[1])],
        )
        (factor,) = b.compute(
            [start[1], largest],
            [b.empty(wide, scores.sizes(most, b))],
            [AffineMap.identity(len(most))] * 3,
            lambda s, v: [rescaling(v[0], v[1], s)],
        )
        (powers,) = b.compute(
            [values, largest],
            [b.empty(wide, sizes)],
            [whole, most_map, whole],
            lambda s, v: [s.op(math.ExpOp, s.op(arith.SubfOp, v[0], v[1]))],
        )
        (sums,) = b.compute(
            [powers],
            [rescaled(start[2], total, factor, most, scores, b)],
            [whole, total_map],
            lambda s, v: [s.op(arith.AddfOp, v[1], v[0])],
        )
        value = dims_of(op.indexing_maps.data[2].data)
        init = rescaled(start[0], out, factor, most, scores, b)
        result = contract((powers, scores.loops), (op.value, value), (init, out), b)
        found = zip((result, largest, sums), op.outputs, strict=True)
        rewriter.replace(op, [], [b.stored(new, old) for new, old in found])


def widen(value: SSAValue, wide: Attribute, b: TensorBuilder) -> SSAValue:
    """The value in a wider type."""
    if element_type(value) == wide:
        return value
    assert isinstance(value.type, TensorType)
    sizes = [dim(value, i, b) for i in range(value.type.get_num_dims())]
    return b.stored(value, b.empty(wide, sizes))


def rescaled(
    value: SSAValue, loops: Sequence[int], factor: SSAValue, rows: Sequence[int], scores: Scores,
    b: TensorBuilder,
) -> SSAValue:  # fmt: skip
    """value * factor"""
    maps = [AffineMap.identity(len(loops)), scores.map(rows, loops), AffineMap.identity(len(loops))]
    init = b.empty(element_type(value), scores.sizes(loops, b))
    return b.compute([value, factor], [init], maps, lambda s, v: [s.op(arith.MulfOp, v[0], v[1])])[
        0
    ]


@dataclass(frozen=True)
class DecomposeAttentionPass(ModulePass):
    """Decomposes attention into contractions and a softmax."""

    name = "irees-decompose-attention"

    reciprocal: bool = False
    """Whether to multiply each row of exponentials by the reciprocal of its sum."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = target_of(op).gpu
        largest = 0 if gpu is None or is_strict(op) else gpu.l2_bytes
        patterns = [DecomposeAttention(largest, self.reciprocal), DecomposeOnlineAttention()]
        PatternRewriteWalker(
            GreedyRewritePatternApplier(patterns, dce_enabled=False), apply_recursively=False
        ).rewrite_module(op)
