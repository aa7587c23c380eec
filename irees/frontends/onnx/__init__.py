"""
Imports ONNX models with torch-mlir's importer, in a child process (`lowering.py`).

    program = irees.compile("model.onnx")
    program = irees.compile(onnx.load("model.onnx"))

Weights become constants of the program. Named (symbolic) dims of the model are dynamic. The program
takes the inputs of the graph by position or by name.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irees import limits
from irees.errors import ArgumentError, ParseError, UnsupportedError
from irees.fence import fenced
from irees.runtime.signature import Signature
from irees.runtime.trees import LEAF, Tree

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from irees.frontends.imported import Imported


def is_onnx(program: Any) -> bool:
    """Whether a source is the path of an ONNX file or an `onnx.ModelProto`; imports neither."""
    if isinstance(program, str | Path):
        return str(program).lower().endswith(".onnx") and "\n" not in str(program)
    return type(program).__module__.split(".")[0] == "onnx" and hasattr(program, "graph")


@fenced
def import_onnx(model: Any, *, ctx: Context | None = None) -> ModuleOp:
    """
    Imports an ONNX model as a module with one function, named after the model's graph.

    `model` is a path or an `onnx.ModelProto`. Raises ParseError if the file cannot be read,
    UnsupportedError if it is not an ONNX model or torch-mlir cannot lower one of its ops, and
    LimitExceededError if that takes too long.
    """
    return _import(model, ctx)[0]


def import_onnx_program(model: Any) -> Imported:
    """
    Imports an ONNX model as a module with one function, `main`, and the names of its inputs. Raises
    the errors of `import_onnx`.
    """
    from xdsl.dialects.builtin import StringAttr

    from irees.frontends.imported import Imported

    module, said = _import(model, None)
    _function(module).properties["sym_name"] = StringAttr("main")
    return Imported(module, _signature(said["inputs"], said["results"]))


def _import(model: Any, ctx: Context | None) -> tuple[ModuleOp, dict[str, Any]]:
    """Returns the module of a model, and the description of its graph."""
    from irees.dialects.signature import mark_unsigned
    from irees.frontends.mlir import import_mlir

    with tempfile.TemporaryDirectory(prefix="irees-onnx-") as name:
        folder = Path(name)
        _lower(_file_of(model, folder), folder)
        try:
            said = json.loads((folder / "answer.json").read_text())
        except (OSError, ValueError):
            raise UnsupportedError("torch-mlir failed on the model without a reason") from None
        if "missing" in said:
            raise UnsupportedError(
                f"importing an ONNX model needs {said['missing']}",
                hint="pip install 'irees[onnx]'",
            )
        if "error" in said:
            raise UnsupportedError(said["error"])
        module = import_mlir(folder / "model.mlir", ctx, name=said["name"])
    mark_unsigned(_function(module), said["unsigned"])
    return module, said


def _file_of(model: Any, folder: Path) -> Path:
    """The file of a model; one in memory is written to a folder."""
    if isinstance(model, str | Path):
        try:
            Path(model).open("rb").close()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ParseError(f"cannot read {str(model)!r}: {reason}") from None
        return Path(model).absolute()
    if not is_onnx(model):
        raise ArgumentError(
            f"the model is a {type(model).__name__}, but must be a path or an onnx.ModelProto"
        )
    if any(weight.data_location for weight in model.graph.initializer):
        raise UnsupportedError(
            "weights of the model are in a file beside it", hint="name the model's file instead"
        )
    file = folder / "model.onnx"
    try:
        file.write_bytes(model.SerializeToString())
    except Exception as error:  # protobuf's limit is 2 GiB
        hint = "save it with external data, and name the file"
        raise UnsupportedError(f"the model cannot be serialized: {error}", hint=hint) from error
    return file


def _lower(model: Path, folder: Path) -> None:
    """Runs the child process."""
    # -P: a file in the working folder must not hide a module.
    command = [sys.executable, "-P", "-m", "irees.frontends.onnx.lowering", str(model), str(folder)]
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    seconds = limits.limit("import_seconds")
    try:
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        what = f"torch-mlir has not lowered the model in {seconds} s"
        raise limits.exceeded("import_seconds", what) from None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise UnsupportedError(f"torch-mlir crashed on the model: {name}")
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise UnsupportedError(f"torch-mlir failed on the model: {lines[-1]}")


def _function(module: ModuleOp) -> Operation:
    """The function of the graph."""
    from irees.dialects.signature import is_entry

    (function,) = (op for op in module.body.block.ops if is_entry(op))
    return function


def _signature(inputs: list[str], results: int) -> Signature:
    """The inputs of a graph by position and by name; several results are a tuple."""
    count = len(inputs)
    outputs: Tree = LEAF if results == 1 else {"kind": "tuple", "children": [LEAF] * results}
    return Signature(
        (LEAF,) * count, {}, tuple(inputs), {}, tuple({"argument": i} for i in range(count)),
        outputs, tuple({"result": i} for i in range(results)), origin="onnx",
    )  # fmt: skip
