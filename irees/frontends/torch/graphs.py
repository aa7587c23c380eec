"""
Imports a graph of ATen operators, in the form that `torch.compile` passes, as a module.

The graph is functional except for trailing `copy_` nodes, with which `torch.compile` writes mutated
arguments. Arguments are taken in their memory order without a copy; results have the strides that
PyTorch expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

from irees.dialects.signature import mark_elements, mark_unsigned, mark_updates
from irees.errors import UnsupportedError

from ..builder import Builder, Tensor, shapes
from ..builder.dtypes import I64, INDEX, Float8
from .calls import Symbolic
from .guards import emit_lower_bounds, shape_env_of
from .importing import GraphImporter
from .layouts import inverse, memory_order
from .partitioning import is_final_copy
from .program import argument, bind_symbols, stored_elements
from .sharing import owners_of, storage_of

aten = torch.ops.aten


@dataclass(frozen=True)
class Computed:
    """A stride or an offset that depends on dynamic sizes: the number of a result, its value."""

    result: int


Count = int | Computed


@dataclass(frozen=True)
class Shared:
    """An output that is another output or an argument, or a view of it, as in PyTorch."""

    base: int
    """The number of the other output, or of the placeholder."""
    is_argument: bool
    fake: torch.Tensor = field(repr=False)
    view: tuple[tuple[Count, ...], ...] | None = None
    """
    Sizes, strides, and the distance from the base in the storage; None for the base itself.
    """


@dataclass
class GraphProgram:
    """An imported graph: its module and the mapping of its arguments and results to the graph."""

    module: ModuleOp
    kept: list[int] = field(default_factory=list)
    """Placeholder of each argument; placeholders that became constants are omitted."""
    orders: list[tuple[int, ...] | None] = field(default_factory=list)
    """Memory order of each argument's dims; None for numbers and for tensors to copy."""
    results: list[Any] = field(default_factory=list)
    """Result number of each output, or `(None, value)` for a constant."""
    result_orders: list[tuple[int, ...] | None] = field(default_factory=list)
    strided: dict[int, tuple[Count, ...]] = field(default_factory=dict)
    """
    The offset in its storage and the strides of each output that is not dense in any order of its
    dims, or that PyTorch makes a view again by its offset.
    """
    outputs: int = 0
    """The number of outputs of the graph; those that follow are bases of views among them."""
    shared: dict[int, Shared] = field(default_factory=dict)
    """The outputs that are views of others."""
    updates: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of a result, in the placeholder's memory order, and the placeholder that it updates."""
    seeds: int = 0
    elements: dict[int, str] = field(default_factory=dict)
    """Names of the logical element types of arguments stored as another type."""


def import_graph(
    graph_module: GraphModule, constants: dict[int, torch.Tensor] | None = None
) -> GraphProgram:
    """Imports a graph of fake tensors; `constants` replaces placeholders, by number."""
    block = Block()
    importer = GraphImporter(Builder(block))
    program = GraphProgram(ModuleOp([]))
    placeholders = [n for n in graph_module.graph.nodes if n.op == "placeholder"]
    values = _arguments(importer, block, placeholders, constants or {}, program)
    if (env := shape_env_of(graph_module.graph)) is not None:
        emit_lower_bounds(importer, env)
    copies = _final_copies(graph_module)
    outputs = list(_output_of(graph_module).args[0])  # type: ignore[arg-type]
    program.outputs = len(outputs)
    owners = _owners(importer, graph_module, outputs, [target for _, target in copies])
    made = [n for n in dict.fromkeys(owners.values()) if n.op != "placeholder"]
    outputs += [n for n in made if n not in outputs]
    results = importer.run(_without(graph_module, copies, outputs[program.outputs :]), values)
    returned = _results(importer, program, results, (placeholders, outputs), owners)
    orders = dict(zip(program.kept, program.orders))
    for (_, target), value in zip(copies, results[len(outputs) :], strict=True):
        i = placeholders.index(target)
        # In the argument's memory order, because the new value takes over its memory.
        value = stored_in(importer.b, value, orders[i])
        program.updates.append((returned.add(value), i))
    importer.b.location = None
    importer.b.insert(func.ReturnOp(*returned.values))
    program.module.body.block.add_op(_function(program, block, returned))
    program.seeds = len(importer.seeds)
    return program


def _function(program: GraphProgram, block: Block, returned: _Returned) -> func.FuncOp:
    """The function of a finished block, with the marks of its arguments and results."""
    kinds = ([a.type for a in block.args], [v.type for v in returned.values])
    function = func.FuncOp("main", kinds, Region(block))
    mark_unsigned(function, returned.unsigned)
    mark_elements(function, "res", returned.elements)
    mark_elements(function, "arg", program.elements)
    places = {number: n for n, number in enumerate(program.kept)}
    orders = dict(zip(program.kept, program.orders))
    mark_updates(
        function, {result: places[i] for result, i in program.updates if orders[i] is not None}
    )
    return function


