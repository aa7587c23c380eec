"""
Gives globals the values that initializers compute, and erases the initializers.

An initializer runs before any function of a program and reads nothing that a caller passes, so
what it stores is known when the program is compiled. The reference interpreter runs all of them, in
the order of the module.

    util.global private @g : tensor<4xf32>
    util.initializer {
      %c = arith.constant dense<3.0> : tensor<4xf32>
      util.global.store %c, @g : tensor<4xf32>
      util.return
    }
  =>
    util.global private @g = dense_resource<folded_...> : tensor<4xf32>

One that the interpreter cannot run, that stops the program, or that takes more than the budget of
a compilation (`irees.limits`), is refused: without it the program would start from other values.
IREE: `JitGlobals`, which leaves to the start of the program what it cannot evaluate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
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


def attribute_of(value: Any, kind: Attribute) -> Attribute:
    """A value of the interpreter as the initial value of a global."""
    if isinstance(kind, TensorType):
        return constant_of(np.asarray(value), kind).value
    if isinstance(kind, IntegerType | IndexType):
        return IntegerAttr(int(value), kind)
    return FloatAttr(float(value), kind)  # pyright: ignore


def _spend(block: Block, ops: int) -> None:
    """Takes a run of a block off the budget: a loop may have any number of iterations."""
    limits.spend("initializers", ops + 1, op=block.parent_op())


def _check_sizes(initializer: InitializerOp) -> None:
    """Raises LimitExceededError for a tensor that is too large to be computed here."""
    for op in initializer.walk():
        for kind in (value.type for value in op.results):
            if isinstance(kind, TensorType) and kind.has_static_shape():
                size = prod(kind.get_shape()) * element_bytes(kind)
                limits.check("constant_bytes", size, f"a tensor of {size} bytes", op=op)


@dataclass(frozen=True)
class EvaluateInitializersPass(ModulePass):
    """Globals start with what initializers store into them."""

    name = "irees-evaluate-initializers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        initializers = [each for each in op.body.block.ops if isinstance(each, InitializerOp)]
        if not initializers:
            return
        # Resources are printed by the builtin dialect, which text without a module does not load.
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
                each.initial_value = attribute_of(value, each.type)
        for each in initializers:
            Rewriter.erase_op(each)
