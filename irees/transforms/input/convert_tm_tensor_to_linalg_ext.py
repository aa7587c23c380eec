"""
Turns torch-mlir's `tm_tensor` into `iree_linalg_ext`.

The two dialects have the same ancestor, and differ in three points that this pass settles once, so
that no other pass knows tm_tensor:

* scatter of tm_tensor may name any dims of the original in `dimension_map`, the other that of
  IREE only the leading ones. Where they are not the leading ones, the original is transposed
  before and the result after.
* attention of tm_tensor has its layout in its definition, that of IREE in indexing maps, and the
  scale (1 / sqrt of the head size, unless given) becomes an operand.
* topk of tm_tensor becomes topk_v2, which initialises nothing: the outs that tm_tensor's topk
  starts from (the worst value and index 0) are not read by it, since K never exceeds the input's
  size.

    %r:2 = tm_tensor.sort dimension(1) outs(%v, %i : ...) { ... tm_tensor.yield %c }
  =>
    %r:2 = iree_linalg_ext.sort dimension(1) outs(%v, %i : ...) { ... iree_linalg_ext.yield %c }

In IREE this is part of the torch-mlir input conversion (`ConvertTMTensorToLinalgExt`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from irees.dialects import iree_linalg_ext as ext
from irees.dialects import tm_tensor
from irees.errors import UnsupportedError


def _body(op: Operation, rewriter: PatternRewriter) -> Region:
    """The region of a tm_tensor op, ended in the other dialect's yield."""
    region = rewriter.move_region_contents_to_new_regions(op.regions[0])
    last = region.block.last_op
    assert last is not None
    rewriter.replace(last, ext.YieldOp(*last.operands))
    return region


def _at(op: Operation, *new: Operation) -> None:
    for each in new:
        each.location = op.location


class ConvertSort(RewritePattern):
    """tm_tensor.sort  =>  iree_linalg_ext.sort"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tm_tensor.SortOp, rewriter: PatternRewriter) -> None:
        new = ext.SortOp.of(
            op.inputs, op.outputs, {"dimension": op.dimension}, _body(op, rewriter), op.res.types
        )
        _at(op, new)
        rewriter.replace(op, new)


class ConvertScan(RewritePattern):
    """tm_tensor.scan  =>  iree_linalg_ext.scan"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tm_tensor.ScanOp, rewriter: PatternRewriter) -> None:
        properties = {"dimension": op.dimension, "inclusive": op.inclusive}
        new = ext.ScanOp.of(op.inputs, op.outputs, properties, _body(op, rewriter), op.res.types)
        _at(op, new)
        rewriter.replace(op, new)


class ConvertTopk(RewritePattern):
    """tm_tensor.topk  =>  iree_linalg_ext.topk_v2 is_sorted"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tm_tensor.TopkOp, rewriter: PatternRewriter) -> None:
        properties = {"dimension": op.dimension, "is_sorted": UnitAttr()}
        new = ext.TopkV2Op.of(op.inputs, op.outputs, properties, _body(op, rewriter), op.res.types)
        _at(op, new)
        rewriter.replace(op, new)


class ConvertScatter(RewritePattern):
    """
    tm_tensor.scatter  =>  iree_linalg_ext.scatter, between transposes if it indexes inner dims
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tm_tensor.ScatterOp, rewriter: PatternRewriter) -> None:
        dims = tuple(op.dimension_map.get_values())
        original = op.outputs[0]
        depth = len(dims)
        permutation: tuple[int, ...] | None = None
        if sorted(dims) != list(range(depth)):
            if not isinstance(original.type, TensorType):
                raise UnsupportedError("a scatter into inner dims of a memref", op=op)
            rank = original.type.get_num_dims()
            permutation = (*dims, *(d for d in range(rank) if d not in dims))
            original = _transpose(original, permutation, op, rewriter)
            dims = tuple(range(depth))
        new = ext.ScatterOp.of(
            op.inputs,
            [original],
            {
                "dimension_map": DenseArrayBase.from_list(i64, dims),
                "unique_indices": op.unique_indices,
            },
            _body(op, rewriter),
        )
        _at(op, new)
        rewriter.insert(new, InsertPoint.before(op))
        results = list(new.results)
        if permutation is not None:
            inverse = tuple(permutation.index(d) for d in range(len(permutation)))
            results = [_transpose(results[0], inverse, op, rewriter)]
        rewriter.replace(op, [], results)


def _transpose(
    value: SSAValue, permutation: Sequence[int], op: Operation, rewriter: PatternRewriter
) -> SSAValue:
    type_ = value.type
    assert isinstance(type_, TensorType)
    shape = [type_.get_shape()[d] for d in permutation]
    sizes: list[SSAValue] = []
    for dim, size in zip(permutation, shape):
        if size == DYNAMIC_INDEX:
            index = arith.ConstantOp(IntegerAttr(dim, IndexType()))
            dim_op = tensor.DimOp(value, index)
            _at(op, index, dim_op)
            rewriter.insert([index, dim_op], InsertPoint.before(op))
            sizes.append(dim_op.result)
    empty = tensor.EmptyOp(sizes, TensorType(type_.element_type, shape))
    transpose = linalg.ops.TransposeOp(
        value, empty.tensor, DenseArrayBase.from_list(i64, permutation), empty.tensor.type
    )
    _at(op, empty, transpose)
    rewriter.insert([empty, transpose], InsertPoint.before(op))
    return transpose.res[0]


class ConvertAttention(RewritePattern):
    """tm_tensor.attention  =>  iree_linalg_ext.attention with maps and a scale"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tm_tensor.AttentionOp, rewriter: PatternRewriter) -> None:
        query = op.inputs[0].type
        if not isinstance(query, TensorType) or not isinstance(query.element_type, AnyFloat):
            raise UnsupportedError("attention on other than floating point tensors", op=op)
        element, head = query.element_type, query.get_shape()[-1]
        if op.scale is not None:
            scale = op.scale.value.data
        elif head != DYNAMIC_INDEX:
            scale = 1.0 / math.sqrt(head)
        else:
            raise UnsupportedError(
                "attention with a dynamic head size and no scale", op=op, hint="give the scale"
            )
        constant = arith.ConstantOp(FloatAttr(scale, element))

        batch = query.get_num_dims() - 2
        m, k1, k2, n = range(batch, batch + 4)
        dims = [(m, k1), (k2, k1), (k2, n), (), *([(m, k2)] * (len(op.inputs) - 3)), (m, n)]
        maps = [
            AffineMap(
                batch + 4,
                0,
                tuple(AffineDimExpr(d) for d in ((*range(batch), *own) if own else ())),
            )
            for own in dims
        ]
        block = Block(arg_types=[element])
        block.add_op(ext.YieldOp(block.args[0]))
        new = ext.AttentionOp.of(
            [*op.inputs[:3], constant.result, *op.inputs[3:]],
            op.outputs,
            {"indexing_maps": ArrayAttr([AffineMapAttr(map_) for map_ in maps])},
            Region(block),
            op.res.types,
        )
        _at(op, constant, new)
        rewriter.replace(op, [constant, new], new.results)


@dataclass(frozen=True)
class ConvertTmTensorToLinalgExtPass(ModulePass):
    """tm_tensor ops become iree_linalg_ext ops."""

    name = "irees-convert-tm-tensor-to-linalg-ext"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = (
            ConvertSort(),
            ConvertScan(),
            ConvertTopk(),
            ConvertScatter(),
            ConvertAttention(),
        )
        PatternRewriteWalker(GreedyRewritePatternApplier(list(patterns))).rewrite_module(op)
