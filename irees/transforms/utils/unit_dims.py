"""Collapses unit dims of tensors, and expands them again."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, SSAValue

from irees.transforms.utils.shapes import IndexBuilder, Size, dims, reassociation_attr, split


def groups_of_kept(rank: int, kept: Sequence[int]) -> list[list[int]]:
    """Returns the reassociation that drops dims: each kept dim absorbs the dropped after it."""
    groups: list[list[int]] = []
    for position, dim in enumerate(kept):
        start = 0 if position == 0 else dim
        end = kept[position + 1] if position + 1 < len(kept) else rank
        groups.append(list(range(start, end)))
    return groups


def collapse(value: SSAValue, kept: Sequence[int], builder: IndexBuilder) -> SSAValue:
    """Drops the unit dims of a value that are not in `kept`."""
    kind = value.type
    assert isinstance(kind, TensorType)
    shape = kind.get_shape()
    if len(kept) == len(shape):
        return value
    result = TensorType(kind.get_element_type(), [shape[d] for d in kept])
    op = tensor.CollapseShapeOp.build(
        operands=[value],
        properties={"reassociation": reassociation_attr(groups_of_kept(len(shape), kept))},
        result_types=[result],
    )
    return builder.insert(op).results[0]


def expand(
    value: SSAValue, kind: Attribute, kept: Sequence[int], builder: IndexBuilder
) -> SSAValue:
    """Adds unit dims to a value, to type `kind`; its own dims become the dims `kept`."""
    assert isinstance(kind, TensorType)
    shape = kind.get_shape()
    if len(kept) == len(shape):
        return value
    sizes: list[Size] = [1] * len(shape)
    for dim, size in zip(kept, dims(value, builder), strict=True):
        sizes[dim] = size
    static, dynamic = split(sizes)
    static = [s if shape[i] >= 0 else -(1 << 63) for i, s in enumerate(static)]
    dynamic = [builder.value(s) for i, s in enumerate(sizes) if shape[i] < 0]
    op = tensor.ExpandShapeOp.build(
        operands=[value, dynamic],
        properties={
            "reassociation": reassociation_attr(groups_of_kept(len(shape), kept)),
            "static_output_shape": DenseArrayBase.from_list(i64, static),
        },
        result_types=[kind],
    )
    return builder.insert(op).results[0]
