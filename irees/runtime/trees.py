"""
Trees of arrays: the nested structure of a program's arguments and results, as data.

A tree is JSON. `"*"` is a leaf, any other node is an object with a `kind`:

    {"kind": "dict", "keys": ["x", "y"], "children": ["*", {"kind": "list", "children": []}]}

Keys other than numbers and strings have the form of `irees.runtime.objects`: `{"tuple": [1, 2]}`.

| kind | object |
|---|---|
| `none`, `tuple`, `list`, `deque` | None, and sequences; a tuple may have a `class`: `torch:Size` |
| `dict`, `ordered_dict`, `defaultdict` | mappings, with `keys` in their order |
| `named` | an instance of `class` (`module:qualname`) with `fields` |
| `object` | an instance of `class` with `fields`; other attributes as JSON in `rest` |

A `dict` may have a `class`, which is derived from dict, and its attributes in `rest`.

A `named` node is a dataclass, a named tuple, or a `ModelOutput` of transformers; an `object` is a
cache of transformers or one of its layers. A class is imported when its first object is created,
so a saved program with a tree of builtins needs neither PyTorch nor JAX. If the import fails, a
dict of the fields is created instead.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib
import sys
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from irees.errors import ArgumentError, ParseError
from irees.runtime.objects import changed, decoded, put_together, put_together_mapping

LEAF = "*"
Tree = Any
"""A leaf or a node, as JSON."""

_SEQUENCES: dict[str, type] = {"tuple": tuple, "list": list, "deque": collections.deque}
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "tuple": (tuple, list),
    "list": (list, tuple),
    "deque": (collections.deque,),
}
"""The types that a caller may pass for a sequence: a list is as good as a tuple."""
_MAPPINGS: dict[str, type] = {
    "dict": dict,
    "ordered_dict": collections.OrderedDict,
    "defaultdict": collections.defaultdict,
}
_KINDS = {"none", "named", "object", *_SEQUENCES, *_MAPPINGS}
MAX_DEPTH = 64


_local: weakref.WeakValueDictionary[str, type] = weakref.WeakValueDictionary()
"""Classes local to a function by path: this process finds them, although it cannot import them."""


def class_path(kind: type) -> str:
    """The name of a class for `import_class`."""
    path = f"{kind.__module__}:{kind.__qualname__}"
    first = kind.__qualname__.partition(".")[0]
    if "<locals>" in path or not hasattr(sys.modules.get(kind.__module__), first):
        _local[path] = kind
    return path


def import_class(path: str) -> type | None:
    """The class of that name; None if it cannot be imported."""
    if path in _local:
        return _local[path]
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return found if isinstance(found, type) else None


def check_tree(tree: Any, depth: int = 0) -> None:
    """Raises ParseError if `tree` is not a valid tree."""
    if tree == LEAF and isinstance(tree, str):
        return
    bad = ParseError("the manifest's 'signature' must have trees of known kinds")
    if not isinstance(tree, dict) or tree.get("kind") not in _KINDS or depth > MAX_DEPTH:
        raise bad
    children = tree.get("children", [])
    names = tree.get("keys", tree.get("fields"))
    if not isinstance(children, list):
        raise bad
    if names is not None and (not isinstance(names, list) or len(names) != len(children)):
        raise bad
    needs_class = tree["kind"] in ("named", "object")
    if not isinstance(tree.get("class", None if needs_class else ""), str):
        raise bad
    if not isinstance(tree.get("rest", []), list):
        raise bad
    for child in children:
        check_tree(child, depth + 1)


def _keys(tree: Tree) -> list[Any]:
    """The keys of a mapping, which the tree has as JSON. Raises ParseError."""
    keys = [decoded(key) if isinstance(key, dict) else key for key in tree["keys"]]
    if not all(isinstance(key, Hashable) for key in keys):
        raise ParseError("the manifest's 'signature' has a key that cannot be one of a dict")
    return keys


def count_leaves(tree: Tree) -> int:
    """Number of leaves of a tree."""
    return 1 if tree == LEAF else sum(map(count_leaves, tree.get("children", ())))


def leaf_paths(tree: Tree, path: str) -> Iterator[str]:
    """Yields the Python expression of each leaf: `kwargs['cache'].keys[0]`."""
    if tree == LEAF:
        yield path
        return
    for step, child in zip(_steps(tree), tree.get("children", ())):
        yield from leaf_paths(child, path + step)


def _steps(tree: Tree) -> list[str]:
    if "keys" in tree:
        return [f"[{key!r}]" for key in _keys(tree)]
    if "fields" in tree:
        return [f".{name}" for name in tree["fields"]]
    return [f"[{i}]" for i in range(len(tree.get("children", ())))]


def describe(tree: Tree) -> str:
    """Formats a tree like a Python object, with `*` for leaves."""
    if tree == LEAF:
        return LEAF
    kind, children = tree["kind"], [describe(child) for child in tree.get("children", ())]
    if kind == "none":
        return "None"
    if kind == "tuple":
        return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
    if kind == "list":
        return f"[{', '.join(children)}]"
    if "keys" in tree:
        return f"{{{', '.join(f'{k!r}: {c}' for k, c in zip(_keys(tree), children))}}}"
    name = tree.get("class", kind).rpartition(":")[2]
    fields = tree.get("fields")
    inner = children if fields is None else [f"{f}={c}" for f, c in zip(fields, children)]
    return f"{name}({', '.join(inner)})"


def tree_of(value: Any) -> Tree:
    """The tree of an object; objects that are not containers are leaves."""
    if value is None:
        return {"kind": "none"}
    for kind, cls in (*_SEQUENCES.items(), *_MAPPINGS.items()):
        if type(value) is cls:
            if kind in _SEQUENCES:
                return {"kind": kind, "children": [tree_of(v) for v in value]}
            children = [tree_of(v) for v in value.values()]
            return {"kind": kind, "keys": list(value), "children": children}
    fields = fields_of(value)
    if fields is None:
        return LEAF
    return {
        "kind": "named",
        "class": class_path(type(value)),
        "fields": list(fields),
        "children": [tree_of(v) for v in fields.values()],
    }


def fields_of(value: Any) -> dict[str, Any] | None:
    """Fields of a dataclass, a named tuple or a non-builtin mapping; None for other objects."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value))
    if isinstance(value, Mapping) and type(value).__module__ != "builtins":
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return None


