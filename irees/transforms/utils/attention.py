"""Helpers for attention passes: the roles of its loops, and the scores as an equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.scores import score_of
from irees.transforms.utils.shapes import Size, dim
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import (
    ScalarBuilder,
    TensorBuilder,
    accumulator_type,
    select_dims,
)

Attention = ext.AttentionOp | ext.OnlineAttentionOp

Indexed = tuple[SSAValue, Sequence[int]]
"""A tensor, and the loop that indexes each of its dims."""

WEIGHT_BITS = 16
"""If the values have this width in bits, the weights of the second product get their type."""


@dataclass
class Scores:
    """The loops of the scores of an attention op."""

    op: Attention
    loops: tuple[int, ...]
    """The loops of the scores, in the order of their dims: rows, then K2."""
    over: tuple[int, ...]
    """K2: the loops that softmax normalizes and the second contraction reduces."""

    @staticmethod
    def of(op: Attention) -> Scores | None:
        """Returns the loops, or None if the indexing maps are not those of an attention."""
        query, key, value = (dims_of(m.data) for m in op.indexing_maps.data[:3])
        output = dims_of(op.output_map.data)
        summed = [d for d in query if d in key and d not in output and d not in value]
        over = tuple(sorted(d for d in key if d in value and d not in output and d not in query))
        rows = sorted(
            {*query, *key} - {*summed, *over}, key=lambda d: ((d in query) + (d in key) < 2, d)
        )
        mask = dims_of(op.indexing_maps.data[4].data) if op.mask is not None else []
        if not over or not {*output} <= {*query, *key, *value}:
            return None
        if not {*rows, *value} - {*over} <= {*output} or not {*mask} <= {*rows, *over}:
            return None
        return Scores(op, (*rows, *over), over)

    @property
    def rows(self) -> tuple[int, ...]:
        """The loops of a row of scores: batch and M."""
        return self.loops[: -len(self.over)]

    @property
    def wide(self) -> Attribute:
        """The type of intermediate results."""
        op = self.op
        kinds = [element_type(v) for v in (op.query, op.key, op.value, op.scale, *op.outputs)]
        return accumulator_type(*kinds)

    @property
    def weights(self) -> Attribute:
        """The type of the weights: that of the values if it has 16 bits, else `wide`."""
        kind = element_type(self.op.value)
        return kind if isa(kind, AnyFloat) and kind.bitwidth == WEIGHT_BITS else self.wide

    def map(self, loops: Sequence[int], within: Sequence[int] | None = None) -> AffineMap:
        """Returns the map of an operand with these loops, over `within` or the score loops."""
        within = self.loops if within is None else within
        return select_dims(len(within), [within.index(d) for d in loops])

    def places(self, loops: Sequence[int]) -> list[int]:
        """Returns the dims of the scores that these loops index."""
        return [self.loops.index(d) for d in loops]

    def size(self, loop: int, b: TensorBuilder) -> Size:
        """Returns the trip count of a loop."""
        op = self.op
        for operand, indexing in zip((op.query, op.key, op.value), op.indexing_maps, strict=False):
            if loop in (found := dims_of(indexing.data)):
                return dim(operand, found.index(loop), b)
        raise AssertionError("a loop of the scores is one of query, key or value")

    def sizes(self, loops: Sequence[int], b: TensorBuilder) -> list[Size]:
        """Returns the trip counts of loops."""
        return [self.size(loop, b) for loop in loops]

    def compute(self, b: TensorBuilder) -> SSAValue:
        """region(query . key * scale) + mask"""
        op, wide = self.op, self.wide
        query, key, _, _, *mask_map = (dims_of(m.data) for m in op.indexing_maps)
        sizes = self.sizes(self.loops, b)
        products = b.filled(0, wide, sizes)
        raw = contract((op.query, query), (op.key, key), (products, self.loops), b)
        identity = AffineMap.identity(len(self.loops))
        scalar = AffineMap(len(self.loops), 0, ())
        inputs, maps = [raw, op.scale], [identity, scalar]
        if op.mask is not None:
            inputs.append(op.mask)
            maps.append(self.map(mask_map[0]))

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            score = score_of(op, v[0], v[1], wide, s)
            return [score if op.mask is None else add_mask(score, v[2], s)]

        (result,) = b.compute(inputs, [b.empty(wide, sizes)], [*maps, identity], body)
        assert isinstance(result, OpResult)
        for index in [o for o in result.op.walk() if isinstance(o, ext.IndexOp)]:
            Rewriter.replace_op(index, linalg.IndexOp(index.dim.value.data))
        return result


def dims_of(indexing: AffineMap) -> list[int]:
    """Returns the loops in the results of a map, in order."""
    return [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]


def add_mask(score: SSAValue, mask: SSAValue, s: ScalarBuilder) -> SSAValue:
    """score + mask; an integer mask is a bit: 0 if set, else -infinity"""
    if isinstance(mask.type, IntegerType):
        zero, lowest = (s.number(n, score.type) for n in (0, float("-inf")))
        bit = s.cast(mask, IntegerType(1))
        return s.op(arith.AddfOp, score, s.select(bit, zero, lowest))
    return s.op(arith.AddfOp, score, s.cast(mask, score.type))


def contract(lhs: Indexed, rhs: Indexed, init: Indexed, b: TensorBuilder) -> SSAValue:
    """init + sum of lhs * rhs over the loops that do not index `init`"""
    operands, dims = zip(lhs, rhs, init, strict=True)
    kept = dims[-1]
    loops = [*kept, *sorted({*dims[0], *dims[1]} - {*kept})]
    wide = element_type(operands[-1])
    maps = [select_dims(len(loops), [loops.index(d) for d in own]) for own in dims]
    (result,) = b.compute(
        operands[:2],
        operands[2:],
        maps,
        lambda s, v: [
            s.op(arith.AddfOp, v[2], s.op(arith.MulfOp, s.cast(v[0], wide), s.cast(v[1], wide)))
        ],
    )
    return result


def scores_of(op: Attention) -> Scores | None:
    """Returns the scores of a decomposable op (float tensors), or None."""
    values = (op.query, op.key, op.value, *op.outputs)
    if not all(isinstance(v.type, TensorType) and isa(element_type(v), AnyFloat) for v in values):
        return None
    return Scores.of(op)
