"""
Functionalizes PyTorch graphs: an operator that writes to a tensor becomes one that returns the new
value.

A mutation that the caller can see becomes a result of the exported program (see its graph
signature). PyTorch's own functionalization handles every program, but it runs the whole program
again, which takes longer than the rest of an import. Most programs only write to a tensor that they
have just computed and that has no alias, as in `relu_(batch_norm(x))`:

    %y = aten.batch_norm(%x, ...)            %y = aten.batch_norm(%x, ...)
    %z = aten.relu_(%y)                 =>   %z = aten.relu(%y)
    %r = aten.add(%y, %x)                    %r = aten.add(%z, %x)

In this case the pass replaces the operator by its functional overload, and later uses of the tensor
by its result. `functional` leaves all other programs to PyTorch.

Both rely on the aliases that schemas declare. Some composite operators return a view, or an
argument itself, and do not declare it (`einsum`, `dropout` in inference). In a program that writes,
these operators are decomposed first.
"""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from irees.errors import UnsupportedError

from .autocasting import with_casts_shown
from .decomposing import UNSAID, full_table, mutates
from .exporting import quiet, reason, user_line
from .metas import recurrent_layers_kept
from .sharing import storage_of

aten = torch.ops.aten


def functional(exported: Any) -> Any:
    """
    Returns the program with a functional graph; mutations become results (see its signature).

    Raises UnsupportedError, with PyTorch's reason, if PyTorch cannot functionalize the program.
    """
    if not needs_functionalization(exported):
        return exported
    exported = without_gradients(with_casts_shown(exported))
    exported = with_views_shown(without_second_names(exported))
    exported = with_copies_apart(exported)
    if (private := without_private_writes(exported)) is not None:
        return private
    stateful = (*UNSAID, aten.embedding_renorm_.default)
    table = {op: full_table()[op] for op in stateful if op in full_table()}
    with quiet(), torch.no_grad(), recurrent_layers_kept(decomposition_table):
        try:
            return exported.run_decompositions(table)
        except Exception as error:
            if names := _overlapping(exported):
                raise UnsupportedError(
                    f"the program writes to parameters or buffers, of which {names[0]} and "
                    f"{names[1]} share memory",
                    hint="give each its own memory (clone), or use torch.compile(backend='irees')",
                ) from error
            raise UnsupportedError(
                f"PyTorch cannot functionalize the program: {reason(error)}",
                location=user_line(error),
                hint='use torch.compile(backend="irees"), which runs parts that fail in PyTorch',
            ) from error


def without_gradients(exported: Any) -> Any:
    """
    Turns gradients off in the regions of a program that turn them on: PyTorch fails when it
    functionalizes results that need gradients. Those that the program computes are operators.
    """
    if not any(_graph_nodes(exported.graph_module, _turns_gradients_on)):
        return exported
    program = copy.copy(exported)
    program._graph_module = copy.deepcopy(exported.graph_module)
    for node in _graph_nodes(program._graph_module, _turns_gradients_on):
        node.update_arg(0, False)
    return program


def _turns_gradients_on(node: Node) -> bool:
    return str(node.target) == "wrap_with_set_grad_enabled" and bool(node.args[0])


def _graph_nodes(module: GraphModule, holds: Callable[[Node], bool]) -> Iterator[Node]:
    """The nodes of all graphs of a program for which a predicate holds."""
    for part in module.modules():
        if isinstance(part, GraphModule):
            yield from filter(holds, part.graph.nodes)


def without_second_names(exported: Any) -> Any:
    """
    Merges the parameters and buffers that are one tensor under several names: what is written under
    one name is read under the others. PyTorch refuses to functionalize such a program.
    """
    stored = {**exported.constants, **exported.state_dict}
    specs = {s.arg.name: s for s in exported.graph_signature.input_specs if s.target in stored}
    first: dict[int, Node] = {}
    second: dict[Node, Node] = {}
    for node in exported.graph.find_nodes(op="placeholder"):
        if node.name in specs:
            kept = first.setdefault(id(stored[specs[node.name].target]), node)
            second.update({node: kept} if kept is not node else {})
    if not second:
        return exported
    graph = torch.fx.Graph()
    mapping: dict[Node, Any] = {}
    for node in exported.graph.nodes:
        other = second.get(node)
        mapping[node] = mapping[other] if other else graph.node_copy(node, mapping.__getitem__)
    program = with_graph(exported, graph, {})
    names = {node.name for node in second}
    signature = program._graph_signature
    signature.input_specs = [s for s in signature.input_specs if s.arg.name not in names]
    return program


