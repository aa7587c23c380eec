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

An index that is in bounds whenever its loop is, such as that of a reversed row, is neither clamped
nor does it need elements. Its dim is listed in `irees.in_bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import cf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, ModuleOp, UnitAttr, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.analysis._linear import Linear
from irees.analysis.value_bounds import ValueBounds
from irees.dialects.storage import IN_BOUNDS, NOT_EMPTY, is_extract
from irees.transforms.global_opt.utils.asserted_sizes import (
    conditions_before,
    is_at_most,
    is_positive,
    require_elements,
)
from irees.transforms.utils.accesses import asserted_bounds
from irees.transforms.utils.shapes import IndexBuilder, Size, dim, same_size
from irees.transforms.utils.structured import loop_sources, static_ranges


def fits(size: Size, extent: Size, asserted: Sequence[SSAValue]) -> bool:
    """Whether size <= extent can be proved, or is asserted."""
    if isinstance(size, int) and isinstance(extent, int):
        return size <= extent
    return same_size(size, extent) or any(is_at_most(size, extent, c) for c in asserted)


def mark(op: linalg.GenericOp, asserts: list[cf.AssertOp], bounds: ValueBounds) -> None:
    """
    tensor.extract %t[%x]  =>  {irees.in_bounds}, with the dims whose indices are proved in bounds,
    and {irees.not_empty} where an assert requires that the other dynamic dims have elements.

    An index that the body asserts to be in bounds requires elements, too.
    """
    reads = [o for o in op.body.block.ops if is_extract(o) and not is_made_in(op, o.tensor)]
    extracts = [o for o in reads if computed_dims(o)]
    if not extracts or 0 in static_ranges(op):
        return
    here = IndexBuilder(InsertPoint.before(op))
    sizes = [dim(op.operands[s[0]], s[1], here) for s in loop_sources(op) if s is not None]
    loops = [size for size in sizes if not isinstance(size, int)]
    for inner in extracts:
        mark_extract(inner, loops, asserts, bounds)


def mark_extract(
    op: tensor.ExtractOp,
    loops: Sequence[SSAValue],
    asserts: list[cf.AssertOp],
    bounds: ValueBounds,
) -> None:
    """Adds what is known of the indices and of the tensor as attributes."""
    every = computed_dims(op)
    proved = [axis for axis in every if is_inside(op, axis, bounds)]
    if proved:
        op.attributes[IN_BOUNDS] = DenseArrayBase.from_list(i64, proved)
    rest = [axis for axis in every if axis not in proved]
    if rest and all(has_elements(op, axis, loops, asserts) for axis in rest):
        op.attributes[NOT_EMPTY] = UnitAttr()


def computed_dims(op: tensor.ExtractOp) -> list[int]:
    """Returns the dynamic dims of the tensor whose indices are no plain loop indices."""
    shape = op.tensor.type.get_shape()  # type: ignore[attr-defined]
    return [
        axis
        for axis, index in enumerate(op.indices)
        if shape[axis] == DYNAMIC_INDEX and not isinstance(index.owner, linalg.IndexOp)
    ]


def is_inside(op: tensor.ExtractOp, axis: int, bounds: ValueBounds) -> bool:
    """Whether the bounds of the loops prove that an index is in bounds."""
    index, size = bounds.expression(op.indices[axis]), bounds.expression(op.tensor, axis)
    return bounds.at_least(index, Linear.number(0)) and bounds.at_least(size, index + 1)


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
    known = conditions_before(outer, asserts)
    if any(is_positive(condition, size, loops) for condition in known):
        return True
    if asserted_bounds(op.indices[axis], size, InsertPoint.before(op)) is None:
        return False
    asserts.append(require_elements(size, loops, here))
    return True


def clamp_extracts(op: linalg.GenericOp, asserts: Sequence[cf.AssertOp]) -> None:
    """tensor.extract %t[%i] in a loop that may be longer than %t  =>  %t[min(%i, last)]"""
    known = conditions_before(op, asserts)
    for inner in [o for o in op.body.block.ops if is_extract(o)]:
        here = IndexBuilder(InsertPoint.before(inner))
        for axis, index in enumerate(inner.indices):
            if not isinstance(index.owner, linalg.IndexOp):
                continue
            source = loop_sources(op)[index.owner.dim.value.data]
            outside = here if is_made_in(op, inner.tensor) else IndexBuilder(InsertPoint.before(op))
            extent = dim(inner.tensor, axis, outside)
            size = None if source is None else dim(op.operands[source[0]], source[1], outside)
            if size is not None and fits(size, extent, known):
                continue
            last = here.minimum(index, outside.sub(extent, 1))
            inner.operands[1 + axis] = here.value(last)


def is_made_in(op: linalg.GenericOp, value: SSAValue) -> bool:
    """Whether the body of an op makes a value."""
    return isinstance(value.owner, Operation) and op.is_ancestor(value.owner)


@dataclass(frozen=True)
class ClampExtractsPass(ModulePass):
    """Clamps loop indices of extracts that may exceed the tensor; marks tensors with elements."""

    name = "irees-clamp-extracts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        asserts: list[cf.AssertOp] = []
        bounds = ValueBounds()
        for inner in list(op.walk()):
            if isinstance(inner, cf.AssertOp):
                asserts.append(inner)
            elif isinstance(inner, linalg.GenericOp) and inner.res:
                clamp_extracts(inner, asserts)
                mark(inner, asserts, bounds)
