"""Conversions of constants: splats to scalars, tensors to arrays and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from irees.analysis.element_sizes import item_bytes
from irees.blobs import Blob, Recipe
from irees.dialects.resources import (
    blob_of,
    constant_array,
    decode_elements,
    dtype_of,
    is_splat,
    resource_attr,
)


def splat_scalar(op: arith.ConstantOp) -> arith.ConstantOp | None:
    """Returns the scalar constant of a splat tensor constant, or None for other constants."""
    value = op.value
    if not is_splat(value):
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


LARGE_SPLAT = 1 << 24
"""Maximum size, in bytes, of splats that passes expand to arrays (stored: one element)."""


def is_large_splat(op: arith.ConstantOp) -> bool:
    """Whether a constant is a splat whose expanded size exceeds `LARGE_SPLAT`."""
    kind = op.result.type
    if not isinstance(kind, TensorType) or not is_splat(op.value):
        return False
    return prod(kind.get_shape()) * item_bytes(kind.element_type) > LARGE_SPLAT


def array_of(op: arith.ConstantOp) -> np.ndarray | int | float:
    """Returns the value of a constant: an array for a tensor, a number for a scalar."""
    value = op.value
    if isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
        return constant_array(value)
    return value.value.data


def constant_of(array: np.ndarray, kind: TensorType, key: str | None = None) -> arith.ConstantOp:
    """Returns a tensor constant of an array; its bytes are stored outside the IR."""
    blob = Blob.from_array(key or "", array)
    if key is None:
        blob.key = f"folded_{blob.digest()}"
    return arith.ConstantOp(resource_attr(blob, kind))


def derived_constant(
    source: arith.ConstantOp,
    make: Callable[[np.ndarray, np.ndarray], None],
    kind: TensorType,
    suffix: str,
) -> arith.ConstantOp:
    """
    Returns a tensor constant computed from another one: `make` gets its array, and the array that
    it fills. A resource is only computed when its bytes are read; its name gets the suffix.
    """
    dtype, shape, value = dtype_of(kind.get_element_type()), kind.get_shape(), source.value
    if not isinstance(value, DenseResourceAttr):
        array = np.empty(shape, dtype)
        known = array_of(source)
        assert isinstance(known, np.ndarray)
        make(known, array)
        return constant_of(array, kind)
    blob, type_ = blob_of(value), value.type
    given, element = tuple(type_.get_shape()), type_.get_element_type()
    what = f"resource {blob.key!r}"
    # Recipes outlive the IR: this one refers to types, and not to ops.

    def fill(payloads: Sequence[Any], out: np.ndarray) -> None:
        make(decode_elements(payloads[0], element, given, what=what), out)

    recipe = Recipe((blob,), fill, dtype, tuple(shape))
    return arith.ConstantOp(resource_attr(Blob(f"{blob.key}_{suffix}", recipe=recipe), kind))


def take_in_constants(block: Block) -> None:
    """Clones the constants that a block uses into it, so that none becomes an argument."""
    copies: dict[SSAValue, SSAValue] = {}
    for op in list(block.walk()):
        for number, operand in enumerate(op.operands):
            owner = operand.owner
            if not isinstance(owner, arith.ConstantOp) or block.is_ancestor(owner):
                continue
            if operand not in copies:
                first = block.first_op
                assert first is not None
                copy = owner.clone()
                Rewriter.insert_op(copy, InsertPoint.before(first))
                copies[operand] = copy.result
            op.operands[number] = copies[operand]
