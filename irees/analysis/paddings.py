"""
Which insertions only put a frame around what a kernel computes, so that it can be done in place.

    %f = fill %c; %r = tensor.insert_slice %x into %f[1, 1] [6, 6] [1, 1]
"""

from __future__ import annotations

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation


def is_framed(op: Operation) -> bool:
    """
    Whether an op inserts what only it reads, and a `linalg.generic` computes, into a fill.

    All sizes are known then, steps are 1 and the slice has the rank of the whole.
    """
    if not isinstance(op, tensor.InsertSliceOp):
        return False
    source, fill = op.source.owner, op.dest.owner
    if not isinstance(source, linalg.GenericOp) or source.parent is not op.parent:
        return False
    if not isinstance(fill, linalg.GenericOp) or not is_frame(fill) or not op.source.has_one_use():
        return False
    assert isinstance(op.source.type, TensorType)
    assert isinstance(op.result.type, TensorType)
    sizes = tuple(op.static_sizes.get_values())
    known = (*op.static_offsets.get_values(), *sizes, *op.result.type.get_shape())
    if DYNAMIC_INDEX in known or op.source.type.get_shape() != sizes:
        return False
    return set(op.static_strides.get_values()) <= {1}


def is_frame(fill: linalg.GenericOp) -> bool:
    """Whether an op writes everywhere a scalar that is there from the beginning of a kernel."""
    if len(fill.results) != 1 or not isinstance(fill.outputs[0].owner, tensor.EmptyOp):
        return False
    if any(isinstance(v.type, TensorType) for v in fill.inputs):
        return False
    *body, _ = fill.body.block.ops
    constant = all(isinstance(o, arith.ConstantOp) for o in body)
    return constant and all(isinstance(v.owner, Block | arith.ConstantOp) for v in fill.inputs)
