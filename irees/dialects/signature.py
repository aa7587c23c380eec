"""
What a function's signature says beyond its types, for callers.

Integers of linalg have no sign. A result marked `irees.unsigned` is handed to the caller as an
unsigned array of the same bytes:

    func.func @main(%x: tensor<4xi64>) -> (tensor<4xi8> {irees.unsigned})

Arguments need no mark: an array of either sign is accepted for a type without one. `irees.element`
names the type of elements that are stored as another one, of arguments and of results:

    func.func @main(%x: tensor<4xi8> {irees.element = "f8E5M2"}) -> (tensor<4xf32>)

A result marked `irees.updates = 0` is the new value of argument 0. A target that can writes it into
the memory of the argument, where it may be computed in place, and returns nothing for it:

    func.func @main(%cache: tensor<9xf32>) -> (tensor<9xf32> {irees.updates = 0 : index})
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation

UNSIGNED = "irees.unsigned"
UPDATES = "irees.updates"
ELEMENT = "irees.element"


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


def mark_elements(function: Operation, kind: str, names: Mapping[int, str]) -> None:
    """Names the elements of arguments (`kind` is "arg") or of results ("res"), by number."""
    if not names:
        return
    count = _count(function, kind)
    old = _dictionaries(function, count, kind)
    marks = [{ELEMENT: StringAttr(names[i])} if i in names else {} for i in range(count)]
    function.properties[f"{kind}_attrs"] = ArrayAttr(
        DictionaryAttr({**given, **mark}) for given, mark in zip(old, marks, strict=True)
    )


def element_names(function: Operation, kind: str) -> dict[int, str]:
    """The elements that are named, of arguments or results by number."""
    found = _dictionaries(function, _count(function, kind), kind)
    names = {i: given[ELEMENT] for i, given in enumerate(found) if ELEMENT in given}
    return {i: name.data for i, name in names.items() if isinstance(name, StringAttr)}


def _count(function: Operation, kind: str) -> int:
    types = function.properties["function_type"]
    return len((types.inputs if kind == "arg" else types.outputs).data)  # pyright: ignore


def mark_updates(function: Operation, updates: Mapping[int, int]) -> None:
    """Marks results as new values of arguments: result => argument."""
    if not updates:
        return
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    marks = [
        {UPDATES: IntegerAttr.from_index_int_value(updates[i])} if i in updates else {}
        for i in range(count)
    ]
    function.properties["res_attrs"] = ArrayAttr(
        DictionaryAttr({**given, **mark})
        for given, mark in zip(_dictionaries(function, count), marks, strict=True)
    )


def updates_of(function: Operation) -> dict[int, int]:
    """Result => argument that it is the new value of."""
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    return {
        i: given[UPDATES].value.data  # pyright: ignore
        for i, given in enumerate(_dictionaries(function, count))
        if UPDATES in given
    }


def drop_results(function: Operation, updates: Mapping[int, int]) -> None:
    """Takes results off that are written into arguments; `written_results` says which."""
    if not updates:
        return
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    kept = [d for i, d in enumerate(_dictionaries(function, count)) if i not in updates]
    function.properties["res_attrs"] = ArrayAttr(map(DictionaryAttr, kept))
    pairs = (ArrayAttr(map(IntegerAttr.from_index_int_value, pair)) for pair in updates.items())
    function.attributes[UPDATES] = ArrayAttr(pairs)


def written_results(function: Operation) -> dict[int, int]:
    """Result => argument, of results that a function writes into arguments and does not return."""
    pairs = function.attributes.get(UPDATES)
    if not isinstance(pairs, ArrayAttr):
        return {}
    found = ([number.value.data for number in pair.data] for pair in pairs.data)  # pyright: ignore
    return {result: argument for result, argument in found}


def drop_updates(function: Operation) -> None:
    """Takes the marks of updates off: all results are returned."""
    if not updates_of(function):
        return
    function.properties["res_attrs"] = ArrayAttr(
        DictionaryAttr({k: v for k, v in given.data.items() if k != UPDATES})  # pyright: ignore
        for given in function.properties["res_attrs"].data  # pyright: ignore
    )


def _dictionaries(function: Operation, count: int, kind: str = "res") -> list[dict[str, Attribute]]:
    attrs = function.properties.get(f"{kind}_attrs")
    if not isinstance(attrs, ArrayAttr):
        return [{} for _ in range(count)]
    return [dict(given.data) for given in attrs.data if isinstance(given, DictionaryAttr)]
