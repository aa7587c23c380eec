"""
Folds ops on constants at compile time.

Frontends emit batch-norm scales, positional tables and transposed or reshaped weights as ops on
constants. The reference interpreter evaluates them, so folding preserves the semantics. A reshape
of a weight only changes its type.

    %w = arith.constant dense_resource<w> : tensor<32xf32>
    %r = linalg.generic ins(%w) { sqrt(w + eps) }
  =>
    %r = arith.constant dense_resource<folded> : tensor<32xf32>

An op stays if its result is larger than 64 KiB and larger than its constant inputs together, if it
would trap, or if it costs more than a tenth of the remaining compilation budget. Results above
1 MiB also stay: `irees-pack-constant-operands` packs large weights of contractions.

A weight that is only transposed, reversed or padded may have any size (`moves.py`): folding does
not read it, since its bytes are computed when they are needed.

IREE: `JitGlobals`, with the same growth rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees import limits
from irees.dialects.resources import is_splat
from irees.dialects.storage import is_grouping, is_slice, is_undefined
from irees.errors import RuntimeTrap, UnsupportedError
from irees.interpreters import evaluate
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.global_opt.fold_constants.moves import move_of
from irees.transforms.utils.constants import array_of, constant_of, derived_constant
from irees.transforms.utils.structured import captured_values, static_ranges


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
    most = max(COMMON.folded_bytes, sum(size_of(v) for v in known))
    return size_of(op.results[0]) <= min(most, COMMON.most_folded_bytes)


def steps(op: Operation) -> int:
    """Returns the budget steps to evaluate an op: iterations times the ops of its body."""
    if not isinstance(op, linalg.GenericOp):
        return size_of(op.results[0]) // limits.ELEMENTS_PER_STEP
    points = prod(static_ranges(op)) * sum(1 for _ in op.body.walk())
    return points // limits.ELEMENTS_PER_STEP


def fold_reshape(op: tensor.ExpandShapeOp | tensor.CollapseShapeOp) -> arith.ConstantOp | None:
    """reshape(constant : A) : B  =>  constant : B"""
    source = op.operands[0].owner
    kind = op.results[0].type
    if not isinstance(source, arith.ConstantOp) or not isinstance(kind, TensorType):
        return None
    if not kind.has_static_shape():
        return None
    if isinstance(source.value, DenseResourceAttr):
        return arith.ConstantOp(DenseResourceAttr(source.value.resource_handle, kind))
    if isinstance(source.value, DenseIntOrFPElementsAttr):
        return arith.ConstantOp(DenseIntOrFPElementsAttr(kind, source.value.data))
    return None


def fold_slice_of_splat(op: tensor.ExtractSliceOp) -> arith.ConstantOp | None:
    """slice(splat : A)[anywhere] : B  =>  splat : B"""
    source = op.source.owner
    kind = op.result.type
    if not isinstance(source, arith.ConstantOp) or not isinstance(kind, TensorType):
        return None
    value = source.value
    if not is_splat(value):
        return None
    return (
        arith.ConstantOp(DenseIntOrFPElementsAttr(kind, value.data))
        if kind.has_static_shape()
        else None
    )


def moved(op: Operation) -> arith.ConstantOp | None:
    """move(constant)  =>  constant, computed when its bytes are needed; None for other ops"""
    move = move_of(op)
    if move is None:
        return None
    kind, size = op.results[0].type, size_of(op.results[0])
    if size > max(COMMON.folded_bytes, COMMON.padded_growth * size_of(move.source.result)):
        return None
    assert isinstance(kind, TensorType)
    return derived_constant([move.source], move.make, kind, move.name)


def fold(op: Operation) -> arith.ConstantOp | None:
    """op(constants)  =>  constant; None if the op stays"""
    if is_grouping(op):
        return fold_reshape(op)
    if is_slice(op) and (new := fold_slice_of_splat(op)) is not None:
        return new
    if (new := moved(op)) is not None:
        return new
    if not foldable(op) or not limits.afford("folding", steps(op)):
        return None
    values = [
        array_of(v.owner) if isinstance(v.owner, arith.ConstantOp) else _nothing(v)
        for v in op.operands
    ]
    try:
        (result,) = evaluate(op, values)
    except (UnsupportedError, RuntimeTrap):
        return None
    kind = op.results[0].type
    assert isinstance(kind, TensorType)
    return constant_of(np.asarray(result), kind)


def _nothing(value: SSAValue) -> np.ndarray:
    """Returns zeros for a tensor.empty, whose contents are undefined."""
    from irees.dialects.resources import dtype_of

    assert isinstance(value.type, TensorType)
    return np.zeros(value.type.get_shape(), dtype_of(value.type.get_element_type()))


@dataclass(frozen=True)
class FoldConstantsPass(ModulePass):
    """Folds ops on constants."""

    name = "irees-fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Load the builtin dialect, which prints resources: text without a module does not load it.
        ctx.get_optional_op(ModuleOp.name)
        for inner in list(op.walk()):
            if inner.parent is None or isinstance(inner, arith.ConstantOp):
                continue
            if isinstance(inner.parent_op(), linalg.GenericOp):
                continue
            new = fold(inner)
            if new is not None and may_rewrite(self.name, inner, f"fold of {inner.name}"):
                new.location = inner.location
                Rewriter.replace_op(inner, new)
