"""
Shows what autocast does inside of composite operators.

Autocast casts the arguments of `matmul`. It does not know `einsum`: in eager, the products that
`einsum` calls are cast. PyTorch decomposes a program below autocast, so the region of an exported
program has to say it:

    %r = aten.einsum("ij,jk", [%x, %w])       %a = aten.to(%x, bf16)
                                         =>   %b = aten.to(%w, bf16)
                                              %r = aten.einsum("ij,jk", [%a, %b])

Neither is autocast that is on around an export a part of its program: `in_a_region` makes it one.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

_DTYPE, _ENABLED = 1, 2
"""Numbers of the arguments of `wrap_with_autocast` that have the dtype, and whether it casts."""


def is_autocast(node: Node) -> bool:
    """Whether a node calls a region in which autocast is on or off."""
    return str(node.target) == "wrap_with_autocast"


@contextmanager
def in_a_region(module: torch.nn.Module) -> Generator[None]:
    """Moves autocast of the caller into a module's `forward`, where an export sees it."""
    if not torch.is_autocast_enabled("cpu"):
        yield
        return
    dtype, own = torch.get_autocast_dtype("cpu"), module.forward
    had = vars(module).get("forward")

    @functools.wraps(own)
    def forward(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast("cpu", dtype):
            return own(*args, **kwargs)

    forward.__signature__ = inspect.signature(own)  # type: ignore[attr-defined]
    module.forward = forward
    try:
        with torch.autocast("cpu", enabled=False):
            yield
    finally:
        if had is None:
            del vars(module)["forward"]
        else:
            module.forward = had


def with_casts_shown(exported: Any) -> Any:
    """The program with the casts of arguments of composite operators; itself without autocast."""
    graphs = [m.graph for m in exported.graph_module.modules() if hasattr(m, "graph")]
    if not any(is_autocast(node) for graph in graphs for node in graph.nodes):
        return exported
    program = copy.copy(exported)
    program._graph_module = copy.deepcopy(exported.graph_module)
    _show(program._graph_module, None)
    return program


def _show(module: GraphModule, dtype: torch.dtype | None) -> None:
    """Adds casts to a graph in a region that casts to a dtype, and to the regions in it."""
    for node in list(module.graph.nodes):
        inner = dtype
        if is_autocast(node):
            inner = node.args[_DTYPE] if node.args[_ENABLED] else None
        for read in node.all_input_nodes:
            region = getattr(module, str(read.target), None) if read.op == "get_attr" else None
            if isinstance(region, GraphModule):
                _show(region, inner)
        new = None if dtype is None else cast_inside(node, dtype)
        if dtype is not None and new is not None:
            # Some operators compute in f32 under autocast, such as the loss in `nll_loss_nd`.
            _cast_arguments(module.graph, node, torch.float32 if new == dtype else dtype, new)
    module.recompile()


def cast_inside(node: Node, dtype: torch.dtype) -> torch.dtype | None:
    """The dtype to which autocast casts operands inside of a composite operator, if it does."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return None
    if not _has_kernel(target, "CompositeImplicitAutograd") or _has_kernel(target, "AutocastCPU"):
        return None
    if any(isinstance(x, torch.dtype) for x in tree_leaves((node.args, node.kwargs))):
        return None
    results = [t.dtype for t in tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)]
    return next((kind for kind in (dtype, torch.float32) if kind in results), None)


def _has_kernel(target: torch._ops.OpOverload, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), key)


def _cast_arguments(graph: torch.fx.Graph, node: Node, old: torch.dtype, new: torch.dtype) -> None:
    for read in node.all_input_nodes:
        value = read.meta.get("val")
        if isinstance(value, torch.Tensor) and value.dtype == old:
            with graph.inserting_before(node):
                cast = graph.call_function(torch.ops.aten.to.dtype, (read, new))
            cast.meta = {**node.meta, "val": value.to(new)}
            node.replace_input_with(read, cast)
