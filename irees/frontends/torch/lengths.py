"""
Keeps `len(x)` of a tensor symbolic while a program is exported; `int(n)` and `float(n)`, too.

Python requires that `Tensor.__len__` returns an int, so tracing it specializes a dynamic dim and
fails for a data-dependent one. A symbolic number is no instance of `int`, so `isinstance(n, int)`
takes another branch than in eager. While active, `len`, `isinstance`, `type` and `divmod` are
replaced in the modules of the program:

    with symbolic_lengths(module):
        torch.export.export(module, args)

The builtin itself is not replaced: PyTorch fills tables with it as a key while it traces. `int` and
`float` are classes, which a program may also compare and pass on. They are replaced only for a
program that would be compiled for one size otherwise.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch.nn.modules import rnn

_OTHERS = frozenset({"torch", "irees", "builtins"})
"""Packages that never contain the program."""


def length(x: Any) -> Any:
    """`len(x)`; a SymInt for a tensor with a symbolic first dim."""
    return x.shape[0] if isinstance(x, torch.Tensor) and x.dim() else len(x)


class _Kind(type):
    """The type of a class that stands for a builtin number class in all checks of types."""

    kind: type
    symbolic: type
    convert: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        symbolic = len(args) == 1 and isinstance(args[0], torch.SymInt | torch.SymFloat)
        return cls.convert(args[0]) if symbolic and not kwargs else cls.kind(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.kind | cls.symbolic)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.kind)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.kind, name)

    def __eq__(cls, other: object) -> bool:
        return other is cls.kind or other is cls

    def __hash__(cls) -> int:
        return hash(cls.kind)


class _Int(metaclass=_Kind):
    kind, symbolic, convert = int, torch.SymInt, torch.sym_int


class _Float(metaclass=_Kind):
    kind, symbolic, convert = float, torch.SymFloat, torch.sym_float


def quotient_and_rest(x: Any, y: Any) -> Any:
    """`divmod(x, y)`, which Python does not have for symbolic numbers."""
    is_symbolic = isinstance(x, torch.SymInt) or isinstance(y, torch.SymInt)
    return (x // y, x % y) if is_symbolic else divmod(x, y)


_LIKE: dict[type, Any] = {torch.SymInt: 1, torch.SymFloat: 1.0, torch.SymBool: True}
"""A number of the type that eager has in place of a symbolic one."""


def is_instance(x: Any, kinds: Any) -> bool:
    """`isinstance(x, kinds)`; a symbolic number is also what it is in eager."""
    return isinstance(x, kinds) or (type(x) in _LIKE and isinstance(_LIKE[type(x)], kinds))


class _Type:
    """Stands for `type`: `type(n)` of a symbolic number is what it is in eager."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) in _LIKE:
            return type(_LIKE[type(args[0])])
        return type(*args, **kwargs)

    def __mro_entries__(self, bases: Any) -> tuple[type]:
        return (type,)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, type)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, type)

    def __getattr__(self, name: str) -> Any:
        return getattr(type, name)

    def __getitem__(self, item: Any) -> Any:
        return type[item]

    def __or__(self, other: Any) -> Any:
        return type | other

    def __ror__(self, other: Any) -> Any:
        return other | type

    def __eq__(self, other: object) -> bool:
        return other is type or other is self

    def __hash__(self) -> int:
        return hash(type)


_REPLACED: dict[str, Any] = {
    "len": length,
    "divmod": quotient_and_rest,
    "isinstance": is_instance,
    "type": _Type(),
}
_NUMBERS: dict[str, Any] = {"int": _Int, "float": _Float}


def modules_of(program: torch.nn.Module) -> list[ModuleType]:
    """
    The Python modules that may belong to a program: those of the packages that define its layers,
    and all modules that are not installed.
    """
    packages = {type(layer).__module__.partition(".")[0] for layer in program.modules()} - _OTHERS
    installed = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
    found = []
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        file = getattr(module, "__file__", None)
        is_own = package in packages or (file and not file.startswith(installed))
        if is_own and package not in _OTHERS and isinstance(module, ModuleType):
            found.append(module)
    return found


@contextmanager
def symbolic_lengths(program: torch.nn.Module, numbers: bool = False) -> Generator[None]:
    """
    Replaces `len`, `isinstance`, `type` and `divmod`, and `int` and `float` if `numbers`, in the
    modules of a program, except in those that define their own. Recurrent layers convert the batch
    of a packed sequence with `int`, so the numbers are always replaced in their module.
    """
    replaced = {**_REPLACED, **(_NUMBERS if numbers else {})}
    changed = [(vars(m), name) for m in modules_of(program) for name in replaced.keys() - vars(m)]
    changed += [(vars(rnn), name) for name in _NUMBERS.keys() - vars(rnn)]
    for names, name in changed:
        names[name] = (replaced | _NUMBERS)[name]
    try:
        yield
    finally:
        for names, name in changed:
            names.pop(name, None)