# --- taking objects apart ---


def flatten(tree: Tree, value: Any, out: list[Any], path: str = "") -> None:
    """
    Appends the leaves of an object that has the structure of `tree` to `out`.

    Raises ArgumentError with the path of the first mismatch.
    """
    if tree == LEAF:
        out.append(value)
        return
    kind = tree["kind"]
    if kind == "none":
        if value is not None:
            raise _mismatch(path, "None", value)
        return
    children = tree.get("children", ())
    for child, part, step in zip(children, _parts(tree, value, path), _steps(tree), strict=True):
        flatten(child, part, out, path + step)


def _parts(tree: Tree, value: Any, path: str) -> list[Any]:
    """The children of an object, one per child of the node. Raises ArgumentError."""
    kind, children = tree["kind"], tree.get("children", ())
    if kind in _SEQUENCES:
        if not isinstance(value, _ACCEPTED[kind]) or len(value) != len(children):
            raise _mismatch(path, f"a {kind} of {len(children)}", value)
        return list(value)
    if kind in _MAPPINGS:
        keys = _keys(tree)
        if not isinstance(value, Mapping) or set(value) != set(keys):
            raise _mismatch(path, f"a dict with the keys {', '.join(map(repr, keys))}", value)
        return [value[key] for key in keys]
    return _field_values(tree, value, path)


def _field_values(tree: Tree, value: Any, path: str) -> list[Any]:
    """The fields of a `named` or `object` node, also of a tuple or a dict. Raises ArgumentError."""
    kind, fields = tree["kind"], tree["fields"]
    if kind == "object" and (why := changed(value, tree["rest"])) is not None:
        raise ArgumentError(
            f"{path} is a {type(value).__name__} whose {why}",
            hint="compile again with this object: its numbers and flags are constants",
        )
    if isinstance(value, tuple) and len(value) == len(fields):
        return list(value)
    if isinstance(value, Mapping) and set(fields) <= set(value):
        return [value[name] for name in fields]
    try:
        return [getattr(value, name) for name in fields]
    except AttributeError:
        name = tree["class"].rpartition(":")[2]
        raise _mismatch(path, f"a {name} with {', '.join(fields)}", value) from None


def _mismatch(path: str, wanted: str, value: Any) -> ArgumentError:
    found = describe(tree_of(value))
    shown = type(value).__name__ if found == LEAF else found
    return ArgumentError(f"{path} is {shown[:200]}, but must be {wanted}")


# --- putting objects together ---


def unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    """Builds an object of a tree from its leaves, in order."""
    if tree == LEAF:
        return next(leaves)
    kind = tree["kind"]
    if kind == "none":
        return None
    parts = [unflatten(child, leaves) for child in tree.get("children", ())]
    if kind in _SEQUENCES:
        return _sequence(tree)(parts)
    if kind == "defaultdict":
        return collections.defaultdict(None, zip(_keys(tree), parts))
    if kind in _MAPPINGS:
        return _mapping(tree)(zip(_keys(tree), parts))
    if kind == "object":
        return make_object(tree, parts)
    return make_named(tree, parts)


def _sequence(tree: Tree) -> type:
    """The type of a sequence: the node's class if its module is loaded, else that of its kind."""
    module, _, name = tree.get("class", "").partition(":")
    found = getattr(sys.modules.get(module), name, None) if name else None
    plain = _SEQUENCES[tree["kind"]]
    return found if isinstance(found, type) and issubclass(found, plain) else plain


def _mapping(tree: Tree) -> Callable[[Any], Any]:
    """What creates a mapping: the node's class if it can be imported, else that of its kind."""
    cls = import_class(tree["class"]) if "class" in tree else None
    if cls is None or not issubclass(cls, dict):
        return _MAPPINGS[tree["kind"]]
    return lambda items: put_together_mapping(cls, dict(items), tree.get("rest", []))


_makers: dict[str, Callable[[dict[str, Any]], Any]] = {}


def make_named(tree: Tree, parts: list[Any]) -> Any:
    """Creates an instance of a node's class, or a dict if the class cannot be imported."""
    path = tree["class"]
    fields = dict(zip(tree["fields"], parts))
    if path in _local:
        return _maker(_local[path])(fields)
    if path not in _makers:
        _makers[path] = _maker(import_class(path))
    return _makers[path](fields)


def _maker(cls: type | None) -> Callable[[dict[str, Any]], Any]:
    if cls is None:
        return dict
    if issubclass(cls, tuple):
        if hasattr(cls, "_make"):
            return lambda fields: cls._make(fields.values())  # type: ignore[attr-defined]
        return lambda fields: cls(tuple(fields.values()))  # a structseq of PyTorch
    return lambda fields: cls(**fields)


def make_object(tree: Tree, parts: list[Any]) -> Any:
    """Creates an object with these fields, or a dict if its class cannot be imported."""
    cls = import_class(tree["class"])
    if cls is None:
        return dict(zip(tree["fields"], parts))
    return put_together(cls, tree["fields"], parts, tree["rest"])
