"""
Replaces `tensor.dim` of results by arithmetic on the dims of operands.

`tensor.dim` of an op's result makes a shape computation wait for data. Almost every op defines its
result shape in terms of its operands. The pass rewrites each query accordingly, so the remaining
queries read dims of function arguments.

    %1 = linalg.generic ... outs(%0 : tensor<?xf32>) -> tensor<?xf32>
    %d = tensor.dim %1, %c0
  =>
    %d = tensor.dim %0, %c0

A non-constant index selects among all dims. `irees-insert-shape-checks` has asserted that the index
is in bounds.

MLIR's `resolve-ranked-shaped-type-result-dims`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.transforms.utils.shapes import IndexBuilder, Size, constant_value, dim, dims


def chosen(query: tensor.DimOp, builder: IndexBuilder) -> Size:
    """Returns the dim at a non-constant index, as a chain of selects."""
    sizes = [builder.value(size) for size in dims(query.source, builder)]
    found = sizes[-1]
    for axis, size in reversed(list(enumerate(sizes[:-1]))):
        here = builder.insert(arith.CmpiOp(query.index, builder.value(axis), "eq")).results[0]
        found = builder.insert(arith.SelectOp(here, size, found)).results[0]
    return found


@dataclass(frozen=True)
class ResolveShapedTypeResultDimsPass(ModulePass):
    """Replaces `tensor.dim` of results by arithmetic on dims of operands."""

    name = "irees-resolve-shaped-type-result-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for query in [o for o in op.walk() if isinstance(o, tensor.DimOp)]:
            index = constant_value(query.index)
            if not isinstance(query.source.type, TensorType):
                continue
            builder = IndexBuilder(InsertPoint.before(query))
            if index is not None and 0 <= index < query.source.type.get_num_dims():
                size = dim(query.source, index, builder)
            else:
                size = chosen(query, builder)
            Rewriter.replace_op(query, [], [builder.value(size)])
