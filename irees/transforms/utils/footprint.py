"""
Memory that the allocations of a kernel need, by memory space.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation

from irees.transforms.utils.shapes import element_bytes

INDEX_BYTES = 8
"""Size of an `index` in bytes, without a data layout."""


@dataclass
class Footprint:
    """Bytes of static allocations, and the allocations of dynamic size."""

    known: int = 0
    dynamic: list[Operation] = field(default_factory=list)

    def add(self, op: Operation, kind: MemRefType) -> None:
        """Adds an allocation of that type."""
        shape = kind.get_shape()
        if any(size < 0 for size in shape):
            self.dynamic.append(op)
            return
        width = INDEX_BYTES if kind.element_type.name == "index" else element_bytes(kind)
        self.known += prod(shape) * width


def footprint(function: Operation, op_type: type[Operation], space: str | None) -> Footprint:
    """Returns the total of a function's allocations in one memory space (None: the default)."""
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
