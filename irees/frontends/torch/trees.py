"""
Converts the nested arguments and results of an exported program to trees of `irees.runtime.trees`.

Registers classes that PyTorch's pytrees do not know at their first use: dataclasses, and the caches
of transformers.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import re
import sys
import types
from typing import Any

import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree as pytree

from irees.errors import UnsupportedError
from irees.runtime.objects import (
    attributes,
    encoded,
    is_constant,
    put_together,
    put_together_mapping,
    take_apart,
)
from irees.runtime.trees import LEAF, Tree, class_path, import_class

_PLAIN = {tuple: "tuple", list: "list", immutable_list: "list"}
"""A traced module has immutable lists and dicts in its graph, and returns plain ones."""
_KEYED = {"OrderedDict": "ordered_dict", "defaultdict": "defaultdict"}


def tree_of_spec(spec: Any) -> Tree:
    """Converts a PyTorch TreeSpec to a tree. Raises UnsupportedError for an unknown class."""
    if spec.is_leaf():
        return LEAF
    kind, context = spec.type, spec.context
    children = [tree_of_spec(child) for child in spec.children()]
    if kind in (dict, immutable_dict):
        return {"kind": "dict", "keys": _keys(context), "children": children}
    if kind is torch.Size:
        return {"kind": "tuple", "class": class_path(kind), "children": children}
    if kind in _PLAIN:
        return {"kind": _PLAIN[kind], "children": children}
    if kind.__name__ in _KEYED and kind.__module__ == "collections":
        keys = context[1] if kind.__name__ == "defaultdict" else context
        return {"kind": _KEYED[kind.__name__], "keys": _keys(keys), "children": children}
    if kind.__name__ == "deque":
        return {"kind": "deque", "children": children}
    if isinstance(context, Items):
        own = {"class": class_path(kind), "rest": json.loads(context.rest)}
        return {"kind": "dict", "keys": _keys(context.keys), **own, "children": children}
    if isinstance(context, Context):
        fields, rest = list(context.fields), json.loads(context.rest)
        own = {"class": class_path(kind), "fields": fields, "rest": rest}
        return {"kind": "object", **own, "children": children}
    named = {"kind": "named", "class": class_path(kind), "children": children}
    if hasattr(kind, "n_sequence_fields"):
        return {**named, "fields": [f"_{i}" for i in range(len(children))]}
    if isinstance(context, type):
        return {**named, "class": class_path(context), "fields": list(context._fields)}
    return {**named, "fields": _fields(kind, context, children)}


def _keys(keys: Any) -> list[Any]:
    """The keys of a dict as JSON. Raises UnsupportedError for a key without such a form."""
    for key in keys:
        if not is_constant(key):
            raise UnsupportedError(f"a key of a dict is an object of {class_path(type(key))}")
    return [encoded(key) for key in keys]


def _fields(kind: type, context: Any, children: list[Tree]) -> list[str]:
    """The field names of a pytree node, from its flattening context."""
    if isinstance(context, list | tuple):
        if len(context) == 2 and all(isinstance(part, list) for part in context):
            context = context[0]  # a dataclass: all fields, and those that are None
        if len(context) == len(children) and all(isinstance(name, str) for name in context):
            return list(context)
    if hasattr(kind, "_fields") and len(kind._fields) == len(children):
        return list(kind._fields)
    if dataclasses.is_dataclass(kind):
        return [f.name for f in dataclasses.fields(kind)][: len(children)]
    raise UnsupportedError(
        f"objects of class {class_path(kind)} cannot be arguments or results",
        hint="register it with torch.export.register_dataclass",
    )


# --- registration ---


@dataclasses.dataclass(frozen=True)
class Context:
    """The state of an object that a pytree keeps in addition to its tensors."""

    fields: tuple[str, ...]
    rest: str
    """Other attributes, as JSON."""


@dataclasses.dataclass(frozen=True)
class Items:
    """The state of an object derived from dict that a pytree keeps in addition to its values."""

    keys: tuple[Any, ...]
    rest: str
    """Attributes, as JSON."""


def register_known_types(values: Any) -> None:
    """Registers the caches of transformers and their layers, unless already registered."""
    cache_utils = sys.modules.get("transformers.cache_utils")
    if cache_utils is None:
        return
    for cls in vars(cache_utils).values():
        if _is_cache(cls) and cls not in pytree.SUPPORTED_NODES:
            register_object(cls)


def _is_cache(cls: Any) -> bool:
    """Whether a class is a cache of transformers or a layer of one."""
    cache_utils = sys.modules.get("transformers.cache_utils")
    if cache_utils is None or not isinstance(cls, type):
        return False
    names = ("Cache", "CacheLayerMixin", "LinearAttentionCacheLayerMixin", "DummyLayer")
    return issubclass(cls, tuple(getattr(cache_utils, n) for n in names if hasattr(cache_utils, n)))


def register_object(cls: type, whole: bool = False) -> None:
    """
    Registers a class as a pytree node made of its attributes. With `whole`, rejects an object with
    an attribute that is neither a tensor nor a plain value.
    """

    def flatten(value: Any) -> tuple[list[Any], Context]:
        fields, children, rest = take_apart(value, _has_tensors, whole)
        return children, Context(tuple(fields), json.dumps(rest))

    def flatten_with_keys(value: Any) -> tuple[list[Any], Context]:
        children, context = flatten(value)
        keys = [pytree.GetAttrKey(name) for name in context.fields]
        return list(zip(keys, children)), context

    def unflatten(children: Any, context: Context) -> Any:
        return put_together(cls, list(context.fields), list(children), json.loads(context.rest))

    pytree.register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=f"irees.{class_path(cls)}",
        flatten_with_keys_fn=flatten_with_keys,
    )  # fmt: skip


def register_mapping(cls: type) -> None:
    """Registers a class derived from dict as a pytree node made of its values."""

    def flatten(value: Any) -> tuple[list[Any], Items]:
        return list(value.values()), Items(tuple(value), json.dumps(attributes(value)))

    def flatten_with_keys(value: Any) -> tuple[list[Any], Items]:
        children, context = flatten(value)
        return list(zip(map(pytree.MappingKey, context.keys), children)), context

    def unflatten(children: Any, context: Items) -> Any:
        items = dict(zip(context.keys, children))
        return put_together_mapping(cls, items, json.loads(context.rest))

    pytree.register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=f"irees.{class_path(cls)}",
        flatten_with_keys_fn=flatten_with_keys,
    )  # fmt: skip


def _has_tensors(value: Any) -> bool:
    """Whether a field's value is or contains a tensor or a symbolic number."""
    if isinstance(value, torch.Tensor | torch.SymInt) or _is_cache(type(value)):
        return True
    if isinstance(value, dict):
        return any(map(_has_tensors, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_tensors, value))


