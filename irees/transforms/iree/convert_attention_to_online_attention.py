"""
Converts attention to online attention, which can be tiled along K2.

    %r = iree_linalg_ext.attention ins(%q, %k, %v, %scale, %mask) outs(%o)
  =>
    %x:3 = iree_linalg_ext.online_attention ins(%q, %k, %v, %scale, %mask)
               outs(0 : acc, lowest : max, 0 : sum)
    %r = linalg.generic {acc / sum} ins(%x#0, %x#2) outs(%o)

Accumulator, maximum and sum are f32, or f64 if an operand is. The maximum starts at the lowest
finite number, not -infinity: exponentials of a fully masked block of keys are then 0, not NaN, and
add nothing. For a row whose keys are all masked, the sum is 0 and the result NaN, as for attention,
or 0 with `zero_masked_rows`.
IREE: `iree-linalg-ext-convert-attention-to-online-attention`, which multiplies by the reciprocal of
the sum instead of dividing.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, ModuleOp
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from irees.dialects import iree_linalg_ext as ext
from irees.remarks import remark
from irees.transforms.utils.attention import dims_of, scores_of
from irees.transforms.utils.softmax import LOWEST, replaced
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import TensorBuilder, select_dims


class ConvertAttention(RewritePattern):
    """attention(q, k, v)  =>  acc / sum, where acc, max, sum = online_attention(q, k, v)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.AttentionOp, rewriter: PatternRewriter) -> None:
        scores = scores_of(op)
        if scores is None or scores.wide not in LOWEST:
            remark("missed", ConvertAttentionToOnlineAttentionPass.name, op, "no online attention")
            return
        b, wide, out = TensorBuilder(op), scores.wide, dims_of(op.output_map.data)
        sizes, rows = scores.sizes(out, b), scores.sizes(scores.rows, b)
        starts = [b.filled(0, wide, sizes), b.filled(LOWEST[wide], wide, rows)]
        starts.append(b.filled(0, wide, rows))
        loops = op.output_map.data.num_dims
        row_map = AffineMapAttr(select_dims(loops, scores.rows))
        online = ext.OnlineAttentionOp.of(
            op.inputs,
            starts,
            {
                "indexing_maps": ArrayAttr([*op.indexing_maps, row_map, row_map]),
                "decomposition_config": op.decomposition_config,
            },
            op.body.clone(),
        )
        acc, _, total = b.insert(online).results
        whole, kind = AffineMap.identity(len(out)), element_type(op.output)
        maps = [whole, scores.map(scores.rows, out), whole]
        if op.zero_masked_rows is not None:
            total = replaced(total, 0, 1, rows, b)
        result = b.compute(
            [acc, total],
            [op.output],
            maps,
            lambda s, v: [s.cast(s.op(arith.DivfOp, v[0], v[1]), kind)],
        )
        rewriter.replace(op, [], result)


@dataclass(frozen=True)
class ConvertAttentionToOnlineAttentionPass(ModulePass):
    """Converts attention to online attention and a division."""

    name = "irees-convert-attention-to-online-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(ConvertAttention(), apply_recursively=False).rewrite_module(op)
