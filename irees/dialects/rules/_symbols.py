"""Verification rules for symbol references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException


def _reference(op: Operation) -> SymbolRefAttr:
    found = (*op.properties.values(), *op.attributes.values())
    return next(attr for attr in found if isinstance(attr, SymbolRefAttr))


def lookup(op: Operation, kind: str) -> Operation:
    """Returns the op that a symbol refers to. Raises VerifyException unless it is a `kind`."""
    reference = _reference(op)
    around: Operation | None = op
    while around is not None and not around.has_trait(SymbolTable, value_if_unregistered=False):
        around = around.parent_op()
    found = None if around is None else SymbolTable.lookup_symbol(around, reference)
    if found is None or found.name != kind:
        raise VerifyException(f"undefined {kind}: @{reference.string_value()}")
    return found


def check_load(kind: str) -> Callable[[Any], None]:
    """Returns a rule: a load names an existing global of its type."""

    def rule(op: Any) -> None:
        _check_type(op, lookup(op, kind), op.results[0].type, "load")

    return rule


def check_store(kind: str) -> Callable[[Any], None]:
    """Returns a rule: a store names an existing global of its type."""

    def rule(op: Any) -> None:
        _check_type(op, lookup(op, kind), op.operands[0].type, "store")

    return rule


def _check_type(op: Operation, found: Operation, kind: Attribute, what: str) -> None:
    own = found.properties["type"]
    if own != kind:
        raise VerifyException(
            f"global @{_reference(op).string_value()} is {own} but {what} is {kind}"
        )


def check_call(kind: str) -> Callable[[Any], None]:
    """Returns a rule: a call names an existing function of its type."""

    def rule(op: Any) -> None:
        types = lookup(op, kind).properties["function_type"]
        given = [v.type for v in op.operands], [r.type for r in op.results]
        wanted = list(types.inputs), list(types.outputs)  # pyright: ignore
        if len(given[0]) == len(wanted[0]) and given != wanted:
            raise VerifyException(
                f"@{_reference(op).string_value()} has the type {types}, unlike the call"
            )

    return rule
