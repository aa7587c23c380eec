"""
Builders for the lowerings of plug-ins; the only module that they need of irees.

    class Squash:
        @staticmethod
        def to_structured(op, builder):
            kind, loops = op.x.type.element_type, identity_map(op.x)
            init = builder.empty(kind, dims(op.x, builder))
            body = lambda s, v: [s.op(arith.DivfOp, v[0], s.op(math.AbsFOp, v[0]))]
            return builder.compute([op.x], [init], [loops, loops], body)

`TensorBuilder` builds ops on tensors, `ScalarBuilder` the bodies of structured ops, `IndexBuilder`
loops over buffers, and all of them arithmetic on sizes, which are ints or index values.

    class Sum:
        @staticmethod
        def to_loops(op, builder):
            def row(ivs, b):
                zero = b.insert(constant(0.0, op.x.type.element_type)).results[0]
                close, i, c = for_loop(b, 0, buffer_dim(op.x, 1, b), 1, [zero])
                total = c.op(arith.AddfOp, close.arguments[0], load(op.x, [ivs[0], i], c))
                store(close([total])[0], op.out, [ivs[0]], b)

            rows(op.x, [0], builder, row)
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from irees.analysis.contractions import multiply_add
from irees.dialects.upstream._effects import DestinationStyleEffects
from irees.interfaces import Domain
from irees.transforms.codegen.common.utils.rows import load, other_dims, place, rows, store
from irees.transforms.utils.loops import for_loop, if_else, if_values, while_loop
from irees.transforms.utils.reshapes import collapse, expand
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, dim, dims
from irees.transforms.utils.structured import affine_value
from irees.transforms.utils.tensors import (
    ScalarBuilder,
    TensorBuilder,
    constant,
    rank_of,
    select_dims,
)

__all__ = [
    "DestinationStyleEffects",
    "Domain",
    "IndexBuilder",
    "ScalarBuilder",
    "Size",
    "TensorBuilder",
    "affine_value",
    "buffer_dim",
    "collapse",
    "constant",
    "dim",
    "dims",
    "expand",
    "for_loop",
    "identity_map",
    "if_else",
    "if_values",
    "load",
    "multiply_add",
    "other_dims",
    "place",
    "rank_of",
    "rows",
    "select_dims",
    "store",
    "while_loop",
]


def identity_map(value: SSAValue) -> AffineMap:
    """(d0, d1, ...) -> (d0, d1, ...), for all dims of a tensor"""
    return AffineMap.identity(rank_of(value))
