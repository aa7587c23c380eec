"""
Attributes of a function's arguments and results that callers need beyond the types.

linalg integers are signless. A result marked `irees.unsigned` is returned to the caller as an
unsigned array of the same bytes:

    func.func @main(%x: tensor<4xi64>) -> (tensor<4xi8> {irees.unsigned})

Arguments need no mark: signed and unsigned arrays are accepted for a signless type. `irees.element`
names the logical element type of an argument or result that is stored as another type:

    func.func @main(%x: tensor<4xi8> {irees.element = "f8E5M2"}) -> (tensor<4xf32>)

A result marked `irees.updates = 0` is the new value of argument 0. Targets that support it write
the result into the argument's memory, possibly in place, and do not return it:

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
    """Whether a function is an entry point: public, with a body."""
    visibility = function.properties.get("sym_visibility")
    public = not isinstance(visibility, StringAttr) or visibility.data == "public"
    return public and bool(function.regions[0].blocks)


def mark_unsigned(function: Operation, results: Collection[int]) -> None:
    """Marks these results of a function as unsigned."""
    if not results:
        return
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    old = _dictionaries(function, count)
    marks = [{UNSIGNED: UnitAttr()} if i in results else {} for i in range(count)]
    function.properties["res_attrs"] = ArrayAttr(
        DictionaryAttr({**given, **mark}) for given, mark in zip(old, marks, strict=True)
    )


def unsigned_results(function: Operation) -> frozenset[int]:
    """Returns the numbers of the results that are marked as unsigned."""
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    found = _dictionaries(function, count)
    return frozenset(i for i, given in enumerate(found) if UNSIGNED in given)


def mark_elements(function: Operation, kind: str, names: Mapping[int, str]) -> None:
    """Sets the logical element types of arguments (`kind` "arg") or results ("res"), by number."""
    if not names:
        return
    count = _count(function, kind)
    old = _dictionaries(function, count, kind)
    marks = [{ELEMENT: StringAttr(names[i])} if i in names else {} for i in range(count)]
    function.properties[f"{kind}_attrs"] = ArrayAttr(
        DictionaryAttr({**given, **mark}) for given, mark in zip(old, marks, strict=True)
    )


def element_names(function: Operation, kind: str) -> dict[int, str]:
    """Returns the logical element types that are set: argument or result number => name."""
    found = _dictionaries(function, _count(function, kind), kind)
    names = {i: given[ELEMENT] for i, given in enumerate(found) if ELEMENT in given}
    return {i: name.data for i, name in names.items() if isinstance(name, StringAttr)}


def _count(function: Operation, kind: str) -> int:
    types = function.properties["function_type"]
    return len((types.inputs if kind == "arg" else types.outputs).data)  # pyright: ignore


def mark_updates(function: Operation, updates: Mapping[int, int]) -> None:
    """Marks results as new values of arguments (result number => argument number)."""
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
    """Returns result number => number of the argument that the result updates."""
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    return {
        i: given[UPDATES].value.data  # pyright: ignore
        for i, given in enumerate(_dictionaries(function, count))
        if UPDATES in given
    }


def drop_results(function: Operation, updates: Mapping[int, int]) -> None:
    """Drops results that are written into arguments; `written_results` still lists them."""
    if not updates:
        return
    count = len(function.properties["function_type"].outputs.data)  # pyright: ignore
    kept = [d for i, d in enumerate(_dictionaries(function, count)) if i not in updates]
    function.properties["res_attrs"] = ArrayAttr(map(DictionaryAttr, kept))
    pairs = (ArrayAttr(map(IntegerAttr.from_index_int_value, pair)) for pair in updates.items())
    function.attributes[UPDATES] = ArrayAttr(pairs)


def written_results(function: Operation) -> dict[int, int]:
    """Returns result => argument for results written into arguments instead of returned."""
    pairs = function.attributes.get(UPDATES)
    if not isinstance(pairs, ArrayAttr):
        return {}
    found = ([number.value.data for number in pair.data] for pair in pairs.data)  # pyright: ignore
    return {result: argument for result, argument in found}


def drop_updates(function: Operation) -> None:
    """Removes the update marks, so that all results are returned."""
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
