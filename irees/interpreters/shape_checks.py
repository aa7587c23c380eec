"""Traps if operand sizes violate the table of shape relations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from irees.dialects.shape_relations import own_loops, row_of
from irees.dialects.sizes import Dim, Numbers, Relation, Scalar, Window, evaluate
from irees.errors import RuntimeTrap
from irees.interfaces import OWN
from irees.interpreters.registry import Prepared
from irees.interpreters.values import array_of


def checked(op: Operation, run: Prepared) -> Prepared:
    """
    Wraps a prepared op with a check of its sizes; windows are checked at their reads, those of
    plug-in ops here, since their reads are the plug-in's.

    It raises RuntimeTrap with the message of the violated relation.
    """
    stated = row_of(op)
    if stated is None or (stated is not own_loops and not _is_open(op)):
        return run
    rows = list(stated(op))
    if op.name in OWN or stated is not own_loops:
        rows = [row for row in rows if isinstance(row, Relation)]
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
            holds = row.holds(leaf) if isinstance(row, Relation) else _is_inside(row, leaf)
            if not holds:
                raise RuntimeTrap(row.message, op=op)
        return run(*args)

    return run_checked


def _is_inside(window: Window, leaf: Callable[[Dim | Scalar], int]) -> bool:
    """Whether an index is inside in all iterations."""
    sizes = {loop: evaluate(size, leaf, Numbers()) for loop, size in window.loops.items()}
    if 0 in sizes.values():
        return True
    used = sorted(window.expr.used_dims())
    grids = np.ogrid[tuple(slice(sizes[loop]) for loop in used)]
    places: list[Any] = [0] * (max(used, default=-1) + 1)
    for loop, grid in zip(used, grids, strict=True):
        places[loop] = grid
    index = np.asarray(window.expr.eval(places, []))
    return index.min() >= 0 and index.max() < evaluate(window.extent, leaf, Numbers())


def _is_open(op: Operation) -> bool:
    """Whether an op computes tensors and has dynamic sizes or scalar operands."""
    if not any(isinstance(r.type, TensorType) for r in op.results):
        return False
    kinds = [value.type for value in (*op.operands, *op.results)]
    shaped = [kind for kind in kinds if isinstance(kind, TensorType)]
    return len(shaped) < len(kinds) or not all(kind.has_static_shape() for kind in shaped)
