"""
Takes transfers out of a program for one device: everything is there.

    %1 = flow.tensor.transfer %0 : tensor<4xf32> to #hal.device.promise<@b>
    use %1                                                                    =>    use %0

Barriers, which say where a tensor is, go too. What else names a device are attributes, which nobody
reads then. In IREE a transfer of a program for one device folds when its affinities are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.flow import TensorBarrierOp, TensorTransferOp


@dataclass(frozen=True)
class DropTransfersPass(ModulePass):
    """Transfers become what they transfer."""

    name = "irees-drop-transfers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, TensorTransferOp | TensorBarrierOp):
                Rewriter.replace_op(each, [], [each.operand])
