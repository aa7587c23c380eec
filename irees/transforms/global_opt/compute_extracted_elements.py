"""
Computes only the elements of a large tensor that the program reads.

A table that is a formula of its indices (an iota, a ramp, a splat) may be far larger than the part
that the program reads, such as one row of a mask with 2^28 positions. The pass avoids materializing
the table.

    %t = linalg.generic outs(%e : tensor<268435456xi32>) { cast(linalg.index 0) }
    %x = tensor.extract %t[%k] : tensor<268435456xi32>
  =>
    %x = arith.index_cast clamp(%k)

    %s = tensor.extract_slice %t[7] [4] [2] : tensor<268435456xi32> to tensor<4xi32>
  =>
    %s = linalg.generic outs(%e : tensor<4xi32>) { cast(linalg.index 0 * 2 + 7) }

An out-of-bounds extract reads the first or last element, as in the compiled program. The pass skips
tensors below `COMMON.extracted_bytes`, tensors that some op reads as a whole, bodies that read a
tensor or have more than `COMMON.extracted_ops` ops, and dynamic shapes. IREE: `FoldTensorExtractOp`
for constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.utils.inlining import splice
from irees.transforms.utils.reshapes import reshape
from irees.transforms.utils.shapes import IndexBuilder, element_bytes
from irees.transforms.utils.structured import generic, is_parallel, iterators, maps

NAME = "irees-compute-extracted-elements"


Read = tensor.ExtractOp | tensor.ExtractSliceOp


def is_formula(op: linalg.GenericOp) -> bool:
    """Whether an op computes a large tensor only from its loop indices and scalars."""
    kind = op.results[0].type if len(op.results) == 1 else None
    if not isinstance(kind, TensorType) or not kind.has_static_shape() or not is_parallel(op):
        return False
    size = element_bytes(kind)
    for extent in kind.get_shape():
        size *= extent
    if size < COMMON.extracted_bytes or any(isinstance(i.type, TensorType) for i in op.inputs):
        return False
    indexing, block = maps(op)[-1], op.body.block
    if indexing != AffineMap.identity(indexing.num_dims) or block.args[-1].uses:
        return False
    ops = list(islice(block.ops, COMMON.extracted_ops + 1))
    return len(ops) <= COMMON.extracted_ops and all(_is_scalar(inner) for inner in ops)


def _is_scalar(op: Operation) -> bool:
    if isinstance(op, linalg.YieldOp | linalg.IndexOp):
        return True
    on_tensors = any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results))
    return not op.regions and not on_tensors and is_side_effect_free(op)


def reads_of(op: linalg.GenericOp) -> list[Read] | None:
    """Returns the extracts and static slices of a result; None if it has any other use."""
    readers = [use.operation for use in op.results[0].uses]
    reads = [
        each for each in readers if isinstance(each, Read) and each.operands[0] is op.results[0]
    ]
    slices = (each for each in reads if isinstance(each, tensor.ExtractSliceOp))
    return reads if len(reads) == len(readers) and all(map(_is_static, slices)) else None


def _is_static(op: tensor.ExtractSliceOp) -> bool:
    numbers = (*op.static_offsets.get_values(), *op.static_sizes.get_values())
    is_empty = 0 in op.static_sizes.get_values()
    return not is_empty and DYNAMIC_INDEX not in (*numbers, *op.static_strides.get_values())


def element(op: linalg.GenericOp, read: tensor.ExtractOp) -> SSAValue:
    """extract %t[%i]  =>  the body of %t at clamp(%i)"""
    builder = IndexBuilder(InsertPoint.before(read))
    kind = op.results[0].type
    assert isinstance(kind, TensorType)
    places = [
        builder.value(builder.minimum(builder.maximum(index, 0), size - 1))
        for index, size in zip(read.indices, kind.get_shape(), strict=True)
    ]
    body = op.body.clone().block
    for inner in _indices_of(body):
        Rewriter.replace_op(inner, [], [places[inner.dim.value.data]])
    nothing = places[0]
    return splice(body, InsertPoint.before(read), [*op.inputs, nothing])[0]


def _indices_of(block: Block) -> list[linalg.IndexOp]:
    return [op for op in block.ops if isinstance(op, linalg.IndexOp)]


def part(op: linalg.GenericOp, read: tensor.ExtractSliceOp) -> SSAValue:
    """extract_slice %t[offsets] [sizes] [strides]  =>  the formula of %t for those elements"""
    builder = IndexBuilder(InsertPoint.before(read))
    kind, result = op.results[0].type, read.result.type
    assert isinstance(kind, TensorType)
    assert isinstance(result, TensorType)
    sizes = list(read.static_sizes.get_values())
    empty = builder.insert(tensor.EmptyOp((), TensorType(kind.get_element_type(), sizes)))
    body = op.body.clone()
    offsets, strides = read.static_offsets.get_values(), read.static_strides.get_values()
    for inner in _indices_of(body.block):
        dim = inner.dim.value.data
        inside = IndexBuilder(InsertPoint.after(inner))
        local = linalg.IndexOp(dim)
        Rewriter.insert_op(local, InsertPoint.before(inner))
        place = inside.add(inside.mul(local.result, strides[dim]), offsets[dim])
        Rewriter.replace_op(inner, [], [inside.value(place)])
    made = generic(op.inputs, [empty.results[0]], maps(op), iterators(op), body)
    made.location = op.location
    builder.insert(made)
    return reshape(made.results[0], result.get_shape(), builder)


@dataclass(frozen=True)
class ComputeExtractedElementsPass(ModulePass):
    """Computes elements of large formula tensors where they are read."""

    name = "irees-compute-extracted-elements"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            if not is_formula(inner) or (reads := reads_of(inner)) is None or not reads:
                continue
            if not may_rewrite(NAME, inner, "elements of linalg.generic"):
                continue
            for read in reads:
                of = element if isinstance(read, tensor.ExtractOp) else part
                Rewriter.replace_op(read, [], [of(inner, read)])  # pyright: ignore
            Rewriter.erase_op(inner)
