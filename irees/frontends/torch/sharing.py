"""
Results of a graph that share memory with each other.

    y = x + 1
    return y, y[1]

PyTorch returns a view as the second result, and a write to one of them changes the other. So does a
compiled graph: it computes the tensor that made the memory, and returns views of it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .layouts import memory_order


def storage_of(value: torch.Tensor) -> int:
    """A key of the memory of a fake tensor."""
    return value.untyped_storage()._cdata


def owners_of(graph_module: GraphModule, outputs: Sequence[Any]) -> dict[int, Node]:
    """
    For each output that shares memory with another one, and not with an argument: the node that
    made the memory. A view with another element type has memory of its own, unless it has the parts
    of complex numbers.
    """
    makers: dict[int, Node] = {}
    for node in graph_module.graph.nodes:
        value = _value_of(node)
        if node.op != "output" and value is not None:
            makers.setdefault(storage_of(value), node)
    found: dict[int, Node] = {}
    for i, node in enumerate(outputs):
        value = _value_of(node)
        owner = None if value is None else makers[storage_of(value)]
        if owner and owner.op == "call_function" and _can_share(value, owner.meta["val"]):
            found[i] = owner
    members = [(n, found[i]) for i, n in enumerate(outputs) if i in found]
    distinct = [owner for _, owner in dict.fromkeys(members)]
    return {
        i: owner for i, owner in found.items() if distinct.count(owner) > 1 and outputs[i] != owner
    }


def _value_of(node: Any) -> torch.Tensor | None:
    """The fake tensor of a node, if it is one with strides."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) and value.layout is torch.strided else None


def _can_share(view: Any, base: torch.Tensor) -> bool:
    """Whether a result of a graph can be a view of another one."""
    if memory_order(base) is None or base.storage_offset() != 0 or base.is_conj() or base.is_neg():
        return False
    return view.dtype in (base.dtype, base.dtype.to_real())


def views_between(graph_module: GraphModule) -> set[Node]:
    """The nodes that make shared results views of their owners."""
    output = next(n for n in graph_module.graph.nodes if n.op == "output")
    outputs: Sequence[Any] = output.args[0]  # type: ignore[assignment]
    found: set[Node] = set()
    for i, owner in owners_of(graph_module, outputs).items():
        node = outputs[i]
        while node is not owner and node not in found and _is_view(node):
            found.add(node)
            node = node.args[0]
    return found


def _is_view(node: Node) -> bool:
    if node.target is operator.getitem:
        return True
    arguments = getattr(getattr(node.target, "_schema", None), "arguments", None)
    return bool(arguments) and arguments[0].alias_info is not None and bool(node.args)
