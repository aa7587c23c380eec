"""
Records how many cycles a kernel is predicted to take. Part of `irees-gpu-select-strategy` and
`irees-gpu-lower-sorts`.

    flow.executable @e {...}   =>   flow.executable @e {cycles = 41230 : i64, ...}

Contractions (`utils/waves.py`) and sorts (`utils/sort_tiles.py`) add the cycles of one call.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation

from irees.dialects.flow import ExecutableOp


def add_cycles(op: Operation | None, cycles: float) -> None:
    """Adds cycles to the prediction for the kernel of an op, if it is in one."""
    while op is not None and not isinstance(op, ExecutableOp):
        op = op.parent_op()
    if op is not None:
        before = op.attributes.get("cycles")
        known = before.value.data if isinstance(before, IntegerAttr) else 0
        op.attributes["cycles"] = IntegerAttr(known + round(cycles), i64)
