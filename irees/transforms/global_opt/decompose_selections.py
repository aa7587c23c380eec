"""
Decomposes arg_compare into a reduction, and topk into a topk_v2 of its outs and its input.

    %v, %i = iree_linalg_ext.arg_compare dimension(1)
        ins(%x : tensor<4x8xf32>) outs(%best, %where) {gt}
  =>
    %v, %i = linalg.generic {d1 is reduced} ins(%x) outs(%best, %where) {
    ^bb0(%new: f32, %old: f32, %at: i32):
      %wins = gt(%new, %old)
      %d1 = linalg.index 1
      linalg.yield select(%wins, %new, %old), select(%wins, %d1, %at) }

    %v, %i = iree_linalg_ext.topk dimension(1) ins(%x) outs(%best, %where) {gt}
  =>
    %v, %i = iree_linalg_ext.topk_v2 dimension(1) is_sorted
        ins(concat(%best, %x), concat(%where, 0, 1, ...)) outs(tensor.empty, tensor.empty) {gt}

Both ops start from their outs. Among equal elements the first one wins; for topk this is an element
of the outs, so the concatenation puts the outs first. If topk has no index operand, input indices
count from 0. Ops on memrefs stay. IREE lowers each op to its own loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, UnitAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, rank_of, select_dims


class DecomposeArgCompare(RewritePattern):
    """arg_compare(x)  =>  generic {x wins ? (x, i) : (best, where)}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.ArgCompareOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.output_value.type, TensorType):
            return
        rank, reduced = rank_of(op.input_value), op.dimension.value.data
        whole = AffineMap.identity(rank)
        rest = select_dims(rank, [d for d in range(rank) if d != reduced])

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            best, where = v[-2:]
            if op.input_index is not None:
                at = v[1]
            else:
                place = s.index(reduced)
                base = op.index_base
                at = s.cast(place if base is None else s.value(s.add(place, base)), where.type)
            wins = inline_region(op.body.block, [v[0], best], s)[0]
            return [s.select(wins, v[0], best), s.select(wins, at, where)]

        maps = [*([whole] * len(op.inputs)), rest, rest]
        results = TensorBuilder(op).compute(op.inputs, op.outputs, maps, body)
        rewriter.replace(op, [], results)


class DecomposeTopk(RewritePattern):
    """topk(x, outs)  =>  topk_v2(concat(outs, x)); returns the outs unchanged if they are empty"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.TopkOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.output_values.type, TensorType):
            return
        b, axis = TensorBuilder(op), op.dimension.value.data
        if op.output_values.type.get_shape()[axis] == 0:
            # A topk_v2 requires k >= 1.
            rewriter.replace(op, [], op.outputs)
            return
        candidates = concatenated(op.output_values, op.values, axis, b)
        numbers = op.indices if op.indices is not None else counted(op, b)
        places = concatenated(op.output_indices, numbers, axis, b)
        sizes = dims(op.output_values, b)
        outs = [b.cast_tensor(b.empty(element_type(v), sizes), v.type) for v in op.outputs]
        new = ext.TopkV2Op.of(
            [candidates, places],
            outs,
            {"dimension": op.dimension, "is_sorted": UnitAttr()},
            rewriter.move_region_contents_to_new_regions(op.body),
        )
        b.insert(new)
        rewriter.replace(op, [], new.results)


def concatenated(first: SSAValue, second: SSAValue, axis: int, b: TensorBuilder) -> SSAValue:
    """Returns the concatenation of two tensors along an axis."""
    front, back = dims(first, b), dims(second, b)
    sizes = [b.add(m, n) if d == axis else n for d, (m, n) in enumerate(zip(front, back))]
    origin = [0] * len(sizes)
    behind = [m if d == axis else 0 for d, m in enumerate(front)]
    result = b.insert_slice(first, b.empty(element_type(first), sizes), origin, front)
    return b.insert_slice(second, result, behind, back)


def counted(op: ext.TopkOp, b: TensorBuilder) -> SSAValue:
    """Returns a tensor with the index of each input element along the dim."""
    kind, axis = element_type(op.output_indices), op.dimension.value.data
    identity = AffineMap.identity(rank_of(op.values))
    init = b.empty(kind, dims(op.values, b))
    return b.compute([], [init], [identity], lambda s, v: [s.cast(s.index(axis), kind)])[0]


@dataclass(frozen=True)
class DecomposeSelectionsPass(ModulePass):
    """Decomposes arg_compare into a generic and topk into a topk_v2."""

    name = "irees-decompose-selections"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [DecomposeArgCompare(), DecomposeTopk()]
        PatternRewriteWalker(
            GreedyRewritePatternApplier(patterns, dce_enabled=False), apply_recursively=False
        ).rewrite_module(op)
