"""
gpu: barriers between loops over threads, which the interpreter runs sequentially anyway.

A barrier or shuffle inside such a loop requires interleaved threads, which the interpreter does not
support: the emulation of `backends/cuda` runs those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation

from irees.errors import UnsupportedError
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Prepared, implements


@implements("gpu.barrier")
def _barrier(machine: Machine, op: Operation) -> Prepared:
    """Does nothing: the preceding loop over threads has already finished."""
    parent = op.parent_op()
    while parent is not None:
        if "thread" in str(parent.properties.get("mapping", "")):
            raise UnsupportedError(
                "synchronization between threads is not supported by the interpreter", op=op
            )
        parent = parent.parent_op()

    def run(*args: Any) -> Sequence[Any]:
        return ()

    return run
