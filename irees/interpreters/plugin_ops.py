"""Ops of plug-ins, evaluated by their interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Operation

from irees.errors import PluginError
from irees.interfaces import blamed, model_of
from irees.interpreters.registry import Prepared, implements_others
from irees.interpreters.values import MemRef, dtype_of

if TYPE_CHECKING:
    from irees.interpreters.machine import Machine


@implements_others
def plugin_op(machine: Machine, op: Operation) -> Prepared | None:
    """
    Prepares an op whose interface has `evaluate`. On memrefs, the op writes the returned values to
    its outputs.

    The function raises PluginError if `evaluate` fails or returns values of other types.
    """
    evaluate = getattr(model_of(op), "evaluate", None)
    if evaluate is None:
        return None

    def prepared(*operands: Any) -> Sequence[Any]:
        arrays = [each.array if isinstance(each, MemRef) else each for each in operands]
        with blamed(op, "evaluate"):
            values = list(evaluate(op, *arrays))
        targets = operands[len(operands) - len(values) :] if values else ()
        if op.results or not any(isinstance(each, MemRef) for each in targets):
            _check(op, values)
            return values
        for target, value in zip(targets, values, strict=True):
            target.array[...] = value
        return []

    return prepared


def _check(op: Operation, values: Sequence[Any]) -> None:
    if len(values) != len(op.results):
        raise PluginError(
            f"evaluate returns {len(values)} values, but must return {len(op.results)}", op=op
        )
    for value, result in zip(values, op.results, strict=True):
        array, kind = np.asarray(value), result.type
        shape = kind.get_shape() if isinstance(kind, ShapedType) else ()
        fits = len(shape) == array.ndim and all(
            n < 0 or n == m for n, m in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != dtype_of(kind):
            found = f"{array.dtype} of shape {array.shape}"
            raise PluginError(f"evaluate returns {found}, but must return a {kind}", op=op)
