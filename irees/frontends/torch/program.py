"""Imports an ExportedProgram as a module: arguments, constants, results and mutations."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Block, Region, SSAValue

from irees.dialects.signature import mark_elements, mark_unsigned, mark_updates
from irees.errors import UnsupportedError
from irees.runtime.objects import encoded, is_constant
from irees.runtime.signature import Signature

from ..builder import Builder, Tensor, tensor_type
from ..builder.dtypes import I64, INDEX, Float8
from ..imported import Imported
from .calls import Symbolic
from .constants import array_of, refuse_odd_tensor
from .dtypes import dtype_of
from .fixed import constant_leaf
from .functionalizing import functional
from .guards import SizeChecks
from .importing import GraphImporter
from .kernel_checks import refuse_dtypes
from .sizes import ANY_SIZE
from .trees import tree_of_spec

_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_MUTATIONS = (
    OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION,
)  # fmt: skip


def import_exported(
    exported: Any,
    parameters: dict[str, inspect.Parameter] | None = None,
    function: str = "main",
    unchecked: int = ANY_SIZE,
) -> Imported:
    """
    Imports an exported program as a module with a signature. `parameters` are those of the exported
    function, if known. Lower bounds of dims up to `unchecked` are not checked.
    """
    refuse_dtypes(exported.graph_module)
    exported = functional(exported)
    block = Block()
    importer = GraphImporter(Builder(block))
    inputs = _Inputs(importer, block, exported)
    checks = SizeChecks(importer, exported, unchecked)
    checks.emit_ranges()
    checks.emit_decisions()
    checks.emit_guards()
    checks.emit_saved_guards()
    results = importer.run(exported.graph_module, inputs.values)
    checks.emit_guards()
    outputs = _Outputs(importer, exported, results, inputs)
    importer.b.location = None
    importer.b.insert(func.ReturnOp(*outputs.values))
    kinds = ([arg.type for arg in block.args], [value.type for value in outputs.values])
    op = func.FuncOp(function, kinds, Region(block))
    mark_unsigned(op, outputs.unsigned)
    mark_elements(op, "res", outputs.elements)
    mark_elements(op, "arg", inputs.elements)
    mark_updates(op, outputs.written(inputs))
    return Imported(ModuleOp([op]), _signature(exported, parameters, inputs, outputs), inputs.state)


class _Inputs:
    """Values of a program's placeholders: user arguments, mutated state (arguments), constants."""

    def __init__(self, importer: GraphImporter, block: Block, exported: Any):
        self.importer, self.block, self.exported = importer, block, exported
        nodes = [n for n in exported.graph.nodes if n.op == "placeholder"]
        specs = exported.graph_signature.input_specs
        self.nodes = dict(zip((n.name for n in nodes), nodes, strict=True))
        self.arguments: list[Tensor] = []
        self.leaves: list[dict[str, Any]] = []
        self.state: dict[str, np.ndarray[Any, Any]] = {}
        self.state_names: list[str] = []
        self.number: dict[str, int] = {}
        """Argument number of each placeholder, by name."""
        found: dict[torch.fx.Node, Any] = {}
        pairs = list(zip(nodes, specs, strict=True))
        for node, spec in pairs:
            if spec.kind not in _STATE:
                found[node] = self._user_input(node, spec)
        bind_symbols(importer, self.arguments, [self.nodes[n] for n in self.number])
        mutated = {s.target for s in exported.graph_signature.output_specs if s.kind in _MUTATIONS}
        for node, spec in pairs:
            if spec.kind in _STATE:
                found[node] = self._stored(spec, node, mutated)
        self.values = [found[node] for node in nodes]
        self.elements = stored_elements(self.values, block)

    def _user_input(self, node: torch.fx.Node, spec: Any) -> Any:
        if spec.kind is InputKind.CUSTOM_OBJ:
            where = next((self.importer.location(user) for user in node.users), None)
            raise _foreign_object(self.exported.constants.get(spec.target), where)
        if spec.kind is InputKind.TOKEN:
            return None
        if isinstance(spec.arg, ConstantArgument):
            self.leaves.append(constant_leaf(spec.arg.value))
            return spec.arg.value
        value = node.meta.get("val")
        self.leaves.append({"argument": len(self.block.args)})
        if isinstance(value, torch.SymInt):
            return self._size(value, node.name)
        self.number[node.name] = len(self.block.args)
        return argument(self.block, value, node.name, self.arguments)

    def _size(self, value: torch.SymInt, name: str) -> Any:
        """Adds an i64 argument for a number passed by the caller and binds it as a size."""
        self.importer.symbols.origins[value.node.expr] = name
        arg = self.block.insert_arg(I64.element, len(self.block.args))
        size = self.importer.b.compute(lambda v: v.to(INDEX), (arg, I64)).value
        self.importer.symbols.bind(value.node.expr, size)
        return size

    def _stored(self, spec: Any, node: torch.fx.Node, mutated: set[str]) -> Any:
        table = self.exported.state_dict
        if spec.target not in table or spec.persistent is False:
            table = self.exported.constants
        tensor = table[spec.target]
        if spec.target not in mutated:
            return self.importer.constants.of(tensor, spec.target)
        refuse_odd_tensor(tensor, repr(spec.target), held=True)
        self.state[spec.target] = array_of(tensor).copy()
        self.state_names.append(spec.target)
        return argument(self.block, node.meta["val"], node.name, [])


