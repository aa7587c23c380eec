"""
Classifies ops for dispatch formation: roots of kernels, and ops cloned into their consumers.

Roots have loops that justify a kernel. Ops that are cheap or expand a small tensor are cloned into
the kernels that use them instead of forming a kernel. IREE: `isRootLikeOp`,
`isCloneableIntoDispatchOp`, `isBitExtendOrTruncateOp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeGuard

from xdsl.dialects import affine, arith, complex, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    IndexType,
    IntegerType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from irees.analysis.contractions import multiply_add
from irees.analysis.loop_mapping import element_of, loop_nest
from irees.dialects import iree_encoding as encoding
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.resources import is_splat
from irees.dialects.storage import inserted, is_extract
from irees.dialects.upstream.linalg.packing import PackOp, SoftmaxOp, UnPackOp
from irees.targets.common import COMMON

CLONEABLE_DIALECTS = frozenset(
    "affine arith complex iree_encoding iree_linalg_ext linalg tensor".split()
)
CLONED = (
    affine.ApplyOp,
    arith.IndexCastOp,
    linalg.FillOp,
    tensor.EmptyOp,
    tensor.ExtractOp,
    tensor.ExtractSliceOp,
    complex.CreateOp,
    encoding.UnsetEncodingOp,
    ext.GatherOp,
)


def is_linalg(op: Operation) -> bool:
    """Whether an op is structured, with loops, maps and a scalar body (IREE: linalg::LinalgOp)."""
    return isinstance(op, LinalgStructuredOperation)


def is_pack_like(op: Operation) -> bool:
    """Whether an op packs a tensor into tiles."""
    return isinstance(op, encoding.SetEncodingOp | PackOp)


def is_unpack_like(op: Operation) -> bool:
    """Whether an op unpacks a tensor from tiles."""
    return isinstance(op, encoding.UnsetEncodingOp | UnPackOp)


def is_root(op: Operation) -> bool:
    """Whether an op can be the root of a kernel (IREE: isRootLikeOp)."""
    parent = op.parent_op()
    while parent is not None:
        if parent.name == "flow.dispatch.workgroups":
            return False
        parent = parent.parent_op()
    if is_bit_extend(op):
        return False
    if isinstance(op, linalg.GenericOp):
        nest = loop_nest(op)
        return nest is not None and not nest.is_parallel and not has_fusable_unpack(op)
    if is_linalg(op):
        return not isinstance(op, linalg.FillOp)
    if isinstance(op, SoftmaxOp | UnPackOp) or op.name.startswith("linalg.winograd_"):
        return True
    return isinstance(op, ext.LinalgExtOperation) and not isinstance(op, ext.GatherOp)


def has_fusable_unpack(op: Operation) -> bool:
    """Whether an operand is unpacked, and the op reduces none of its packed dims."""
    return any(
        isinstance(operand.owner, Operation) and reduces_no_packed_dim(op, operand.owner)
        for operand in op.operands
    )


def reduces_no_packed_dim(op: Operation, producer: Operation) -> bool:
    """Whether no reduction loop indexes a packed dim of an unpack's result."""
    nest = loop_nest(op)
    if not isinstance(producer, UnPackOp) or nest is None:
        return False
    reads = [m for v, m in zip(op.operands, nest.operands, strict=True) if v.owner is producer]
    if not reads or reads[0] is None:
        return False
    tiled = producer.inner_dims_pos.get_values()
    for dim, expr in enumerate(reads[0].results):
        if not isinstance(expr, AffineDimExpr):
            return False
        if nest.kinds[expr.position] != "parallel" and dim in tiled:
            return False
    return True


def is_elementwise(op: Operation) -> bool:
    """Whether an op computes each result element from one element of each operand."""
    nest = loop_nest(op)
    if not is_linalg(op) or nest is None or not nest.is_parallel:
        return False
    if not all(m is not None and picks_loops(m) for m in nest.operands):
        return False
    if any(len(m.results) != m.num_dims for m in nest.results if m is not None):
        return False
    scalars = (*op.regions[0].block.ops,)
    return all(
        o.name in ("linalg.yield", "linalg.index")
        or (o.name.split(".")[0] in ("arith", "math", "complex") and not _touches_tensor(o))
        for o in scalars
    )


def _touches_tensor(op: Operation) -> bool:
    return any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results))


def picks_loops(indexing: AffineMap) -> bool:
    """Whether a map is a projected permutation: plain loops and constant zeros, each loop once."""
    dims = [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]
    rest = [e for e in indexing.results if not isinstance(e, AffineDimExpr)]
    zeros = all(isinstance(e, AffineConstantExpr) and e.value == 0 for e in rest)
    return zeros and len(set(dims)) == len(dims)


def is_named_convolution(op: Operation) -> bool:
    """Whether an op is one of linalg's convolutions or poolings (ConvolutionOpInterface)."""
    return is_linalg(op) and op.name.removeprefix("linalg.").startswith(
        ("conv_", "depthwise_conv_", "pooling_")
    )


