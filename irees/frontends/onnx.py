"""
Imports ONNX models with torch-mlir's importer, in this process.

    module = import_onnx("model.onnx")
    module = import_onnx(onnx.load("model.onnx"))

Weights become constants of the program. Named (symbolic) dims of the model are dynamic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from irees.errors import UnsupportedError
from irees.fence import fenced

from .mlir import import_mlir

PASSES = (
    "torch-onnx-to-torch-backend-pipeline",
    "torch-backend-to-linalg-on-tensors-backend-pipeline",
)


@fenced
def import_onnx(model: Any, *, ctx: Context | None = None) -> ModuleOp:
    """
    Imports an ONNX model as a module with one function, named after the model's graph.

    `model` is a path or an `onnx.ModelProto`. Raises UnsupportedError if the file is not an ONNX
    model or torch-mlir cannot lower one of its ops.
    """
    try:
        import onnx
        from torch_mlir import ir, passmanager
        from torch_mlir.dialects import torch as torch_dialect
        from torch_mlir.extras import onnx_importer
    except ImportError as error:
        raise UnsupportedError(
            f"importing an ONNX model needs {error.name}", hint="pip install 'irees[onnx]'"
        ) from None
    try:
        proto = onnx.load(str(model)) if isinstance(model, str | Path) else model
        proto = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception as error:
        raise UnsupportedError(f"not an ONNX model: {error}") from error
    context = ir.Context()
    torch_dialect.register_dialect(context)
    try:
        graph = onnx_importer.ModelInfo(proto)
        lowered = graph.create_module(context=context)
        function = onnx_importer.NodeImporter.define_function(graph.main_graph, lowered.operation)
        function.import_all()
        with context:
            passmanager.PassManager.parse(f"builtin.module({','.join(PASSES)})").run(
                lowered.operation
            )
    except Exception as error:
        raise UnsupportedError(f"torch-mlir cannot lower the model: {error}") from error
    text = lowered.operation.get_asm(enable_debug_info=True)
    return import_mlir(text.encode(), ctx, name=proto.graph.name)
