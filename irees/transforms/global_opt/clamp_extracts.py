"""
Clamps the index of a `tensor.extract` if its loop may be longer than the tensor.

Code generation clamps data-dependent indices of `tensor.extract`. It does not clamp plain loop
indices, because a loop is usually as long as the tensors that it reads. This pass adds the clamp
where a loop may be longer than the tensor. It runs while both sizes are still SSA values that can
be compared.

    linalg.generic outs(%o : tensor<?xf32>) { %i = linalg.index 0 ; tensor.extract %t[%i] }
  =>
    linalg.generic outs(%o : tensor<?xf32>) { ... tensor.extract %t[min(%i, dim(%t, 0) - 1)] }

Code generation also emits a branch for an empty tensor, from which any load is 0. This pass marks
the extracts that need none: an assert requires that the tensor has elements, or that the op has no
iteration. `irees-verify-accesses` proves the load from the same assert, or guards it.

    cf.assert (dim %t > 0) ; linalg.generic { tensor.extract %t[%x] }
  =>
    cf.assert (dim %t > 0) ; linalg.generic { tensor.extract %t[%x] {irees.not_empty} }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects import arith, cf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, UnitAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.dialects.storage import NOT_EMPTY, is_extract
from irees.transforms.utils.accesses import asserted_bounds
from irees.transforms.utils.shapes import IndexBuilder, Size, constant_value, dim, same_size
from irees.transforms.utils.structured import loop_sources, static_ranges


def fits(size: Size, extent: Size) -> bool:
    """Whether size <= extent can be proved."""
    if isinstance(size, int) and isinstance(extent, int):
        return size <= extent
    return same_size(size, extent)


BELOW = {"sgt": 0, "ugt": 0, "sge": 1, "uge": 1}
"""Predicates of `size > c` => the least c for which the size is positive."""

ABOVE = {"slt": 0, "ult": 0, "sle": 1, "ule": 1}
"""The same for the predicates of `c < size`."""


def is_positive(condition: SSAValue, size: Size, loops: Sequence[Size]) -> bool:
    """Whether a condition implies that a size is positive, or that one of `loops` is empty."""
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        return any(is_positive(part, size, loops) for part in op.operands)
    if isinstance(op, arith.OrIOp):
        return all(is_positive(part, size, loops) for part in op.operands)
    if not isinstance(op, arith.CmpiOp):
        return False
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    if predicate == "eq" and constant_value(op.rhs) == 0:
        return any(same_size(op.lhs, loop) for loop in loops)
    for value, other, least in ((op.lhs, op.rhs, BELOW), (op.rhs, op.lhs, ABOVE)):
        bound = constant_value(other)
        if bound is not None and bound >= least.get(predicate, inf) and same_size(value, size):
            return True
    return False


def require_elements(size: SSAValue, loops: Sequence[SSAValue], here: IndexBuilder) -> cf.AssertOp:
    """Asserts that a size is positive, or that one of `loops` is empty."""
    zero = here.value(0)
    fine = here.insert(arith.CmpiOp(size, zero, "sgt")).results[0]
    for loop in loops:
        empty = here.insert(arith.CmpiOp(loop, zero, "eq")).results[0]
        fine = here.insert(arith.OrIOp(fine, empty)).results[0]
    op = cf.AssertOp(fine, "an index is out of bounds for a dim of size 0")
    here.insert(op)
    return op


def mark_not_empty(op: linalg.GenericOp, asserts: list[cf.AssertOp]) -> None:
    """
    tensor.extract %t[%x], where an assert requires elements  =>  {irees.not_empty}

    An index that the body asserts to be in bounds requires elements, too.
    """
    extracts = [o for o in op.body.block.ops if is_extract(o) and computed_dims(o)]
    if not extracts or 0 in static_ranges(op):
        return
    here = IndexBuilder(InsertPoint.before(op))
    sizes = [dim(op.operands[s[0]], s[1], here) for s in loop_sources(op) if s is not None]
    loops = [size for size in sizes if not isinstance(size, int)]
    for inner in extracts:
        if all(has_elements(inner, axis, loops, asserts) for axis in computed_dims(inner)):
            inner.attributes[NOT_EMPTY] = UnitAttr()


def computed_dims(op: tensor.ExtractOp) -> list[int]:
    """Returns the dynamic dims of the tensor whose indices are no plain loop indices."""
    shape = op.tensor.type.get_shape()  # type: ignore[attr-defined]
    return [
        axis
        for axis, index in enumerate(op.indices)
        if shape[axis] == DYNAMIC_INDEX and not isinstance(index.owner, linalg.IndexOp)
    ]


def has_elements(
    op: tensor.ExtractOp, axis: int, loops: Sequence[SSAValue], asserts: list[cf.AssertOp]
) -> bool:
    """Whether an assert requires that a dim is not empty; adds one if the body asserts it."""
    outer = op.parent_op()
    assert outer is not None
    here = IndexBuilder(InsertPoint.before(outer))
    size = dim(op.tensor, axis, here)
    if isinstance(size, int):
        return size > 0
    known = (a.arg for a in asserts if a.parent is not None and a.parent.is_ancestor(outer))
    if any(is_positive(condition, size, loops) for condition in known):
        return True
    if asserted_bounds(op.indices[axis], size, InsertPoint.before(op)) is None:
        return False
    asserts.append(require_elements(size, loops, here))
    return True


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
    """Clamps loop indices of extracts that may exceed the tensor; marks tensors with elements."""

    name = "irees-clamp-extracts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        asserts: list[cf.AssertOp] = []
        for inner in list(op.walk()):
            if isinstance(inner, cf.AssertOp):
                asserts.append(inner)
            elif isinstance(inner, linalg.GenericOp) and inner.res:
                mark_not_empty(inner, asserts)
                clamp_extracts(inner)
