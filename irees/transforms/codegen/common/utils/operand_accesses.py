"""
Reads and writes the operands of a structured op on buffers, one element or a vector at a time.

The CPU's vector nests and the GPU's thread code build their loops around it.
"""

from __future__ import annotations

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from irees.analysis.affine_steps import linear_form
from irees.transforms.utils.lanes import Kind, Lane, load_steps
from irees.transforms.utils.reshapes import collapse
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import affine_value, iterators, maps


def joined_rows(buffer: SSAValue, at: IndexBuilder, dim: int | None = None) -> SSAValue:
    """memref<..xNxBx..>  =>  memref<..x(N * B)x..>, for rows without gaps; by default the last"""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    shape = list(kind.get_shape())
    first = len(shape) - 2 if dim is None else dim
    size, count = shape[first : first + 2]
    shape[first : first + 2] = [size * count if size >= 0 else size]
    layout = kind.layout
    if isinstance(layout, StridedLayoutAttr):
        strides = list(layout.strides)
        layout = StridedLayoutAttr([*strides[:first], *strides[first + 1 :]], layout.offset)
    groups = [[d if d < first else d + 1] for d in range(len(shape))]
    groups[first] = [first, first + 1]
    return collapse(
        buffer, groups, MemRefType(kind.element_type, shape, layout, kind.memory_space), at
    )


class OperandAccesses:
    """The accesses of one op: its indexing maps, iterator types and body."""

    def __init__(self, op: linalg.GenericOp):
        self.op = op
        self.maps = maps(op)
        self.kinds = iterators(op)
        self.block = op.body.block
        self.inputs = len(op.inputs)

    def indices(self, position: int, ivs: dict[int, Size], at: IndexBuilder) -> list[SSAValue]:
        """Returns the indices at which an iteration accesses an operand."""
        dims = [ivs.get(i, 0) for i in range(len(self.kinds))]
        return [at.value(affine_value(e, dims, at)) for e in self.maps[position].results]

    def moves(self, position: int, axis: int) -> bool:
        """Whether the accesses to an operand depend on a loop."""
        return any(axis in e.used_dims() for e in self.maps[position].results)

    def read(
        self, position: int, ivs: dict[int, Size], at: IndexBuilder, lanes: int, axis: int | None
    ) -> Lane:
        """Loads an operand for one iteration, or for `lanes` iterations along an axis."""
        operand = self.op.operands[position]
        if not isinstance(operand.type, MemRefType):
            return Lane(operand, Kind.UNIFORM)
        places = self.indices(position, ivs, at)
        if lanes > 1 and axis is not None and self.moves(position, axis):
            *outer, last = self.maps[position].results
            count = 1
            if axis not in last.used_dims():
                # The loop of vectors counts rows of a few elements.
                last, count = outer[-1], operand.type.get_shape()[-1]
                operand = joined_rows(operand, at)
                row = at.value(at.add(at.mul(places[-2], count), places[-1]))
                places = [*places[:-2], row]
            form = linear_form(last)
            assert form is not None
            return Lane(load_steps(operand, places, count * form[0][axis], lanes, at), Kind.VECTOR)
        return Lane(at.insert(memref.LoadOp.get(operand, places)).results[0], Kind.UNIFORM)

    def write(self, number: int, value: SSAValue, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Stores a result of one iteration, or a vector of results that starts there."""
        target = self.op.operands[self.inputs + number]
        places = self.indices(self.inputs + number, ivs, at)
        if value.type == target.type.element_type:  # type: ignore[attr-defined]
            at.insert(memref.StoreOp.get(value, target, places))
        else:
            at.insert(vector.StoreOp(value, target, places))
