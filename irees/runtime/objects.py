"""
Decomposes objects of other libraries: fields that hold tensors, and the rest as JSON.

Caches of transformers are such nested objects: a cache holds layers, a layer holds tensors,
sizes, flags and dtypes. An object is rebuilt without its constructor, by setting attributes.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import importlib
import json
import operator
import pathlib
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from irees.errors import ParseError

PLAIN = (bool, int, float, str, type(None))
"""Types of constants that are JSON as they are."""

ALONE = ("_sliding_window_tensor",)
"""Fields whose tensor duplicates a number (`_x_tensor` holds `x`): recreated, not passed."""


class _Unknown(Exception):
    pass


def take_apart(
    value: Any, holds: Any, whole: bool = False
) -> tuple[list[str], list[Any], list[Any]]:
    """
    Returns the names and values of an object's fields that hold tensors, and its other fields as
    JSON: pairs of name and value. `holds` is the predicate for values with tensors. Values
    without a JSON form are left out, or raise TypeError if the object must be `whole`.
    """
    fields: list[str] = []
    children: list[Any] = []
    rest: list[Any] = []
    for name, each in vars(value).items():
        if name in ALONE:
            continue
        if holds(each):
            fields.append(name)
            children.append(each)
            continue
        try:
            rest.append([name, encoded(each)])
        except _Unknown:
            if whole:
                raise TypeError(f"attribute {name!r} is a {type(each).__name__}") from None
    return fields, children, rest


def put_together(cls: type, fields: list[str], children: list[Any], rest: list[Any]) -> Any:
    """Rebuilds an object of a class from its attributes; the inverse of `take_apart`."""
    made = cls.__new__(cls)
    for name, value in rest:
        setattr(made, name, decoded(value))
    for name, value in zip(fields, children, strict=True):
        setattr(made, name, value)
    for name in ALONE:
        source = name.removeprefix("_").removesuffix("_tensor")
        if source in vars(made):
            setattr(made, name, sys.modules["torch"].tensor(getattr(made, source)))
    return made


def attributes(value: dict[Any, Any]) -> list[Any]:
    """The attributes of an object that is a dict, as JSON: those that have such a form."""
    own = getattr(value, "__dict__", value)
    # Where the attributes of a dict are its items, they are no attributes besides.
    pairs = [] if own is value else own.items()
    return [[name, encoded(each)] for name, each in pairs if is_constant(each)]


def put_together_mapping(cls: type, items: dict[Any, Any], rest: list[Any]) -> Any:
    """Rebuilds an object of a class derived from dict, of its items and `attributes`."""
    try:
        made = cls(items)
    except Exception:  # its constructor has other arguments
        made = cls.__new__(cls)
    if list(made) != list(items):
        base = collections.OrderedDict if issubclass(cls, collections.OrderedDict) else dict
        base.clear(made)
        base.update(made, items)
    for name, value in rest:
        setattr(made, name, decoded(value))
    return made


def changed(value: Any, rest: list[Any]) -> str | None:
    """The first number or flag of an object that differs from `rest`, as `name is x, not y`."""
    for name, wanted in rest:
        found = getattr(value, name, None)
        if type(wanted) in (bool, int, float, str) and found != wanted:
            return f"{name} is {found!r}, not {wanted!r}"
    return None


def same(value: Any, constant: Any) -> bool:
    """Whether `constant` is the JSON form of a value; -0.0 is not 0.0, True is not 1."""
    if type(value) is type(constant) and type(value) in (int, bool, str):
        return value == constant
    try:
        return json.dumps(encoded(value)) == json.dumps(constant)
    except _Unknown:
        return False


def is_constant(value: Any) -> bool:
    """Whether a value has a JSON form."""
    try:
        encoded(value)
    except _Unknown:
        return False
    return True


def encoded(value: Any) -> Any:
    """A value as JSON; all but plain numbers and strings are tagged. Raises _Unknown."""
    if type(value) in PLAIN:
        return value
    for tag, kind in _KINDS.items():
        if kind.has(value):
            return {tag: kind.taken_apart(value)}
    raise _Unknown


def decoded(value: Any) -> Any:
    """The inverse of `encoded`. Raises ParseError for JSON that is not the form of a value."""
    if not isinstance(value, dict):
        return value
    try:
        ((tag, content),) = value.items()
        return _KINDS[tag].put_together(content)
    except (AttributeError, ImportError, LookupError, TypeError, ValueError):
        raise ParseError(f"{json.dumps(value)[:80]} does not describe a constant") from None


@dataclass(frozen=True)
class _Kind:
    """A kind of tagged values."""

    has: Callable[[Any], bool]
    taken_apart: Callable[[Any], Any]
    put_together: Callable[[Any], Any]


def _items(values: Iterable[Any]) -> list[Any]:
    return [encoded(v) for v in values]


def _path_of(value: Any) -> str:
    return f"{value.__module__}:{_name_in_module(value) or value.__qualname__}"


def _name_in_module(value: Any) -> str | None:
    """The name by which a module has a class or a function: `tanh` for `torch.tanh`."""
    module = sys.modules.get(value.__module__ or "")
    for name in (value.__qualname__, value.__name__):
        with contextlib.suppress(AttributeError):
            if functools.reduce(getattr, name.split("."), module) is value:
                return name
    return None


def _found(path: str) -> Any:
    module, _, name = path.partition(":")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def _is_importable(value: Any) -> bool:
    """Whether a class or a function is found again by its name."""
    if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return False
    return _name_in_module(value) is not None


def _of_torch(value: Any) -> bool:
    kind = type(value)
    names = ("dtype", "device", "layout", "memory_format")
    return kind.__module__ == "torch" and kind.__name__ in names


def _torch_constant(content: list[str]) -> Any:
    torch, (kind, name) = sys.modules["torch"], content
    return torch.device(name) if kind == "device" else getattr(torch, name)


def _of_type(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


# Sets are sorted, so that equal ones have one form.
_KINDS: dict[str, _Kind] = {
    "tuple": _Kind(lambda v: isinstance(v, tuple), _items, lambda c: tuple(map(decoded, c))),
    "list": _Kind(lambda v: isinstance(v, list), _items, lambda c: list(map(decoded, c))),
    "dict": _Kind(
        lambda v: isinstance(v, dict),
        lambda v: [[encoded(k), encoded(each)] for k, each in v.items()],
        lambda c: {decoded(k): decoded(v) for k, v in c},
    ),
    "complex": _Kind(_of_type(complex), lambda v: [v.real, v.imag], lambda c: complex(*c)),
    "slice": _Kind(
        _of_type(slice),
        lambda v: _items((v.start, v.stop, v.step)),
        lambda c: slice(*map(decoded, c)),
    ),
    "range": _Kind(_of_type(range), lambda v: [v.start, v.stop, v.step], lambda c: range(*c)),
    "ellipsis": _Kind(lambda v: v is ..., lambda v: [], lambda c: ...),
    "bytes": _Kind(_of_type(bytes), bytes.hex, bytes.fromhex),
    "set": _Kind(
        _of_type(set), lambda v: sorted(_items(v), key=json.dumps), lambda c: set(map(decoded, c))
    ),
    "frozenset": _Kind(
        _of_type(frozenset),
        lambda v: sorted(_items(v), key=json.dumps),
        lambda c: frozenset(map(decoded, c)),
    ),
    "enum": _Kind(
        lambda v: isinstance(v, enum.Enum),
        lambda v: [_path_of(type(v)), v.name],
        # "A|B" is a combination of flags.
        lambda c: functools.reduce(operator.or_, (_found(c[0])[n] for n in c[1].split("|"))),
    ),
    "path": _Kind(lambda v: isinstance(v, pathlib.PurePath), str, pathlib.Path),
    "numpy": _Kind(
        lambda v: isinstance(v, np.bool_ | np.number),
        lambda v: [v.dtype.name, encoded(v.item())],
        lambda c: np.dtype(c[0]).type(decoded(c[1])),
    ),
    "numpy dtype": _Kind(lambda v: isinstance(v, np.dtype), lambda v: v.str, np.dtype),
    # Classes derived from plain ones (numpy's strings) are taken as them.
    "derived": _Kind(
        lambda v: isinstance(v, int | float | str),
        lambda v: [_path_of(type(v)), next(k(v) for k in (int, float, str) if isinstance(v, k))],
        lambda c: c[1],
    ),
    "name": _Kind(_is_importable, _path_of, _found),
    "torch": _Kind(
        _of_torch,
        lambda v: [type(v).__name__, str(v).removeprefix("torch.")],
        _torch_constant,
    ),
    "from_dict": _Kind(
        lambda v: hasattr(v, "to_dict") and hasattr(type(v), "from_dict"),
        lambda v: _items((type(v), v.to_dict())),
        lambda c: decoded(c[0]).from_dict(decoded(c[1])),
    ),
}
