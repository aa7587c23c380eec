"""
Partitions a graph between irees and PyTorch.

A probing importer visits the graph once, records each operator that it cannot lower, and continues
with unknown tensors as its results. Each run of operators between these becomes a graph of its own.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_map
from xdsl.dialects import tensor
from xdsl.ir import Block

from irees.errors import IreesError, UnsupportedError

from ..builder import Builder, Tensor, tensor_type
from ..builder.dtypes import INDEX
from .dtypes import dtype_of
from .importing import GraphImporter


@dataclass
class Part:
    """Nodes that run together: a graph for irees (`module`), or one node for PyTorch."""

    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]
    module: GraphModule | None = None
    reason: str = ""


def is_final_copy(node: Node) -> bool:
    """Whether a node copies a new value to an argument of its graph."""
    target = node.args[0] if node.args else None
    return (
        node.target is torch.ops.aten.copy_.default
        and isinstance(target, Node)
        and target.op == "placeholder"
    )


@dataclass
class Refusals:
    """Nodes without a lowering, each with the reason."""

    reasons: dict[Node, IreesError] = field(default_factory=dict)


class _Probe(GraphImporter):
    """An importer that only finds the nodes that fail to lower; its output is discarded."""

    def __init__(self, builder: Builder, refusals: Refusals):
        super().__init__(builder)
        self.refusals = refusals
        self.depth = 0

    def _node(self, node: Node, env: dict[Node, Any]) -> Any:
        if is_final_copy(node):
            return env[node.args[1]]
        self.depth += 1
        try:
            return super()._node(node, env)
        except IreesError as error:
            if self.depth > 1:
                raise
            self.refusals.reasons[node] = error
        except Exception as error:  # a bug in a lowering: PyTorch runs the operator
            if self.depth > 1:
                raise
            self.refusals.reasons[node] = UnsupportedError(
                f"lowering operator {node.target} failed: {type(error).__name__}: {error}",
                location=self.location(node),
            )
        finally:
            self.depth -= 1
        return tree_map(self.stand_in, node.meta.get("val"))

    def stand_in(self, value: Any) -> Any:
        """An unknown value of the same type: an argument of a function that is discarded."""
        if isinstance(value, torch.SymInt):
            for symbol in value.node.expr.free_symbols - self.symbols.bound.keys():
                self.symbols.bind(symbol, self.b.block.insert_arg(INDEX.element, 0))
            return self.symbols.size(value)
        if not isinstance(value, torch.Tensor):
            return value
        try:
            dtype = dtype_of(value.dtype)
        except UnsupportedError:
            return value
        known = [isinstance(s, int) for s in value.shape]
        shape = [s if k else self.b.value(0) for s, k in zip(value.shape, known)]
        arg = self.b.block.insert_arg(tensor_type(dtype, shape), 0)
        for i, dim in enumerate(value.shape):
            expr = getattr(getattr(dim, "node", None), "expr", None)
            if expr is not None and expr.is_Symbol and expr not in self.symbols.bound:
                size = self.b.emit(tensor.DimOp, (arg, self.b.value(i)), (INDEX.element,))
                self.symbols.bind(expr, size.results[0])
        return Tensor(arg, dtype, tuple(self.stand_in(s) for s in value.shape))


def refused(graph_module: GraphModule) -> Refusals:
    """Finds the nodes that irees cannot lower."""
    found = Refusals()
    probe = _Probe(Builder(Block()), found)
    placeholders = [n for n in graph_module.graph.nodes if n.op == "placeholder"]
    values = [n.meta.get("val") for n in placeholders]
    # Binds symbols first, so that the shapes of all arguments are known.
    for value in sorted(values, key=lambda v: not isinstance(v, torch.SymInt)):
        probe.stand_in(value)
    probe.run(graph_module, [tree_map(probe.stand_in, v) for v in values])
    return found


def _groups(
    graph_module: GraphModule, refusals: Refusals
) -> list[tuple[list[Node], IreesError | None]]:
    """Returns maximal runs for irees, and single nodes for PyTorch with the reason, in order."""
    groups: list[tuple[list[Node], IreesError | None]] = []
    group_of: dict[Node, list[Node]] = {}
    for node in graph_module.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        reason = refusals.reasons.get(node)
        if node.target is operator.getitem and node.args[0] in group_of:
            # A tuple stays within the part that computes it.
            group_of[node] = group_of[node.args[0]]
            group_of[node].append(node)
            continue
        if reason is not None or not groups or groups[-1][1] is not None:
            groups.append(([node], reason))
        else:
            groups[-1][0].append(node)
        group_of[node] = groups[-1][0]
    return groups


def _part(nodes: list[Node], reason: IreesError | None) -> Part:
    """Returns the part of these nodes, without a module, with its inputs and outputs."""
    inside = set(nodes)
    inputs = dict.fromkeys(
        i for n in nodes for i in n.all_input_nodes if i not in inside and i.op != "get_attr"
    )
    outputs = [
        n
        for n in nodes
        if any(u not in inside for u in n.users) and not isinstance(n.meta.get("val"), tuple)
    ]
    return Part(nodes, list(inputs), outputs, reason="" if reason is None else str(reason))


def parts_of(graph_module: GraphModule, refusals: Refusals) -> list[Part]:
    """Splits the graph into parts for irees and single nodes for PyTorch, in order."""
    parts: list[Part] = []
    for nodes, reason in _groups(graph_module, refusals):
        part = _part(nodes, reason)
        if reason is None:
            _add_sizes(graph_module, part)
            part.module = _extracted(graph_module, part)
        parts.append(part)
    return parts


def _symbols_of(node: Node) -> set[Any]:
    found: set[Any] = set()

    def look(value: Any) -> Any:
        sizes = value.shape if isinstance(value, torch.Tensor) else [value]
        for size in sizes:
            found.update(getattr(getattr(size, "node", None), "expr", size).free_symbols
                         if hasattr(size, "node") else ())  # fmt: skip
        return value

    tree_map(look, node.meta.get("val"))
    return found


def _add_sizes(graph_module: GraphModule, part: Part) -> None:
    """Adds the symbolic sizes that the part uses to its inputs."""
    wanted = set().union(*(_symbols_of(n) for n in (*part.nodes, *part.inputs)))
    for node in graph_module.graph.nodes:
        value = node.meta.get("val")
        if node in part.nodes or node in part.inputs or not isinstance(value, torch.SymInt):
            continue
        if value.node.expr.is_Symbol and value.node.expr in wanted and node.op == "placeholder":
            part.inputs.insert(0, node)


def _extracted(graph_module: GraphModule, part: Part) -> GraphModule:
    """Extracts the nodes of a part as a graph module over its inputs."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in part.inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = node.meta

    def copy_of(node: Node) -> Node:
        if node not in copies:  # an attribute: each part reads its own copy
            copies[node] = graph.get_attr(str(node.target))
            copies[node].meta = node.meta
        return copies[node]

    for node in part.nodes:
        copies[node] = graph.node_copy(node, copy_of)
    graph.output(tuple(copies[n] for n in part.outputs))
    return GraphModule(graph_module, graph)
