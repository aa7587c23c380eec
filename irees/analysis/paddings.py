"""
Matches insertions that pad the result of a kernel, so that the kernel can write in place.

    %f = fill %c; %r = tensor.insert_slice %x into %f[1, 1] [6, 6] [1, 1]
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, Operation

from irees.dialects.storage import inserted, is_undefined


def is_padding(op: Operation) -> bool:
    """
    Whether an op inserts a tensor into a fill.

    Requires static offsets, unit strides, and a slice without rank reduction.
    """
    part = inserted(op)
    if part is None or not is_frame(part.source.owner):
        return False
    small = op.operands[0].type
    assert isinstance(small, TensorType)
    if not all(isinstance(n, int) and n != DYNAMIC_INDEX for n in part.offsets):
        return False
    sizes = [n if isinstance(n, int) else DYNAMIC_INDEX for n in part.sizes]
    return list(small.get_shape()) == sizes and all(step == 1 for step in part.strides)


def is_framed(op: Operation) -> bool:
    """Whether an op pads the result of a `linalg.generic` of its block that has no other use."""
    if not is_padding(op):
        return False
    small = op.operands[0]
    source = small.owner
    same_block = isinstance(source, linalg.GenericOp) and source.parent is op.parent
    return same_block and small.has_one_use()


def is_fill(op: Operation | Block) -> bool:
    """Whether an op is a fill: a generic without tensor inputs that yields one scalar."""
    if not isinstance(op, linalg.GenericOp) or len(op.outputs) != 1:
        return False
    if any(isinstance(i.type, TensorType) for i in op.inputs):
        return False
    if not is_undefined(op.outputs[0].owner):
        return False
    *body, _ = op.body.block.ops
    return all(isinstance(o, arith.ConstantOp) for o in body)


def is_background(op: Operation | Block) -> bool:
    """Whether an op creates a tensor from scalars only, as a fill does."""
    return (
        isinstance(op, linalg.GenericOp)
        and all(kind.data is IteratorType.PARALLEL for kind in op.iterator_types)
        and not any(isinstance(i.type, TensorType) for i in op.inputs)
        and not any(isinstance(o, linalg.IndexOp) for o in op.body.block.ops)
        and len(op.outputs) == 1
        and is_undefined(op.outputs[0].owner)
    )


def is_frame(op: Operation | Block) -> bool:
    """Whether an op is a fill with a scalar that is a constant or a block argument."""
    if not is_fill(op):
        return False
    assert isinstance(op, linalg.GenericOp)
    return all(isinstance(v.owner, Block | arith.ConstantOp) for v in op.inputs)
