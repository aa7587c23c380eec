"""Widens elements of a contraction's operands: bf16 to f32, i8 to i32."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, SSAValue

from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.shapes import IndexBuilder


def widened(value: SSAValue, element: Attribute, at: IndexBuilder, *, unsigned: bool) -> SSAValue:
    """Returns a scalar or vector with its elements cast to a wider type, or to their own."""
    kind = value.type
    narrow = kind.element_type if isinstance(kind, VectorType) else kind
    if narrow == element:
        return value
    wide = vector_of(element, kind.get_shape()[0]) if isinstance(kind, VectorType) else element
    cast = arith.ExtFOp
    if isinstance(element, IntegerType):
        cast = arith.ExtUIOp if unsigned else arith.ExtSIOp
    return at.insert(cast(value, wide)).results[0]