def with_copies_apart(exported: Any) -> Any:
    """
    Copies a value that is copied to several tensors, once for each but the first: PyTorch refuses
    a program whose buffers have one new value.
    """
    copied: set[Node] = set()
    copies = exported.graph.find_nodes(op="call_function", target=aten.copy_.default)
    again = [node for node in copies if node.args[1] in copied or copied.add(node.args[1])]
    if not again:
        return exported
    graph = torch.fx.Graph()
    mapping: dict[Node, Node] = {}
    for node in exported.graph.nodes:
        mapping[node] = copy_of = graph.node_copy(node, mapping.__getitem__)
        if node in again:
            with graph.inserting_before(copy_of):
                value = graph.call_function(aten.clone.default, (copy_of.args[1],))
            value.meta.update(node.args[1].meta)
            copy_of.args = (copy_of.args[0], value, *copy_of.args[2:])
    return with_graph(exported, graph, {old.name: new.name for old, new in mapping.items()})


def _overlapping(exported: Any) -> tuple[str, str] | None:
    """Two parameters or buffers of the program that are different views of one memory."""
    seen: dict[int, str] = {}
    stored = {**exported.constants, **exported.state_dict}
    for spec in exported.graph_signature.input_specs:
        if isinstance(tensor := stored.get(spec.target), torch.Tensor):
            other = seen.setdefault(storage_of(tensor), spec.target)
            if other != spec.target:
                return other, spec.target
    return None


def needs_functionalization(exported: Any) -> bool:
    """
    Whether a node mutates, a parameter is a tensor subclass, or the graph calls PyTorch's Python
    functions (the levels of `vmap`), which only running the graph resolves.
    """
    graphs = [m.graph for m in exported.graph_module.modules() if hasattr(m, "graph")]
    if any(mutates(node) for graph in graphs for node in graph.nodes):
        return True
    targets = [n.target for g in graphs for n in g.nodes if n.op == "call_function"]
    if any("autocast" in str(target) or is_transform(target) for target in targets):
        return True
    plain = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return any(type(t) not in plain for t in exported.state_dict.values())


def is_transform(target: Any) -> bool:
    """Whether a node belongs to one of PyTorch's function transforms."""
    return getattr(target, "__module__", "").startswith("torch._functorch")


def with_graph(exported: Any, graph: torch.fx.Graph, renamed: dict[str, str]) -> Any:
    """The program with another graph. `renamed` maps old output names to new ones."""
    program = copy.copy(exported)
    program._graph_module = GraphModule(exported.graph_module, graph)
    program._graph_module.meta.update(exported.graph_module.meta)
    program._graph_signature = copy.deepcopy(exported.graph_signature)
    for old, new in renamed.items():
        program._graph_signature.replace_all_uses(old, new)
    return program


def with_views_shown(exported: Any) -> Any:
    """Decomposes the composite operators that return undeclared views."""
    hidden = [node for node in exported.graph.nodes if hides_a_view(node)]
    if not hidden:
        return exported
    graph = torch.fx.Graph()
    mapping: dict[Node, Any] = {}
    for node in exported.graph.nodes:
        if node in hidden:
            mapping[node] = _parts(graph, node, mapping)
        elif node.target is operator.getitem and node.args[0] in hidden:
            mapping[node] = mapping[node.args[0]][node.args[1]]
        else:
            mapping[node] = graph.node_copy(node, mapping.__getitem__)
    renamed = {old.name: new.name for old, new in mapping.items() if isinstance(new, Node)}
    return with_graph(exported, graph, renamed)


def _parts(graph: torch.fx.Graph, node: Node, mapping: dict[Node, Any]) -> Any:
    """Adds the decomposition of a composite operator to a graph; returns its result or results."""
    leaves, spec = tree_flatten((node.args, node.kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, Node)]
    given = [leaves[i].meta["val"] for i in places]

    def run(*values: Any) -> Any:
        filled = list(leaves)
        for place, value in zip(places, values):
            filled[place] = value
        args, kwargs = tree_unflatten(filled, spec)
        return node.target(*args, **kwargs)  # type: ignore[operator]

    with retraced(tree_leaves(node.meta["val"])[0].fake_mode):
        traced = make_fx(run, tracing_mode="real")(*given)
    inputs = [n for n in traced.graph.nodes if n.op == "placeholder"]
    inner = dict(zip(inputs, (mapping[leaves[i]] for i in places), strict=True))
    return graph.graph_copy(traced.graph, inner)


