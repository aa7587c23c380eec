"""Moves of pairs: slices and reshapes. Part of `irees-expand-complex`."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import SSAValue

from irees.dialects.irees import shown_parts
from irees.transforms.global_opt.utils.complex_parts import pairs
from irees.transforms.utils.reshapes import collapse, expand
from irees.transforms.utils.shapes import mixed, reassociation
from irees.transforms.utils.tensors import TensorBuilder


def _slice(op: tensor.ExtractSliceOp | tensor.InsertSliceOp, b: TensorBuilder) -> SSAValue:
    """A slice of numbers  =>  the slice of both of their parts"""
    tensors = [pairs(v, b) for v in op.operands if isinstance(v.type, TensorType)]
    lists = {"static_offsets": 0, "static_sizes": 2, "static_strides": 1}
    new = type(op).build(
        operands=[*tensors, op.offsets, op.sizes, op.strides],
        properties={
            name: DenseArrayBase.from_list(i64, [*getattr(op, name).get_values(), last])
            for name, last in lists.items()
        },
        result_types=[shown_parts(op.results[0].type)],
    )
    return b.insert(new).results[0]


def _reshape(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp, b: TensorBuilder) -> SSAValue:
    """A reshape of numbers  =>  of pairs, whose parts are a dim of their own"""
    source, kind = pairs(op.src, b), shown_parts(op.result.type)
    assert isinstance(source.type, TensorType)
    assert isinstance(kind, TensorType)
    split = isinstance(op, tensor.ExpandShapeOp)
    fine = kind if split else source.type
    groups = [*reassociation(op), [fine.get_num_dims() - 1]]
    if not split:
        return collapse(source, groups, kind, b)
    sizes = [*mixed(op.static_output_shape.get_values(), op.dynamic_output_shape), 2]
    return expand(source, groups, sizes, kind, b)


def _empty(op: tensor.EmptyOp, b: TensorBuilder) -> SSAValue:
    kind = shown_parts(op.tensor.type)
    assert isinstance(kind, TensorType)
    return b.insert(tensor.EmptyOp(op.dynamic_sizes, kind)).results[0]


def _cast(op: tensor.CastOp, b: TensorBuilder) -> SSAValue:
    kind = shown_parts(op.dest.type)
    assert isinstance(kind, TensorType)
    return b.insert(tensor.CastOp(pairs(op.source, b), kind)).results[0]


MOVES: dict[str, Callable[..., SSAValue]] = {
    "tensor.cast": _cast,
    "tensor.collapse_shape": _reshape,
    "tensor.empty": _empty,
    "tensor.expand_shape": _reshape,
    "tensor.extract_slice": _slice,
    "tensor.insert_slice": _slice,
}
"""Op name => its form on pairs."""
