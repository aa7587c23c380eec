"""Ops of plug-ins that their interface evaluates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation

from irees.interfaces import model_of
from irees.interpreters.registry import Prepared, implements_others

if TYPE_CHECKING:
    from irees.interpreters.machine import Machine


@implements_others
def plugin_op(machine: Machine, op: Operation) -> Prepared | None:
    """Prepares an op whose interface has `evaluate`."""
    evaluate = getattr(model_of(op), "evaluate", None)
    return None if evaluate is None else lambda *operands: evaluate(op, *operands)
