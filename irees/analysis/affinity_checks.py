"""
Whether ops are where their operands are.
"""

from __future__ import annotations

from xdsl.ir import Operation

from irees.analysis.affinity import (
    Affinities,
    devices_of,
    explicit_affinity,
    is_tracked,
    pins,
    placed,
)
from irees.errors import VerifyError

TRANSFERS = ("flow.tensor.transfer", "stream.async.transfer")


def _names(devices: frozenset[str]) -> str:
    return " or ".join(f"@{name}" for name in sorted(devices))


def check_operands(op: Operation, affinities: Affinities, *, pinned: bool = True) -> None:
    """
    Raises VerifyError, which names both devices, for an op that says where it runs and reads what
    is known to be elsewhere. What an op that pins asks for is not where its operand comes from;
    with `pinned` it is where all others find it.
    """
    runs = explicit_affinity(op)
    if placed(op) is None or op.name in TRANSFERS or runs is None:
        return
    here = devices_of(runs)
    find = affinities.resource if pinned and not pins(op) else affinities.made
    for index, operand in enumerate(op.operands):
        where = find(operand) if is_tracked(operand.type) else None
        there = frozenset[str]().union(*(devices_of(each) for each in where or ()))
        if there and not here & there:
            raise VerifyError(
                f"runs on {_names(here)}, but operand {index} is on {_names(there)}",
                op=op,
                hint="transfer it first",
            )
