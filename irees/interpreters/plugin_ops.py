"""Ops of plug-ins, evaluated by their interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Attribute, Operation

from irees.errors import PluginError
from irees.interfaces import blamed, model_of, outputs_of, values_of
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
    written = [value.type for value in outputs_of(op)] if hasattr(op, "outputs") else []

    def prepared(*operands: Any) -> Sequence[Any]:
        arrays = [each.array if isinstance(each, MemRef) else each for each in operands]
        with blamed(op, "evaluate"):
            values = values_of(evaluate(op, *arrays), op, "evaluate")
        if written:
            outputs = arrays[len(arrays) - len(written) :]
            _check(op, values, written, [output.shape for output in outputs])
        else:
            # An instruction has no `outputs`: what it returns goes to its last operands.
            outputs = arrays[len(arrays) - len(values) :] if values else []
            if op.results or not isinstance(operands[-1] if operands else None, MemRef):
                _check(op, values, [result.type for result in op.results])
        if op.results:
            return values
        for output, value in zip(outputs, values, strict=True):
            output[...] = value
        return []

    return prepared


def _check(
    op: Operation,
    values: Sequence[Any],
    kinds: Sequence[Attribute],
    shapes: Sequence[tuple[int, ...]] = (),
) -> None:
    """Raises PluginError for values that are not of these types and, where given, shapes."""
    if len(values) != len(kinds):
        raise PluginError(
            f"evaluate returns {len(values)} values, but must return {len(kinds)}", op=op
        )
    for number, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        array = np.asarray(value)
        shape = kind.get_shape() if isinstance(kind, ShapedType) else ()
        fits = len(shape) == array.ndim and all(
            n < 0 or n == m for n, m in zip(shape, array.shape, strict=True)
        )
        found = f"{array.dtype} of shape {array.shape}"
        if not fits or array.dtype != dtype_of(kind):
            raise PluginError(f"evaluate returns {found}, but must return a {kind}", op=op)
        if shapes and array.shape != shapes[number]:
            wanted = f"{shapes[number]}, as its output has"
            raise PluginError(f"evaluate returns {found}, but must return {wanted}", op=op)
