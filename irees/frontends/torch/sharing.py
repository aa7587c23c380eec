"""
Results of a graph that share memory with each other or with an argument.

    y = x + 1
    return y, y[1], x.t()

PyTorch returns views of `y` and `x`, and a write to one tensor changes the other. So does a
compiled graph: it computes the tensor that made the memory, and returns views of it. What a forward
pass saves of its arguments is not copied either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .layouts import memory_order


def storage_of(value: torch.Tensor) -> int:
    """A key of the memory of a tensor; its own if it has none, as inside of `torch.func`."""
    try:
        return value.untyped_storage()._cdata
    except NotImplementedError:
        return id(value)


def keep_memory_apart(graph_module: GraphModule) -> None:
    """
    Gives each argument that gets the memory of another tensor, by `set_`, a fake tensor of its own:
    PyTorch's has that memory from the beginning, as if the argument were a view of the new value.
    """
    for node in graph_module.graph.nodes:
        if getattr(node.target, "_opname", "") == "set_" and isinstance(node.args[0], Node):
            given = node.args[0]
            if given.op == "placeholder" and (value := _value_of(given)) is not None:
                given.meta["val"] = value.new_empty_strided(value.shape, value.stride())


def owners_of(
    graph_module: GraphModule, outputs: Sequence[Any], written: Sequence[Node]
) -> dict[int, Node]:
    """
    For each output that is a view of another one or of an argument, or is that itself: the node
    that made the memory. A view with another element type has memory of its own, unless it has the
    parts of complex numbers, and so has the old value of an argument in `written`.
    """
    makers = _makers(graph_module)
    found: dict[int, Node] = {}
    for i, node in enumerate(outputs):
        value = _value_of(node)
        owner = None if value is None else makers[storage_of(value)]
        if owner is None or owner in written or owner.op == "get_attr":
            continue
        if node is owner or _can_share(value, owner):
            found[i] = owner
    views = [owner for _, owner in dict.fromkeys((outputs[i], o) for i, o in found.items())]

    def is_shared(i: int, owner: Node) -> bool:
        if outputs[i] is owner:
            return outputs.index(owner) != i
        return views.count(owner) > 1

    return {i: o for i, o in found.items() if o.op == "placeholder" or is_shared(i, o)}


def _makers(graph_module: GraphModule) -> dict[int, Node]:
    """The first node of each memory: the one that makes it, or the argument that has it."""
    found: dict[int, Node] = {}
    for node in graph_module.graph.nodes:
        value = _value_of(node)
        if node.op != "output" and value is not None:
            found.setdefault(storage_of(value), node)
    return found


def _value_of(node: Any) -> torch.Tensor | None:
    """The fake tensor of a node, if it is one with strides."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) and value.layout is torch.strided else None


def _can_share(view: Any, owner: Node) -> bool:
    """Whether a result of a graph can be a view of another one, or of an argument."""
    base = owner.meta["val"]
    if base.is_conj() or base.is_neg() or view.dtype not in (base.dtype, base.dtype.to_real()):
        return False
    is_plain = memory_order(base) is not None and base.storage_offset() == 0
    return owner.op == "placeholder" or is_plain
