"""
Clamps the index of a `tensor.extract` if its loop may be longer than the tensor.

Code generation clamps data-dependent indices of `tensor.extract`. It does not clamp plain loop
indices, because a loop is usually as long as the tensors that it reads. This pass adds the clamp
where a loop may be longer than the tensor. It runs while both sizes are still SSA values that can
be compared.

    linalg.generic outs(%o : tensor<?xf32>) { %i = linalg.index 0 ; tensor.extract %t[%i] }
  =>
    linalg.generic outs(%o : tensor<?xf32>) { ... tensor.extract %t[min(%i, dim(%t, 0) - 1)] }
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.transforms.utils.shapes import IndexBuilder, Size, dim, same_size
from irees.transforms.utils.structured import loop_sources


def fits(size: Size, extent: Size) -> bool:
    """Whether size <= extent can be proved."""
    if isinstance(size, int) and isinstance(extent, int):
        return size <= extent
    return same_size(size, extent)


def clamp_extracts(op: linalg.GenericOp) -> None:
    """tensor.extract %t[%i] in a loop that may be longer than %t  =>  %t[min(%i, last)]"""
    for inner in [o for o in op.body.block.ops if isinstance(o, tensor.ExtractOp)]:
        here = IndexBuilder(InsertPoint.before(inner))
        for axis, index in enumerate(inner.indices):
            if not isinstance(index.owner, linalg.IndexOp):
                continue
            source = loop_sources(op)[index.owner.dim.value.data]
            made_here = isinstance(inner.tensor.owner, Operation) and op.is_ancestor(
                inner.tensor.owner
            )
            outside = here if made_here else IndexBuilder(InsertPoint.before(op))
            extent = dim(inner.tensor, axis, outside)
            if source is not None and fits(dim(op.operands[source[0]], source[1], outside), extent):
                continue
            last = here.minimum(index, outside.sub(extent, 1))
            inner.operands[1 + axis] = here.value(last)


@dataclass(frozen=True)
class ClampExtractsPass(ModulePass):
    """Clamps extract indices whose loop may be longer than the tensor."""

    name = "irees-clamp-extracts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, linalg.GenericOp) and inner.res:
                clamp_extracts(inner)
