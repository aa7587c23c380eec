"""
Finds loop-invariant inputs and ops in the body of a structured op. Part of
`irees-vectorize-structured-ops`.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.traits import is_side_effect_free

from irees.dialects.storage import loaded, root
from irees.transforms.utils.structured import maps


def invariants(op: linalg.GenericOp, moving: Collection[int]) -> tuple[list[int], list[Operation]]:
    """
    Returns the inputs and body ops that are invariant in the loops `moving`.

    All of them may be hoisted out of those loops, even if the trip count is 0: ops that could then
    access memory out of bounds are excluded.
    """
    written = {root(o) for o in op.outputs}
    loops = set(moving)
    inputs = [
        position
        for position, (operand, indexing) in enumerate(zip(op.inputs, maps(op), strict=False))
        if not indexing.used_dims() & loops
        and root(operand) not in written
        and _exists(operand, indexing.results)
    ]
    block = op.body.block
    fixed: set[SSAValue] = {block.args[i] for i in inputs}
    found: list[Operation] = []
    for inner in block.ops:
        own = (o for o in inner.operands if o.owner is block or _parent(o) is block)
        if _depends_on_operands_only(inner, loops, written) and all(o in fixed for o in own):
            fixed |= set(inner.results)
            found.append(inner)
    return inputs, found


def _parent(value: SSAValue):
    return value.owner.parent_block() if isinstance(value.owner, Operation) else value.owner


def _exists(operand: SSAValue, exprs: Collection[AffineExpr]) -> bool:
    """Whether the indices of an input are in bounds: outer loops, or constants below the size."""
    if not isinstance(operand.type, MemRefType):
        return True
    return all(
        isinstance(e, AffineDimExpr) or (isinstance(e, AffineConstantExpr) and 0 <= e.value < size)
        for e, size in zip(exprs, operand.type.get_shape(), strict=True)
    )


def _depends_on_operands_only(op: Operation, loops: set[int], written: set[SSAValue]) -> bool:
    """Whether an op yields the same value in each iteration of `loops` for the same operands."""
    if isinstance(op, linalg.IndexOp):
        return op.dim.value.data not in loops
    if (buffer := loaded(op)) is not None:
        return root(buffer) not in written
    return not isinstance(op, linalg.YieldOp) and not op.regions and is_side_effect_free(op)
