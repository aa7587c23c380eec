"""
Bufferizes padding without a copy. Part of `irees-bufferize-dispatch`.

    %f = fill %c; %r = tensor.insert_slice %x into %f[1, 1] [6, 6] [1, 1]
  =>
    %c fills the rows and columns of %r around the slice, and %x is computed in the slice

Filling all of %r and copying %x into it would write the slice twice and read it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, dims, mixed
from irees.transforms.utils.views import subview


def around(
    shape: Sequence[Size], offsets: Sequence[int], sizes: Sequence[Size], b: IndexBuilder
) -> Iterator[tuple[list[Size], list[Size]]]:
    """Yields disjoint boxes (offsets, sizes) that cover a shape except for one box."""
    for dim, (whole, offset, size) in enumerate(zip(shape, offsets, sizes, strict=True)):
        end = b.add(offset, size)
        for start, length in ((0, offset), (end, b.sub(whole, end))):
            extent = [*sizes[:dim], length, *shape[dim + 1 :]]
            if 0 not in extent:
                yield [*offsets[:dim], start, *([0] * (len(shape) - dim - 1))], extent


def inside(op: tensor.InsertSliceOp, target: SSAValue, builder: IndexBuilder) -> SSAValue:
    """Returns the view of the slice, by the sizes of its source."""
    offsets, sizes = op.static_offsets.get_values(), dims(op.source, builder)
    return builder.insert(subview(target, offsets, sizes, [1] * len(sizes))).results[0]


def fill_around(op: tensor.InsertSliceOp, target: SSAValue, builder: IndexBuilder) -> None:
    """Fills the border around the slice."""
    fill = op.dest.owner
    assert isinstance(fill, linalg.GenericOp)
    assert isinstance(target.type, MemRefType)
    rank = target.type.get_num_dims()
    shape = [buffer_dim(target, axis, builder) for axis in range(rank)]
    offsets, sizes = op.static_offsets.get_values(), mixed(op.static_sizes.get_values(), op.sizes)
    for start, extent in around(shape, offsets, sizes, builder):
        slab = builder.insert(subview(target, start, extent, [1] * rank)).results[0]
        builder.insert(
            linalg.GenericOp.create(
                operands=[*fill.inputs, slab],
                properties=dict(fill.properties),
                attributes=dict(fill.attributes),
                regions=[r.clone() for r in fill.regions],
            )
        )
