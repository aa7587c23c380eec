"""
Builders for the lowerings of plug-ins; the only module that they need of irees.

    class Squash:
        @staticmethod
        def to_structured(op, builder):
            kind, loops = op.x.type.element_type, identity_map(op.x)
            init = builder.empty(kind, dims(op.x, builder))
            body = lambda s, v: [s.op(arith.DivfOp, v[0], s.op(math.AbsFOp, v[0]))]
            return builder.compute([op.x], [init], [loops, loops], body)

`TensorBuilder` builds ops on tensors, `ScalarBuilder` the bodies of structured ops, and both
arithmetic on sizes, which are ints or index values.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from irees.transforms.utils.shapes import IndexBuilder, Size, dim, dims
from irees.transforms.utils.tensors import (
    ScalarBuilder,
    TensorBuilder,
    constant,
    rank_of,
    select_dims,
)

__all__ = [
    "IndexBuilder",
    "ScalarBuilder",
    "Size",
    "TensorBuilder",
    "constant",
    "dim",
    "dims",
    "identity_map",
    "rank_of",
    "select_dims",
]


def identity_map(value: SSAValue) -> AffineMap:
    """(d0, d1, ...) -> (d0, d1, ...), for all dims of a tensor"""
    return AffineMap.identity(rank_of(value))
