"""
Checks that ops run on the devices of their operands.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from irees.analysis.affinity import (
    Affinities,
    devices_of,
    explicit_affinity,
    is_tracked,
    pins,
    placed,
)
from irees.dialects.util import GlobalLoadOp
from irees.errors import VerifyError

TRANSFERS = ("flow.tensor.transfer", "stream.async.transfer")


def _names(devices: Collection[str]) -> str:
    return " or ".join(f"@{name}" for name in sorted(devices))


def is_everywhere(value: SSAValue) -> bool:
    """
    Whether every device can rematerialize a value: a constant, a load of an immutable global, or
    the result of side-effect-free ops on such values that require no affinity.
    """
    todo = [value]
    while todo:
        op = todo.pop().owner
        if not isinstance(op, Operation) or op.regions or explicit_affinity(op) is not None:
            return False
        if isinstance(op, GlobalLoadOp):
            if op.is_immutable is None:
                return False
            continue
        how = placed(op)
        constant = how is not None and how.only_tensors
        runs = how is not None and not constant and (how.required or how.pins)
        if runs or not is_side_effect_free(op):
            return False
        todo += [operand for operand in op.operands if is_tracked(operand.type)]
    return True


def refuse(op: Operation, here: Collection[str], index: int, there: Collection[str]) -> VerifyError:
    """Returns the error for an op that reads an operand from another device."""
    return VerifyError(
        f"runs on {_names(here)}, but operand {index} is on {_names(there)}",
        op=op,
        hint="transfer it first",
    )


def check_operands(op: Operation, affinities: Affinities) -> None:
    """
    Raises VerifyError, naming both devices, if an op with an affinity reads an operand known to be
    elsewhere. For a pinning op, checks the producers of its operands instead of the pinned place.
    """
    runs = explicit_affinity(op)
    if placed(op) is None or op.name in TRANSFERS or runs is None:
        return
    here = devices_of(runs)
    find = affinities.made if pins(op) else affinities.resource
    for index, operand in enumerate(op.operands):
        where = find(operand) if is_tracked(operand.type) else None
        there = frozenset[str]().union(*(devices_of(each) for each in where or ()))
        if there and not here & there and not is_everywhere(operand):
            raise refuse(op, here, index, there)