class _Outputs:
    """The function's return values, without duplicates, and their meaning for the caller."""

    def __init__(self, importer: GraphImporter, exported: Any, results: Any, inputs: _Inputs):
        self.importer = importer
        self.values: list[SSAValue] = []
        self.numbers: dict[tuple[SSAValue, str], int] = {}
        self.unsigned: list[int] = []
        self.elements: dict[int, str] = {}
        self.leaves: list[dict[str, Any]] = []
        self.updates: list[tuple[int, int]] = []
        self.states: dict[str, int] = {}
        given = {id(v): inputs.number.get(n) for n, v in zip(inputs.nodes, inputs.values)}
        updated: dict[int, int] = {}
        specs = exported.graph_signature.output_specs
        for spec, result in zip(specs, results, strict=True):
            if spec.kind is OutputKind.TOKEN:
                continue
            if spec.kind is OutputKind.USER_INPUT_MUTATION:
                number = inputs.number[spec.target]
                _refuse_resize(spec.target, inputs.nodes[spec.target].meta["val"], result)
                self.updates.append((self._result(result), number))
                updated[id(result)] = number
            elif spec.kind in _MUTATIONS:
                self.states[spec.target] = self._result(result)
            elif isinstance(result, Tensor) and updated.get(id(result)) is not None:
                self.leaves.append({"argument": updated[id(result)]})
            elif isinstance(result, Tensor) and given.get(id(result)) is not None:
                self.leaves.append({"argument": given[id(result)]})
            else:
                self.leaves.append(self._leaf(result))

    def written(self, inputs: _Inputs) -> dict[int, int]:
        """Results that are only written to an argument's memory: result number -> argument."""
        first = sum("argument" in leaf for leaf in inputs.leaves)
        pairs = dict(self.updates)
        for place, name in enumerate(inputs.state_names):
            if name in self.states:
                pairs[self.states[name]] = first + place
        returned = {leaf.get("result") for leaf in self.leaves}
        counts = [r for r, _ in self.updates] + list(self.states.values())
        return {r: a for r, a in pairs.items() if r not in returned and counts.count(r) == 1}

    def _leaf(self, result: Any) -> dict[str, Any]:
        if isinstance(result, Tensor | Symbolic | SSAValue):
            return {"result": self._result(result)}
        return constant_leaf(result)

    def _result(self, result: Any) -> int:
        """
        Returns the number of a result; reuses the number of a value that is already returned as a
        tensor of this dtype: one of i8 may be returned as signed and as unsigned.
        """
        if isinstance(result, Tensor | Symbolic):
            value = result.value
        else:
            value = self.importer.b.compute(lambda v: v.to(I64), (result, INDEX)).value
        key = value, result.dtype.name if isinstance(result, Tensor) else ""
        if key in self.numbers:
            return self.numbers[key]
        self.numbers[key] = len(self.values)
        if isinstance(result, Tensor) and result.dtype.kind == "uint":
            self.unsigned.append(len(self.values))
        if isinstance(result, Tensor) and isinstance(result.dtype, Float8):
            self.elements[len(self.values)] = result.dtype.name
        self.values.append(value)
        return len(self.values) - 1


