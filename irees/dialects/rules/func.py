"""Verification rules for func."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, TensorType
from xdsl.utils.exceptions import VerifyException

from ..iree_encoding import LayoutAttr, PackedStorageAttr
from ..signature import UPDATES

BYTE = 8
"""Bits per byte."""


def check_attributes(op: Any) -> None:
    """Checks that argument and result attributes are dialect attributes."""
    for kind, what in (("arg_attrs", "arguments"), ("res_attrs", "results")):
        given = op.properties.get(kind)
        if not isinstance(given, ArrayAttr):
            continue
        for entry in given.data:
            names = entry.data if isinstance(entry, DictionaryAttr) else {}
            if any("." not in name for name in names):
                raise VerifyException(f"{what} may only have dialect attributes")


def check_body(op: Any) -> None:
    """Checks that a function without a body is private: it is the declaration of another one."""
    visibility = op.properties.get("sym_visibility")
    if not op.body.blocks and (visibility is None or visibility.data == "public"):
        raise VerifyException(
            "expected non-empty function body: symbol declaration cannot have public visibility"
        )


def check_packing(op: Any) -> None:
    """Checks that packed_storage has elements of 1, 2 or 4 bits."""
    types = op.function_type
    for kind in (*types.inputs, *types.outputs):
        encoding = kind.encoding if isinstance(kind, TensorType) else None
        layouts = encoding.layouts.data if isinstance(encoding, LayoutAttr) else (encoding,)
        if not any(isinstance(each, PackedStorageAttr) for each in layouts):
            continue
        bits = getattr(kind.element_type, "bitwidth", BYTE)
        if bits >= BYTE or bits & (bits - 1):
            raise VerifyException(
                f"bit-width of the element type is {bits} but packed_storage is only supported "
                "for 1, 2 and 4 bits"
            )


def check_updates(op: Any) -> None:
    """Checks that each updated argument has the type of the result, and only one such result."""
    given, types = op.properties.get("res_attrs"), op.properties["function_type"]
    if not isinstance(given, ArrayAttr):
        return
    seen: set[int] = set()
    for kind, entry in zip(types.outputs, given.data):
        marks = entry.data if isinstance(entry, DictionaryAttr) else {}
        if UPDATES not in marks:
            continue
        mark = marks[UPDATES]
        number = mark.value.data if isinstance(mark, IntegerAttr) else -1
        if not 0 <= number < len(types.inputs) or number in seen:
            raise VerifyException(f"{UPDATES} must be the number of an argument, without repeats")
        seen.add(number)
        if not isinstance(kind, TensorType) or kind != types.inputs.data[number]:
            raise VerifyException(
                f"a result with {UPDATES} must have the tensor type of argument {number}, but has "
                f"{kind}"
            )


RULES = {"func.func": (check_attributes, check_body, check_packing, check_updates)}
