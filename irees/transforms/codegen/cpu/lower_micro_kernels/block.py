"""A micro-kernel with its constants folded. Part of `irees-lower-micro-kernels`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from irees.dialects.panel import MicroKernelOp, element_of
from irees.dialects.sizes import Size, folded
from irees.transforms.utils.lanes import lane_bytes


@dataclass(frozen=True)
class Block:
    """A `panel.micro_kernel`, its constants as ints."""

    op: MicroKernelOp
    trips: list[Size]
    a_steps: list[Size]
    b_steps: list[Size]
    apart: Size

    @staticmethod
    def of(op: MicroKernelOp) -> Block:
        """Returns the op with its constants folded."""
        each = (list(map(folded, values)) for values in (op.trips, op.a_steps, op.b_steps))
        return Block(op, *each, folded(op.apart))

    @property
    def kind(self) -> VectorType[Attribute]:
        """The type of one vector of C."""
        kind = self.op.accs[0].type
        assert isinstance(kind, VectorType)
        return kind

    @property
    def lanes(self) -> int:
        """Columns in a vector."""
        return self.kind.get_shape()[0]

    @property
    def group(self) -> int:
        """Elements of K in one step."""
        return self.op.group.value.data

    @property
    def steps(self) -> int | None:
        """Steps of K, if static."""
        known = [trip for trip in self.trips if isinstance(trip, int)]
        return prod(known) if len(known) == len(self.trips) else None

    @property
    def panel_bytes(self) -> int:
        """Bytes of an element in a panel."""
        dot = self.group > 1
        return lane_bytes(element_of(self.op.b) if dot else self.kind.element_type)
