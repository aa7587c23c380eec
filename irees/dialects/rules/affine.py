"""Rules of affine: which values may be dims and symbols of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from irees.dialects.rules._parents import ends_body_of

SCOPES = ("func.func", "util.func", "builtin.module", "util.initializer")
"""Ops whose regions are scopes: a value at their top level does not change inside of a loop."""
LOOPS = ("affine.for", "affine.parallel")
DIMS = ("tensor.dim", "memref.dim")


def _owner_block(value: SSAValue) -> Block | None:
    if isinstance(value, BlockArgument):
        return value.block
    return value.owner.parent if isinstance(value.owner, Operation) else None


def is_top_level(value: SSAValue) -> bool:
    """Whether a value is made at the top of a scope."""
    block = _owner_block(value)
    parent = None if block is None else block.parent_op()
    return parent is not None and parent.name in SCOPES


def is_symbol(value: SSAValue) -> bool:
    """Whether a value is the same in all iterations of the loops of its scope."""
    if is_top_level(value):
        return True
    op = value.owner
    if not isinstance(op, Operation):
        return False
    if isinstance(op, arith.ConstantOp):
        return True
    if op.name in DIMS:
        index = op.operands[1].owner
        return isinstance(index, arith.ConstantOp) or all(is_symbol(v) for v in op.operands)
    return op.has_trait(Pure, value_if_unregistered=False) and all(
        is_symbol(v) for v in op.operands
    )


def is_dim(value: SSAValue) -> bool:
    """Whether a value is a symbol, an induction variable, or computed from these by a map."""
    if is_symbol(value):
        return True
    op = value.owner
    if isinstance(op, Block):
        parent = op.parent_op()
        return parent is not None and parent.name in LOOPS
    return op.name in (
        "affine.apply",
        "affine.delinearize_index",
        "affine.linearize_index",
    ) and all(is_dim(v) for v in op.operands)


def _check(map_: AffineMap, operands: Sequence[SSAValue]) -> None:
    for value in operands[: map_.num_dims]:
        if not is_dim(value):
            raise VerifyException("operand cannot be used as a dimension id")
    for value in operands[map_.num_dims :]:
        if not is_symbol(value):
            raise VerifyException("operand cannot be used as a symbol")


def check_access(op: Any) -> None:
    """Indices of a load or store are dims; xDSL reads them all as symbols of the map."""
    for value in op.indices:
        if not is_dim(value):
            raise VerifyException("operand cannot be used as a dimension id")


def check_for(op: Any) -> None:
    """
    Bounds are maps with results, of dims and symbols, the step is positive, and the body is one
    block that takes the index and what is carried, and yields the latter.
    """
    bounds = (
        ("lower", op.lowerBoundMap.data, op.lowerBoundOperands),
        ("upper", op.upperBoundMap.data, op.upperBoundOperands),
    )
    for name, map_, operands in bounds:
        if not map_.results:
            raise VerifyException(f"expected {name} bound map to have at least one result")
        _check(map_, operands)
    step = op.step.value.data
    if step <= 0:
        raise VerifyException(f"expected step to be a positive integer, got {step}")
    carried = [value.type for value in op.inits]
    blocks = list(op.body.blocks)
    if len(blocks) != 1 or [a.type for a in blocks[0].args] != [IndexType(), *carried]:
        raise VerifyException("expected a body of one block with an index and the iter_args")
    end = blocks[0].last_op
    if end is None or end.name != "affine.yield" or [v.type for v in end.operands] != carried:
        raise VerifyException("expected the body to end with a yield of the iter_args")


def check_apply(op: Any) -> None:
    """An induction variable is no symbol."""
    map_ = op.map.data
    for value in op.mapOperands[map_.num_dims :]:
        if is_dim(value) and not is_symbol(value):
            raise VerifyException("dimensional operand cannot be used as a symbol")


def check_extreme(op: Any) -> None:
    """There is something to take the least or the greatest of."""
    if not op.map.data.results:
        raise VerifyException("affine map expect at least one result")


RULES = {
    "affine.load": (check_access,),
    "affine.store": (check_access,),
    "affine.for": (check_for,),
    "affine.apply": (check_apply,),
    "affine.min": (check_extreme,),
    "affine.max": (check_extreme,),
    "affine.yield": (ends_body_of("affine.for", "affine.if", "affine.parallel"),),
}