def _refuse_resize(name: str, argument: Any, result: Tensor) -> None:
    """Raises UnsupportedError if the new value of an argument has a different shape."""
    pairs = zip(map(known_size, argument.shape), result.shape)
    differs = any(isinstance(n, int) and m is not None and m != n for m, n in pairs)
    if differs or argument.dim() != result.rank:
        raise UnsupportedError(
            f"the program resizes argument {name!r}", hint="return a new tensor instead"
        )


def _signature(
    exported: Any,
    parameters: dict[str, inspect.Parameter] | None,
    inputs: _Inputs,
    outputs: _Outputs,
) -> Signature:
    args, kwargs = exported.call_spec.in_spec.children()
    positional = tuple(tree_of_spec(child) for child in args.children())
    named = dict(zip(kwargs.context or (), map(tree_of_spec, kwargs.children())))
    names, defaults, variadic = _parameters(exported, parameters)
    return Signature(
        positional=positional,
        named=named,
        parameters=names,
        defaults=defaults,
        inputs=tuple(inputs.leaves),
        outputs=tree_of_spec(exported.call_spec.out_spec),
        results=tuple(outputs.leaves),
        updates=tuple(outputs.updates),
        states=tuple((name, outputs.states.get(name, -1)) for name in inputs.state_names),
        seeds=len(inputs.importer.seeds),
        variadic=variadic,
    )


def _parameters(
    exported: Any, parameters: dict[str, inspect.Parameter] | None
) -> tuple[tuple[str, ...], dict[str, Any], bool]:
    """Parameter names in order, JSON-serializable defaults, and whether there is a **kwargs."""
    if parameters is None:
        root = exported.module_call_graph[0].signature
        return tuple(getattr(root, "forward_arg_names", None) or ()), {}, False
    kinds = inspect.Parameter
    plain = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    names = tuple(name for name, each in parameters.items() if each.kind in plain)
    defaults = {
        name: encoded(each.default)
        for name, each in parameters.items()
        if each.default is not each.empty and is_constant(each.default)
    }
    variadic = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return names, defaults, variadic


def known_size(size: Any) -> int | None:
    """A dim as an int, or None if it is dynamic; a specialized dim may be a SymInt."""
    if isinstance(size, int):
        return size
    return int(size.node.expr) if size.node.expr.is_Integer else None


def argument(block: Block, value: Any, name: str, arguments: list[Tensor]) -> Tensor:
    """Adds a function argument for a fake tensor."""
    refuse_odd_tensor(value, f"argument {name!r}")
    dtype = dtype_of(value.dtype)
    # `bind_symbols` fills in dynamic dims from the argument.
    shape = [known_size(s) for s in value.shape]
    kind = tensor_type(dtype, [DYNAMIC_INDEX if s is None else s for s in shape])
    arg = block.insert_arg(kind, len(block.args))
    arguments.append(Tensor(arg, dtype, tuple(shape)))  # type: ignore[arg-type]
    return arguments[-1]


def stored_elements(values: Iterable[Any], block: Block) -> dict[int, str]:
    """Logical element types of arguments stored as another type, by argument number."""
    return {
        t.value.index: t.dtype.name
        for t in values
        if isinstance(t, Tensor) and isinstance(t.dtype, Float8) and t.value in block.args
    }


