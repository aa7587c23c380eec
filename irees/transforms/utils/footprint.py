"""
How much memory the allocations of a kernel need, by where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation

from irees.transforms.utils.shapes import element_bytes

INDEX_BYTES = 8
"""Of an index where no data layout says otherwise."""


@dataclass
class Footprint:
    """Bytes that are known when the kernel is compiled, and the allocations whose size is not."""

    known: int = 0
    dynamic: list[Operation] = field(default_factory=list)

    def add(self, op: Operation, kind: MemRefType) -> None:
        """One more allocation of that type."""
        shape = kind.get_shape()
        if any(size < 0 for size in shape):
            self.dynamic.append(op)
            return
        width = INDEX_BYTES if kind.element_type.name == "index" else element_bytes(kind)
        self.known += prod(shape) * width


def footprint(function: Operation, op_type: type[Operation], space: str | None) -> Footprint:
    """What the allocations of a function need together, in one memory space or in none."""
    total = Footprint()
    for op in function.walk():
        if not isinstance(op, op_type):
            continue
        kind = op.results[0].type
        assert isinstance(kind, memref.MemRefType)
        found = getattr(getattr(kind.memory_space, "data", None), "value", None)
        if found == space:
            total.add(op, kind)
    return total
