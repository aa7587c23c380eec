"""
The nested arguments and results of an exported program as trees of `irees.runtime.trees`.

Classes that PyTorch's own trees do not know are registered when they are first met: dataclasses,
and the caches of transformers.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import Any

import torch
from torch.utils import _pytree as pytree

from irees.errors import UnsupportedError
from irees.runtime.trees import LEAF, Tree, class_path, import_class

_PLAIN = {tuple: "tuple", list: "list", dict: "dict", torch.Size: "tuple"}
_KEYED = {"OrderedDict": "ordered_dict", "defaultdict": "defaultdict"}


def tree_of_spec(spec: Any) -> Tree:
    """A PyTorch TreeSpec as a tree. Raises UnsupportedError for a class that is not known."""
    if spec.is_leaf():
        return LEAF
    kind, context = spec.type, spec.context
    children = [tree_of_spec(child) for child in spec.children()]
    if kind is dict:
        return {"kind": "dict", "keys": list(context), "children": children}
    if kind in _PLAIN:
        return {"kind": _PLAIN[kind], "children": children}
    if kind.__name__ in _KEYED and kind.__module__ == "collections":
        keys = context[1] if kind.__name__ == "defaultdict" else context
        return {"kind": _KEYED[kind.__name__], "keys": list(keys), "children": children}
    if kind.__name__ == "deque":
        return {"kind": "deque", "children": children}
    if _is_cache(kind):
        return {"kind": "cache", "class": class_path(kind), "children": _layers(children)}
    named = {"kind": "named", "class": class_path(kind), "children": children}
    if hasattr(kind, "n_sequence_fields"):
        return {**named, "fields": [f"_{i}" for i in range(len(children))]}
    if isinstance(context, type):
        return {**named, "class": class_path(context), "fields": list(context._fields)}
    return {**named, "fields": _fields(kind, context, children)}


def _fields(kind: type, context: Any, children: list[Tree]) -> list[str]:
    """The names of what a node holds, of what its flattening left as context."""
    if isinstance(context, list | tuple):
        if len(context) == 2 and all(isinstance(part, list) for part in context):
            context = context[0]  # a dataclass: fields, and those that are None
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


def _is_cache(kind: type) -> bool:
    return kind.__module__ == "transformers.cache_utils" and kind.__name__.endswith("Cache")


def _layers(children: list[Tree]) -> list[Tree]:
    """Keys and values as leaves, layer by layer, of our own flattening or that of transformers."""
    return [LEAF] * _count(children)


def _count(children: list[Tree]) -> int:
    return sum(1 if c == LEAF else _count(c.get("children", [])) for c in children)


# --- registration ---


def register_known_types(values: Any) -> None:
    """Registers the cache of transformers where that is imported, unless somebody did."""
    cache_utils = sys.modules.get("transformers.cache_utils")
    if cache_utils is None:
        return
    for name in ("DynamicCache", "StaticCache"):
        cls = getattr(cache_utils, name, None)
        if cls is not None and cls not in pytree.SUPPORTED_NODES:
            _register_cache(cls)


def _register_cache(cls: type) -> None:
    from irees.runtime.trees import make_cache

    path = class_path(cls)

    def flatten(cache: Any) -> tuple[list[Any], Any]:
        return [part for layer in cache.layers for part in (layer.keys, layer.values)], None

    def flatten_with_keys(cache: Any) -> tuple[list[Any], Any]:
        values, context = flatten(cache)
        names = [f"layers[{i // 2}].{('keys', 'values')[i % 2]}" for i in range(len(values))]
        return [(pytree.GetAttrKey(n), v) for n, v in zip(names, values)], context

    def unflatten(values: Any, _: Any) -> Any:
        return make_cache({"class": path}, list(values))

    pytree.register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=f"irees.{cls.__name__}",
        flatten_with_keys_fn=flatten_with_keys,
    )  # fmt: skip


_UNKNOWN = re.compile(r"[Ff]ound (?:type )?<class '([\w.<>]+)'>|<class '([\w.<>]+)'>")


def register_named_in(error: BaseException) -> bool:
    """
    Registers the class that an export failed for, if it is a dataclass or a cache; whether it was.
    """
    for names in _UNKNOWN.findall(str(error)):
        name = names[0] or names[1]
        module, _, attribute = name.rpartition(".")
        cls = import_class(f"{module}:{attribute}") or _local_class(name)
        if cls is None or cls in pytree.SUPPORTED_NODES:
            continue
        if dataclasses.is_dataclass(cls):
            torch.export.register_dataclass(cls, serialized_type_name=class_path(cls))
            return True
    return False


def _local_class(name: str) -> type | None:
    """A class that is no attribute of a module, such as one of a function."""
    short = name.rpartition(".")[2]
    for cls in object.__subclasses__():
        if cls.__name__ == short and f"{cls.__module__}.{cls.__qualname__}" == name:
            return cls
    return None
