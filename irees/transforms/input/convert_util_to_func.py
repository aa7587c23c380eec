"""
Turns IREE's functions into those of `func`, which the rest of the compiler reads.

IREE's importers and its own phases write functions as `util.func`. It differs from `func.func` in
two things only: a result may be tied to the argument whose storage it may take, and a policy may
say whether calls of it are inlined.

    util.func public @main(%x: tensor<4xf32>) -> %x as tensor<4xf32> {
      %0 = util.call @step(%x) : (tensor<4xf32>) -> %x as tensor<4xf32>
      util.return %0 : tensor<4xf32>
    }
  =>
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = func.call @step(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }

Ties and policies say how a program may be run, not what it computes, and go: callers get results
in memory of their own. Initializers also end in `util.return`; they are gone before
(`irees-evaluate-initializers`). IREE goes the other way (`FuncToUtil`).
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
    """The func op for a util op, None for any other."""
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
    """util functions, calls and returns become those of func."""

    name = "irees-convert-util-to-func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if (new := convert(inner)) is not None:
                new.location = inner.location
                Rewriter.replace_op(inner, new)
