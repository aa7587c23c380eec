"""
Constants in IR: `dense_resource<key>` with its bytes (`irees.blobs`), and numpy views.
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    ShapedType,
    Signedness,
    StringAttr,
)
from xdsl.ir import Attribute, Operation

from irees.blobs import Blob, ResourceKey
from irees.errors import ParseError, UnsupportedError

_FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
_FLOAT_CLASSES: dict[type, Any] = {
    Float16Type: np.float16,
    Float32Type: np.float32,
    Float64Type: np.float64,
    BFloat16Type: ml_dtypes.bfloat16,
}


def dtype_of(element_type: Attribute) -> np.dtype:
    """
    Returns the numpy dtype in which irees stores elements: bool for i1, int64 for index, and the
    smallest sufficient integer dtype otherwise. Raises UnsupportedError for types without one.
    """
    if (known := _FLOAT_CLASSES.get(type(element_type))) is not None:
        return np.dtype(known)
    if isinstance(element_type, IntegerType):
        width = element_type.width.data
        if width == 1:
            return np.dtype(np.bool_)
        size = next((size for size in (8, 16, 32, 64) if width <= size), None)
        if size is not None:
            unsigned = element_type.signedness.data == Signedness.UNSIGNED
            return np.dtype(f"{'u' if unsigned else ''}int{size}")
    if isinstance(element_type, IndexType):
        return np.dtype(np.int64)
    if isinstance(element_type, ComplexType):
        inner = dtype_of(element_type.element_type)
        if inner in (np.float32, np.float64):
            return np.dtype(np.complex64 if inner == np.float32 else np.complex128)
    if (known := _FLOATS.get(str(element_type))) is not None:
        return np.dtype(known)
    raise UnsupportedError(f"elements of type {element_type} have no array form")


def decode_elements(
    data: Any, element_type: Attribute, shape: Sequence[int], *, what: str
) -> np.ndarray:
    """
    Decodes elements as MLIR stores them: little endian, whole bytes each; i1 may be bit-packed.

    Returns a read-only array. Raises ParseError if the size does not fit.
    """
    dtype = dtype_of(element_type)
    count, size = math.prod(shape), len(data)
    if dtype == np.bool_ and size == (count + 7) // 8:
        flat = np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little").astype(
            np.bool_
        )
    elif dtype == np.bool_ and size == count:
        flat = np.frombuffer(data, np.uint8) != 0
    elif dtype != np.bool_ and size == count * dtype.itemsize:
        flat = np.frombuffer(data, dtype)
    else:
        raise ParseError(
            f"{what} has {size} byte(s), but {count} element(s) of {element_type} take "
            f"{count * dtype.itemsize}"
        )
    flat.flags.writeable = False
    return flat.reshape(shape)


def resource_attr(blob: Blob, type_: ShapedType) -> DenseResourceAttr:
    """Returns `dense_resource<key> : type`, which keeps `blob` alive."""
    return DenseResourceAttr(StringAttr(ResourceKey(blob.key, blob)), type_)


def blob_of(attr: DenseResourceAttr) -> Blob:
    """
    Returns the bytes of a resource: its own, or those in xDSL's storage if xDSL's parser read the
    module. Raises ParseError if there are none.
    """
    key = attr.resource_handle.data
    if isinstance(key, ResourceKey):
        if key.blob is not None:
            return key.blob
    else:
        from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
        from xdsl.dialects.builtin import Builtin

        interface = Builtin.get_interface(OpAsmDialectInterface)
        text = interface.lookup(key) if interface is not None else None
        if text:
            return Blob(key, hex_text=memoryview(text[2:].encode("ascii", "replace")))
    raise ParseError(
        f"resource {str(key)!r} has no bytes",
        hint="the text was printed with its resources elided; print it with them",
    )


def is_splat(attr: Attribute) -> TypeGuard[DenseIntOrFPElementsAttr]:
    """
    Whether `dense<...>` is a splat with at least one element.

    xDSL's own `is_splat` reads the first element even if the tensor is empty.
    """
    return isinstance(attr, DenseIntOrFPElementsAttr) and bool(attr.data.data) and attr.is_splat()


def constant_array(attr: Attribute) -> np.ndarray:
    """
    Returns the elements of `dense<...>` or `dense_resource<...>` as a read-only array.

    A splat is a broadcast view of one element.
    """
    if isinstance(attr, DenseResourceAttr):
        blob, type_ = blob_of(attr), attr.type
        what = f"resource {blob.key!r}"
        return decode_elements(blob.bytes(), type_.get_element_type(), type_.get_shape(), what=what)
    if isinstance(attr, DenseIntOrFPElementsAttr):
        element_type, shape = attr.get_element_type(), attr.get_shape()
        data = attr.data.data
        dtype = dtype_of(element_type)
        if dtype == np.bool_:
            flat = np.frombuffer(data, np.uint8) != 0
        elif (
            isinstance(element_type, IntegerType)
            and element_type.compile_time_size != dtype.itemsize
        ):
            flat = np.array(attr.get_values(), dtype)
        else:
            flat = np.frombuffer(data, dtype)
        flat.flags.writeable = False
        return (
            flat.reshape(shape)
            if flat.size == math.prod(shape)
            else np.broadcast_to(flat.reshape(-1)[:1].reshape(()), shape)
        )
    raise UnsupportedError(f"{attr.name} is not a constant with elements")


def publish_resources(module: Operation) -> None:
    """
    Copies the bytes of a module's resources to xDSL's storage, the only place where its printer
    looks for them.
    """
    from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
    from xdsl.dialects.builtin import Builtin

    interface = Builtin.get_interface(OpAsmDialectInterface)
    if interface is None:
        return
    for op in module.walk():
        for attr in (*op.properties.values(), *op.attributes.values()):
            if not isinstance(attr, DenseResourceAttr):
                continue
            key = attr.resource_handle.data
            if isinstance(key, ResourceKey) and key.blob is not None:
                payload = binascii.hexlify(key.blob.bytes()).decode()
                head = key.blob.alignment.to_bytes(4, "little").hex()
                interface._blob_storage[str(key)] = f"0x{head}{payload}"
