"""
Makes sorts for GPUs out of place, and lets them generate the positions that they sort.

`torch.sort` returns values and positions. Frontends sort the values in place together with a tensor
of positions. In that form one kernel fills the tensor of positions, and two more copy both operands
into the results, which the sort then reads and writes. A radix sort reads and writes each operand
once and can generate the positions itself (`irees-gpu-lower-sorts`):

    %i = linalg.generic outs(%e : tensor<64x4096xi64>) { linalg.index 1 }
    %s:2 = iree_linalg_ext.sort dimension(1) outs(%x, %i : tensor<64x4096xf32>, tensor<64x4096xi64>)
  =>
    %s:2 = iree_linalg_ext.sort dimension(1) positions([1]) ins(%x : tensor<64x4096xf32>)
        outs(%f, %g : tensor<64x4096xf32>, tensor<64x4096xi64>)         // both are tensor.empty

Runs before unit dims are folded, while the positions have the shape of the values.

The pass skips programs for CPUs, comparators that are not a plain comparison of numbers or that
compare positions, and key types that have no radix sort, whose rows `irees-split-sorts` splits.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import target_of
from irees.rewrites import may_rewrite
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.structured import element_type, is_parallel, maps
from irees.transforms.utils.tensors import TensorBuilder

DIGITS = (8, 16, 32, 64)
"""Key widths, in bits, that have a radix sort."""


def are_positions(value: SSAValue, dim: int) -> bool:
    """Whether a tensor is an integer iota along a dim."""
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or len(op.outputs) != 1 or op.inputs:
        return False
    (indexing,) = maps(op)
    if not is_parallel(op) or indexing != AffineMap.identity(len(indexing.results)):
        return False
    body, kind = list(op.body.block.ops), element_type(value)
    if not isinstance(kind, IntegerType) or len(body) != 3:
        return False
    index, cast, end = body
    return (
        isinstance(index, linalg.IndexOp)
        and index.dim.value.data == dim
        and (isinstance(cast, arith.IndexCastOp) or cast.name == "arith.index_castui")
        and cast.operands[0] is index.results[0]
        and end.operands[0] is cast.results[0]
    )


def stays(op: ext.SortOp) -> bool:
    """Whether a sort keeps its form."""
    order = Order.of(op.body.block)
    if not isinstance(op.outputs[0].type, TensorType) or op.generated or order.operand is None:
        return True
    return getattr(element_type(op.outputs[order.operand]), "bitwidth", 0) not in DIGITS


def out_of_place(op: ext.SortOp, b: TensorBuilder) -> ext.SortOp:
    """Returns the out-of-place sort; operands that are positions get no input."""
    dim, sources, order = op.dimension.value.data, op.sources, Order.of(op.body.block)
    generated = [
        number
        for number, source in enumerate(sources)
        if source is not None and number != order.operand and are_positions(source, dim)
    ]
    inputs = [s for i, s in enumerate(sources) if s is not None and i not in generated]
    inits = [b.empty(element_type(v), dims(v, b)) for v in op.outputs]
    properties = {"dimension": op.dimension}
    if generated:
        properties["positions"] = DenseArrayBase.from_list(i64, generated)
    return ext.SortOp.of(inputs, inits, properties, op.body.clone())


@dataclass(frozen=True)
class SortOutOfPlacePass(ModulePass):
    """Makes sorts for GPUs out of place, and lets them generate positions."""

    name = "irees-sort-out-of-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is None:
            return
        for sort in [o for o in op.walk() if isinstance(o, ext.SortOp)]:
            if stays(sort):
                continue
            if not may_rewrite(self.name, sort, "out of place"):
                return
            b = TensorBuilder(sort)
            new = b.insert(out_of_place(sort, b))
            Rewriter.replace_op(sort, [], list(new.results))
