"""
The Python state that a program can reach besides its modules' attributes.

The state is held by plain objects and deques in attributes, by attributes of tensors, by hooks, by
class attributes, and by closures, globals and defaults of the functions that the modules run,
`threading.local` and `ContextVar` included. `torch.export` neither records a change of it nor
undoes it, so that a fake tensor may stay in an object of the user.

    before = PythonState(module)
    ...                         # the module runs
    changed = before.differences(PythonState(module))
    before.restore()
"""

from __future__ import annotations

import inspect
import sys
import sysconfig
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache, cached_property, partial
from types import (
    CellType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import torch
from torch import nn

from .module_state import HeldTensors, attributes_of, put_hooks, tensors_of, user_hooks

MOST = 1000
"""Maximum elements of a container that is looked at: a vocabulary is not."""
DEEPEST = 8
"""Maximum nesting of containers and objects that are looked at."""

_MISSING = object()

LEAF = torch.Tensor | int | float | bool | str | None

_STANDARD = frozenset(vars(nn.Module()))
_FOREIGN = sys.stdlib_module_names | {"torch", "numpy", "irees"}
"""Packages whose objects hold no state of a program."""

_BOUND = MethodType | staticmethod | classmethod

_CACHED = type(cache(len))
"""The class of functions that `functools.cache` and `lru_cache` make."""

_INSTALLED = tuple(sysconfig.get_path(name) for name in ("purelib", "stdlib"))


def differ(old: Any, new: Any) -> bool:
    """Whether tensors are different objects, or other values unequal."""
    if old is new or isinstance(old, torch.Tensor) or isinstance(new, torch.Tensor):
        return old is not new
    return type(old) is not type(new) or old != new


class PythonState:
    """A snapshot: the leaves by path, and what it takes to put them back."""

    def __init__(self, root: nn.Module, held: HeldTensors) -> None:
        self.leaves: dict[str, Any] = {}
        self._contents: list[tuple[Any, Any]] = []
        self._slots: list[tuple[Callable[[Any], None], Any]] = []
        self._caches: list[tuple[Any, int]] = []
        self._seen = {id(module) for module in root.modules()}
        for name, module in root.named_modules():
            prefix = ".".join(filter(None, ("self", name)))
            self._module_hooks(module, prefix)
            for attribute, value in vars(module).items():
                if isinstance(value, torch.Tensor):
                    self._attributes(value, f"{prefix}.{attribute}")
                elif attribute not in _STANDARD and not isinstance(value, LEAF):
                    # PyTorch puts a copy of a container there after an export.
                    self._slots.append((partial(vars(module).__setitem__, attribute), value))
                    self._visit(value, f"{prefix}.{attribute}", 0, outside=False)
        for path, tensor in tensors_of(root).items():
            if path in held.real:
                self._held_tensor(tensor, path, held)
        for kind in dict.fromkeys(type(module) for module in root.modules()):
            self._class(kind)

    def differences(self, other: PythonState) -> list[str]:
        """The paths at which another snapshot has something else, or nothing."""
        missing = object()
        pairs = ((p, self.leaves.get(p, missing), other.leaves.get(p, missing))
                 for p in self.leaves | other.leaves)  # fmt: skip
        return [path for path, old, new in pairs if differ(old, new)]

    def restore(self, tensor: Callable[[torch.Tensor], torch.Tensor] | None = None) -> None:
        """Puts the state back; `tensor` says what to put for each tensor."""

        def given(value: Any) -> Any:
            return tensor(value) if tensor and isinstance(value, torch.Tensor) else value

        for container, copy in self._contents:
            if isinstance(container, dict):
                new: Any = {key: given(value) for key, value in copy.items()}
            else:
                new = [given(value) for value in copy]
            # One that is frozen, as are configs of diffusers, has not changed.
            if not _same(container, new):
                container.clear()
                (container.extend if isinstance(container, list | deque) else container.update)(new)
        for write, value in self._slots:
            write(given(value))
        for cached, misses in self._caches:
            # It has what a trace computed, perhaps tensors of the trace.
            if cached.cache_info().misses != misses:
                cached.cache_clear()

    def _module_hooks(self, module: nn.Module, prefix: str) -> None:
        hooks = user_hooks(module)
        for name, table in hooks.items():
            if name.endswith("_hooks"):
                self.leaves[f"{prefix}.{name}"] = tuple(table)
        self._slots.append((partial(put_hooks, module), hooks))

    def _held_tensor(self, tensor: torch.Tensor, path: str, held: HeldTensors) -> None:
        """A parameter or a buffer, or the tensor of a trace in the place of one."""
        real = held.real[path]
        self._attributes(real, path, held.attributes(path, tensor))
        if real.is_leaf:
            # Below autograd, the trace's tensor may be computed from the one that can be assigned.
            leaf = tensor if tensor.is_leaf else real
            for name, value in (
                ("requires_grad", leaf.requires_grad),
                ("grad", held.gradient(path, leaf)),
            ):
                self._slot(partial(_assign, real, name), value, f"{path}.{name}")

    def _attributes(
        self, tensor: torch.Tensor, path: str, values: dict[str, Any] | None = None
    ) -> None:
        """The attributes that the user has set on a tensor."""
        values = attributes_of(tensor) if values is None else values
        if type(tensor) in (torch.Tensor, nn.Parameter, nn.Buffer):
            self._contents.append((vars(tensor), dict(values)))
        for name, value in values.items():
            self._visit(value, f"{path}.{name}", 0, outside=True)

    def _class(self, kind: type) -> None:
        for cls in kind.__mro__:
            if _is_foreign(cls.__module__) and cls.__name__ != "Function":
                continue
            for name, value in list(vars(cls).items()):
                if isinstance(value, LEAF) and not name.startswith("__"):
                    self._slot(partial(_assign, cls, name), value, f"{cls.__name__}.{name}")
                elif isinstance(value, list | dict | deque) and not name.startswith("__"):
                    self._visit(value, f"{cls.__name__}.{name}", 0, outside=True)
                elif isinstance(function := _function_of(value), FunctionType):
                    self._cache(value)
                    self._function(function, 0)

    def _slot(self, write: Callable[[Any], None], value: Any, path: str) -> None:
        self.leaves[path] = value
        self._slots.append((write, value))

    def _function(self, function: FunctionType, depth: int) -> None:
        """Closure and globals of a function, and of the functions that it names."""
        function = inspect.unwrap(function)
        if not isinstance(function, FunctionType) or not self._enter(function, depth):
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._cell(cell, name, depth)
        for name, value in _defaults(function):
            self._visit(value, f"the default {name}", depth, outside=True)
        names = function.__code__.co_names
        if _is_installed(function.__code__.co_filename):
            for name in names:
                self._cache(function.__globals__.get(name))
            return
        for space, prefix in self._namespaces(function):
            for name in names:
                if name in space:
                    write = partial(space.__setitem__, name)
                    self._named(space[name], f"the global {prefix}{name}", write, depth)

    def _cache(self, value: Any) -> None:
        """A function that caches its results."""
        value = value.__func__ if isinstance(value, _BOUND) else value
        if isinstance(value, _CACHED):
            self._caches.append((value, value.cache_info().misses))

    @staticmethod
    def _namespaces(function: FunctionType) -> Iterator[tuple[dict[str, Any], str]]:
        """The globals of a function, and those of the user's modules that it names."""
        yield function.__globals__, ""
        for name in function.__code__.co_names:
            module = function.__globals__.get(name)
            if isinstance(module, ModuleType) and not _is_foreign(module.__name__):
                if not _is_installed(getattr(module, "__file__", None) or ""):
                    yield vars(module), f"{name}."

    def _cell(self, cell: CellType, name: str, depth: int) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            return
        self._named(value, name, partial(setattr, cell, "cell_contents"), depth)

    def _named(self, value: Any, path: str, write: Callable[[Any], None], depth: int) -> None:
        if isinstance(value, LEAF):
            self._slot(write, value, path)
        elif isinstance(value, ContextVar):
            if isinstance(current := value.get(None), LEAF):
                self._slot(value.set, current, path)
        else:
            self._visit(value, path, depth, outside=True)

    def _enter(self, value: Any, depth: int) -> bool:
        if id(value) in self._seen or depth > DEEPEST:
            return False
        self._seen.add(id(value))
        return True

    def _visit(self, value: Any, path: str, depth: int, *, outside: bool) -> None:
        """`outside`: whether the path leads through more than lists and dicts of an attribute."""
        if isinstance(value, LEAF):
            if outside:
                self.leaves[path] = value
        elif isinstance(function := _function_of(value), FunctionType):
            self.leaves[path] = function.__code__
            self._cache(value)
            self._function(function, depth + 1)
        elif isinstance(value, type):
            if not _is_foreign(value.__module__) and self._enter(value, depth):
                self._class(value)
        elif isinstance(value, set):
            if self._enter(value, depth) and len(value) <= MOST:
                self._contents.append((value, set(value)))
                self.leaves[path] = frozenset(value)
        elif isinstance(value, Iterator):
            self.leaves[path] = _position(value)
        elif isinstance(value, list | tuple | dict | deque) or _is_plain(value):
            if self._enter(value, depth):
                self._object(value, path, depth, outside)

    def _object(self, value: Any, path: str, depth: int, outside: bool) -> None:
        """A container, or an object with its class."""
        outside = outside or not isinstance(value, list | tuple | dict)
        if _is_plain(value):
            self._visit(type(value), "", depth, outside=True)
            for name in _slot_names(value):
                self._named_slot(value, name, f"{path}.{name}", depth)
        parts = _parts(value)
        if parts is None or len(parts) > MOST:
            return
        if not isinstance(parts, tuple):
            self._contents.append((parts, parts.copy()))
        for key, each in _items(parts):
            step = f".{key}" if parts is not value else f"[{key!r}]"
            self._visit(each, path + step, depth + 1, outside=outside)

    def _named_slot(self, owner: Any, name: str, path: str, depth: int) -> None:
        held = getattr(owner, name, _MISSING)
        if isinstance(held, LEAF):
            self._slot(partial(_assign, owner, name), held, path)
        elif held is not _MISSING:
            self._visit(held, path, depth + 1, outside=True)


def _assign(owner: Any, name: str, value: Any) -> None:
    """Assigns an attribute that has changed; one of a frozen object or an Enum has not."""
    if getattr(owner, name, _MISSING) is not value:
        setattr(owner, name, value)


def _same(container: Any, new: Any) -> bool:
    """Whether a container holds just these objects."""
    if isinstance(container, dict):
        return list(container) == list(new) and all(container[key] is new[key] for key in new)
    if isinstance(container, set):
        return container == set(new)
    return len(container) == len(new) and all(a is b for a, b in zip(container, new, strict=True))


def _parts(value: Any) -> Any:
    """The container, or the attributes of an object."""
    is_container = isinstance(value, list | tuple | dict | deque)
    return value if is_container else getattr(value, "__dict__", None)


def _is_plain(value: Any) -> bool:
    """
    Whether a value is an object of the user, whose attributes are its state. A module is one that
    is not registered: others have been entered.
    """
    known = isinstance(value, SimpleNamespace | threading.local | nn.Module)
    return known or not (_is_foreign(type(value).__module__) or isinstance(value, type))


def _position(iterator: Iterator[Any]) -> str:
    """Text that changes when an iterator advances. An iterator of the user's has attributes."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return "ended" if frame is None else f"{frame.f_lasti} {frame.f_locals!r}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(iterator.__reduce__())
    except TypeError:
        return ""


def _is_foreign(module: str) -> bool:
    return module.partition(".")[0] in _FOREIGN


def _function_of(value: Any) -> Any:
    """The function of a method, a property, a cache or a partial call; other values unchanged."""
    if isinstance(value, _BOUND):
        return _function_of(value.__func__)
    if isinstance(value, partial | cached_property):
        return _function_of(value.func)
    if isinstance(value, _CACHED):
        return _function_of(value.__wrapped__)
    return value.fget if isinstance(value, property) else value


def _slot_names(value: Any) -> list[str]:
    """The attributes in the `__slots__` of an object."""
    members = (pair for kind in type(value).__mro__ for pair in vars(kind).items())
    return [name for name, member in members if inspect.ismemberdescriptor(member)]


def _defaults(function: FunctionType) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    values = function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(values) : code.co_argcount], values)
    yield from (function.__kwdefaults__ or {}).items()


def _items(parts: Any) -> Iterator[tuple[Any, Any]]:
    return iter(list(parts.items() if isinstance(parts, dict) else enumerate(parts)))


def _is_installed(file: str) -> bool:
    return file.startswith(_INSTALLED)
