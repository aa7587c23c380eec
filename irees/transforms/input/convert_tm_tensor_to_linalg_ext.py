"""
Converts torch-mlir's `tm_tensor` to `iree_linalg_ext`.

Both dialects descend from the same one and differ in three ops. After this pass, no other pass
needs to handle tm_tensor:

* scatter: an update in tm_tensor may have window dims for the indexed dims. torch-mlir writes
  single elements as windows of size 1. IREE's scatter has no such dims, so the pass collapses them.
  Larger windows are not supported.
* attention: tm_tensor fixes the layout in the op's definition, IREE states the layout in indexing
  maps. The scale (1 / sqrt(head size) unless given) becomes an operand.
* topk: becomes topk_v2, which does not read its outs. tm_tensor's topk starts from the outs (worst
  value, index 0), but K never exceeds the input size, so these values never reach the result.

    %r:2 = tm_tensor.sort dimension(1) outs(%v, %i : ...) { ... tm_tensor.yield %c }
  =>
    %r:2 = iree_linalg_ext.sort dimension(1) outs(%v, %i : ...) { ... iree_linalg_ext.yield %c }

IREE: `ConvertTMTensorToLinalgExt`, part of the torch-mlir input conversion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    ShapedType,
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
from irees.verification import verify_made


def _body(op: Operation, rewriter: PatternRewriter) -> Region:
    """Moves out the region of a tm_tensor op and ends it with iree_linalg_ext.yield."""
    region = rewriter.move_region_contents_to_new_regions(op.regions[0])
    last = region.block.last_op
    assert last is not None
    rewriter.replace(last, ext.YieldOp(*last.operands))
    return region


def _at(op: Operation, *new: Operation) -> None:
    """
    Gives new ops the location of the old one and verifies them. Raises VerifyError: tm_tensor
    constrains its operands less than iree_linalg_ext.
    """
    for each in new:
        each.location = op.location
        verify_made(each, op)


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
    """tm_tensor.scatter  =>  iree_linalg_ext.scatter of updates without window dims of size 1"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tm_tensor.ScatterOp, rewriter: PatternRewriter) -> None:
        dims = tuple(op.dimension_map.get_values())
        if sorted(dims) != list(range(len(dims))):
            raise UnsupportedError(
                f"a scatter at dims {list(dims)}",
                op=op,
                hint="transpose so that the indexed dims lead",
            )
        updates, indices = op.inputs
        new = ext.ScatterOp.of(
            [_without_windows(updates, len(dims), op, rewriter), indices],
            op.outputs,
            {"dimension_map": op.dimension_map, "unique_indices": op.unique_indices},
            _body(op, rewriter),
            op.res.types,
        )
        _at(op, new)
        rewriter.replace(op, new)


def _without_windows(
    updates: SSAValue, depth: int, op: tm_tensor.ScatterOp, rewriter: PatternRewriter
) -> SSAValue:
    """tensor<n x 1 x slice>  =>  tensor<n x slice>, for each unit window dim of an indexed dim"""
    type_, original = updates.type, op.outputs[0].type
    assert isinstance(type_, ShapedType)
    assert isinstance(original, ShapedType)
    shape = type_.get_shape()
    windows = len(shape) - 1 - (original.get_num_dims() - depth)
    if windows == 0:
        return updates
    if any(size != 1 for size in shape[1 : 1 + windows]):
        raise UnsupportedError(
            "a scatter of windows that are not of size 1", op=op, hint="give one index per element"
        )
    if not isinstance(type_, TensorType):
        raise UnsupportedError("a scatter of windows on memrefs", op=op)
    rest = range(1 + windows, len(shape))
    groups = [list(range(1 + windows)), *([dim] for dim in rest)]
    collapse = tensor.CollapseShapeOp.build(
        operands=[updates],
        result_types=[TensorType(type_.element_type, [shape[0], *(shape[dim] for dim in rest)])],
        properties={
            "reassociation": ArrayAttr(
                [ArrayAttr([IntegerAttr(dim, i64) for dim in group]) for group in groups]
            )
        },
    )
    _at(op, collapse)
    rewriter.insert(collapse, InsertPoint.before(op))
    return collapse.result


class ConvertAttention(RewritePattern):
    """tm_tensor.attention  =>  iree_linalg_ext.attention with maps and a scale"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tm_tensor.AttentionOp, rewriter: PatternRewriter) -> None:
        query = op.inputs[0].type
        if not isinstance(query, TensorType) or not isinstance(query.element_type, AnyFloat):
            raise UnsupportedError("attention on tensors that are not floating point", op=op)
        element, head = query.element_type, query.get_shape()[-1]
        if op.scale is not None:
            scale = op.scale.value.data
        elif head != DYNAMIC_INDEX:
            scale = 1.0 / math.sqrt(max(head, 1))
        else:
            raise UnsupportedError(
                "attention with a dynamic head size and no scale", op=op, hint="pass the scale"
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
    """Converts tm_tensor ops to iree_linalg_ext ops."""

    name = "irees-convert-tm-tensor-to-linalg-ext"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = (
            ConvertSort(),
            ConvertScan(),
            ConvertTopk(),
            ConvertScatter(),
            ConvertAttention(),
        )
        # Keep dead ops: a later pass still checks the sizes of their operands.
        applier = GreedyRewritePatternApplier(list(patterns), dce_enabled=False)
        PatternRewriteWalker(applier).rewrite_module(op)
