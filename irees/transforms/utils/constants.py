"""Conversions of constants: splats to scalars, tensors to arrays and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
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


Make = Callable[[Sequence[np.ndarray], np.ndarray], None]
"""Computes an array from those of the sources, and writes it to the last argument."""


def derived_constant(
    sources: Sequence[arith.ConstantOp], make: Make, kind: TensorType, suffix: str, name: str = ""
) -> arith.ConstantOp:
    """
    Returns a tensor constant computed from others. If one is a resource it is computed when its
    bytes are read. Results with equal names (by default, suffixes) and sources are equal.
    """
    dtype, shape = dtype_of(kind.get_element_type()), tuple(kind.get_shape())
    blobs = [blob_of(s.value) for s in sources if isinstance(s.value, DenseResourceAttr)]
    # A recipe outlives the IR: it refers to types and attributes, not to ops.
    types = [s.value.type for s in sources if isinstance(s.value, DenseResourceAttr)]
    values = [None if isinstance(s.value, DenseResourceAttr) else s.value for s in sources]

    def fill(payloads: Sequence[Any], out: np.ndarray) -> None:
        found = iter([_decoded(*pair) for pair in zip(payloads, types, strict=True)])
        make([next(found) if v is None else constant_array(v) for v in values], out)

    if not blobs:
        array = np.empty(shape, dtype)
        fill([], array)
        return constant_of(array, kind)
    rest = [str(value) for value in values if value is not None]
    name = f"{name or suffix} of {[str(each) for each in types]} {rest}"
    recipe = Recipe(tuple(blobs), fill, dtype, shape, name)
    return arith.ConstantOp(resource_attr(Blob(f"{blobs[0].key}_{suffix}", recipe=recipe), kind))


def _decoded(payload: Any, kind: ShapedType) -> np.ndarray:
    shape = tuple(kind.get_shape())
    return decode_elements(payload, kind.get_element_type(), shape, what="a weight")


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


def constant_number(value: SSAValue) -> float | int | None:
    """Returns a constant, or the constant that is broadcast to all lanes; None if there is none."""
    owner = value.owner
    if isinstance(owner, vector.BroadcastOp):
        owner = owner.operands[0].owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    constant = owner.value
    if isinstance(constant, DenseIntOrFPElementsAttr):
        return constant.get_values()[0] if constant.is_splat() else None
    return constant.value.data if isinstance(constant, IntegerAttr | FloatAttr) else None
