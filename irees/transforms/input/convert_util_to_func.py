"""
Converts IREE's `util` functions, calls and returns to `func`.

IREE's importers and phases emit `util.func`. Its only additions to `func.func` are tied results,
which may reuse the storage of an argument, and an inlining policy.

    util.func public @main(%x: tensor<4xf32>) -> %x as tensor<4xf32> {
      %0 = util.call @step(%x) : (tensor<4xf32>) -> %x as tensor<4xf32>
      util.return %0 : tensor<4xf32>
    }
  =>
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = func.call @step(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }

The pass drops ties and policies, which do not affect the computed values: results get their own
memory. It skips the `util.return` of an initializer; `irees-evaluate-initializers` has erased
initializers before. IREE converts in the opposite direction (`FuncToUtil`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects import util


def convert_function(op: util.FuncOp) -> func.FuncOp:
    """util.func @f(..) -> (..) {..}  =>  func.func @f(..) -> (..) {..}"""
    new = func.FuncOp(
        op.sym_name.data,
        op.function_type,
        op.detach_region(op.body),
        visibility=op.sym_visibility,
        arg_attrs=op.arg_attrs,
        res_attrs=op.res_attrs,
    )
    new.attributes |= op.attributes
    return new


def convert(op: Operation) -> Operation | None:
    """Returns the func op for a util op, None for any other op."""
    match op:
        case util.FuncOp():
            return convert_function(op)
        case util.CallOp():
            return func.CallOp(op.callee, op.arguments, op.res.types)
        case util.ReturnOp() if not isinstance(op.parent_op(), util.InitializerOp):
            return func.ReturnOp(*op.values)
        case _:
            return None


@dataclass(frozen=True)
class ConvertUtilToFuncPass(ModulePass):
    """Converts util functions, calls and returns to func."""

    name = "irees-convert-util-to-func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if (new := convert(inner)) is not None:
                new.location = inner.location
                Rewriter.replace_op(inner, new)
