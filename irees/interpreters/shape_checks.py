"""Traps if operand sizes violate the table of shape relations."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from irees.dialects.shape_relations import row_of
from irees.dialects.sizes import Dim, Relation, Scalar
from irees.errors import RuntimeTrap
from irees.interpreters.registry import Prepared
from irees.interpreters.values import array_of


def checked(op: Operation, run: Prepared) -> Prepared:
    """
    Wraps a prepared op with a check of its sizes; windows are checked at their reads.

    It raises RuntimeTrap with the message of the violated relation.
    """
    stated = row_of(op) if _is_open(op) else None
    rows = [r for r in stated(op) if isinstance(r, Relation)] if stated is not None else []
    if not rows:
        return run
    places = {id(value): place for place, value in enumerate(op.operands)}

    def run_checked(*args: Any) -> Any:
        def leaf(what: Dim | Scalar) -> int:
            array = array_of(args[places[id(what.value)]])
            if isinstance(what, Dim):
                return array.shape[what.axis]
            return int(array if what.at is None else array[what.at])

        for row in rows:
            if not row.holds(leaf):
                raise RuntimeTrap(row.message, op=op)
        return run(*args)

    return run_checked


def _is_open(op: Operation) -> bool:
    """Whether an op computes tensors and has dynamic sizes or scalar operands."""
    if not any(isinstance(r.type, TensorType) for r in op.results):
        return False
    kinds = [value.type for value in (*op.operands, *op.results)]
    shaped = [kind for kind in kinds if isinstance(kind, TensorType)]
    return len(shaped) < len(kinds) or not all(kind.has_static_shape() for kind in shaped)
