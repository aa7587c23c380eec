"""Verification rules for affine: valid dims and symbols of a map."""

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
"""Affine scopes: values at the top level of their regions are loop-invariant."""
LOOPS = ("affine.for", "affine.parallel")
DIMS = ("tensor.dim", "memref.dim")


def _owner_block(value: SSAValue) -> Block | None:
    if isinstance(value, BlockArgument):
        return value.block
    return value.owner.parent if isinstance(value.owner, Operation) else None


def is_top_level(value: SSAValue) -> bool:
    """Whether a value is defined at the top level of a scope."""
    block = _owner_block(value)
    parent = None if block is None else block.parent_op()
    return parent is not None and parent.name in SCOPES


def is_symbol(value: SSAValue) -> bool:
    """Whether a value is a valid symbol: invariant in all loops of its scope."""
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
    """Whether a value is a valid dim: a symbol, an induction variable, or a map of these."""
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
    """Checks that load and store indices are valid dims; xDSL parses them all as symbols."""
    for value in op.indices:
        if not is_dim(value):
            raise VerifyException("operand cannot be used as a dimension id")


def check_for(op: Any) -> None:
    """
    Checks the bound maps, that the step is positive, and that the body is one block that takes the
    index and the iter_args and yields the iter_args.
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
    """Checks that no induction variable is used as a symbol."""
    map_ = op.map.data
    for value in op.mapOperands[map_.num_dims :]:
        if is_dim(value) and not is_symbol(value):
            raise VerifyException("dimensional operand cannot be used as a symbol")


def check_extreme(op: Any) -> None:
    """Checks that the map of a min or max has results."""
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