def _owners(
    importer: GraphImporter, graph_module: GraphModule, outputs: Sequence[Any],
    written: Sequence[Node],
) -> dict[int, Node]:  # fmt: skip
    """The node that made the memory of each output that is not computed: `owners_of`."""
    found = owners_of(graph_module, outputs, written)
    return {
        i: owner
        for i, owner in found.items()
        if outputs[i] is owner
        or all(importer.symbols.is_known(n) for counts in _place(outputs[i], owner) for n in counts)
    }


def _place(node: Node, owner: Node) -> tuple[Sequence[Any], ...]:
    """Sizes, strides, and the distance in the storage of a view."""
    fake, base = node.meta["val"], owner.meta["val"]
    return fake.shape, fake.stride(), (fake.storage_offset() - base.storage_offset(),)


def _shared(
    importer: GraphImporter, returned: _Returned, node: Node, owner: Node,
    nodes: tuple[Sequence[Node], list[Any]],
) -> Shared:  # fmt: skip
    """How a result is made of the argument or the other result that has its memory."""
    is_argument, view = owner.op == "placeholder", None
    if node is not owner:
        place = _place(node, owner)
        view = tuple(tuple(_count(importer, returned, n) for n in counts) for counts in place)
    base = nodes[0 if is_argument else 1].index(owner)
    return Shared(base, is_argument, node.meta["val"], view)


def _output_of(graph_module: GraphModule) -> Node:
    return next(n for n in graph_module.graph.nodes if n.op == "output")


def _arguments(
    importer: GraphImporter,
    block: Block,
    placeholders: Sequence[Node],
    constants: dict[int, torch.Tensor],
    program: GraphProgram,
) -> list[Any]:
    """The values of placeholders: arguments in memory order, transposed back to logical order."""
    found: dict[int, Any] = {}
    arguments: list[Tensor] = []
    nodes: list[Node] = []
    numbers: dict[int, tuple[torch.SymInt, SSAValue]] = {}
    for i, node in enumerate(placeholders):
        value = node.meta.get("val")
        if _is_token(node):
            found[i] = None
        elif i in constants:
            found[i] = importer.constants.of(constants[i], node.name)
        elif isinstance(value, torch.SymInt) and value.node.is_nested_int():
            # The ragged size of a nested tensor is a name, not a number.
            if node.users:
                raise UnsupportedError(f"reading the ragged size {node.name!r} is not supported")
        elif isinstance(value, torch.SymInt):
            arg = block.insert_arg(I64.element, len(block.args))
            size = importer.b.compute(lambda v: v.to(INDEX), (arg, I64)).value
            numbers[i] = (value, size)
            program.kept.append(i)
            program.orders.append(None)
        elif isinstance(value, torch.Tensor):
            order = memory_order(value)
            stored = value if order is None else value.permute(order)
            found[i] = argument(block, stored, node.name, arguments)
            nodes.append(_Stored(node.name, stored))  # type: ignore[arg-type]
            program.kept.append(i)
            program.orders.append(order)
        else:
            found[i] = value
    program.elements = stored_elements(found.values(), block)
    sizes = [(value.node.expr, size) for value, size in numbers.values()]
    bind_symbols(importer, arguments, nodes, sizes)
    found.update({i: importer.symbols.size(value) for i, (value, _) in numbers.items()})
    values: list[Any] = []
    orders = dict(zip(program.kept, program.orders))
    for i in range(len(placeholders)):
        value, order = found.get(i), orders.get(i)
        if isinstance(value, Tensor) and order is not None:
            value = shapes.transpose(importer.b, value, inverse(order))
        values.append(value)
    return values


def _is_token(node: Node) -> bool:
    """Whether a placeholder only orders operators with effects. PyTorch passes None for it."""
    uses = [str(user.target) == "with_effects" and user.args[0] is node for user in node.users]
    return bool(uses) and all(uses)


class _Stored:
    """The subset of a placeholder node that `bind_symbols` reads."""

    def __init__(self, name: str, value: torch.Tensor):
        self.name = name
        self.meta = {"val": value}


def _final_copies(graph_module: GraphModule) -> list[tuple[Node, Node]]:
    """The `copy_` nodes that write to placeholders, each with its placeholder."""
    return [(n, n.args[0]) for n in graph_module.graph.nodes if is_final_copy(n)]  # type: ignore