@contextlib.contextmanager
def retraced(fake_mode: Any) -> Generator[None]:
    """Runs operators on fake tensors again; new data-dependent sizes get no place in a graph."""
    sizes = fake_mode.shape_env
    unplaced = contextlib.nullcontext() if sizes is None else sizes.ignore_fresh_unbacked_symbols()
    with torch.no_grad(), fake_mode, unplaced:
        yield


def hides_a_view(node: Node) -> bool:
    """Whether a composite operator returns memory of an argument without declaring it."""
    target, values = node.target, _tensors(node.meta.get("val"))
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    if not values or not target._can_decompose() or _declares(target):
        return False
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    # In the region of a transform, PyTorch may record real tensors.
    mode: Any = getattr(values[0], "fake_mode", None)
    if mode is None:
        return False
    # A composite operator may read sizes, which must not fix them.
    sizes = contextlib.nullcontext() if mode.shape_env is None else mode.shape_env.suppress_guards()
    try:
        with retraced(mode), sizes:
            results = target(*args, **kwargs)
    except Exception:  # an operator without a rule for fake tensors returns new memory
        return False
    given = {storage_of(t) for t in _tensors((args, kwargs))}
    return any(storage_of(t) in given for t in _tensors(results))


def _tensors(value: Any) -> list[torch.Tensor]:
    return [t for t in tree_leaves(value) if isinstance(t, torch.Tensor)]


def _declares(target: torch._ops.OpOverload) -> bool:
    return any(result.alias_info is not None for result in target._schema.returns)


def without_private_writes(exported: Any) -> Any:
    """
    Replaces operators that write to unaliased tensors; returns None if the program needs
    functionalization for other reasons. Undeclared views must be decomposed before.
    """
    graph = torch.fx.Graph()
    mapping: dict[Node, Node] = {}
    for node in exported.graph.nodes:
        mapping[node] = graph.node_copy(node, mapping.__getitem__)
    renamed = {old.name: new.name for old, new in mapping.items()}
    for node in list(graph.nodes):
        if writes_privately(node):
            target, written = functional_twin(node.target), node.args[0]
            assert target is not None
            assert isinstance(written, Node)
            node.target = target
            written.replace_all_uses_with(node, delete_user_cb=_after(node))
            renamed[written.name] = node.name
    program = with_graph(exported, graph, renamed)
    return None if needs_functionalization(program) else program


def _after(node: Node) -> Any:
    """A predicate for nodes that come after this one in the graph."""
    return lambda user: user is not node and node < user


def functional_twin(target: Any) -> Any:
    """The overload that returns what an in-place operator writes to its first argument, or None."""
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.inplace_view in target.tags:
        return None
    arguments = target._schema.arguments
    written = [i for i, a in enumerate(arguments) if a.alias_info and a.alias_info.is_write]
    namespace, _, name = target._schema.name.partition("::")
    if written != [0] or not name.endswith("_") or name.endswith("__"):
        return None
    packet = getattr(getattr(torch.ops, namespace), name[:-1], None)
    twin = getattr(packet, target._overloadname, None)
    if twin is None or [a.name for a in twin._schema.arguments] != [a.name for a in arguments]:
        return None
    return twin


def writes_privately(node: Node) -> bool:
    """
    Whether a node writes to a tensor that was computed in the same graph and has no alias, and its
    functional overload has a result of the same dtype and shape.
    """
    if functional_twin(node.target) is None or not isinstance(node.args[0], Node):
        return False
    written = node.args[0]
    if written.op != "call_function" or may_alias(written):
        return False
    if any(user < node and may_alias(user) for user in written.users):
        return False
    return _same_kind(node, written)


def may_alias(node: Node) -> bool:
    """Whether a result may share memory with an argument according to the schema."""
    if node.op != "call_function":
        return node.op != "output"
    return not isinstance(node.target, torch._ops.OpOverload) or _declares(node.target)


def _same_kind(node: Node, written: Node) -> bool:
    """Whether the functional overload returns the dtype and shape of the written tensor."""
    value = written.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return False
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    try:
        with value.fake_mode:  # type: ignore[attr-defined]
            result = functional_twin(node.target)(*args, **kwargs)
    except Exception:  # PyTorch's own functionalization reports the error
        return False
    return result.dtype == value.dtype and result.shape == value.shape
