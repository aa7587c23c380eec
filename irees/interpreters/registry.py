"""The registry of op semantics: a table from op names to functions that prepare the op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation, SSAValue

if TYPE_CHECKING:
    from irees.interpreters.machine import Machine

Prepared = Callable[..., Sequence[Any]]
"""A function from operand values of an op to result values."""
Prepare = Callable[["Machine", Operation], Prepared]

PREPARE: dict[str, Prepare] = {}
ELEMENTWISE: set[str] = set()
"""Ops whose functions take scalars and arrays alike, so that bodies can run on whole arrays."""


OTHERS: list[Callable[[Machine, Operation], Prepared | None]] = []
"""Fallbacks for ops that are not in the table, tried in order."""


def implements_others(
    prepare: Callable[[Machine, Operation], Prepared | None],
) -> Callable[[Machine, Operation], Prepared | None]:
    """Registers a function that prepares ops by class instead of by name."""
    OTHERS.append(prepare)
    return prepare


def find(machine: Machine, op: Operation) -> Prepared | None:
    """The prepared function of an op, or None if no handler exists."""
    if op.name in PREPARE:
        return PREPARE[op.name](machine, op)
    return next((f for prepare in OTHERS if (f := prepare(machine, op)) is not None), None)


def implements(*names: str, elementwise: bool = False) -> Callable[[Prepare], Prepare]:
    """Registers a function that prepares the ops of these names."""

    def register(prepare: Prepare) -> Prepare:
        for name in names:
            PREPARE[name] = prepare
        if elementwise:
            ELEMENTWISE.update(names)
        return prepare

    return register


def pure(name: str, function: Callable[..., Any]) -> None:
    """Registers an op with one result that only depends on operand values."""

    def prepared(*args: Any) -> tuple[Any]:
        return (function(*args),)

    PREPARE[name] = lambda machine, op: prepared
    ELEMENTWISE.add(name)


class Operands:
    """The operands of an op by their names in its definition; located once, bound at each run."""

    def __init__(self, op: Operation):
        self.places: dict[str, int | slice | None] = {}
        start = 0
        for name, _ in op.get_irdl_definition().operands:  # pyright: ignore
            value = getattr(op, name)
            if value is None:
                self.places[name] = None
            elif isinstance(value, SSAValue):
                self.places[name] = start
                start += 1
            else:
                count = len(value)
                self.places[name] = slice(start, start + count)
                start += count

    def bind(self, args: Sequence[Any]) -> dict[str, Any]:
        """One value, a sequence of values, or None, per name."""
        return {name: None if place is None else args[place] for name, place in self.places.items()}
