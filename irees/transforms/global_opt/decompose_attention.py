"""
Expresses attention in two contractions and a softmax.

    %r = iree_linalg_ext.attention {indexing_maps = [(b, m, n, k1, k2) -> (b, m, k1), ...]}
        ins(%q, %k, %v, %scale, %mask) outs(%o) { ^bb0(%score): yield f(%score) }
  =>
    %s = linalg.generic {sum of q * k over k1} : tensor<b x m x k2>
    %t = linalg.generic {f(s * scale) + mask} ins(%s, %scale, %mask)
    %p = exp(t - max over k2) / sum over k2, as in irees-decompose-softmax
    %r = linalg.generic {sum of p * v over k2} outs(0 : tensor<b x m x n>)

The loops of the op say what each dim is: K1 is in query and key, K2 in key and value, and
neither is in the output; all that query and key have besides is a row of scores. Scores, powers
and sums are f32, or f64 where an operand is; a score is rounded to the type that the region
takes. A mask of integers is one of bits: where the bit is 0, the score is -infinity.

`online_attention` starts from a running maximum and sum, and does not divide:

    M = max(m, max(t)); s' = s * exp(m - M) + sum(exp(t - M)); o' = o * exp(m - M) + exp(t - M) . v

Left alone: memrefs, and dims that only query, key or value have. IREE:
`AttentionOp::decomposeOperation`, which computes in powers of two and so leaves the maximum of
online attention in other units; here it is that of the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerType, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.global_opt._softmax import rescaling, softmax
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import Size, dim
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import (
    ScalarBuilder,
    TensorBuilder,
    accumulator_type,
    select_dims,
)

Attention = ext.AttentionOp | ext.OnlineAttentionOp


@dataclass
class Scores:
    """The loops of an attention, and of the scores among them."""

    op: Attention
    loops: tuple[int, ...]
    """The loops that the scores have, in the order of their dims: rows, then K2."""
    over: tuple[int, ...]
    """K2: the loops that softmax normalizes, and the second contraction sums over."""

    @staticmethod
    def of(op: Attention) -> Scores | None:
        """The loops, or None when they are not those of an attention."""
        query, key, value = (_dims(m.data) for m in op.indexing_maps.data[:3])
        output = _dims(op.output_map.data)
        summed = [d for d in query if d in key and d not in output and d not in value]
        over = tuple(sorted(d for d in key if d in value and d not in output and d not in query))
        rows = sorted(
            {*query, *key} - {*summed, *over}, key=lambda d: ((d in query) + (d in key) < 2, d)
        )
        mask = _dims(op.indexing_maps.data[4].data) if op.mask is not None else []
        if not {*rows, *value} - {*over} <= {*output} or not {*mask} <= {*rows, *over}:
            return None
        return Scores(op, (*rows, *over), over)

    @property
    def wide(self) -> Attribute:
        """What is computed in."""
        op = self.op
        kinds = [element_type(v) for v in (op.query, op.key, op.value, op.scale, *op.outputs)]
        return accumulator_type(*kinds)

    def map(self, loops: Sequence[int], within: Sequence[int] | None = None) -> AffineMap:
        """The map of an operand with these loops, over the loops of the scores."""
        within = self.loops if within is None else within
        return select_dims(len(within), [within.index(d) for d in loops])

    def places(self, loops: Sequence[int]) -> list[int]:
        """Where these loops are among the dims of the scores."""
        return [self.loops.index(d) for d in loops]

    def size(self, loop: int, b: TensorBuilder) -> Size:
        """How far a loop runs."""
        op = self.op
        for operand, indexing in zip((op.query, op.key, op.value), op.indexing_maps, strict=False):
            if loop in (found := _dims(indexing.data)):
                return dim(operand, found.index(loop), b)
        raise AssertionError("a loop of the scores is one of query, key or value")

    def sizes(self, loops: Sequence[int], b: TensorBuilder) -> list[Size]:
        """How far some loops run."""
        return [self.size(loop, b) for loop in loops]

    def compute(self, b: TensorBuilder) -> SSAValue:
        """region(query . key * scale) + mask"""
        op, wide = self.op, self.wide
        query, key, _, _, *mask_map = (_dims(m.data) for m in op.indexing_maps)
        sizes = self.sizes(self.loops, b)
        products = b.filled(0, wide, sizes)
        raw = contract(op.query, query, op.key, key, products, self.loops, b)
        identity = AffineMap.identity(len(self.loops))
        scalar = AffineMap(len(self.loops), 0, ())
        inputs, maps = [raw, op.scale], [identity, scalar]
        if op.mask is not None:
            inputs.append(op.mask)
            maps.append(self.map(mask_map[0]))

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            score = s.op(arith.MulfOp, v[0], s.cast(v[1], wide))
            score = s.cast(score, op.body.block.args[0].type)
            score = s.cast(inline_region(op.body.block, [score], s)[0], wide)
            return [score if op.mask is None else add_mask(score, v[2], s)]

        (result,) = b.compute(inputs, [b.empty(wide, sizes)], [*maps, identity], body)
        assert isinstance(result, OpResult)
        for index in [o for o in result.op.walk() if isinstance(o, ext.IndexOp)]:
            Rewriter.replace_op(index, linalg.IndexOp(index.dim.value.data))
        return result


def _dims(indexing: AffineMap) -> list[int]:
    return [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]


def add_mask(score: SSAValue, mask: SSAValue, s: ScalarBuilder) -> SSAValue:
    """score + mask, where a bit is 0 or -infinity"""
    if isinstance(mask.type, IntegerType):
        zero, lowest = (s.number(n, score.type) for n in (0, float("-inf")))
        bit = s.cast(mask, IntegerType(1))
        return s.op(arith.AddfOp, score, s.select(bit, zero, lowest))
    return s.op(arith.AddfOp, score, s.cast(mask, score.type))


def contract(
    lhs: SSAValue, lhs_loops: Sequence[int], rhs: SSAValue, rhs_loops: Sequence[int],
    init: SSAValue, out_loops: Sequence[int], b: TensorBuilder,
) -> SSAValue:  # fmt: skip
    """init + the sum of lhs * rhs over the loops that are not of the result"""
    loops = [*out_loops, *sorted({*lhs_loops, *rhs_loops} - {*out_loops})]
    wide = element_type(init)
    maps = [
        select_dims(len(loops), [loops.index(d) for d in own])
        for own in (lhs_loops, rhs_loops, out_loops)
    ]
    (result,) = b.compute(
        [lhs, rhs],
        [init],
        maps,
        lambda s, v: [
            s.op(arith.AddfOp, v[2], s.op(arith.MulfOp, s.cast(v[0], wide), s.cast(v[1], wide)))
        ],
    )
    return result


def scores_of(op: Attention) -> Scores | None:
    """What to decompose, or None when the op is left alone."""
    values = (op.query, op.key, op.value, *op.outputs)
    if not all(isinstance(v.type, TensorType) and isa(element_type(v), AnyFloat) for v in values):
        return None
    return Scores.of(op)


class DecomposeAttention(RewritePattern):
    """attention(q, k, v)  =>  softmax(region(q . k * scale) + mask) . v"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.AttentionOp, rewriter: PatternRewriter) -> None:
        scores = scores_of(op)
        if scores is None:
            return
        b = TensorBuilder(op)
        sizes, wide = scores.sizes(scores.loops, b), scores.wide
        rows = scores.compute(b)
        parts = softmax(rows, scores.places(scores.over), sizes, b.empty(wide, sizes), b)
        output, value = _dims(op.output_map.data), _dims(op.indexing_maps.data[2].data)
        init = b.filled(0, wide, scores.sizes(output, b))
        result = contract(parts, scores.loops, op.value, value, init, output, b)
        rewriter.replace(op, [], [b.stored(result, op.output)])


class DecomposeOnlineAttention(RewritePattern):
    """online_attention(q, k, v, o, m, s)  =>  (o * f + p . v, M, s * f + sum(p))"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.OnlineAttentionOp, rewriter: PatternRewriter) -> None:
        scores = scores_of(op)
        if scores is None:
            return
        out, most, total = (_dims(m.data) for m in op.indexing_maps.data[-3:])
        rows = scores.loops[: -len(scores.over)]
        if {*most} != {*rows} or {*total} != {*rows}:
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
        value = _dims(op.indexing_maps.data[2].data)
        init = rescaled(start[0], out, factor, most, scores, b)
        result = contract(powers, scores.loops, op.value, value, init, out, b)
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
    """Attention becomes contractions and a softmax."""

    name = "irees-decompose-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [DecomposeAttention(), DecomposeOnlineAttention()]
        PatternRewriteWalker(
            GreedyRewritePatternApplier(patterns, dce_enabled=False), apply_recursively=False
        ).rewrite_module(op)
