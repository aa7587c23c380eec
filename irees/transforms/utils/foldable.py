"""Selects the ops on constants that are folded at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from irees.dialects.storage import is_extract, is_slice, is_undefined
from irees.targets.common import COMMON
from irees.transforms.utils.structured import captured_values


def is_constant(value: SSAValue) -> bool:
    """Whether a value is an `arith.constant`."""
    return isinstance(value.owner, arith.ConstantOp)


def size_of(value: SSAValue) -> int:
    """Returns the approximate size of a static tensor in bytes, 0 for a scalar."""
    if not isinstance(value.type, TensorType):
        return 0
    width = getattr(value.type.get_element_type(), "bitwidth", 64)
    return prod(value.type.get_shape()) * max(1, width // 8)


def reads_outputs(op: Operation) -> bool:
    """Whether the body of a structured op reads its outputs."""
    return isinstance(op, linalg.GenericOp) and any(
        argument.uses for argument in op.body.block.args[len(op.inputs) :]
    )


def is_gather(op: Operation) -> bool:
    """Whether the body of a generic reads elements of a tensor at computed indices."""
    return isinstance(op, linalg.GenericOp) and any(is_extract(o) for o in op.body.block.ops)


def foldable(op: Operation) -> bool:
    """Whether an op has only constant operands and a result small enough to store."""
    if not (is_slice(op) or isinstance(op, linalg.GenericOp)) or len(op.results) != 1:
        return False
    kind = op.results[0].type
    if not isinstance(kind, TensorType) or min(kind.get_shape(), default=0) < 0:
        return False
    operands = [*op.operands, *captured_values(op)]
    known = [v for v in operands if is_constant(v)]
    if any(v not in known and not is_undefined(v.owner) for v in operands):
        return False
    if reads_outputs(op) or not any(isinstance(v.type, TensorType) for v in known):
        return False
    return size_of(op.results[0]) <= _largest(op, known)


def _largest(op: Operation, known: Sequence[SSAValue]) -> int:
    """Returns the bytes of the largest result of an op on constants that is folded."""
    if is_gather(op):
        return COMMON.most_folded_bytes
    read = sum(size_of(v) for v in known)
    return min(max(COMMON.folded_bytes, read), COMMON.most_folded_bytes)