def is_convolution(op: Operation) -> bool:
    """Whether an op is a convolution (MLIR: isaConvolutionOpInterface)."""
    if is_named_convolution(op):
        return True
    if not isinstance(op, linalg.GenericOp) or multiply_add(op) is None:
        return False
    image = op.indexing_maps.data[0].data
    return any(not isinstance(expr, AffineDimExpr) for expr in image.results)


def bit_width(kind: Attribute) -> int | None:
    """Returns the width of an integer or float type, None for other types."""
    if isinstance(kind, IndexType) or not isinstance(kind, IntegerType | AnyFloat):
        return None
    return kind.bitwidth if isinstance(kind, AnyFloat) else kind.width.data


def _width_change(op: Operation) -> int:
    """Returns the element width of the result, minus that of the widest input of highest rank."""
    if not isinstance(op, linalg.GenericOp) or len(op.outputs) != 1 or len(op.results) != 1:
        return 0
    nest = loop_nest(op)
    rank = max((_rank(v) for v in op.inputs), default=0)
    if nest is None or not nest.is_parallel or rank == 0:
        return 0
    before, after = _width([v for v in op.inputs if _rank(v) == rank]), _width(op.results)
    if not before or not after:
        return 0
    change = after - before
    return change if change >= 0 or rank == _rank(op.results[0]) else 0


def _width(values: Sequence[SSAValue]) -> int:
    """Returns the bits of the widest element of tensors, 0 if a width is unknown."""
    widths = [bit_width(element_of(v)) or 0 for v in values]
    return max(widths) if 0 not in widths else 0


def _rank(value: SSAValue) -> int:
    return value.type.get_num_dims() if isinstance(value.type, TensorType) else 0


def is_bit_extend(op: Operation) -> bool:
    """Whether an op widens elements (dequantization included) without `math` ops."""
    if _width_change(op) <= 0:
        return False
    return not any(inner.name.startswith("math.") for inner in op.regions[0].block.ops)


def is_bit_truncate(op: Operation) -> bool:
    """Whether an op narrows elements."""
    return _width_change(op) < 0


def is_gather_like(op: Operation) -> bool:
    """Whether an op yields values extracted from a tensor at computed indices."""
    nest = loop_nest(op)
    if not isinstance(op, linalg.GenericOp) or nest is None or not nest.is_parallel:
        return False
    block = op.body.block
    terminator = block.last_op
    assert terminator is not None
    stack, seen = list(terminator.operands), set[Operation]()
    if len(stack) != 1:
        return False
    while stack:
        value = stack.pop()
        if isinstance(value, BlockArgument) or not isinstance(value.owner, Operation):
            continue
        inner = value.owner
        if is_extract(inner):
            return True
        if inner.parent is block and inner not in seen:
            seen.add(inner)
            stack.extend(inner.operands)
    return False


def is_attention(op: Operation) -> TypeGuard[ext.AttentionOp | ext.OnlineAttentionOp]:
    """Whether an op is attention or online attention."""
    return isinstance(op, ext.AttentionOp | ext.OnlineAttentionOp)


def makes_attention_mask(op: Operation) -> bool:
    """Whether a result of an op is used as an attention mask."""
    return any(
        is_attention(use.operation) and use.operation.mask is result
        for result in op.results
        for use in result.uses
    )


def makes_scatter_indices(op: Operation) -> bool:
    """Whether a result of an op is used as scatter indices."""
    return any(
        isinstance(use.operation, ext.ScatterOp) and use.operation.indices is result
        for result in op.results
        for use in result.uses
    )


def is_cloneable(op: Operation, *, aggressive: bool = False) -> bool:
    """
    Whether an op is cloned into each kernel that uses its results
    (IREE: isCloneableIntoDispatchOp).
    """
    if op.name.split(".")[0] not in CLONEABLE_DIALECTS or inserted(op):
        return False
    if isinstance(op, CLONED):
        return True
    if is_linalg(op) and _feeds_scan(op):
        return False
    if is_bit_extend(op):
        return True
    if aggressive and (makes_attention_mask(op) or makes_scatter_indices(op)):
        return True
    if isinstance(op, arith.ConstantOp | complex.ConstantOp):
        return _is_small_constant(op)
    return op.name.startswith("arith.") and all(
        bit_width(value.type) is not None for value in (*op.operands, *op.results)
    )


def _feeds_scan(op: Operation) -> bool:
    return any(isinstance(use.operation, ext.ScanOp) for r in op.results for use in r.uses)


def _is_small_constant(op: arith.ConstantOp | complex.ConstantOp) -> bool:
    kind = op.results[0].type
    if not isinstance(kind, TensorType):
        return isinstance(kind, IndexType | ComplexType) or bit_width(kind) is not None
    value = op.value
    if is_splat(value):
        return True
    element = kind.element_type
    parts = 2 if isinstance(element, ComplexType) else 1
    bits = bit_width(element.element_type if isinstance(element, ComplexType) else element) or 64
    return prod(kind.get_shape()) * parts * bits // 8 <= COMMON.inline_constant_bytes
