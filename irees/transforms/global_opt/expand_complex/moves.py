"""Moves of pairs: slices and reshapes. Part of `irees-expand-complex`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Operation, SSAValue

from irees.dialects.irees import ViewPartsOp, shown_parts
from irees.dialects.storage import inserted, is_grouping, is_reshape, is_slice, is_undefined
from irees.transforms.global_opt.utils.complex_parts import pairs
from irees.transforms.utils.reshapes import collapse, expand
from irees.transforms.utils.shapes import mixed, reassociation
from irees.transforms.utils.tensors import TensorBuilder

Move = Callable[[Any, TensorBuilder], SSAValue]
"""Emits the form on pairs of an op that moves complex numbers."""


def move_of(op: Operation) -> Move | None:
    """Returns how an op that moves complex numbers is written on pairs, or None for other ops."""
    if is_slice(op) or inserted(op) is not None:
        return _slice
    if is_grouping(op):
        return _reshape
    if is_undefined(op):
        return _empty
    if isinstance(op, ViewPartsOp) or not is_reshape(op) or len(op.operands) > 1:
        return None
    return _cast


def _slice(op: Any, b: TensorBuilder) -> SSAValue:
    """A slice of numbers, or its insertion  =>  that of both of their parts"""
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


def _reshape(op: Any, b: TensorBuilder) -> SSAValue:
    """A reshape of numbers  =>  of pairs, whose parts are a dim of their own"""
    source, kind = pairs(op.src, b), shown_parts(op.result.type)
    assert isinstance(source.type, TensorType)
    assert isinstance(kind, TensorType)
    ranks = source.type.get_num_dims(), kind.get_num_dims()
    groups = [*reassociation(op), [max(ranks) - 1]]
    if ranks[0] >= ranks[1]:
        return collapse(source, groups, kind, b)
    sizes = [*mixed(op.static_output_shape.get_values(), op.dynamic_output_shape), 2]
    return expand(source, groups, sizes, kind, b)


def _empty(op: Any, b: TensorBuilder) -> SSAValue:
    sizes = mixed(op.tensor.type.get_shape(), op.dynamic_sizes)
    return b.empty(op.tensor.type.element_type.element_type, [*sizes, 2])


def _cast(op: Any, b: TensorBuilder) -> SSAValue:
    return b.cast_tensor(pairs(op.operands[0], b), shown_parts(op.results[0].type))
