"""
Weights: the bytes behind `dense_resource<key>`, and numpy views of constants.

The IR holds a handle, never bytes. The string of the handle is a `ResourceKey`, a `str` that also
points at its `Blob`; so bytes live exactly as long as the IR that uses them, two modules that use
the same key keep their own bytes, and no table is global. A blob is decoded from the text of the
file when it is first needed, once.
"""

from __future__ import annotations

import binascii
import hashlib
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
}
_FLOAT_CLASSES: dict[type, Any] = {
    Float16Type: np.float16,
    Float32Type: np.float32,
    Float64Type: np.float64,
    BFloat16Type: ml_dtypes.bfloat16,
}


def dtype_of(element_type: Attribute) -> np.dtype:
    """
    The numpy type in which irees holds elements: i1 as bool, other integers in the next size of
    whole bytes, index as 64 bits.
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
    The elements that MLIR stores in `data`: little endian, whole bytes each, where i1 may be one
    bit each. Raises a ParseError if the size does not fit.
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


class Blob:
    """
    The bytes of one resource.

    Made of the hex text of a file (decoded when first asked for), of bytes, or of a numpy array
    that somebody else owns (a parameter of a torch module, say), which is used in place.
    """

    __slots__ = ("_array", "_data", "_digest", "_hex", "alignment", "key")

    def __init__(
        self,
        key: str,
        *,
        hex_text: Any = None,
        data: Any = None,
        array: np.ndarray | None = None,
        alignment: int = 64,
    ):
        self.key = key
        self._hex = hex_text
        self._data = data
        self._array = array
        self._digest: str | None = None
        self.alignment = alignment
        if hex_text is not None:
            self.alignment = self._read_alignment()

    def _read_alignment(self) -> int:
        if len(self._hex) < 8 or len(self._hex) % 2:
            raise ParseError(
                f"resource {self.key!r} must have an alignment in 4 bytes and then whole bytes"
            )
        return int.from_bytes(self._unhex(0, 8), "little")

    def _unhex(self, start: int, stop: int | None) -> bytes:
        try:
            return binascii.unhexlify(self._hex[start:stop])
        except (binascii.Error, ValueError) as error:
            raise ParseError(f"resource {self.key!r} is not hexadecimal") from error

    @classmethod
    def from_array(cls, key: str, array: np.ndarray) -> Blob:
        """A blob that is a view of `array`, without a copy when it is contiguous."""
        return cls(key, array=np.ascontiguousarray(array))

    def bytes(self) -> Any:
        """The payload, as something with the buffer interface; decoded on the first call."""
        if self._array is not None:
            return self._array.reshape(-1).view(np.uint8).data
        if self._data is None:
            self._data = self._unhex(8, None)
            self._hex = None
        return self._data

    def raw(self) -> Any:
        """What identifies the payload at no cost: the hex text where it was not decoded yet."""
        return self._hex if self._hex is not None else self.bytes()

    @property
    def size(self) -> int:
        """How many bytes, without decoding any."""
        if self._array is not None:
            return self._array.nbytes
        return len(self._data) if self._data is not None else (len(self._hex) - 8) // 2

    def array(self, element_type: Attribute, shape: Sequence[int]) -> np.ndarray:
        """
        The payload as a read-only array. Raises a ParseError if it is too short or too long for
        that.
        """
        if self._array is not None:
            dtype = dtype_of(element_type)
            if self._array.nbytes == math.prod(shape) * dtype.itemsize:
                view = self._array.reshape(-1).view(np.uint8).view(dtype).reshape(shape)
                view.flags.writeable = False
                return view
        return decode_elements(self.bytes(), element_type, shape, what=f"resource {self.key!r}")

    def digest(self) -> str:
        """A hash of the bytes."""
        if self._digest is None:
            self._digest = hashlib.blake2b(self.bytes(), digest_size=16).hexdigest()
        return self._digest

    def __repr__(self) -> str:
        return f"<Blob {self.key!r}, {self.size} bytes>"


class ResourceKey(str):
    """
    The name of a resource that also knows its bytes (None if the text had none, as when
    elided).
    """

    __slots__ = ("blob",)
    blob: Blob | None

    def __new__(cls, key: str, blob: Blob | None = None) -> ResourceKey:
        self = super().__new__(cls, key)
        self.blob = blob
        return self

    def __eq__(self, other: object) -> bool:
        if not str.__eq__(self, other) if isinstance(other, str) else True:
            return False
        if not isinstance(other, ResourceKey) or self.blob is other.blob:
            return True
        if self.blob is None or other.blob is None or self.blob.size != other.blob.size:
            return False
        return self.blob.digest() == other.blob.digest()

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __deepcopy__(self, memo: dict) -> ResourceKey:
        return self

    def __reduce__(self):
        raise TypeError("a ResourceKey is not pickled: its bytes would be copied")


def resource_attr(blob: Blob, type_: ShapedType) -> DenseResourceAttr:
    """`dense_resource<key> : type` that holds on to `blob`."""
    return DenseResourceAttr(StringAttr(ResourceKey(blob.key, blob)), type_)


def blob_of(attr: DenseResourceAttr) -> Blob:
    """
    The bytes of a handle: its own, or for a module that xDSL's parser read, those in xDSL's
    storage. Raises a ParseError when there are none.
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
    Whether `dense<...>` has one number for all of its elements, of which there is at least one.

    xDSL's own `is_splat` asks the first element of an empty tensor, too.
    """
    return isinstance(attr, DenseIntOrFPElementsAttr) and bool(attr.data.data) and attr.is_splat()


def constant_array(attr: Attribute) -> np.ndarray:
    """
    The elements of `dense<...>` or `dense_resource<...>` as a read-only array of the attribute's
    shape. A splat is one element in memory, however large the shape.
    """
    if isinstance(attr, DenseResourceAttr):
        return blob_of(attr).array(attr.type.get_element_type(), attr.type.get_shape())
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
    Gives the bytes of all resources of a module to xDSL's own storage, so that its printer, which
    knows no other, writes them out.
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
