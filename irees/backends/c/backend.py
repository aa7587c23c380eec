"""
The C backend: kernel IR to C texts, a manifest and constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    ShapedType,
)
from xdsl.ir import Attribute
from xdsl.utils.target import Target as XdslTarget

from irees.backends.c import emit
from irees.backends.c.emit_ops import Expressions
from irees.backends.c.types import vector_typedef
from irees.dialects.elements import dense_array
from irees.dialects.flow import ExecutableOp

HERE = Path(__file__).parent


@dataclass
class Sources:
    """A program as text and data."""

    texts: dict[str, str]
    manifest: dict[str, Any]
    constants: dict[str, np.ndarray]


@cache
def _support() -> str:
    return '#include "irees.h"\n' + (HERE / "irees_support.h").read_text()


def _unit_text(text: str, expressions: Expressions) -> str:
    typedefs = "\n".join(vector_typedef(name) for name in sorted(expressions.vectors))
    return f"{_support()}\n{typedefs}\n\n{text}"


def emit_program(module: ModuleOp) -> Sources:
    """
    The C of a module that went through all phases: one text per kernel, one for the host.

    Raises UnsupportedError for an op or type that has no C.
    """
    unit = emit.Unit()
    texts: dict[str, str] = {}
    constants: dict[str, np.ndarray] = {}
    for op in module.body.block.ops:
        if isinstance(op, memref.GlobalOp):
            unit.constants[op.sym_name.data] = len(unit.constants)
            constants[op.sym_name.data] = constant_array(op)
    executables = [op for op in module.body.block.ops if isinstance(op, ExecutableOp)]
    for number, executable in enumerate(executables):
        name = f"irees_k{number}"
        unit.kernels[executable.sym_name.data] = name
        function = next(f for f in executable.walk() if isinstance(f, func.FuncOp))
        text, expressions = emit.kernel(function, name, unit)
        texts[name] = _unit_text(text, expressions)
    host: list[str] = [
        f"int32_t {name}(const irees_runtime *, void *const *, const int64_t *, int32_t *);"
        for name in unit.kernels.values()
    ]
    functions: list[dict[str, Any]] = []
    combined = Expressions()
    public = [
        op
        for op in module.body.block.ops
        if isinstance(op, func.FuncOp)
        and not op.is_declaration
        and (op.sym_visibility is None or op.sym_visibility.data != "private")
    ]
    for number, function in enumerate(public):
        text, expressions = emit.entry(function, number, unit)
        combined.vectors |= expressions.vectors
        host.append(text)
        functions.append(_function_record(function, number))
    texts["host"] = _unit_text("\n".join(host), combined)
    traps = [
        {"message": t.message, "location": str(t.op.location), "op": t.op.name} for t in unit.traps
    ]
    for record in functions:
        record["constants"] = list(constants)
        record["traps"] = traps
    return Sources(texts, {"functions": functions}, constants)


def constant_array(op: memref.GlobalOp) -> np.ndarray:
    """The data of a constant global."""
    kind = op.type
    assert isinstance(kind, MemRefType)
    value = op.initial_value
    assert isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr)
    return dense_array(value)


def _function_record(function: func.FuncOp, entry: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": function.sym_name.data,
        "entry": entry,
        "args": [_spec(t) for t in function.function_type.inputs],
        "results": [_spec(t) for t in function.function_type.outputs],
        "equal_dims": [],
    }
    return record


def _spec(kind: Attribute) -> dict[str, Any]:
    if isinstance(kind, ShapedType):
        assert isinstance(kind, MemRefType)
        shape = [None if s == DYNAMIC_INDEX else s for s in kind.get_shape()]
        return {"kind": "tensor", "dtype": _dtype(kind.element_type), "shape": shape}
    return {"kind": "scalar", "dtype": _dtype(kind)}


def _dtype(kind: Attribute) -> str:
    return "i64" if isinstance(kind, IndexType) else str(kind)


@dataclass(frozen=True)
class IreesCTarget(XdslTarget):
    """Prints the C of a module that went through `irees-pipeline` (`xdsl-opt -t irees-c`)."""

    name = "irees-c"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        for name, text in emit_program(module).texts.items():
            output.write(f"/* ---- {name}.c ---- */\n{text.removeprefix(_support())}\n")
