"""
Finds loop-invariant inputs and ops in the body of a structured op. For
`irees-vectorize-structured-ops` and `irees-select-strategy`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.traits import is_side_effect_free

from irees.dialects.storage import loaded, root
from irees.targets.cpu import CPU
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
        own = (o for each in inner.walk() for o in each.operands if _parent(o) is block)
        if _depends_on_operands_only(inner, loops, written) and all(o in fixed for o in own):
            fixed |= set(inner.results)
            found.append(inner)
    return inputs, found


def sharing_loop(op: linalg.GenericOp, parallel: Sequence[int]) -> int | None:
    """
    Returns the loop of `parallel` that should be innermost, since much of the body is the same in
    all its iterations; None if the order of the loops is as good.

    out[c, i, j] = table[c, f(x[i, j])]: all c share f.
    """
    fixed = {loop: len(invariants(op, {loop})[1]) for loop in parallel}
    best = max(parallel, key=lambda loop: fixed[loop], default=None)
    if best is None or fixed[best] < fixed[parallel[-1]] + CPU.shared_ops:
        return None
    return best


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
    if isinstance(op, scf.IfOp):
        inside = (o for region in op.regions for block in region.blocks for o in block.ops)
        return all(
            isinstance(o, scf.YieldOp) or _depends_on_operands_only(o, loops, written)
            for o in inside
        )
    return not isinstance(op, linalg.YieldOp) and not op.regions and is_side_effect_free(op)
