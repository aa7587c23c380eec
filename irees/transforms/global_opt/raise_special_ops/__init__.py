"""
Raises spelled-out patterns to topk, arg_compare, softmax and attention ops.

Frontends import torch.topk as a full sort of values and indices, followed by slices of the first k
elements. A top-k needs one pass and k elements of storage instead of n log n work and n elements.

    %s:2 = iree_linalg_ext.sort dimension(1) outs(%x, %iota) {oge}
    %v = tensor.extract_slice %s#0[0, 0] [64, 8] [1, 1]
    %i = tensor.extract_slice %s#1[0, 0] [64, 8] [1, 1]
  =>
    %v, %i = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x) outs(64x8, 64x8) {oge}

The pattern requires a comparator that is a canonical compare of the first operand, and a second
operand, if any, that is an iota along the dim. Every use of the sort must be a slice with the same
static k, small relative to the row (an insertion costs k steps). Any other use keeps the sort.
IREE: `IotaSortSliceIsTopK`, for StableHLO input.

A reduction that carries the best element and its index becomes an `iree_linalg_ext.arg_compare`:

    %v, %i = linalg.generic {c = x > best; c ? x : best, c ? d1 : where} ins(%x) outs(%b, %w)
  =>
    %v, %i = iree_linalg_ext.arg_compare dimension(1) ins(%x) outs(%b, %w) {ogt}

This excludes values computed by `maximumf`: it returns NaN, but a NaN wins no comparison, so value
and index would follow different orders. A spelled-out softmax becomes a `linalg.softmax`:

    %m = max(%x); %e = exp(%x - %m); %r = %e / sum(%e)  =>  %r = linalg.softmax dimension(1) ins(%x)

This applies to f32 and f64 only: a softmax of smaller floats computes in f32 and would round
differently. Two contractions around a softmax become an `iree_linalg_ext.attention`:

    %s = %q . %k; %p = softmax(%s * scale + %mask); %r = %p . %v
  =>
    %r = iree_linalg_ext.attention ins(%q, %k, %v, scale, %mask)

`irees-decompose-attention` decomposes the op into the same sums in the same order, so raising alone
does not change results or speed; it enables lowerings of attention as one op. The pattern allows
reshapes of unit dims anywhere. It rejects, with a remark, a mask before the scale, a division that
is not an exact product, a sum that does not start from 0, and scores with other uses. IREE:
`iree-global-opt-raise-special-ops`, which does not raise attention; frontends emit it there.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType, UnitAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.global_opt.raise_special_ops.attention import raise_attention
from irees.transforms.global_opt.raise_special_ops.reductions import (
    NAME,
    raise_arg_compare,
    raise_softmax,
)
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, dims
from irees.transforms.utils.unused_results import erase_dead_code


def first_k(op: ext.SortOp) -> int | None:
    """Returns k if all uses of a sort are slices of the first k elements along the dim, or None."""
    dim = op.dimension.value.data
    uses = [use for result in op.results for use in result.uses]
    found = {_sliced_length(use.operation, dim) for use in uses}
    k = found.pop() if len(found) == 1 else None
    if k is None or not 0 < k <= COMMON.most_k:
        return None
    size = op.results[0].type.get_shape()[dim]
    return k if size < 0 or COMMON.selection_ratio * k <= size else None


def _sliced_length(op: Operation, dim: int) -> int | None:
    """Returns the length of a slice that cuts off the end of one dim, None for any other op."""
    if not isinstance(op, tensor.ExtractSliceOp) or op.offsets or op.strides:
        return None
    if any(op.static_offsets.get_values()) or {*op.static_strides.get_values()} - {1}:
        return None
    assert isinstance(op.source.type, TensorType)
    sizes, shape = op.static_sizes.get_values(), op.source.type.get_shape()
    if op.result.type.get_num_dims() != len(shape) or sizes[dim] < 0:
        return None
    others = [(s, n) for d, (s, n) in enumerate(zip(sizes, shape, strict=True)) if d != dim]
    return sizes[dim] if all(s == n or n < 0 for s, n in others) else None


def counts_along(value: SSAValue, dim: int) -> bool:
    """Whether a tensor is an iota along a dim."""
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or any(
        isinstance(i.type, TensorType) for i in op.inputs
    ):
        return False
    output = op.indexing_maps.data[-1].data
    terminator = op.body.block.last_op
    assert terminator is not None
    source = terminator.operands[0].owner
    if isinstance(source, arith.IndexCastOp):
        source = source.input.owner
    if not isinstance(source, linalg.IndexOp) or len(op.outputs) != 1:
        return False
    return output.results[dim].used_dims() == {source.dim.value.data}


def raise_topk(op: ext.SortOp) -> bool:
    """slice(sort(x, iota))[:k]  =>  topk(x)"""
    dim = op.dimension.value.data
    order = Order.of(op.body.block)
    sources = list(op.inputs) or list(op.outputs)
    if order.operand != 0 or len(sources) > 2:
        return False
    if len(sources) == 2 and not counts_along(sources[1], dim):
        return False
    k = first_k(op)
    if k is None or not may_rewrite(NAME, op, "topk of sort and slices"):
        return False
    builder = IndexBuilder(InsertPoint.before(op))
    outs: list[SSAValue] = []
    for source in sources:
        assert isinstance(source.type, TensorType)
        shape = list(source.type.get_shape())
        sizes = dims(source, builder)
        shape[dim] = sizes[dim] = k
        dynamic = [builder.value(s) for s, n in zip(sizes, shape, strict=True) if n < 0]
        kind = TensorType(source.type.get_element_type(), shape)
        outs.append(builder.insert(tensor.EmptyOp(dynamic, kind)).results[0])
    body = op.detach_region(op.body)
    while len(body.block.args) > 2:
        body.block.erase_arg(body.block.args[-1])
    topk = ext.TopkV2Op.of(
        [sources[0]], outs, {"dimension": op.dimension, "is_sorted": UnitAttr()}, body
    )
    topk.location = op.location
    builder.insert(topk)
    for result, best in zip(op.results, topk.results, strict=True):
        for slice_op in [use.operation for use in result.uses]:
            Rewriter.replace_op(slice_op, [], [cast_to(best, slice_op.results[0].type, builder)])
    Rewriter.erase_op(op)
    return True


def cast_to(value: SSAValue, kind, builder: IndexBuilder) -> SSAValue:
    """Casts a value to a tensor type with other static dims."""
    if value.type == kind:
        return value
    return builder.insert(tensor.CastOp(value, kind)).results[0]


@dataclass(frozen=True)
class RaiseSpecialOpsPass(ModulePass):
    """Raises patterns to topk, arg_compare, softmax and attention ops."""

    name = "irees-raise-special-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, ext.SortOp)]:
            raise_topk(inner)
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            block = inner.parent
            if block is not None and (raise_arg_compare(inner) or raise_softmax(inner)):
                erase_dead_code(block, Rewriter.erase_op)
        for inner in list(op.walk()):
            block = inner.parent
            if block is not None and raise_attention(inner):
                erase_dead_code(block, Rewriter.erase_op)
