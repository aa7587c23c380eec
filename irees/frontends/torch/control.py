"""
Higher-order operators, whose regions are graphs of their own.

`cond` becomes `scf.if`, `while_loop` becomes `scf.while`, `scan` and `map` become `scf.for` over
the slices of their inputs. Wrappers that PyTorch adds (`no_grad`, autocast, invoked subgraphs) are
inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves
from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from irees.errors import UnsupportedError

from ..builder import Builder, Size, Tensor, shapes
from ..builder.dtypes import BOOL, F64, INDEX
from .calls import Symbolic, lowering_of
from .decomposing import is_input, region_graph
from .dtypes import dtype_of

if TYPE_CHECKING:
    from .importing import GraphImporter


def lower_higher_order(importer: GraphImporter, node: torch.fx.Node, env: dict[Any, Any]) -> Any:
    """Lowers a higher-order operator. Raises UnsupportedError for an unknown one."""
    name = str(node.target)
    args = importer._argument(node.args, env)
    value = node.meta.get("val")
    if name in _INLINED:
        place = _INLINED[name]
        return importer.run(args[place], args[place + 1 :])
    if name == "invoke_subgraph":
        return importer.run(args[0], args[2:])
    if name == "cond":
        return _cond(importer, args, value)
    if name == "while_loop":
        return _while_loop(importer, args, value)
    if name == "scan":
        return _scan(importer, args, value)
    if name in ("map_impl", "map"):
        return _map(importer, args, value)
    if name == "with_effects":
        return _with_effects(importer, node, env)
    if name == "flex_attention":
        return _flex_attention(importer, node, env)
    raise UnsupportedError(f"the higher-order operator {name} is not supported")


def _flex_attention(importer: GraphImporter, node: torch.fx.Node, env: dict[Any, Any]) -> Any:
    """`flex_attention` as in eager, which maps `score_mod` over all scores."""
    regions = {n: env[n] for n in node.all_input_nodes if isinstance(env[n], torch.fx.GraphModule)}
    fakes = map_arg((node.args, node.kwargs), lambda n: regions.get(n, n.meta.get("val")))
    args = importer._argument((node.args, node.kwargs), env)
    inputs = [x for x, fake in zip(tree_leaves(args), tree_leaves(fakes)) if is_input(fake)]
    return importer.run(region_graph(node.target, fakes), inputs)


def _with_effects(importer: GraphImporter, node: torch.fx.Node, env: dict[Any, Any]) -> Any:
    """
    `with_effects(token, operator, *args)` orders operators with effects by a token. Only operators
    with a lowering are taken: checks, which stay in order without tokens.
    """
    target, given = node.args[1], node.args[2:]
    if lowering_of(target) is None:
        raise UnsupportedError(f"operator {target} with an effect has no lowering")
    token, _, *args = importer._argument(node.args, env)
    kwargs = importer._argument(node.kwargs, env)
    fakes = map_arg((given, node.kwargs), lambda each: each.meta.get("val"))
    _, *values = node.meta["val"]
    value = values[0] if len(values) == 1 else tuple(values)
    result = importer.operator(target, args, kwargs, fakes, value)
    return (token, *(result if isinstance(result, tuple) else (result,)))


_INLINED = {
    "wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4, "wrap": 0, "invoke_quant": 0,
    "invoke_quant_packed": 0,
}  # fmt: skip
"""Argument index of the graph to inline, by operator; the graph's operands follow it."""


class _Carried:
    """Converts tensors and numbers to and from the SSA values that a region carries."""

    def __init__(self, b: Builder, values: Sequence[Any]):
        self.b = b
        self.kinds = [self._kind(v) for v in values]
        self.values = [self.pack(v, k) for v, k in zip(values, self.kinds, strict=True)]

    @staticmethod
    def _kind(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, bool):
            return BOOL
        if isinstance(value, float):
            return F64
        return value.dtype if isinstance(value, Symbolic) else INDEX

    def pack(self, value: Any, kind: Any) -> SSAValue:
        """Converts a value to the SSA value and type that the region carries for it."""
        if isinstance(kind, Tensor):
            tensor = self.b.cast(value, kind.dtype)
            if tensor.value.type != kind.value.type:
                tensor = self.b.with_shape(tensor, kind.shape)
            return tensor.value
        if isinstance(value, Symbolic):
            return value.value
        if isinstance(value, SSAValue):
            return value
        return self.b.number(value, kind) if kind is not INDEX else self.b.value(value)

    def unpack(self, values: Sequence[SSAValue]) -> list[Any]:
        """The carried values as the region's graph expects them."""
        found: list[Any] = []
        for value, kind in zip(values, self.kinds, strict=True):
            if isinstance(kind, Tensor):
                found.append(Tensor(value, kind.dtype, kind.shape))
            else:
                found.append(value if kind is INDEX else Symbolic(value, kind))
        return found


def _region(
    importer: GraphImporter,
    arguments: Sequence[SSAValue],
    body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    terminator: Callable[[Sequence[SSAValue]], Any],
    leading: Sequence[Any] = (),
) -> Region:
    """A single-block region whose arguments have the types of `leading` and `arguments`."""
    block = Block(arg_types=[*leading, *(v.type for v in arguments)])
    saved = importer.symbols.values.copy()
    with importer.b.inside(block):
        block.add_op(terminator(body(block.args)))
    # Values computed inside of the region do not dominate the code after it.
    importer.symbols.values = saved
    return Region(block)


