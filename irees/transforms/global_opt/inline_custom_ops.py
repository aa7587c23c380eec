"""
Replaces `iree_linalg_ext.custom_op` by what is in its region.

A custom op says how ops are to be fused, as a computation on tiles of any size. Fusion is decided
by `irees-form-dispatch-regions` here, so the whole of each operand is the one tile, and the
region stands in the place of the op; it comes first, because what is in it has to be decomposed
and generalized like everything else.

    %r = iree_linalg_ext.custom_op {...} ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) {
    ^bb0(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
      %0 = linalg.exp ins(%a) outs(%b)
      iree_linalg_ext.yield %0 }
  =>
    %a = tensor.cast %x : tensor<4x8xf32> to tensor<?x?xf32>
    %b = tensor.cast %o : tensor<4x8xf32> to tensor<?x?xf32>
    %0 = linalg.exp ins(%a) outs(%b)
    %r = tensor.cast %0 : tensor<?x?xf32> to tensor<4x8xf32>

A region that asks for the index of its tile is left alone, as are memrefs. IREE:
`CustomOp::decomposeOperation`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.inlining import splice
from irees.verification import verify_made


def cast(value: SSAValue, kind: Attribute, op: ext.CustomOp) -> SSAValue:
    """
    The value as a tensor type that differs in what is static. Raises VerifyError for another type.
    """
    if value.type == kind:
        return value
    made = tensor.CastOp(value, kind)
    verify_made(made, op)
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made.results[0]


def inline(op: ext.CustomOp) -> None:
    """custom_op(x) {body}  =>  body(x)"""
    if not all(isinstance(v.type, TensorType) for v in op.outputs):
        return
    if any(isinstance(o, ext.IndexOp) for o in op.body.block.ops):
        return
    block = op.body.block
    arguments = [cast(v, a.type, op) for v, a in zip(op.operands, block.args, strict=True)]
    values = splice(block, InsertPoint.before(op), arguments)
    results = [cast(v, r.type, op) for v, r in zip(values, op.results, strict=True)]
    Rewriter.replace_op(op, [], results)


@dataclass(frozen=True)
class InlineCustomOpsPass(ModulePass):
    """Custom ops become what is in their regions."""

    name = "irees-inline-custom-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, ext.CustomOp):
                inline(inner)
