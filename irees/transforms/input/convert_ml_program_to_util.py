"""
Converts `ml_program` globals, loads and stores to `util`.

torch-mlir keeps the state of the random number generator in an `ml_program.global`. The rest of the
compiler handles only `util.global`.

    ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>
    %0 = ml_program.global_load @seed : tensor<i64>
    ml_program.global_store @seed = %1 : tensor<i64>
  =>
    util.global private mutable @seed = dense<0> : tensor<i64>
    %0 = util.global.load @seed : tensor<i64>
    util.global.store %1, @seed : tensor<i64>

A load of a constant global (`global_load_const`) becomes a load marked immutable. External globals
(`#ml_program.extern`) have no initial value; they raise UnsupportedError. IREE:
`ConvertMLProgramToUtil`, an input conversion.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import ml_program
from xdsl.dialects.builtin import ModuleOp, UnitAttr, UnregisteredAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects import util
from irees.errors import UnsupportedError


def convert_global(op: ml_program.GlobalOp) -> util.GlobalOp:
    """ml_program.global @g(v) : t  =>  util.global @g : t = v"""
    if isinstance(op.value, UnregisteredAttr):
        raise UnsupportedError("an external global", op=op, hint="give it an initial value")
    visibility = op.properties.get("sym_visibility")
    return util.GlobalOp(
        op.sym_name.data,
        op.type,
        op.value,
        mutable=op.is_mutable is not None,
        visibility=getattr(visibility, "data", None),
    )


def convert(op: Operation) -> Operation | None:
    """Returns the util op for an ml_program op, None for any other op."""
    match op.name:
        case "ml_program.global":
            assert isinstance(op, ml_program.GlobalOp)
            return convert_global(op)
        case "ml_program.global_load":
            return util.GlobalLoadOp(op.properties["global"], op.results[0].type)
        case "ml_program.global_load_const":
            load = util.GlobalLoadOp(op.properties["global_attr"], op.results[0].type)
            load.is_immutable = UnitAttr()
            return load
        case "ml_program.global_store":
            return util.GlobalStoreOp(op.operands[0], op.properties["global"])
        case _:
            return None


@dataclass(frozen=True)
class ConvertMlProgramToUtilPass(ModulePass):
    """Converts ml_program globals to util globals."""

    name = "irees-convert-ml-program-to-util"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if (new := convert(inner)) is not None:
                new.location = inner.location
                Rewriter.replace_op(inner, new)
