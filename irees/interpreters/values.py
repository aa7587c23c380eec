"""
The values of the interpreter.

Scalars are numpy scalars of the exact type. Tensors and vectors are immutable numpy arrays (an op
that updates a tensor copies it first). Memrefs are `MemRef`s. i1 is `bool`; an integer of another
odd width is stored sign-extended in the next wider numpy type, and wrapped after every op.
Uninitialized memory holds a conspicuous pattern.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ShapedType,
    VectorType,
)
from xdsl.ir import Attribute

from irees.dialects import resources
from irees.errors import RuntimeTrap, UnsupportedError


def element_type(kind: Attribute) -> Attribute:
    """The element type of a shaped type, or the type itself."""
    return kind.get_element_type() if isinstance(kind, ShapedType) else kind  # pyright: ignore


def dtype_of(kind: Attribute) -> np.dtype[Any]:
    """The numpy type that holds a value, or an element, of this type."""
    return resources.dtype_of(element_type(kind))


def is_float(kind: Attribute) -> bool:
    """Whether the element type of a type is a float."""
    return not isinstance(element_type(kind), IntegerType) and str(element_type(kind)) != "index"


MAX_BYTES = 1 << 40
"""Maximum bytes of one tensor; more than any machine has."""


def poison(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray:
    """An uninitialized array, filled with NaN or a large odd number. Raises RuntimeTrap."""
    if any(size < 0 for size in shape):
        raise RuntimeTrap(f"negative size in {tuple(int(s) for s in shape)}")
    if prod(int(size) or 1 for size in shape) * dtype.itemsize > MAX_BYTES:
        raise RuntimeTrap(f"no memory for a tensor of {tuple(int(s) for s in shape)}")
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return np.full(shape, np.frombuffer(b"\x5b" * dtype.itemsize, dtype)[0], dtype)
    return np.full(shape, np.nan, dtype)


def constant(value: Attribute) -> Any:
    """The value of a constant attribute."""
    if isinstance(value, IntegerAttr):
        number = value.value.data
        dtype = dtype_of(value.type)
        if dtype.kind == "b":
            return np.bool_(number & 1)
        bits = 8 * dtype.itemsize
        width = value.type.width.data if isinstance(value.type, IntegerType) else 64
        number &= (1 << width) - 1
        if dtype.kind == "i" and number >> (width - 1):
            number -= 1 << width
        assert -(1 << bits) < number < 1 << bits
        return dtype.type(number)
    if isinstance(value, FloatAttr):
        return _float(value.value.data, dtype_of(value.type))
    if isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
        array = resources.constant_array(value)
        element = element_type(value.get_type())
        if isinstance(element, IntegerType) and element.width.data not in (1, 8, 16, 32, 64):
            shift = array.dtype.type(8 * array.itemsize - element.width.data)
            # A splat is one element at all places, however many they are.
            bits = array.flat[0] if resources.is_splat(value) else array
            array = np.broadcast_to((bits << shift) >> shift, array.shape)
        return array
    raise UnsupportedError(f"no value for the constant {value}")


def _float(number: float, dtype: np.dtype[Any]) -> Any:
    if dtype.itemsize == 8:
        return np.float64(number)
    with np.errstate(all="ignore"):
        narrow = np.float32(number)
        return narrow if dtype.itemsize == 4 else narrow.astype(dtype)


@dataclass(slots=True)
class MemRef:
    """A view of memory: the elements, and their allocation."""

    array: np.ndarray
    base: np.ndarray
    """The whole allocation, one-dimensional, of the same element type."""
    offset: int = 0
    """Offset of `array` in the allocation, in elements."""

    @staticmethod
    def of(array: np.ndarray) -> MemRef:
        """A memref of a whole array; shares its memory if it is contiguous."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        return MemRef(array, array.reshape(-1))

    @property
    def strides(self) -> list[int]:
        """Strides in elements."""
        return [s // self.array.itemsize for s in self.array.strides]

    def view(self, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> MemRef:
        """Another view of the allocation. Raises RuntimeTrap if it exceeds the allocation."""
        sizes, strides = [int(s) for s in sizes], [int(s) for s in strides]
        if any(s < 0 for s in sizes):
            raise RuntimeTrap(f"negative size in {sizes}")
        if math.prod(sizes):
            reach = [(n - 1) * s for n, s in zip(sizes, strides, strict=True)]
            first = offset + sum(r for r in reach if r < 0)
            last = offset + sum(r for r in reach if r > 0)
            if first < 0 or last >= self.base.size:
                raise RuntimeTrap(
                    f"view of elements {first} to {last} of an allocation of {self.base.size}"
                )
            start = self.base[offset:]
        else:
            start = self.base[:0]
        item = self.base.itemsize
        array = np.lib.stride_tricks.as_strided(start, sizes, [s * item for s in strides])
        return MemRef(array, self.base, int(offset))


def filled(value: Any, shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray:
    """An array of one value. Raises RuntimeTrap as `poison`."""
    result = poison(shape, dtype)
    result[...] = value
    return result


def shape_from(kind: Attribute, dynamic: Sequence[Any]) -> list[int]:
    """The shape of a type with its dynamic dims filled in order."""
    assert isinstance(kind, ShapedType | VectorType)
    values = iter(dynamic)
    return [int(next(values)) if n == DYNAMIC_INDEX else n for n in kind.get_shape()]


def array_of(value: Any) -> np.ndarray:
    """The elements of a tensor, vector or memref."""
    return value.array if isinstance(value, MemRef) else np.asarray(value)


def is_array(value: Any) -> bool:
    """Whether a value is an array rather than a scalar."""
    return isinstance(value, np.ndarray)
