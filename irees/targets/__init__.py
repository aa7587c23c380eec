"""
Cost models: the numbers by which passes decide what pays off on a processor.

    class CpuCosts:
        kc: int = cost(512, "steps of K", "guess")

`cpu.py` has those of CPUs, `nvidia.py` those of NVIDIA GPUs, and `common.py` those that passes use
for both. A pass reads `CPU.kc`. Facts of one machine, such as cache sizes, are in `Target`; limits
that correctness or the compile time needs stay in the pass that has them.
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