_UNKNOWN = re.compile(r"[Ff]ound (?:type )?<class '([\w.<>]+)'>|<class '([\w.<>]+)'>")


def register_named_in(error: BaseException) -> bool:
    """Registers the class that an export failed for, if possible; returns whether it did."""
    for names in _UNKNOWN.findall(str(error)):
        name = names[0] or names[1]
        module, _, attribute = name.rpartition(".")
        cls = import_class(f"{module}:{attribute}") or _local_class(name)
        if cls is None or cls in pytree.SUPPORTED_NODES:
            continue
        if _is_cache(cls):
            register_object(cls)
            return True
        if not dataclasses.is_dataclass(cls) and _is_plain(cls):
            register_object(cls, whole=True)
            return True
        if not dataclasses.is_dataclass(cls) and issubclass(cls, dict):
            register_mapping(cls)
            return True
        if dataclasses.is_dataclass(cls):
            torch.export.register_dataclass(cls, serialized_type_name=class_path(cls))
            return True
    return False


def _is_plain(cls: type) -> bool:
    """Whether instances of a class are fully described by their attributes (default `__new__`)."""
    if issubclass(cls, types.SimpleNamespace) or cls is collections.UserDict:
        return True
    return (
        cls.__new__ is object.__new__
        and cls.__dictoffset__ != 0
        and not issubclass(cls, torch.nn.Module)
        and cls.__module__.partition(".")[0] not in ("torch", "builtins", "collections")
    )


def _local_class(name: str) -> type | None:
    """Finds a class that is not a module attribute, such as a class local to a function."""
    short, found = name.rpartition(".")[2], None
    seen, todo = {object}, [object]
    while todo:
        for cls in type.__subclasses__(todo.pop()):
            if cls not in seen:
                seen.add(cls)
                todo.append(cls)
                if cls.__name__ == short and f"{cls.__module__}.{cls.__qualname__}" == name:
                    found = cls
    return found
