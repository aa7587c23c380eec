"""Tensors of complex numbers as pairs of their parts."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ComplexType,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    TensorType,
)
from xdsl.ir import SSAValue

from irees.dialects.irees import ViewPartsOp, shown_parts
from irees.dialects.resources import is_splat
from irees.transforms.utils.tensors import TensorBuilder


def is_complex(value: SSAValue) -> bool:
    """Whether a scalar is a complex number."""
    return isinstance(value.type, ComplexType)


def holds_complex(value: SSAValue) -> bool:
    """Whether a value is a tensor of complex numbers that pairs can show."""
    kind = value.type
    return isinstance(kind, TensorType) and isinstance(kind.element_type, ComplexType)


def pairs(value: SSAValue, b: TensorBuilder) -> SSAValue:
    """Returns a tensor of complex numbers as pairs."""
    owner = value.owner
    if isinstance(owner, ViewPartsOp):
        return owner.source
    if isinstance(owner, arith.ConstantOp) and (new := _constant(owner)) is not None:
        return b.insert(new).results[0]
    return b.insert(ViewPartsOp(value)).results[0]


def _constant(op: arith.ConstantOp) -> arith.ConstantOp | None:
    """constant : complex numbers  =>  constant : pairs"""
    kind = shown_parts(op.result.type)
    assert isinstance(kind, TensorType)
    if isinstance(op.value, DenseResourceAttr):
        return arith.ConstantOp(DenseResourceAttr(op.value.resource_handle, kind))
    if isinstance(op.value, DenseIntOrFPElementsAttr) and not is_splat(op.value):
        return arith.ConstantOp(DenseIntOrFPElementsAttr(kind, op.value.data))
    return None