def _without(
    graph_module: GraphModule, copies: Sequence[tuple[Node, Node]], more: Sequence[Node]
) -> GraphModule:
    """The graph with more outputs: `more`, and the values that these `copy_` nodes copied."""
    if not copies and not more:
        return graph_module
    graph = torch.fx.Graph()
    mapping: dict[Node, Node] = {}
    dropped = {node for node, _ in copies}
    sources = [node.args[1] for node, _ in copies]
    for node in graph_module.graph.nodes:
        if node in dropped:
            mapping[node] = mapping[node.args[1]]
        elif node.op == "output":
            outputs = torch.fx.node.map_arg(node.args[0], lambda n: mapping[n])
            graph.output((*outputs, *(mapping[n] for n in (*more, *sources))))
        else:
            mapping[node] = graph.node_copy(node, lambda n: mapping[n])
    return GraphModule(graph_module, graph)


def stored_in(b: Builder, value: Tensor, order: tuple[int, ...] | None) -> Tensor:
    """Transposes a value to memory order; returns it unchanged if `order` is None."""
    return value if order is None else shapes.transpose(b, value, order)


class _Returned:
    """The values that the function returns."""

    def __init__(self) -> None:
        self.values: list[SSAValue] = []
        self.unsigned: list[int] = []
        self.elements: dict[int, str] = {}

    def add(self, result: Tensor | Symbolic) -> int:
        """Adds a result and returns its number."""
        if isinstance(result, Tensor) and result.dtype.kind == "uint":
            self.unsigned.append(len(self.values))
        if isinstance(result, Tensor) and isinstance(result.dtype, Float8):
            self.elements[len(self.values)] = result.dtype.name
        self.values.append(result.value)
        return len(self.values) - 1


def _results(
    importer: GraphImporter, program: GraphProgram, results: Sequence[Any],
    nodes: tuple[Sequence[Node], list[Any]], owners: dict[int, Node],
) -> _Returned:  # fmt: skip
    """Adds the outputs of a graph; `nodes` has its placeholders and outputs."""
    outputs = nodes[1]
    fakes = [n.meta.get("val") if isinstance(n, Node) else n for n in outputs]
    views = _views(nodes[0], fakes)
    returned = _Returned()
    strided: dict[int, tuple[Any, ...]] = {}
    for i, (result, fake) in enumerate(zip(results, fakes)):
        order: tuple[int, ...] | None = None
        if i in owners:
            result = None
        elif isinstance(result, Tensor):
            order = None if i in views else memory_order(fake)
            if order is None:
                strided[i] = (views.get(i, 0), *fake.stride())
            result = stored_in(importer.b, result, order)
        elif isinstance(result, SSAValue):
            result = _number(importer, result)
        if isinstance(result, Tensor | Symbolic):
            program.results.append(returned.add(result))
        else:
            program.results.append((None, result))
        plain = order is None or order == tuple(range(len(order)))
        program.result_orders.append(None if plain else tuple(inverse(order)))
    for i, counts in strided.items():
        program.strided[i] = tuple(_count(importer, returned, n) for n in counts)
    for i, owner in owners.items():
        program.shared[i] = _shared(importer, returned, outputs[i], owner, nodes)
    return returned


def _views(placeholders: Sequence[Node], outputs: Sequence[Any]) -> dict[int, Any]:
    """
    The offsets of outputs that are views of an argument or of another output, if sizes are dynamic.

    AOT autograd replaces such an output by a view of the other tensor. It repeats the operators
    that made the view if they have no symbolic size; else it reads size, strides and offset off the
    result. These do not tell a conjugate view. Raises UnsupportedError for one.
    """
    given = [node.meta.get("val") for node in placeholders]
    if not any(isinstance(value, torch.SymInt) for value in given):
        return {}
    owners = [storage_of(value) for value in (*given, *outputs) if isinstance(value, torch.Tensor)]
    found: dict[int, Any] = {}
    for i, value in enumerate(outputs):
        if not isinstance(value, torch.Tensor) or owners.count(storage_of(value)) == 1:
            continue
        if value.is_conj() or value.is_neg():
            raise UnsupportedError("a result that is a conjugate view of dynamic size")
        offset = value.storage_offset()
        if not isinstance(offset, int) or offset:
            found[i] = offset
    return found


def _number(importer: GraphImporter, size: SSAValue) -> Symbolic:
    """A size as a number that the function can return."""
    return Symbolic(importer.b.compute(lambda v: v.to(I64), (size, INDEX)).value, I64)


def _count(importer: GraphImporter, returned: _Returned, count: Any) -> Count:
    """A stride or an offset as an int, or as one more result that computes it."""
    size = importer.symbols.size(count)
    return size if isinstance(size, int) else Computed(returned.add(_number(importer, size)))
