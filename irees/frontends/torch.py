"""
PyTorch programs in: `torch.export` and torch-mlir, in this process, weights shared and not copied.

    module = import_torch(model.eval(), (x,))
    module = import_torch(torch.export.export(model, (x,)))

torch-mlir is told to take every tensor of the program as a resource with the tensor's own name
(`dense_resource<features.0.weight>`) over the tensor's own memory. Its text comes out without them,
and here the names are bound to the tensors again. So a model of a gigabyte costs its text, and a
weight that is changed in place in PyTorch before the program is built is changed here too.

Ops know the line of Python that they come from, and results whether they are unsigned.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from irees.blobs import Blob
from irees.dialects.signature import mark_unsigned
from irees.errors import ArgumentError, IreesError, UnsupportedError

from .mlir import import_mlir

if TYPE_CHECKING:
    import torch


def import_torch(
    program: torch.nn.Module | torch.export.ExportedProgram,
    inputs: Sequence[Any] = (),
    dynamic_shapes: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    function: str = "main",
    ctx: Context | None = None,
) -> ModuleOp:
    """
    A module with one function, `function`, that computes what the PyTorch program does.

    `inputs` are example arguments of an nn.Module, and `dynamic_shapes` says which of their dims
    may vary, as for `torch.export.export`; an ExportedProgram needs neither. Raises an
    UnsupportedError for a program that PyTorch cannot export or torch-mlir cannot lower.
    """
    try:
        import torch
        from torch_mlir import fx
    except ImportError as error:
        raise UnsupportedError(
            f"importing a PyTorch program needs {error.name}", hint="pip install 'irees[torch]'"
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = _export(torch, program, tuple(inputs), kwargs or {}, dynamic_shapes)
        weights = _Weights(torch, exported)
        try:
            lowered = fx.export_and_import(
                exported,
                output_type="linalg-on-tensors",
                func_name=function,
                hooks=weights.hooks(),
            )
        except IreesError:
            raise
        except Exception as error:
            raise UnsupportedError(
                f"torch-mlir cannot lower the program: {_reason(error)}"
            ) from error
    text = lowered.operation.get_asm(large_resource_limit=0, enable_debug_info=True)
    module = import_mlir(text.encode(), ctx, name=_name_of(program), blobs=weights.blobs)
    _mark_unsigned(module, exported, function)
    return module


def _mark_unsigned(module: ModuleOp, exported: Any, name: str) -> None:
    """Results whose dtype is unsigned: torch-mlir's integers have no sign."""
    found = [o for o in module.body.block.ops if isinstance(o, FuncOp) and o.sym_name.data == name]
    outputs = next(node for node in exported.graph.nodes if node.op == "output").args[0]
    if not found or len(outputs) != len(found[0].function_type.outputs.data):
        return
    dtypes = [str(getattr(getattr(o, "meta", {}).get("val"), "dtype", "")) for o in outputs]
    unsigned = [i for i, dtype in enumerate(dtypes) if dtype.startswith("torch.uint")]
    mark_unsigned(found[0], unsigned)


def _export(torch: Any, program: Any, inputs: tuple, kwargs: dict, dynamic_shapes: Any) -> Any:
    if isinstance(program, torch.export.ExportedProgram):
        return program
    if not isinstance(program, torch.nn.Module):
        raise ArgumentError(
            f"expected an nn.Module or an ExportedProgram, but got {type(program).__name__}"
        )
    try:
        with torch.no_grad():
            return torch.export.export(
                program, inputs, kwargs, dynamic_shapes=dynamic_shapes, strict=False
            )
    except Exception as error:
        raise UnsupportedError(
            f"torch.export cannot export the program: {_reason(error)}"
        ) from error


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = [line for line in lines if "error:" in line] or lines or [type(error).__name__]
    return useful[0][:400]


def _name_of(program: Any) -> str:
    return f"<{type(program).__name__}>"


class _Weights:
    """The tensors of a program as blobs, under their names."""

    def __init__(self, torch: Any, exported: Any):
        self.torch = torch
        self.blobs: dict[str, Blob] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []
        self._attrs: dict[tuple, Any] = {}
        for table in (exported.state_dict, getattr(exported, "constants", {})):
            for name, tensor in table.items():
                if isinstance(tensor, torch.Tensor):
                    self._names.setdefault(tensor.data_ptr(), name)

    def hooks(self) -> Any:
        """torch-mlir's hooks that ask here for each literal tensor."""
        from torch_mlir.extras.fx_importer import FxImporterHooks

        weights = self

        class Hooks(FxImporterHooks):
            def resolve_literal(self, gni: Any, literal: Any, info: Any) -> Any:
                return weights.literal(gni, literal)

        return Hooks()

    def literal(self, gni: Any, tensor: Any) -> Any:
        """A `torch.vtensor.literal` over the tensor's memory; None to leave it to torch-mlir."""
        if not isinstance(tensor, self.torch.Tensor) or tensor.numel() <= 1:
            return None
        array = self._array(tensor)
        if array is None:
            return None
        from torch_mlir.extras.fx_importer import create_mlir_tensor_type
        from torch_mlir.ir import DenseResourceElementsAttr, Operation

        identity = (array.ctypes.data, array.shape, array.dtype.str, str(tensor.dtype))
        attr = self._attrs.get(identity)
        if attr is None:
            key = self._key(tensor)
            self.blobs[key] = Blob(key, array=array)
            attr = self._attrs[identity] = DenseResourceElementsAttr.get_from_buffer(
                array.reshape(-1).view(np.uint8), key, create_mlir_tensor_type(tensor)
            )
        return Operation.create(
            name="torch.vtensor.literal",
            results=[gni._cc.tensor_to_vtensor_type(tensor)],
            attributes={"value": attr},
        ).result

    def _key(self, tensor: Any) -> str:
        name = self._names.get(tensor.data_ptr()) or f"constant_{len(self.blobs)}"
        key, number = name, 0
        while key in self.blobs:
            key, number = f"{name}_{number}", number + 1
        return key

    def _array(self, tensor: Any) -> np.ndarray | None:
        torch = self.torch
        try:
            plain = tensor.detach().cpu().contiguous()
            self._kept.append(plain)
            if plain.dtype == torch.bfloat16:
                return plain.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
            return plain.numpy()
        except (RuntimeError, TypeError):
            return None
