"""
Memory that the allocations of a kernel need, by memory space.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation

from irees.dialects.storage import is_allocation, is_on_stack
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


def shared_memory(kernel: Operation) -> Footprint:
    """Returns the total of the allocations in the shared memory of workgroups."""
    return _total(op for op in kernel.walk() if not is_on_stack(op) and _space(op) == "workgroup")


def stack(kernel: Operation) -> Footprint:
    """Returns the total of the allocations on the stack."""
    return _total(op for op in kernel.walk() if is_on_stack(op) and _space(op) is None)


def _space(op: Operation) -> str | None:
    """Returns the memory space of the buffer that an op allocates; None is the default."""
    if not is_allocation(op):
        return None
    kind = op.results[0].type
    assert isinstance(kind, MemRefType)
    return getattr(getattr(kind.memory_space, "data", None), "value", None)


def _total(allocations: Iterable[Operation]) -> Footprint:
    total = Footprint()
    for op in allocations:
        kind = op.results[0].type
        assert isinstance(kind, MemRefType)
        total.add(op, kind)
    return total
