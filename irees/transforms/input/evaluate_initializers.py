"""
Evaluates initializers at compile time: globals get the stored values, initializers are erased.

An initializer runs before any function and reads no caller input, so its results are compile-time
constants. The reference interpreter runs all initializers in module order.

    util.global private @g : tensor<4xf32>
    util.initializer {
      %c = arith.constant dense<3.0> : tensor<4xf32>
      util.global.store %c, @g : tensor<4xf32>
      util.return
    }
  =>
    util.global private @g = dense_resource<folded_...> : tensor<4xf32>

The pass raises an error for an initializer that the interpreter cannot run, that traps, or that
exceeds the compilation budget (`irees.limits`): dropping it would change the initial values.
IREE: `JitGlobals`, which defers an initializer that it cannot evaluate to program start.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Attribute, Block
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees import limits
from irees.dialects.util import GlobalOp, GlobalStoreOp, InitializerOp
from irees.errors import RuntimeTrap, UnsupportedError
from irees.interpreters import Interpreter
from irees.transforms.utils.constants import constant_of
from irees.transforms.utils.shapes import element_bytes


def initial_value(value: Any, of: GlobalOp) -> Attribute:
    """
    Returns an interpreter value as the initial value of a global.

    Raises UnsupportedError for a scalar that is neither an integer nor a float.
    """
    kind = of.type
    if isinstance(kind, TensorType):
        return constant_of(np.asarray(value), kind).value
    if isinstance(kind, IntegerType | IndexType):
        return IntegerAttr(int(value), kind)
    if not isinstance(kind, AnyFloat):
        raise UnsupportedError(
            f"a global of type {kind} cannot have an initial value",
            op=of,
            hint=f"make it a global of type tensor<{kind}>",
        )
    return FloatAttr(float(value), kind)


def _spend(block: Block, ops: int) -> None:
    """Charges one execution of a block to the budget; the trip count of a loop is unbounded."""
    limits.spend("initializers", ops + 1, op=block.parent_op())


def _check_sizes(initializer: InitializerOp) -> None:
    """Raises LimitExceededError for a tensor that is too large to compute at compile time."""
    for op in initializer.walk():
        for kind in (value.type for value in op.results):
            if isinstance(kind, TensorType) and kind.has_static_shape():
                size = prod(kind.get_shape()) * element_bytes(kind)
                limits.check("constant_bytes", size, f"a tensor of {size} bytes", op=op)


@dataclass(frozen=True)
class EvaluateInitializersPass(ModulePass):
    """Evaluates initializers and stores the results as initial values of globals."""

    name = "irees-evaluate-initializers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        initializers = [each for each in op.body.block.ops if isinstance(each, InitializerOp)]
        if not initializers:
            return
        # Load the builtin dialect, which prints resources: text without a module does not load it.
        ctx.get_optional_op(ModuleOp.name)
        try:
            for each in initializers:
                _check_sizes(each)
            found = Interpreter(op, spend=_spend).initial_globals()
        except (UnsupportedError, RuntimeTrap) as error:
            raise UnsupportedError(
                f"an initializer that cannot be evaluated: {error}",
                op=initializers[0],
                hint="give the global an initial value",
            ) from error
        stored = {
            each.global_.string_value() for each in op.walk() if isinstance(each, GlobalStoreOp)
        }
        for each, value in found.items():
            if isinstance(each, GlobalOp) and each.sym_name.data in stored:
                each.initial_value = initial_value(value, each)
        for each in initializers:
            Rewriter.erase_op(each)
