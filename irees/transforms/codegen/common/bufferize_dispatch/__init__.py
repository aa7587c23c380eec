"""
Turns the tensors of a kernel into buffers.

A kernel is a straight line of destination-style ops, so this needs none of MLIR's
one-shot analysis: each result goes where it will be stored if that place is known,
else over its init if nobody reads the init afterwards and the kernel owns it, else into
a new buffer. What is only read is never written.

    %0 = iree_tensor_ext.dispatch.tensor.load %a ... -> tensor<4xf32>
    %1 = tensor.empty() : tensor<4xf32>
    %2 = linalg.generic ins(%0) outs(%1) { exp } -> tensor<4xf32>
    iree_tensor_ext.dispatch.tensor.store %2, %out ...
  =>
    linalg.generic ins(%a : memref<4xf32>) outs(%out : memref<4xf32>) { exp }

Slices become `memref.subview`, an insertion becomes a copy into one. What is only inserted into a
fill (a padding) is computed in its place, and what is around it is filled (`frames.py`). Tiling
comes after this pass, on buffers, where fusing two ops into one loop is a question about the tiles
they touch and not about values.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.dialects.flow import ExecutableOp
from irees.transforms.codegen.common.bufferize_dispatch.bufferization import Bufferization


@dataclass(frozen=True)
class BufferizeDispatchPass(ModulePass):
    """The functions of executables work on memrefs."""

    name = "irees-bufferize-dispatch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                Bufferization(function).run()
