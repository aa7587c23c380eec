"""
The Python state that a program can reach besides its modules' attributes.

The state is held by plain objects and deques in attributes, by class attributes, and by closures
and globals of the functions that the modules run. `torch.export` neither records a change of it nor
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
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from types import CellType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import torch
from torch import nn

MOST = 1000
"""Maximum elements of a container that is looked at: a vocabulary is not."""
DEEPEST = 8
"""Maximum nesting of containers and objects that are looked at."""

LEAF = torch.Tensor | int | float | bool | str | None

_STANDARD = frozenset(vars(nn.Module()))
_FOREIGN = sys.stdlib_module_names | {"torch", "numpy", "irees"}
"""Packages whose objects hold no state of a program."""


def differ(old: Any, new: Any) -> bool:
    """Whether tensors are different objects, or other values unequal."""
    if old is new or isinstance(old, torch.Tensor) or isinstance(new, torch.Tensor):
        return old is not new
    return type(old) is not type(new) or old != new


class PythonState:
    """A snapshot: the leaves by path, and what it takes to put them back."""

    def __init__(self, root: nn.Module) -> None:
        self.leaves: dict[str, Any] = {}
        self._contents: list[tuple[Any, Any]] = []
        self._slots: list[tuple[Callable[[Any], None], Any]] = []
        self._seen: set[int] = set()
        for name, module in root.named_modules():
            prefix = ".".join(filter(None, ("self", name)))
            for attribute, value in vars(module).items():
                if attribute not in _STANDARD and not isinstance(value, LEAF):
                    # PyTorch puts a copy of a container there after an export.
                    self._slots.append((partial(vars(module).__setitem__, attribute), value))
                    self._visit(value, f"{prefix}.{attribute}", 0, outside=False)
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

    def _class(self, kind: type) -> None:
        for cls in kind.__mro__:
            if cls.__module__.partition(".")[0] in _FOREIGN and cls.__name__ != "Function":
                continue
            for name, value in list(vars(cls).items()):
                if isinstance(value, LEAF) and not name.startswith("__"):
                    self._slot(partial(setattr, cls, name), value, f"{cls.__name__}.{name}")
                elif isinstance(value, list | dict | deque) and not name.startswith("__"):
                    self._visit(value, f"{cls.__name__}.{name}", 0, outside=True)
            if isinstance(forward := vars(cls).get("forward"), FunctionType):
                self._function(forward, 0)

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
        if _is_installed(function.__code__.co_filename):
            return
        for name in function.__code__.co_names:
            if name in function.__globals__:
                value = function.__globals__[name]
                write = partial(function.__globals__.__setitem__, name)
                self._named(value, f"the global {name}", write, depth)

    def _cell(self, cell: CellType, name: str, depth: int) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            return
        self._named(value, name, partial(setattr, cell, "cell_contents"), depth)

    def _named(self, value: Any, path: str, write: Callable[[Any], None], depth: int) -> None:
        if isinstance(value, MethodType):
            value = value.__func__
        if isinstance(value, FunctionType):
            self._function(value, depth + 1)
        elif isinstance(value, LEAF):
            self._slot(write, value, path)
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
            return
        if isinstance(value, set):
            if self._enter(value, depth) and len(value) <= MOST:
                self._contents.append((value, set(value)))
                self.leaves[path] = frozenset(value)
            return
        outside = outside or not isinstance(value, list | tuple | dict)
        parts = _parts(value)
        if parts is None or not self._enter(value, depth) or len(parts) > MOST:
            return
        if not isinstance(parts, tuple):
            self._contents.append((parts, parts.copy()))
        for key, each in _items(parts):
            step = f".{key}" if parts is not value else f"[{key!r}]"
            self._visit(each, path + step, depth + 1, outside=outside)


def _same(container: Any, new: Any) -> bool:
    """Whether a container holds just these objects."""
    if isinstance(container, dict):
        return list(container) == list(new) and all(container[key] is new[key] for key in new)
    if isinstance(container, set):
        return container == set(new)
    return len(container) == len(new) and all(a is b for a, b in zip(container, new, strict=True))


def _parts(value: Any) -> Any:
    """The container, or the attributes of a plain object; None for all else."""
    if isinstance(value, list | tuple | dict | deque):
        return value
    package = type(value).__module__.partition(".")[0]
    plain = package not in _FOREIGN or isinstance(value, SimpleNamespace)
    if not plain or isinstance(value, nn.Module | type) or callable(value):
        return None
    return getattr(value, "__dict__", None)


def _items(parts: Any) -> Iterator[tuple[Any, Any]]:
    return iter(list(parts.items() if isinstance(parts, dict) else enumerate(parts)))


def _is_installed(file: str) -> bool:
    return any(file.startswith(sysconfig.get_path(name)) for name in ("purelib", "stdlib"))
