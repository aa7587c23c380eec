"""
Changes of Python objects that `torch.export` drops.

An exported program does not assign attributes or modify lists and dicts, so a later call does not
see the changes of an earlier one. `Effects` finds the changes; `refuse` raises an error for those
that results depend on:

    with Effects(module) as effects:
        exported = torch.export.export(module, args)
    refuse(effects, exported, export)

| the program | |
|---|---|
| changes a list or a dict that is an argument | rejected |
| reads an attribute and assigns a tensor that depends on inputs or on the old value | rejected |
| reads an attribute and assigns a number that changes this trace or a later one | rejected |
| changes an object, a class, a closure or a global, and is then traced otherwise | rejected |
| adds what depends on inputs to a list or a dict, and is then traced otherwise | rejected |
| registers or deletes a buffer, replaces a parameter or a module, reads an iterator | rejected |
| registers or removes hooks, sets attributes of tensors, and is then traced otherwise | rejected |
| changes the sizes of an argument, a parameter or a buffer in place | rejected |
| assigns a result for inspection, or a constant that it creates on first use | accepted |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._pytree import tree_map

from irees.errors import UnsupportedError

from .decomposing import mutates
from .module_state import HeldTensors, attributes_traced, global_hooks_of
from .python_state import MOST, PythonState, differ

Attribute = tuple[str, str]
"""A submodule's name and the path of a value in it: `("layers.0", "cache['k']")`."""

_STANDARD = frozenset(vars(nn.Module())) - {"training"}
"""Attributes of every module that hold no state of a program."""

_COPIES = frozenset(
    {"_to_copy", "to", "clone", "detach", "detach_", "alias", "contiguous", "lift_fresh_copy",
     "lift_fresh", "lift"}
)  # fmt: skip
"""Operators whose result has the same values as their operand."""

_MISSING = object()

LATER_CALLS = (1, 2, 3, 1000)
"""Later calls for which a program with a counter must be the same program."""

