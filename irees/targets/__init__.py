"""
Cost models: the numbers by which passes decide whether a rewrite pays off on a processor.

    class CpuCosts:
        kc: int = cost(512, "steps of K", "guess")

`cpu.py` has the model of CPUs, `nvidia.py` that of NVIDIA GPUs, and `common.py` the costs that are
shared by both. A pass reads `CPU.kc`. Facts of one machine, such as cache sizes, are in `Target`.
Limits for correctness or compile time are constants of their pass.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeVar

Value = TypeVar("Value")


def cost(value: Value, unit: str, origin: str) -> Value:
    """
    Declares a field of a cost model, with its default value.

    `unit` is "1" for a ratio. `origin` says what was measured or derived, and on which processor;
    "guess" if that is not known.
    """
    return field(default=value, metadata={"unit": unit, "origin": origin})