def _as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def _predicate(importer: GraphImporter, value: Any) -> SSAValue:
    """The i1 of a one-element tensor or a number."""
    b = importer.b
    if isinstance(value, Symbolic):
        return b.compute(lambda v: v.to(BOOL), (value.value, value.dtype)).value
    if isinstance(value, Tensor):
        return b.item(b.is_true(value), [0] * value.rank)
    if isinstance(value, SSAValue):
        return b.compute(lambda v: v != 0, (value, INDEX)).value
    return b.number(bool(value), BOOL)


def _unknown(importer: GraphImporter, value: Any) -> list[Tensor]:
    """Uninitialized tensors with the types of an operator's results."""
    found: list[Tensor] = []
    for fake in tree_leaves(value):
        if not isinstance(fake, torch.Tensor):
            raise UnsupportedError("a region that returns numbers is not supported")
        shape = [importer.symbols.size(s) for s in fake.shape]
        found.append(importer.b.empty(dtype_of(fake.dtype), shape))
    return found


def _cond(importer: GraphImporter, args: Sequence[Any], value: Any) -> Any:
    """cond(p, f, g, operands) = p ? f(operands) : g(operands)"""
    predicate, true, false, operands = args
    if isinstance(predicate, bool):
        return importer.run(true if predicate else false, operands)
    condition = _predicate(importer, predicate)
    results = _Carried(importer.b, _unknown(importer, value))

    def branch(graph: Any) -> Region:
        def body(_: Sequence[SSAValue]) -> list[SSAValue]:
            found = _as_list(importer.run(graph, operands))
            return [results.pack(v, k) for v, k in zip(found, results.kinds, strict=True)]

        return _region(importer, [], body, lambda values: scf.YieldOp(*values))

    kinds = [v.type for v in results.values]
    op = scf.IfOp(condition, kinds, branch(true), branch(false))
    importer.b.insert(op)
    return tuple(results.unpack(op.results))


def _while_loop(importer: GraphImporter, args: Sequence[Any], value: Any) -> Any:
    """while condition(carried, rest): carried = body(carried, rest)"""
    condition, body, carried, rest = args
    state = _Carried(importer.b, carried)

    def before(values: Sequence[SSAValue]) -> list[SSAValue]:
        found = _as_list(importer.run(condition, [*state.unpack(values), *rest]))
        return [_predicate(importer, found[0]), *values]

    def after(values: Sequence[SSAValue]) -> list[SSAValue]:
        found = _as_list(importer.run(body, [*state.unpack(values), *rest]))
        return [state.pack(v, k) for v, k in zip(found, state.kinds, strict=True)]

    first = _region(importer, state.values, before, lambda v: scf.ConditionOp(v[0], *v[1:]))
    second = _region(importer, state.values, after, lambda v: scf.YieldOp(*v))
    op = scf.WhileOp(state.values, [v.type for v in state.values], first, second)
    importer.b.insert(op)
    return tuple(state.unpack(op.results))


def _for(
    importer: GraphImporter,
    count: Size,
    state: _Carried,
    body: Callable[[SSAValue, list[Any]], list[Any]],
) -> list[Any]:
    """for i < count: state = body(i, state)"""
    b = importer.b

    def inner(values: Sequence[SSAValue]) -> list[SSAValue]:
        found = body(values[0], state.unpack(values[1:]))
        return [state.pack(v, k) for v, k in zip(found, state.kinds, strict=True)]

    region = _region(importer, state.values, inner, lambda v: scf.YieldOp(*v), [INDEX.element])
    op = scf.ForOp(b.value(0), b.value(count), b.value(1), state.values, region)
    b.insert(op)
    return state.unpack(op.results)


def _slices(b: Builder, tensors: Sequence[Tensor], index: SSAValue) -> list[Tensor]:
    return [shapes.select(b, x, 0, index) for x in tensors]


def _stacks(
    b: Builder, stacked: Sequence[Tensor], parts: Sequence[Any], index: SSAValue
) -> list[Tensor]:
    """Replaces slice `index` of each stack."""
    return [
        shapes.update_slice(
            b, whole, shapes.unsqueeze(b, b.cast(part, whole.dtype), 0),
            [index, *[0] * (whole.rank - 1)],
        )
        for whole, part in zip(stacked, parts, strict=True)
    ]  # fmt: skip


def _scan(importer: GraphImporter, args: Sequence[Any], value: Any) -> Any:
    """(carry, ys[i]) = combine(carry, xs[i], rest) for each i; returns the last carry and all ys"""
    combine, init, xs, rest = args
    b = importer.b
    made = _unknown(importer, value)
    carries = [b.cast(c, m.dtype) for c, m in zip(init, made[: len(init)])]
    state = _Carried(b, [*carries, *made[len(init) :]])

    def body(index: SSAValue, values: list[Any]) -> list[Any]:
        carry, stacked = values[: len(init)], values[len(init) :]
        found = _as_list(importer.run(combine, [*carry, *_slices(b, xs, index), *rest]))
        return [*found[: len(init)], *_stacks(b, stacked, found[len(init) :], index)]

    return tuple(_for(importer, xs[0].shape[0], state, body))


def _map(importer: GraphImporter, args: Sequence[Any], value: Any) -> Any:
    """out[i] = body(xs[i], rest) for each i"""
    graph, xs, rest = args
    b = importer.b
    state = _Carried(b, _unknown(importer, value))

    def body(index: SSAValue, stacked: list[Any]) -> list[Any]:
        found = _as_list(importer.run(graph, [*_slices(b, xs, index), *rest]))
        return list(_stacks(b, stacked, found, index))

    return tuple(_for(importer, xs[0].shape[0], state, body))