_SMALL = 64
"""Maximum elements of constants that are compared by value: each trace recreates them."""


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The tensors and numbers in nested lists, tuples and dicts of at most `MOST` elements."""
    if value is None or isinstance(value, torch.Tensor | int | float | bool | str):
        yield path, value
    elif isinstance(value, list | tuple | dict) and len(value) <= MOST:
        for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield from _leaves(each, f"{path}[{key!r}]")


class Effects:
    """Records how a module changes its attributes and its arguments' containers in a call."""

    def __init__(self, root: nn.Module) -> None:
        self.root = root
        self.attributes: dict[Attribute, tuple[Any, Any]] = {}
        """Changed attribute => its values before and after the call."""
        self.arguments: list[str] = []
        """Paths in the arguments that were changed, such as `args[1]['k']`."""
        self.registered: list[str] = []
        """Names of buffers that the call registered or deleted."""
        self.assigned: list[str] = []
        """Names of parameters that the call replaced by others."""
        self.rearranged: list[str] = []
        """Names of modules that the call replaced or deleted, or that it added to the others."""
        self.arrays: list[Attribute] = []
        """Arrays of NumPy that the call wrote to; they have their old values again."""
        self._held = HeldTensors(root)
        self.before = self.after = PythonState(root, self._held)
        self._tables = [(table, dict(table)) for table in _registrations(root)]
        self._modules = _modules(root)
        self._new_modules: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def _state(self) -> dict[Attribute, Any]:
        return {
            (name, path): value
            for name, module in self.root.named_modules()
            for attribute, whole in vars(module).items()
            if attribute not in _STANDARD
            for path, value in _leaves(whole, attribute)
        }

    def _begin(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        self._held.begin(self.root)
        self._before = self._state()
        self._names = {(n, name) for n, m in self.root.named_modules() for name in vars(m)}
        self._parameters = dict(self.root.named_parameters())
        self._arrays = [(place, array, array.copy()) for place, array in self._numpy_arrays()]
        self._given = dict(_leaves((args, kwargs), ""))
        self._layouts = [(path, t, _layout(t)) for path, t in self._tensors()]

    def _end(self, module: nn.Module, args: tuple, kwargs: dict, result: Any) -> None:
        now = dict(_leaves((args, kwargs), ""))
        self._check_layouts()
        self.arguments = [
            _argument(path)
            for path in self._given | now
            if differ(self._given.get(path, _MISSING), now.get(path, _MISSING))
        ]
        new = self._state()
        for place in self._before | new:
            pair = self._before.get(place, _MISSING), new.get(place, _MISSING)
            if differ(*pair) and (pair[1] is not _MISSING or "[" not in place[1]):
                self.attributes[place] = pair
        self.after = PythonState(self.root, self._held)
        for place, array, old in self._arrays:
            if array.tobytes() != old.tobytes():
                array[...] = old
                self.arrays.append(place)
        now = dict(self.root.named_parameters())
        self.assigned = [n for n, p in self._parameters.items() if now.get(n, p) is not p]
        self._compare_tables()

    def _compare_tables(self) -> None:
        modules = _modules(self.root)
        self.rearranged = [
            path
            for path in self._modules | modules
            if self._modules.get(path) is not modules.get(path)
        ]
        self._new_modules = [(m._modules, dict(m._modules)) for m in self.root.modules()]
        self.registered = [
            _shown((name, key))
            for name, module in self.root.named_modules()
            for table, old in self._tables
            if table is module._buffers or table is module._parameters
            for key in table.keys() ^ old.keys()
        ]

    def _check_layouts(self) -> None:
        """Refuses tensors of other sizes or strides: PyTorch has an internal error for them."""
        for path, tensor, layout in self._layouts:
            if not _equal(_layout(tensor), layout):
                raise UnsupportedError(
                    f"the program changes the sizes or strides of {path} in place, as t_, "
                    "unsqueeze_ and resize_ do",
                    hint="return a new tensor instead, or use torch.compile(backend='irees')",
                )

    def _tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The strided tensors that are arguments, parameters or buffers, with their paths."""
        stored = [*self.root.named_parameters(), *self.root.named_buffers()]
        given = [(_argument(path), value) for path, value in self._given.items()]
        for path, value in [*given, *((f"self.{name}", tensor) for name, tensor in stored)]:
            if isinstance(value, torch.Tensor) and value.layout is torch.strided:
                yield path, value

    def changed(self) -> dict[Attribute, Any]:
        """The new tensors and numbers of attributes, and of lists and dicts as long as before."""
        pairs = self.attributes.items()
        return {p: new for p, (old, new) in pairs if old is not _MISSING or "[" not in p[1]}

    def _numpy_arrays(self) -> Iterator[tuple[Attribute, np.ndarray[Any, Any]]]:
        for name, module in self.root.named_modules():
            for attribute, value in vars(module).items():
                if isinstance(value, np.ndarray) and value.size <= MOST:
                    yield (name, attribute), value

    def grown(self) -> dict[Attribute, Any]:
        """The tensors and numbers that were added to lists and dicts that existed before."""
        return {
            place: new
            for place, (old, new) in self.attributes.items()
            if old is _MISSING and "[" in place[1] and (place[0], _name(place)) in self._names
        }

    def iterators(self) -> list[Attribute]:
        """Attributes that have a position, which each call may move."""
        return [
            (name, attribute)
            for name, module in self.root.named_modules()
            for attribute, value in vars(module).items()
            if attribute not in _STANDARD and isinstance(value, Iterator)
        ]

    def __enter__(self) -> Effects:
        self._hooks = [
            self.root.register_forward_pre_hook(self._begin, with_kwargs=True),
            self.root.register_forward_hook(self._end, with_kwargs=True),
        ]
        return self

    def __exit__(self, *_: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        _put_back((t, old) for t, old in self._tables if t.keys() != old.keys() or _moved(t, old))
        self.before.restore()

    @contextmanager
    def after_the_call(self) -> Iterator[None]:
        """The Python objects and modules as the call left them."""
        old = [(table, dict(table)) for table, _ in self._new_modules]
        _put_back(self._new_modules)
        with objects_kept(self.root):
            self.after.restore(_real)
            try:
                yield
            finally:
                _put_back(old)
                _put_back((t, before) for t, before in self._tables if _moved(t, before))


def _argument(path: str) -> str:
    return f"{'args' if path.startswith('[0]') else 'kwargs'}{path[3:]}"


def _layout(tensor: torch.Tensor) -> list[Any]:
    return [] if tensor.is_nested else [*tensor.shape, *tensor.stride()]


def _equal(a: list[Any], b: list[Any]) -> bool:
    """Whether sizes are known to be equal. A comparison would fix symbolic ones."""
    return len(a) == len(b) and all(statically_known_true(m == n) for m, n in zip(a, b))


def _modules(root: nn.Module) -> dict[str, nn.Module]:
    return {_shown((name,)): module for name, module in root.named_modules(remove_duplicate=False)}


def _moved(table: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether a table has other modules, or the same in another order."""
    pairs = zip(table.items(), old.items())
    return any(
        a is not b and (isinstance(a, nn.Module) or isinstance(b, nn.Module))
        for (_, a), (_, b) in pairs
    )


def _put_back(tables: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    for table, contents in tables:
        table.clear()
        table.update(contents)


def _registrations(root: nn.Module) -> Iterator[dict[str, Any]]:
    """The tables of parameters, buffers and modules of each module."""
    for module in root.modules():
        yield from (module._parameters, module._buffers, module._modules)


@contextmanager
def _reads(root: nn.Module, places: list[Attribute]) -> Iterator[set[Attribute]]:
    """Collects those of the given attributes that are read before they are assigned."""
    names = {id(module): name for name, module in root.named_modules()}
    watched = {(place[0], _name(place)) for place in places}
    read: set[Attribute] = set()
    written: set[Attribute] = set()

    def getattribute(module: Any, name: str) -> Any:
        place = names.get(id(module), ""), name
        if place in watched and id(module) in names and place not in written:
            read.add(place)
        return object.__getattribute__(module, name)

    original = nn.Module.__setattr__

    def setattribute(module: Any, name: str, value: Any) -> None:
        if id(module) in names:
            written.add((names[id(module)], name))
        original(module, name, value)

    nn.Module.__getattribute__ = getattribute  # type: ignore[method-assign]
    nn.Module.__setattr__ = setattribute  # type: ignore[method-assign]
    try:
        yield read
    finally:
        del nn.Module.__getattribute__
        nn.Module.__setattr__ = original  # type: ignore[method-assign]


def _name(place: Attribute) -> str:
    return place[1].partition("[")[0]


def _value(root: nn.Module, place: Attribute) -> Any:
    module, name = root.get_submodule(place[0]), _name(place)
    return dict(_leaves(vars(module).get(name), name)).get(place[1])


def _depends(exported: ExportedProgram, node: Any, place: Attribute) -> bool:
    """Whether a value depends on inputs, or on the old value by more than a copy."""
    kinds = {s.arg.name: s for s in exported.graph_signature.input_specs}
    own = ".".join(filter(None, place))
    todo, seen = [(node, True)], set()
    while todo:
        node, copied = todo.pop()
        if node in seen or not isinstance(node, torch.fx.Node):
            continue
        seen.add(node)
        if node.op == "placeholder":
            spec = kinds[node.name]
            if spec.kind is InputKind.USER_INPUT or (spec.target == own and not copied):
                return True
        name = getattr(node.target, "_opname", "")
        if name not in ("sym_size", "sym_stride", "sym_numel"):
            todo += [(each, copied and name in _COPIES) for each in node.all_input_nodes]
    return False


def refuse(effects: Effects, exported: ExportedProgram, export: Callable[[], Any]) -> None:
    """
    Raises UnsupportedError if the program changes a list or dict argument, registers or deletes a
    buffer, or assigns an attribute whose new value a later call needs. `export` exports the program
    again.
    """
    _refuse_replaced(effects)
    if effects.rearranged and not _traced_alike(effects, exported, export):
        raise _other_modules(effects)
    _refuse_state(effects, exported, export)
    _refuse_growth(effects, exported, export)
    changed = effects.changed()
    if not changed:
        return
    traced, read = _traced_with_attributes(effects.root, list(changed), export)
    suspects = {p: value for p, value in changed.items() if (p[0], _name(p)) in read}
    outputs = traced.graph.output_node().args[0]
    for place, node in zip(changed, outputs[len(outputs) - len(changed) :], strict=True):
        is_tensor = isinstance(suspects.get(place), torch.Tensor)
        if is_tensor and _depends(traced, node, place):
            raise _stale(_shown(place))
    _refuse_numbers(effects.root, suspects, exported, export)


def refuse_kept(root: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
    """
    Raises UnsupportedError if the module reads Python state and changes it. Runs it on copies: an
    export by bytecode runs no Python code, so it leaves no changes to look at.
    """
    args, kwargs = tree_map(_cloned, (args, kwargs))
    names = [(name, key) for name, module in root.named_modules() for key in vars(module)]
    buffers = dict(root.named_buffers())
    with (
        _left_alone(root),
        Effects(root) as effects,
        _reads(root, [place for place in names if place[1] not in _STANDARD]) as read,
    ):
        root(*args, **kwargs)
        replaced = [n for n, b in root.named_buffers() if buffers.get(n, b) is not b]
    _refuse_replaced(effects)
    if effects.rearranged:
        raise _other_modules(effects)
    if replaced:
        raise UnsupportedError(
            f"the program assigns the buffer {replaced[0]} and reads a tensor as a number",
            hint=f"write to the buffer, as in self.{replaced[0]}.copy_(x), or use "
            "torch.compile(backend='irees')",
        )
    kept = [_shown(p) for p in effects.attributes if (p[0], _name(p)) in read]
    for path in [*kept, *effects.before.differences(effects.after)]:
        raise _stale(path)


def _cloned(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


@contextmanager
def _left_alone(root: nn.Module) -> Iterator[None]:
    """Puts attributes, parameters, buffers and the state of the generator back."""
    attributes = [(vars(module), dict(vars(module))) for module in root.modules()]
    tables = [(table, dict(table)) for table in _registrations(root)]
    tensors = [*root.parameters(), *root.buffers()]
    values = [tensor.detach().clone() for tensor in tensors]
    try:
        with torch.random.fork_rng([]), torch.no_grad():
            yield
    finally:
        _put_back([*attributes, *tables])
        for tensor, value in zip(tensors, values, strict=True):
            tensor.detach().copy_(value)


def _other_modules(effects: Effects) -> UnsupportedError:
    return UnsupportedError(
        f"the program replaces, adds or deletes the module {effects.rearranged[0]} while it runs, "
        "which a compiled program does not",
        hint="call the module once before if it sets itself up on first use, or use "
        "torch.compile(backend='irees')",
    )


def _refuse_replaced(effects: Effects) -> None:
    if effects.arguments:
        raise UnsupportedError(
            f"the program changes the list or dict at {effects.arguments[0]}, which a compiled "
            "program does not",
            hint="return the new values, or use torch.compile(backend='irees')",
        )
    if effects.registered:
        raise UnsupportedError(
            f"the program registers or deletes {effects.registered[0]} while it runs, which a "
            "compiled program does not",
            hint="call the module once before if it sets itself up on first use, register it in "
            "__init__, or use torch.compile(backend='irees')",
        )
    if effects.assigned:
        raise UnsupportedError(
            f"the program replaces the parameter {effects.assigned[0]}, which a compiled program "
            "does not",
            hint="write to it under torch.no_grad(), or use torch.compile(backend='irees')",
        )
    if effects.arrays:
        raise _stale(_shown(effects.arrays[0]))


def _refuse_state(effects: Effects, exported: ExportedProgram, export: Callable[[], Any]) -> None:
    """Raises if the program is traced otherwise after it has changed objects that it reaches."""
    changed = effects.before.differences(effects.after)
    if changed and not _traced_alike(effects, exported, export):
        raise _stale(changed[0])
    if places := effects.iterators():
        # The trace may fail: an iterator that no call has made again is at its end.
        with _reads(effects.root, places) as read, suppress(Exception):
            export()
        for place in places:
            if place in read:
                raise _stale(_shown(place))


def _refuse_growth(effects: Effects, exported: ExportedProgram, export: Callable[[], Any]) -> None:
    """Raises if a later call reads what this one has added to a list or a dict."""
    grown = effects.grown()
    if not grown or _traced_alike(effects, exported, export):
        return
    traced, _ = _traced_with_attributes(effects.root, list(grown), export)
    outputs = traced.graph.output_node().args[0]
    constant = False
    for place, node in zip(grown, outputs[len(outputs) - len(grown) :], strict=True):
        if isinstance(grown[place], torch.Tensor):
            if _depends(traced, node, place):
                raise _stale(_shown(place))
            constant = True
    if not constant:  # a constant that is computed at first use is traced otherwise, too
        raise _stale(_shown(next(iter(grown))))


def _traced_alike(effects: Effects, exported: ExportedProgram, export: Callable[[], Any]) -> bool:
    """Whether the program is traced as before with what the first call left in Python objects."""
    with effects.after_the_call():
        try:
            return _structure(export()) == _structure(exported)
        except Exception:  # it is another program, or none
            return False


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in the place of one of a trace, with elements that equal no others."""
    if type(tensor) in (torch.Tensor, nn.Parameter):
        return tensor
    sizes = [n if isinstance(n, int) else n.node.hint or 1 for n in tensor.shape]
    odd = float("nan") if tensor.dtype.is_floating_point or tensor.dtype.is_complex else 101
    return torch.full(sizes, odd, dtype=tensor.dtype)


def _traced_with_attributes(
    root: nn.Module, places: list[Attribute], export: Callable[[], Any]
) -> tuple[ExportedProgram, set[Attribute]]:
    """Exports with the new attribute values as extra results; also returns those read first."""
    with _reads(root, places) as read:
        hook = root.register_forward_hook(
            lambda m, _, out: (out, [_value(root, p) for p in places])
        )
        try:
            return export(), read
        finally:
            hook.remove()


def _refuse_numbers(
    root: nn.Module, values: dict[Attribute, Any], exported: ExportedProgram, export: Any
) -> None:
    """Raises UnsupportedError if the new numbers of attributes change the trace."""
    numbers = {p: v for p, v in values.items() if not isinstance(v, torch.Tensor)}
    plain = {p: v for p, v in numbers.items() if "[" not in p[1]}
    if not plain:
        return
    owners = {p: vars(root.get_submodule(p[0])) for p in plain}
    old = {p: owners[p].get(p[1], _MISSING) for p in plain}
    for new in [plain, *_later(old, plain)]:
        try:
            for place, value in new.items():
                _put(owners[place], place[1], value)
            same = _structure(export()) == _structure(exported)
        except Exception:  # it is another program, or none
            same = False
        finally:
            for place, value in old.items():
                _put(owners[place], place[1], value)
        if not same:
            raise _stale(_shown(next(iter(plain))))


def _later(old: dict[Attribute, Any], new: dict[Attribute, Any]) -> Iterator[dict[Attribute, Any]]:
    """What counters have in later calls: a program may change after some."""
    numbers = {p: v for p, v in new.items() if type(v) is int}
    steps = {p: v - old[p] if type(old[p]) is int else 1 for p, v in numbers.items()}
    if any(abs(step) == 1 for step in steps.values()):
        for calls in LATER_CALLS:
            yield {**new, **{p: new[p] + calls * step for p, step in steps.items()}}


def _put(attributes: dict[str, Any], name: str, value: Any) -> None:
    if value is _MISSING:
        attributes.pop(name, None)
    else:
        attributes[name] = value


@contextmanager
def objects_kept(root: nn.Module) -> Iterator[None]:
    """Puts attributes and other objects back: PyTorch leaves those that an export creates."""
    state = PythonState(root, HeldTensors(root))
    before = [(vars(module), dict(vars(module))) for module in root.modules()]
    try:
        with attributes_traced(root), global_hooks_of(root):
            yield
    finally:
        for attributes, old in before:
            for name in (attributes.keys() | old.keys()) - _STANDARD:
                _put(attributes, name, old.get(name, _MISSING))
        state.restore()


def _structure(exported: ExportedProgram) -> list[Any]:
    """A comparable form of a graph: operators on weights (by address), inputs and results."""
    tensors = {**exported.state_dict, **exported.constants}
    numbers: dict[Any, Any] = {}
    found = []
    specs = {s.arg.name: s for s in exported.graph_signature.input_specs}
    for node in _needed(exported.graph):
        if node.op != "placeholder":
            numbers[node] = len(found)
            found.append(
                (str(node.target), str(tree_map(_named(numbers), (node.args, node.kwargs))))
            )
        elif isinstance(tensor := tensors.get(specs[node.name].target), torch.Tensor):
            is_small = tensor.numel() <= _SMALL and not isinstance(tensor, nn.Parameter)
            numbers[node] = str(tensor.tolist()) if is_small else tensor.data_ptr()
        else:
            numbers[node] = node.name
    return found


def _needed(graph: torch.fx.Graph) -> list[Any]:
    """
    The nodes that results depend on, in order, including operators that write to these nodes, to
    inputs, weights and buffers, or to views of them.
    """
    memory: dict[Any, Any] = {}
    for node in graph.nodes:
        seen_through = next(iter(_aliased(node)), None)
        memory[node] = node if seen_through is None else memory[seen_through]
    writes = [node for node in graph.nodes if mutates(node)]
    needed, todo = set[Any](), [graph.output_node()]
    while todo:
        needed.add(node := todo.pop())
        todo += [each for each in node.all_input_nodes if each not in needed]
        if not todo:
            live = {memory[each] for each in needed} | set(graph.find_nodes(op="placeholder"))
            todo += [
                w for w in writes if w not in needed and not live.isdisjoint(_written(w, memory))
            ]
    return [node for node in graph.nodes if node in needed]


def _aliased(node: Any) -> list[Any]:
    """The arguments of an operator that its result may be a view of, by its schema."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not any(result.alias_info for result in schema.returns):
        return []
    return [
        value
        for value, argument in zip(node.args, schema.arguments)
        if argument.alias_info and isinstance(value, torch.fx.Node)
    ]


def _written(node: Any, memory: dict[Any, Any]) -> set[Any]:
    """The memory that an operator may write to; it is that of any argument if it says no more."""
    return {memory[each] for each in _aliased(node) or node.all_input_nodes}


def _named(numbers: dict[Any, Any]) -> Callable[[Any], Any]:
    return lambda x: f"%{numbers[x]}" if isinstance(x, torch.fx.Node) else x


def _shown(place: Attribute) -> str:
    return ".".join(["self", *filter(None, place)])


def _stale(path: str) -> UnsupportedError:
    return UnsupportedError(
        f"the program reads {path} and assigns it, but later calls of a compiled program do "
        "not see the new value",
        hint="call the module once before if it sets itself up on first use, make the attribute a "
        "buffer with register_buffer, or use torch.compile(backend='irees')",
    )
