"""An ExportedProgram as a module: its arguments, constants, results and what it mutates."""

from __future__ import annotations

from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Block, Region, SSAValue

from irees.dialects.signature import mark_unsigned
from irees.errors import UnsupportedError

from ..builder import Builder, Tensor, tensor_type
from ..builder.dtypes import I64, INDEX
from .calls import Symbolic
from .constants import refuse_odd_tensor
from .dtypes import dtype_of
from .exporting import functional
from .importing import GraphImporter

_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def import_exported(exported: Any, function: str = "main") -> tuple[ModuleOp, Any]:
    """The module of an exported program, and the program in the form that was imported."""
    exported = functional(exported)
    block = Block()
    importer = GraphImporter(Builder(block))
    placeholders = [n for n in exported.graph.nodes if n.op == "placeholder"]
    values: list[Any] = []
    arguments: list[Tensor] = []
    for node, spec in zip(placeholders, exported.graph_signature.input_specs, strict=True):
        values.append(_input(importer, block, exported, node, spec, arguments))
    bind_symbols(importer, arguments, [n for n in placeholders if _is_user_tensor(n, exported)])
    results = importer.run(exported.graph_module, values)
    outputs, unsigned = _outputs(importer, exported, results)
    importer.b.location = None
    importer.b.insert(func.ReturnOp(*outputs))
    kinds = ([arg.type for arg in block.args], [value.type for value in outputs])
    op = func.FuncOp(function, kinds, Region(block))
    mark_unsigned(op, unsigned)
    return ModuleOp([op]), exported


def _is_user_tensor(node: torch.fx.Node, exported: Any) -> bool:
    user = exported.graph_signature.user_inputs
    return node.name in user and isinstance(node.meta.get("val"), torch.Tensor)


def _input(
    importer: GraphImporter,
    block: Block,
    exported: Any,
    node: torch.fx.Node,
    spec: Any,
    arguments: list[Tensor],
) -> Any:
    """What a placeholder is: a constant, an argument of the function, or a number."""
    if spec.kind in _STATE:
        table = exported.state_dict
        if spec.target not in table or spec.persistent is False:
            table = exported.constants
        return importer.constants.of(table[spec.target], spec.target)
    if spec.kind is InputKind.CUSTOM_OBJ:
        raise UnsupportedError(f"{spec.target!r} is a script object")
    if isinstance(spec.arg, ConstantArgument):
        return spec.arg.value
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return value
    return argument(block, value, node.name, arguments)


def argument(block: Block, value: Any, name: str, arguments: list[Tensor]) -> Tensor:
    """A new argument of the function for a fake tensor."""
    refuse_odd_tensor(value, f"argument {name!r}")
    dtype = dtype_of(value.dtype)
    # Dims that are not known are asked of the argument below.
    shape = [s if isinstance(s, int) else None for s in value.shape]
    kind = tensor_type(dtype, [DYNAMIC_INDEX if s is None else s for s in shape])
    arg = block.insert_arg(kind, len(block.args))
    arguments.append(Tensor(arg, dtype, tuple(shape)))  # type: ignore[arg-type]
    return arguments[-1]


def bind_symbols(
    importer: GraphImporter, arguments: list[Tensor], nodes: list[torch.fx.Node]
) -> None:
    """
    Each symbol as a dim of the argument that has it alone, and arguments with their dims; what
    PyTorch found to be equal is checked before anything runs.
    """
    b, symbols = importer.b, importer.symbols
    checks: list[tuple[SSAValue, Any, str]] = []
    for arg, node in zip(arguments, nodes, strict=True):
        for i, dim in enumerate(node.meta["val"].shape):
            if isinstance(dim, int) or dim.node.expr.is_Integer:
                continue
            expr = dim.node.expr
            size = b.emit(tensor.DimOp, (arg.value, b.value(i)), (INDEX.element,)).results[0]
            if expr.is_Symbol and expr not in symbols.bound:
                symbols.bind(expr, size)
                symbols.values[expr] = size
            else:
                checks.append((size, dim, f"dim {i} of argument {node.name!r}"))
    _solve(importer, checks)
    for size, dim, what in checks:
        expected = b.value(symbols.size(dim))
        same = b.compute(lambda x, y: x == y, (size, INDEX), (expected, INDEX)).value
        b.check(same, f"{what} must be {dim.node.expr}")
    for arg, node in zip(arguments, nodes, strict=True):
        dims = tuple(symbols.size(s) for s in node.meta["val"].shape)
        object.__setattr__(arg, "shape", dims)


def _solve(importer: GraphImporter, checks: list[tuple[SSAValue, Any, str]]) -> None:
    """Symbols that stand in no dim alone: of `2*s` the dim by 2, which is checked like others."""
    import sympy

    b, symbols = importer.b, importer.symbols
    for size, dim, _ in checks:
        unknown = [s for s in dim.node.expr.free_symbols if s not in symbols.bound]
        if len(unknown) != 1:
            continue
        (symbol,) = unknown
        factor, rest = sympy.Poly(dim.node.expr, symbol).all_coeffs()
        if not (factor.is_Integer and rest.is_Integer):
            raise UnsupportedError(f"the size {symbol} cannot be told from {dim.node.expr}")
        symbols.bind(symbol, b.floordiv(b.sub(size, int(rest)), int(factor)))


def _outputs(
    importer: GraphImporter, exported: Any, results: Any
) -> tuple[list[SSAValue], list[int]]:
    """The values that the function returns, and which of them are unsigned."""
    values: list[SSAValue] = []
    unsigned: list[int] = []
    for spec, result in zip(exported.graph_signature.output_specs, results, strict=True):
        if spec.kind is OutputKind.TOKEN or isinstance(spec.arg, ConstantArgument):
            continue
        if result is None or isinstance(result, bool | int | float | str | complex):
            continue
        if isinstance(result, Tensor):
            if result.dtype.kind == "uint":
                unsigned.append(len(values))
            values.append(result.value)
        elif isinstance(result, Symbolic):
            values.append(result.value)
        else:
            values.append(importer.b.compute(lambda v: v.to(I64), (result, INDEX)).value)
    return values, unsigned
