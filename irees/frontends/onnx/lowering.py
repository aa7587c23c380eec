"""
The child process that lowers an ONNX model: `python -m irees.frontends.onnx.lowering MODEL FOLDER`.

torch-mlir may crash or never return, so it gets a process of its own. The module's text is written
to FOLDER/model.mlir, and the description of the graph, or the reason of a refusal, to
FOLDER/answer.json.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

PASSES = (
    "torch-onnx-to-torch-backend-pipeline",
    "torch-backend-to-linalg-on-tensors-backend-pipeline",
)


def lower(model: str, folder: Path) -> dict[str, Any]:
    """
    Lowers a model to linalg. Returns the names of its inputs, the number of its results and which
    of them are unsigned; or `missing`, a package, or `error`, the reason of a refusal.
    """
    try:
        import onnx
        from torch_mlir import ir, passmanager
        from torch_mlir.dialects import torch as torch_dialect
        from torch_mlir.extras import onnx_importer
    except ImportError as error:
        return {"missing": error.name}
    try:
        proto = onnx.shape_inference.infer_shapes(onnx.load(model), data_prop=True)
    except Exception as error:
        return {"error": f"not an ONNX model: {error}"}
    from irees.frontends.onnx.repairs import Unrepaired, repair

    said = described(proto.graph)
    try:
        repair(proto)
    except Unrepaired as error:
        return {"error": f"torch-mlir cannot lower the model: {error}"}
    proto = onnx.shape_inference.infer_shapes(proto, data_prop=True)
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
        return {"error": f"torch-mlir cannot lower the model: {reason(str(error))}"}
    with (folder / "model.mlir").open("wb") as file:
        lowered.operation.print(file=file, binary=True, enable_debug_info=True)
    return said


def reason(said: str) -> str:
    """The first error of torch-mlir in one line: the node, and the op of ONNX if it is one."""
    found = re.search(r"error: (.*)", said)
    line = (found[1] if found else said.strip().partition("\n")[0]).strip()
    text, _, ir = line.partition(": %")
    op = re.search(r'name = "onnx\.(\w+)"', ir)
    node = re.match(r'"([^"]+)": ', text)
    if op is None:
        return text
    return f"it has no lowering of {op[1]}" + (f" (node {node[1]!r})" if node else "")


def described(graph: Any) -> dict[str, Any]:
    """The interface of a graph. Older models list their weights among the inputs."""
    from onnx import TensorProto

    weights = {weight.name for weight in graph.initializer}
    kinds = [getattr(TensorProto, f"UINT{bits}") for bits in (8, 16, 32, 64)]
    elements = [value.type.tensor_type.elem_type for value in graph.output]
    return {
        "name": graph.name,
        "inputs": [value.name for value in graph.input if value.name not in weights],
        "results": len(elements),
        "unsigned": [i for i, element in enumerate(elements) if element in kinds],
    }


if __name__ == "__main__":
    answer = lower(sys.argv[1], Path(sys.argv[2]))
    (Path(sys.argv[2]) / "answer.json").write_text(json.dumps(answer))
