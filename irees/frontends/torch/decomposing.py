"""
Decomposes single operators with PyTorch's decompositions, traced for one call at a time.

Decomposing a whole graph takes longer than compiling it. Instead, each operator without a lowering
is traced separately, and the trace is cached by operator, shapes, dtypes and other arguments.
Tracing stops at operators that have a lowering.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._pytree import tree_flatten, tree_unflatten

from irees.errors import UnsupportedError

from . import encoder_layers, foreach, metas, primitives
from .calls import LOWERINGS
from .gradients import GRADIENTS

aten = torch.ops.aten


@cache
def full_table() -> dict[Any, Any]:
    """
    All available decompositions: those to core ATen, then all others that PyTorch registers
    (`torch._refs` among them).
    """
    from torch._decomp import decomposition_table
    from torch._inductor.decomposition import select_decomp_table

    table = {**decomposition_table, **dict(torch.export.default_decompositions().items())}
    for op, function in select_decomp_table().items():
        table.setdefault(op, function)
    for op, function in foreach.decompositions().items():
        table.setdefault(op, function)
    own = (metas.COMPOSITES, GRADIENTS, primitives.DECOMPOSITIONS, encoder_layers.DECOMPOSITIONS)
    return functools.reduce(operator.or_, own, table)


@cache
def table() -> dict[Any, Any]:
    """Decompositions of functional operators that have no lowering."""
    return {
        op: function
        for op, function in full_table().items()
        if op not in LOWERINGS and not writes(op)
    }


def writes(op: Any) -> bool:
    """Whether an operator writes to an argument according to its schema."""
    schema = getattr(op, "_schema", None)
    return schema is not None and schema.is_mutable


_BY_NAME: dict[str, Any] = {}
"""Decompositions that PyTorch lacks, for operators whose library may not be loaded."""


def decomposes_named(name: str) -> Callable[[Any], Any]:
    """Registers a function as the decomposition of an operator, by "library::name"."""

    def register(function: Any) -> Any:
        _BY_NAME[name] = function
        return function

    return register


@decomposes_named("torch_nn::_linear_cross_entropy_batch_chunked")
def _linear_cross_entropy(
    x: Any, weight: Any, target: Any, bias: Any, class_weight: Any, reduction: str,
    ignored: int, smoothing: float, *rest: Any,
) -> Any:  # fmt: skip
    """cross_entropy(x @ weight^T + bias); computing its gradients is not supported."""
    if any(rest[-3:]):
        raise UnsupportedError("gradients that are computed with the loss are not supported")
    scores, class_weight = _scores(x, weight, bias, class_weight)
    loss = torch.nn.functional.cross_entropy(
        scores, target, class_weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=smoothing,
    ).to(x.dtype)  # fmt: skip
    return loss, x.new_empty((0, 0)), x.new_empty((0, 0)), x.new_empty((0,))


def _scores(x: Any, weight: Any, bias: Any, class_weight: Any) -> tuple[Any, Any]:
    """x @ weight^T + bias and the class weights; f16 and bf16 become f32, as in PyTorch."""
    if x.dtype in (torch.float16, torch.bfloat16):
        x, weight, bias, class_weight = (
            None if t is None else t.float() for t in (x, weight, bias, class_weight)
        )
    return torch.nn.functional.linear(x, weight, bias), class_weight


@decomposes_named("torch_nn::_linear_cross_entropy_batch_chunked_no_reduction")
def _linear_cross_entropy_by_row(
    x: Any, weight: Any, target: Any, bias: Any, class_weight: Any, ignored: int, *_: Any
) -> Any:
    """cross_entropy(x @ weight^T + bias) without a reduction."""
    scores, class_weight = _scores(x, weight, bias, class_weight)
    return torch.nn.functional.cross_entropy(
        scores, target, class_weight, ignore_index=ignored, reduction="none"
    ).to(x.dtype)


@decomposes_named("flex_attention")
def _flex_attention(*args: Any) -> Any:
    """softmax(score_mod(q @ k^T)) @ v"""
    from torch._higher_order_ops.flex_attention import math_attention

    return math_attention(*args)


@decomposes_named("aten::_jagged_to_padded_dense_forward")
def _padded(values: Any, offsets: Any, longest: Any, padding: float = 0.0) -> Any:
    """out[i, j] = values[offsets[i] + j] before the end of row i, else `padding`"""
    if len(offsets) != 1:
        raise UnsupportedError("jagged tensors of several ragged dims are not supported")
    starts, ends = offsets[0][:-1, None], offsets[0][1:, None]
    places = starts + torch.arange(longest[0], dtype=starts.dtype)
    places = torch.where(places < ends, places, values.shape[0])
    return torch.cat([values, values.new_full((1, *values.shape[1:]), padding)])[places]


@decomposes_named("aten::_padded_dense_to_jagged_forward")
def _jagged(dense: Any, offsets: Any, total: Any = None) -> Any:
    """out[offsets[i] + j] = dense[i, j]; a row that is longer than those of `dense` is a trap"""
    if len(offsets) != 1 or total is None:
        raise UnsupportedError("jagged tensors of several or uncounted ragged dims")
    rows = torch.arange(total, dtype=offsets[0].dtype)
    which = torch.searchsorted(offsets[0], rows, right=True) - 1
    return dense[which, rows - offsets[0][which]]


Traces = dict[Any, torch.fx.GraphModule | None]

_static: Traces = {}
"""Traces of operators on static shapes."""


def _key(target: Any, args: Any, kwargs: Any) -> Any:
    leaves, spec = tree_flatten((args, kwargs))
    described = tuple(
        (tuple(map(str, x.shape)), x.dtype, tuple(map(str, x.stride())))
        if isinstance(x, torch.Tensor)
        else (type(x).__name__, str(x))
        for x in leaves
    )
    # The trace of f(x, x) reads only one of its inputs, so it is not that of f(x, y).
    first: dict[int, int] = {}
    repeats = tuple(first.setdefault(id(x), i) for i, x in enumerate(leaves) if is_input(x))
    return target, described, str(spec), repeats


def _is_symbolic(args: Any, kwargs: Any) -> bool:
    leaves = tree_flatten((args, kwargs))[0]
    sizes = [size for x in leaves if isinstance(x, torch.Tensor) for size in x.shape]
    return any(isinstance(x, torch.SymInt) for x in (*leaves, *sizes))


def decomposed(target: Any, args: Any, kwargs: Any, dynamic: Traces) -> torch.fx.GraphModule | None:
    """
    Returns a graph that computes `target(*args, **kwargs)` with other operators, as a function of
    the arguments that `is_input` holds for, in order; None if PyTorch has no decomposition.
    Arguments are fake tensors and numbers. `dynamic` has the program's traces on symbolic shapes.
    They are not shared between programs, whose symbols have equal names but other ranges and
    guards.
    """
    key = _key(target, args, kwargs)
    traces = dynamic if _is_symbolic(args, kwargs) else _static
    if key in traces:
        return traces[key]
    graph = _trace(target, args, kwargs)
    if graph is None or not any(
        free_unbacked_symbols(n.meta.get("val")) for n in graph.graph.nodes
    ):
        # A trace with a data-dependent count is not cached: each call needs its own symbol.
        traces[key] = graph
    return graph


def is_input(value: Any) -> bool:
    """Whether an argument of an operator is an input of its trace: a tensor or a dynamic number."""
    return isinstance(value, torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool)


def _trace(target: Any, args: Any, kwargs: Any) -> torch.fx.GraphModule | None:
    leaves, spec = tree_flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if is_input(x)]
    rules = dict(table())
    if target in full_table():
        rules[target] = full_table()[target]

    def run(*inputs: Any) -> Any:
        filled = list(leaves)
        for place, each in zip(places, inputs):
            filled[place] = each
        positional, named = tree_unflatten(filled, spec)
        function = _BY_NAME.get(_name(target), target)
        return function(*positional, **named)

    inputs = [leaves[i] for i in places]
    graph = _traced(run, rules, inputs)
    if _holds(graph, target):
        return None
    if any(mutates(n) for n in graph.graph.nodes):
        # Composites write to tensors that they have just created. The second trace shows these
        # writes as nodes of the graph itself, which can be functionalized; those inside of a
        # composite cannot.
        again = torch.func.functionalize(graph, remove="mutations")
        graph = _traced(again, rules, inputs)
        graph.graph.eliminate_dead_code()
    return None if any(mutates(n) for n in graph.graph.nodes) else graph


def _name(target: Any) -> str:
    """The name of an operator; a higher-order one has no schema."""
    schema = getattr(target, "_schema", None)
    return str(target) if schema is None else schema.name


def region_graph(target: Any, fakes: Any) -> torch.fx.GraphModule:
    """
    The graph of a higher-order operator, as `decomposed` returns it. It is not cached: the key does
    not tell the operator's regions apart.
    """
    graph = _trace(target, *fakes)
    assert graph is not None
    return graph


def _traced(function: Any, rules: Any, inputs: Any) -> torch.fx.GraphModule:
    modes = [x.fake_mode for x in inputs if hasattr(x, "fake_mode")]
    # The Python dispatcher handles the composites that are written in Python.
    with torch.no_grad(), enable_python_dispatcher(), modes[0] if modes else nullcontext():
        mode = "real" if modes else "fake"
        return make_fx(function, decomposition_table=rules, tracing_mode=mode)(*inputs)


def _holds(graph: torch.fx.GraphModule, target: Any) -> bool:
    return any(n.op == "call_function" and n.target is target for n in graph.graph.nodes)


def mutates(node: torch.fx.Node) -> bool:
    """Whether a node writes to one of its arguments."""
    if node.target is aten.detach_.default:
        return False
    if writes(node.target):
        return True
    if node.target in UNSAID:
        return bool(node.args[5]) and node.args[3] is not None
    return False


UNSAID = (aten.batch_norm.default, aten.instance_norm.default, aten.native_batch_norm.default)
"""Operators that write running statistics in training without declaring it in their schemas."""


KEPT = (
    aten.binary_cross_entropy.default, aten.max_unpool2d.default, aten.max_unpool3d.default,
    aten.select_scatter.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
)  # fmt: skip
"""
Operators that `torch.compile` graphs keep whole, though PyTorch would decompose them. The first
three check their operands.
"""


@cache
def graph_table() -> dict[Any, Any]:
    """Decompositions to core ATen that AOT autograd applies to whole graphs."""
    core = dict(torch.export.default_decompositions().items())
    return {op: function for op, function in core.items() if op not in KEPT}
