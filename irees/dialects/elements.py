"""Constant tensors as numpy arrays, whatever attribute holds them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    ShapedType,
)
from xdsl.ir import Attribute

from irees.errors import UnsupportedError

_FLOATS: dict[type[Attribute], np.dtype] = {
    Float16Type: np.dtype("f2"),
    BFloat16Type: np.dtype(ml_dtypes.bfloat16),
    Float32Type: np.dtype("f4"),
    Float64Type: np.dtype("f8"),
}


def numpy_dtype(kind: Attribute) -> np.dtype:
    """The numpy dtype of an element type. Raises UnsupportedError when there is none."""
    if type(kind) in _FLOATS:
        return _FLOATS[type(kind)]
    if isinstance(kind, IndexType):
        return np.dtype("i8")
    if isinstance(kind, IntegerType):
        width = kind.width.data
        if width == 1:
            return np.dtype(bool)
        if width in (8, 16, 32, 64):
            letter = "u" if str(kind).startswith("ui") else "i"
            return np.dtype(f"{letter}{width // 8}")
    raise UnsupportedError(f"no arrays of {kind}")


def dense_array(value: DenseIntOrFPElementsAttr | DenseResourceAttr) -> np.ndarray:
    """The elements of a `dense<...>` or `dense_resource<...>` attribute, C-contiguous."""
    kind = value.get_type()
    assert isinstance(kind, ShapedType)
    shape = kind.get_shape()
    element = kind.get_element_type()  # pyright: ignore
    if isinstance(value, DenseResourceAttr):
        from irees.dialects.resources import blob_of

        return blob_of(value).array(element, shape)
    dtype = numpy_dtype(element)
    if value.is_splat():
        return np.full(shape, np.array(value.get_values()[0]).astype(dtype), dtype)
    return np.array(value.get_values()).astype(dtype).reshape(shape)
