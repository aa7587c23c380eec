"""
Decomposes objects of other libraries: fields that hold tensors, and the rest as JSON.

Caches of transformers are such nested objects: a cache holds layers, a layer holds tensors,
sizes, flags and dtypes. An object is rebuilt without its constructor, by setting attributes.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

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


def changed(value: Any, rest: list[Any]) -> str | None:
    """The first number or flag of an object that differs from `rest`, as `name is x, not y`."""
    for name, wanted in rest:
        found = getattr(value, name, None)
        if type(wanted) in (bool, int, float, str) and found != wanted:
            return f"{name} is {found!r}, not {wanted!r}"
    return None


def encoded(value: Any) -> Any:
    """A value as JSON; containers, classes and PyTorch constants are tagged. Raises _Unknown."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list | tuple):
        return {"list": [encoded(v) for v in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, dict):
        return {"dict": [[encoded(k), encoded(v)] for k, v in value.items()]}
    if isinstance(value, type):
        return {"class": f"{value.__module__}:{value.__qualname__}"}
    if hasattr(value, "to_dict") and hasattr(type(value), "from_dict"):
        return {"from_dict": [encoded(type(value)), encoded(value.to_dict())]}
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device"):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    raise _Unknown


def decoded(value: Any) -> Any:
    """The inverse of `encoded`."""
    if not isinstance(value, dict):
        return value
    ((kind, content), *more) = value.items()
    if kind == "list":
        items = [decoded(v) for v in content]
        return tuple(items) if more and more[0][1] else items
    if kind == "dict":
        return {decoded(k): decoded(v) for k, v in content}
    if kind == "class":
        module, _, name = content.partition(":")
        return getattr(importlib.import_module(module), name)
    if kind == "from_dict":
        cls, fields = map(decoded, content)
        return cls.from_dict(fields)
    torch = sys.modules["torch"]
    return getattr(torch, content) if kind == "dtype" else torch.device(content)
