"""Kernels that a program has written itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import MemRefType

from irees.dialects.irees import KernelOp
from irees.interpreters.registry import Prepared, implements
from irees.interpreters.values import MemRef

if TYPE_CHECKING:
    from irees.interpreters.machine import Machine


@implements("irees.kernel")
def _kernel(machine: Machine, op: KernelOp) -> Prepared:
    """Runs the block on copies of the outputs; on memrefs, on the outputs themselves."""
    block, first = op.body.block, len(op.inputs)

    def run(*operands: Any) -> list[Any]:
        values = list(operands)
        for number, (argument, value) in enumerate(zip(block.args, operands, strict=True)):
            if isinstance(argument.type, MemRefType) and not isinstance(value, MemRef):
                values[number] = MemRef.of(np.array(value) if number >= first else value)
        machine.run_block(block, values)
        return [value.array for value in values[first:]] if op.res else []

    return run
