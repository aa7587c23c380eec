"""Constants: splats as scalars."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.utils.hints import isa


def splat_scalar(op: arith.ConstantOp) -> arith.ConstantOp | None:
    """The scalar constant behind a splat tensor constant, or None if it is not one."""
    value = op.value
    if not isinstance(value, DenseIntOrFPElementsAttr) or not value.is_splat():
        return None
    assert isinstance(op.result.type, TensorType)
    element = op.result.type.get_element_type()
    data = value.get_values()[0]
    if isinstance(element, IntegerType | IndexType):
        assert isinstance(data, int)
        return arith.ConstantOp(IntegerAttr(data, element))
    if isa(element, AnyFloat):
        assert isinstance(data, int | float)
        return arith.ConstantOp(FloatAttr(data, element))
    return None
