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
1 MiB also stay: `irees-pack-constant-operands` packs large weights of contractions. A gather from a
table, such as a relative position bias, is folded up to that size: to read its result in a row
takes less time than to gather it.

A contraction of zeros and a finite constant, such as that of the initial state of a recurrent cell,
is its init.

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
from irees.analysis.contractions import multiply_add
from irees.dialects.resources import is_splat
from irees.dialects.storage import is_grouping, is_slice
from irees.errors import RuntimeTrap, UnsupportedError
from irees.interpreters import evaluate
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.global_opt.fold_constants.moves import move_of
from irees.transforms.utils.constants import (
    array_of,
    constant_of,
    derived_constant,
    splat_scalar,
)
from irees.transforms.utils.foldable import foldable, size_of
from irees.transforms.utils.structured import is_zero, is_zero_fill, static_ranges


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


def zero_product(op: Operation) -> SSAValue | None:
    """contract(0, finite constant, fill +0)  =>  fill +0"""
    if not isinstance(op, linalg.GenericOp) or (parts := multiply_add(op)) is None:
        return None
    factors = [op.inputs[parts.lhs], op.inputs[parts.rhs]]
    zeros = [v for v in factors if _is_zero(v)]
    others = [v.owner for v in factors if v not in zeros[:1]]
    init = op.outputs[0]
    if not zeros or not isinstance(init.owner, linalg.GenericOp) or not is_zero_fill(init.owner):
        return None
    if not all(isinstance(o, arith.ConstantOp) and _is_finite(o) for o in others):
        return None
    return init


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, linalg.GenericOp):
        return is_zero_fill(owner)
    scalar = splat_scalar(owner) if isinstance(owner, arith.ConstantOp) else None
    return scalar is not None and is_zero(scalar)


def _is_finite(constant: arith.ConstantOp) -> bool:
    array = np.asarray(array_of(constant))
    if is_splat(constant.value):
        array = array.flat[:1]  # however many places there are
    return array.dtype.kind in "iub" or bool(np.isfinite(array).all())


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
            if (init := zero_product(inner)) is not None:
                if may_rewrite(self.name, inner, f"zero_product of {inner.name}"):
                    Rewriter.replace_op(inner, [], [init])
                continue
            new = fold(inner)
            if new is not None and may_rewrite(self.name, inner, f"fold of {inner.name}"):
                new.location = inner.location
                Rewriter.replace_op(inner, new)
