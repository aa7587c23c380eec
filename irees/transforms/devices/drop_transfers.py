"""
Erases transfers from programs for a single device.

    %1 = flow.tensor.transfer %0 : tensor<4xf32> to #hal.device.promise<@b>
    use %1                                                                    =>    use %0

Also erases barriers, which state the device of a tensor. The remaining device names are attributes,
which later passes ignore. IREE folds a transfer if its affinities are equal.
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
    """Replaces transfers and barriers by their operands."""

    name = "irees-drop-transfers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, TensorTransferOp | TensorBarrierOp):
                Rewriter.replace_op(each, [], [each.operand])
