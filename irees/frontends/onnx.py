"""
Imports ONNX models with torch-mlir's importer, in this process.

    program = irees.compile("model.onnx")
    program = irees.compile(onnx.load("model.onnx"))

Weights become constants of the program. Named (symbolic) dims of the model are dynamic. The program
takes the inputs of the graph by position or by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irees.errors import ParseError, UnsupportedError
from irees.fence import fenced
from irees.runtime.signature import Signature
from irees.runtime.trees import LEAF, Tree

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from irees.frontends.imported import Imported

PASSES = (
    "torch-onnx-to-torch-backend-pipeline",
    "torch-backend-to-linalg-on-tensors-backend-pipeline",
)


def is_onnx(program: Any) -> bool:
    """Whether a source is the path of an ONNX file or an `onnx.ModelProto`; imports neither."""
    if isinstance(program, str | Path):
        return str(program).lower().endswith(".onnx") and "\n" not in str(program)
    return type(program).__module__.split(".")[0] == "onnx" and hasattr(program, "graph")


@fenced
def import_onnx(model: Any, *, ctx: Context | None = None) -> ModuleOp:
    """
    Imports an ONNX model as a module with one function, named after the model's graph.

    `model` is a path or an `onnx.ModelProto`. Raises ParseError if the file cannot be read, and
    UnsupportedError if it is not an ONNX model or torch-mlir cannot lower one of its ops.
    """
    return _import(_loaded(model), ctx)


def import_onnx_program(model: Any) -> Imported:
    """
    Imports an ONNX model as a module with one function, `main`, and the names of its inputs. Raises
    the errors of `import_onnx`.
    """
    from xdsl.dialects.builtin import StringAttr

    from irees.frontends.imported import Imported

    proto = _loaded(model)
    module = _import(proto, None)
    _function(module).properties["sym_name"] = StringAttr("main")
    return Imported(module, _signature(proto.graph))


def _loaded(model: Any) -> Any:
    """The `onnx.ModelProto` of a path or a model, with the shapes that ONNX infers."""
    try:
        import onnx
    except ImportError:
        raise _lacking("onnx") from None
    try:
        proto = onnx.load(str(model)) if isinstance(model, str | Path) else model
        return onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except OSError as error:
        raise ParseError(f"cannot read {str(model)!r}: {error.strerror or error}") from None
    except Exception as error:
        raise UnsupportedError(f"not an ONNX model: {error}") from error


def _lacking(name: str | None) -> UnsupportedError:
    return UnsupportedError(
        f"importing an ONNX model needs {name}", hint="pip install 'irees[onnx]'"
    )


def _import(proto: Any, ctx: Context | None) -> ModuleOp:
    """Lowers a model to linalg."""
    try:
        from torch_mlir import ir, passmanager
        from torch_mlir.dialects import torch as torch_dialect
        from torch_mlir.extras import onnx_importer
    except ImportError as error:
        raise _lacking(error.name) from None
    from irees.dialects.signature import mark_unsigned

    from .mlir import import_mlir

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
    module = import_mlir(text.encode(), ctx, name=proto.graph.name)
    mark_unsigned(_function(module), _unsigned(proto.graph.output))
    return module


def _function(module: ModuleOp) -> Operation:
    """The function of the graph."""
    from irees.dialects.signature import is_entry

    (function,) = (op for op in module.body.block.ops if is_entry(op))
    return function


def _unsigned(values: Iterable[Any]) -> list[int]:
    """The numbers of the values whose elements are unsigned integers."""
    from onnx import TensorProto

    kinds = [getattr(TensorProto, f"UINT{bits}") for bits in (8, 16, 32, 64)]
    return [i for i, value in enumerate(values) if value.type.tensor_type.elem_type in kinds]


def _signature(graph: Any) -> Signature:
    """The inputs of a graph by position and name. Older models list their weights among them."""
    weights = {weight.name for weight in graph.initializer}
    names = tuple(value.name for value in graph.input if value.name not in weights)
    count = len(graph.output)
    outputs: Tree = LEAF if count == 1 else {"kind": "tuple", "children": [LEAF] * count}
    return Signature(
        (LEAF,) * len(names), {}, names, {}, tuple({"argument": i} for i in range(len(names))),
        outputs, tuple({"result": i} for i in range(count)), origin="onnx",
    )  # fmt: skip