def bind_symbols(
    importer: GraphImporter,
    arguments: list[Tensor],
    nodes: list[torch.fx.Node],
    numbers: Iterable[tuple[Any, SSAValue]] = (),
) -> None:
    """
    Binds each symbol to an argument dim that equals it, and gives arguments their dims. `numbers`
    are sizes that are passed as numbers, each with its expression; they bind symbols that are no
    argument's dim. Run-time checks make the equalities that PyTorch assumed known to the compiler.
    """
    b, symbols = importer.b, importer.symbols
    checks: list[_DimCheck] = []
    for arg, node in zip(arguments, nodes, strict=True):
        for i, dim in enumerate(node.meta["val"].shape):
            if isinstance(dim, int) or dim.node.expr.is_Integer:
                continue
            expr = dim.node.expr
            size = b.emit(tensor.DimOp, (arg.value, b.value(i)), (INDEX.element,)).results[0]
            if expr.is_Symbol and expr not in symbols.bound:
                symbols.bind(expr, size)
                symbols.values[expr] = size
                symbols.origins[expr] = f"{node.name}.shape[{i}]"
            else:
                checks.append(_DimCheck(size, dim, node.name, i))
    for expr, size in numbers:
        if expr.is_Symbol:
            symbols.bind(expr, size)
        symbols.values.setdefault(expr, size)
    _solve(importer, checks)
    for check in checks:
        expected = b.value(symbols.size(check.dim))
        same = b.compute(lambda x, y: x == y, (check.size, INDEX), (expected, INDEX)).value
        wanted = check.wanted or symbols.text(check.dim.node.expr)
        b.check(same, f"dim {check.place} of argument {check.argument!r} must be {wanted}")
    for arg, node in zip(arguments, nodes, strict=True):
        dims = tuple(symbols.size(s) for s in node.meta["val"].shape)
        object.__setattr__(arg, "shape", dims)


@dataclass
class _DimCheck:
    """A dim of an argument that must equal an expression of sizes."""

    size: SSAValue
    dim: Any
    argument: str
    place: int
    wanted: str = ""
    """What the dim must be, where the expression has a symbol that is computed from it."""


def _solve(importer: GraphImporter, checks: list[_DimCheck]) -> None:
    """Binds symbols that occur only in expressions: a dim `2*s` gives s as the dim divided by 2."""
    import sympy

    b, symbols = importer.b, importer.symbols
    for check in checks:
        expr = check.dim.node.expr
        unknown = [s for s in expr.free_symbols if s not in symbols.bound]
        if len(unknown) != 1:
            continue
        (symbol,) = unknown
        factor, rest = sympy.Poly(expr, symbol).all_coeffs()
        if not (factor.is_Integer and rest.is_Integer):
            raise UnsupportedError(f"the size {symbol} cannot be computed from {expr}")
        symbols.bind(symbol, b.floordiv(b.sub(check.size, int(rest)), int(factor)))
        more = f"{int(rest)} more than " if rest else ""
        check.wanted = f"{more}a multiple of {int(factor)}"
        dim = f"{check.argument}.shape[{check.place}]"
        symbols.origins[symbol] = f"(({dim} - {int(rest)}) // {int(factor)})"
        if rest == 0:
            symbols.origins[symbol] = f"({dim} // {int(factor)})"


def _foreign_object(value: Any, location: Any) -> UnsupportedError:
    """The error for a program that uses an object of C++ at a location."""
    if isinstance(value, torch.Generator):
        what = "the program draws random numbers from a torch.Generator"
        hint = (
            "leave out 'generator' and call torch.manual_seed before the compiled program, or use "
            "torch.compile(backend='irees')"
        )
    else:
        what = f"the program uses an object of {getattr(value, '_type', type)(value)}"
        hint = "pass its tensors as arguments, or use torch.compile(backend='irees')"
    return UnsupportedError(what, location=location, hint=hint)
