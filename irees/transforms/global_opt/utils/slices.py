"""Reshapes that split a dim of a tensor into slices, and merge it again."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import SSAValue

from irees.transforms.utils.shapes import reassociation_attr
from irees.transforms.utils.tensors import TensorBuilder


def cut(value: SSAValue, axis: int, count: int, b: TensorBuilder) -> SSAValue:
    """tensor<..n..>  =>  tensor<..count x n/count..>, by splitting dim `axis`"""
    assert isinstance(value.type, TensorType)
    shape = list(value.type.get_shape())
    longer = [*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]]
    groups = [[d + (d > axis)] if d != axis else [d, d + 1] for d in range(len(shape))]
    op = tensor.ExpandShapeOp.build(
        operands=[value, []],
        properties={
            "reassociation": reassociation_attr(groups),
            "static_output_shape": DenseArrayBase.from_list(i64, longer),
        },
        result_types=[TensorType(value.type.element_type, longer)],
    )
    return b.insert(op).results[0]


def join(value: SSAValue, axis: int, b: TensorBuilder) -> SSAValue:
    """The inverse of `cut`: merges dim `axis` with the next one."""
    assert isinstance(value.type, TensorType)
    shape = list(value.type.get_shape())
    shorter = [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]]
    groups = [[d + (d > axis)] if d != axis else [d, d + 1] for d in range(len(shorter))]
    op = tensor.CollapseShapeOp.build(
        operands=[value],
        properties={"reassociation": reassociation_attr(groups)},
        result_types=[TensorType(value.type.element_type, shorter)],
    )
    return b.insert(op).results[0]
