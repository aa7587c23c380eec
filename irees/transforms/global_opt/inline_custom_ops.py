"""
Inlines the region of `iree_linalg_ext.custom_op`.

A custom op prescribes a fusion: its region computes on tiles of any size. In irees,
`irees-form-tile-regions` decides on fusion, so this pass takes each whole operand as a single
tile and inlines the region. It runs early because later passes must decompose and generalize the
ops of the region.

    %r = iree_linalg_ext.custom_op {...} ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) {
    ^bb0(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
      %0 = linalg.exp ins(%a) outs(%b)
      iree_linalg_ext.yield %0 }
  =>
    %a = tensor.cast %x : tensor<4x8xf32> to tensor<?x?xf32>
    %b = tensor.cast %o : tensor<4x8xf32> to tensor<?x?xf32>
    %0 = linalg.exp ins(%a) outs(%b)
    %r = tensor.cast %0 : tensor<?x?xf32> to tensor<4x8xf32>

A custom op stays if its region reads the index of its tile (`iree_linalg_ext.index`) or if it works
on memrefs. IREE: `CustomOp::decomposeOperation`.
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
    Casts a value to a tensor type with other static dims. Raises VerifyError for other types.
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
    """Inlines the regions of custom ops."""

    name = "irees-inline-custom-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, ext.CustomOp):
                inline(inner)
