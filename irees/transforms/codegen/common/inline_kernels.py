"""
Replaces the kernels that a program brings by their own ops.

Bufferization has given an `irees.kernel` the buffers of its operands, so its block can take its
place. A parallel loop at the top of the block is a loop over workgroups now.

    func.func @k(%x: memref<?xf32>) {
      irees.kernel ins(%n : index) outs(%x : memref<?xf32>) {
      ^bb0(%m: index, %y: memref<?xf32>):
        scf.forall (%i) in (%m) { "use"(%y, %i) }
      }
    }
  =>
    func.func @k(%x: memref<?xf32>) {
      scf.forall (%i) in (%n) { "use"(%x, %i) }
    }
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees import KernelOp
from irees.transforms.utils.shapes import IndexBuilder


def inline(op: KernelOp) -> None:
    """kernel { block }  =>  the ops of the block, on the operands"""
    at = IndexBuilder(InsertPoint.before(op))
    values: list[SSAValue] = []
    for argument, operand in zip(op.body.block.args, op.operands, strict=True):
        if argument.type != operand.type:
            # Only static sizes differ: other passes know more, or less, than the program says.
            operand = at.insert(memref.CastOp.get(operand, argument.type)).results[0]
        values.append(operand)
    Rewriter.inline_block(op.body.block, InsertPoint.before(op), values)
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class InlineKernelsPass(ModulePass):
    """Replaces kernels of the program's own by their ops."""

    name = "irees-inline-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, KernelOp)]:
            if all(isinstance(v.type, MemRefType) for v in inner.outputs):
                inline(inner)
