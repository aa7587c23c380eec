"""
Bufferizes kernels: replaces tensors with memrefs.

A kernel is straight-line code of destination-style ops, so MLIR's one-shot analysis is not needed.
Each result is written to its final output if that is known. Otherwise it overwrites its init if
the kernel owns that buffer and has no later reads of it. Otherwise it gets a new buffer. Read-only
buffers are never written.

    %0 = iree_tensor_ext.dispatch.tensor.load %a ... -> tensor<4xf32>
    %1 = tensor.empty() : tensor<4xf32>
    %2 = linalg.generic ins(%0) outs(%1) { exp } -> tensor<4xf32>
    iree_tensor_ext.dispatch.tensor.store %2, %out ...
  =>
    linalg.generic ins(%a : memref<4xf32>) outs(%out : memref<4xf32>) { exp }

Slices become `memref.subview`, and an insertion becomes a copy into one. A value that is only
inserted into a fill (padding) is computed in place, and only its border is filled (`frames.py`).
Tiling runs after this pass, on buffers, where fusion of two ops depends on the tiles they access
and not on SSA values.
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
    """Bufferizes the functions of executables."""

    name = "irees-bufferize-dispatch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                Bufferization(function).run()
