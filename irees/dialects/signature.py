"""
What a function's signature says beyond its types, for callers.

Integers of linalg have no sign. A result marked `irees.unsigned` is handed to the caller as an
unsigned array of the same bytes:

    func.func @main(%x: tensor<4xi64>) -> (tensor<4xi8> {irees.unsigned})

Arguments need no mark: an array of either sign is accepted for a type without one.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation

UNSIGNED = "irees.unsigned"


def is_entry(function: Operation) -> bool:
    """Whether callers of the program see a function: it has a body, and is public."""
    visibility = function.properties.get("sym_visibility")
    public = not isinstance(visibility, StringAttr) or visibility.data == "public"
    return public and bool(function.regions[0].blocks)


def mark_unsigned(function: Operation, results: Collection[int]) -> None:
    """Marks these results of a function."""
    if not results:
        return
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    old = _dictionaries(function, count)
    marks = [{UNSIGNED: UnitAttr()} if i in results else {} for i in range(count)]
    function.properties["res_attrs"] = ArrayAttr(
        DictionaryAttr({**given, **mark}) for given, mark in zip(old, marks, strict=True)
    )


def unsigned_results(function: Operation) -> frozenset[int]:
    """The results that a function's signature marks."""
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    found = _dictionaries(function, count)
    return frozenset(i for i, given in enumerate(found) if UNSIGNED in given)


def _dictionaries(function: Operation, count: int) -> list[dict[str, Attribute]]:
    attrs = function.properties.get("res_attrs")
    if not isinstance(attrs, ArrayAttr):
        return [{} for _ in range(count)]
    return [dict(given.data) for given in attrs.data if isinstance(given, DictionaryAttr)]
