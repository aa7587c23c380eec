"""
Arguments and results: converts Python arrays to pointers, and back.

A contiguous row-major array of the right type is passed without a copy; other arrays of an
accepted dtype are copied first. Arguments that do not fit are rejected before any kernel runs.
"""

from __future__ import annotations

import operator
import os
import struct
import sys
from ctypes import addressof, c_char, memmove
from functools import cache
from math import prod
from typing import Any

import numpy as np

from irees.errors import ArgumentError, OutOfMemoryError
from irees.runtime.alignment import aligned_room
from irees.runtime.dtypes import accepted_dtypes, numpy_dtype, torch_dtypes
from irees.runtime.torch_tensors import address_of, refused
from irees.target import MOST_ELEMENTS, MOST_TOGETHER

_bytes_at = c_char.from_buffer
DEVICE_ALIGNMENT = 16
"""Required alignment of GPU arrays in bytes, the widest access; unaligned arrays are copied."""

SCALAR_BYTES = 16
"""Bytes reserved for a scalar argument or result."""

_FORMATS = {
    **{"bool": "?", "float16": "e", "float32": "f", "float64": "d"},
    **{"int8": "b", "int16": "h", "int32": "i", "int64": "q"},
    **{"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q"},
}


class Scratchpad:
    """Per-call state of argument binding: objects to keep alive, scalar storage, flags."""

    __slots__ = ("address", "device", "keep", "scalars", "torch")

    def __init__(self, arguments: int):
        self.keep: list[Any] = []
        self.scalars = (c_char * (SCALAR_BYTES * max(1, arguments)))()
        self.address = addressof(self.scalars)
        self.torch = False
        self.device = False


class TensorSpec:
    """One array argument or result: its element type and its shape, with None for dynamic dims."""

    is_tensor = True

    def __init__(self, index: int, dtype: str, shape: tuple[int | None, ...], name: str = ""):
        self.index = index
        self.label = f"argument {index}" + (f" ({name!r})" if name else "")
        self.element = dtype
        self.dtype = numpy_dtype(dtype)
        self.accepted = accepted_dtypes(dtype)
        self._torch_accepted: set[Any] = set()
        """Torch dtypes already found to be accepted."""
        self.shape = shape
        self.rank = len(shape)
        self.is_complex = self.dtype.kind == "c"
        self.dynamic = tuple(dim for dim, size in enumerate(shape) if size is None)
        self.static = tuple((dim, size) for dim, size in enumerate(shape) if size is not None)

    def __str__(self) -> str:
        sizes = "".join("?x" if size is None else f"{size}x" for size in self.shape)
        return f"tensor<{sizes}{self.element}>"

    def bind(self, value: Any, pad: Scratchpad) -> tuple[int, tuple[int, ...]]:
        """
        Returns the pointer to the elements of an array, and its shape.

        Raises ArgumentError when type, rank or a static size differ.
        """
        if type(value) is np.ndarray and value.dtype is self.dtype and value.flags.carray:
            shape = value.shape
            try:
                pointer = addressof(_bytes_at(value))
            except (TypeError, ValueError, BufferError):
                pointer = value.__array_interface__["data"][0]
        elif (torch := sys.modules.get("torch")) is not None and isinstance(value, torch.Tensor):
            pad.torch = True
            pointer, shape = self._bind_torch(value, pad)
        else:
            array = self._to_array(value)
            pad.keep.append(array)
            pointer, shape = array.__array_interface__["data"][0], array.shape
        if shape != self.shape:
            self.check_shape(shape)
        return pointer, shape

    def checked(self, value: Any) -> np.ndarray[Any, Any]:
        """
        Returns an argument as a numpy array of native byte order. Raises the errors of `bind`.
        """
        pad = Scratchpad(1)
        self.bind(value, pad)
        return numpy_of(value) if pad.torch or not pad.keep else pad.keep[-1]

    def bind_aligned(self, value: Any, pad: Scratchpad) -> tuple[int, tuple[int, ...]]:
        """Like `bind`, but copies arrays that are not aligned for GPU kernels."""
        pointer, shape = self.bind(value, pad)
        if pointer % DEVICE_ALIGNMENT == 0:
            return pointer, shape
        size = prod(shape) * self.dtype.itemsize
        room = aligned_room(size)
        start = room.ctypes.data
        memmove(start, pointer, size)
        pad.keep.append(room)
        return start, shape

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raises ArgumentError for a shape that does not fit."""
        if len(shape) != self.rank:
            raise ArgumentError(
                f"{self.label} has rank {len(shape)}, but must have rank {self.rank} ({self})"
            )
        for dim, size in self.static:
            if shape[dim] != size:
                raise ArgumentError(
                    f"{self.label} dim {dim} is {shape[dim]}, but must be {size} ({self})"
                )
        for dim in self.dynamic:
            if shape[dim] >= MOST_ELEMENTS:
                raise ArgumentError(
                    f"{self.label} dim {dim} is {shape[dim]}, but must be below {MOST_ELEMENTS}"
                )
        # Zero sizes count as 1: an empty array may have large other dims.
        if len(self.dynamic) > 1 and prod(size or 1 for size in shape) >= MOST_TOGETHER:
            raise ArgumentError(
                f"{self.label} has shape {shape}, but the product of its nonzero sizes must be "
                f"below {MOST_TOGETHER}"
            )

    def _wrong_dtype(self, dtype: Any, conversion: str) -> ArgumentError:
        return ArgumentError(
            f"{self.label} has dtype {dtype}, but must have {self.dtype} ({self})",
            hint=f"convert it with {conversion}",
        )

    def check_torch_dtype(self, tensor: Any) -> None:
        """Raises ArgumentError for a torch tensor of another dtype."""
        if tensor.dtype not in self._torch_accepted:
            if torch_dtypes().get(tensor.dtype) not in self.accepted:
                raise self._wrong_dtype(tensor.dtype, f".to(torch.{self.dtype.name})")
            self._torch_accepted.add(tensor.dtype)

    def _bind_torch(self, tensor: Any, pad: Scratchpad) -> tuple[int, tuple[int, ...]]:
        self.check_torch_dtype(tensor)
        if not tensor.is_cpu and not tensor.is_meta:
            raise ArgumentError(
                f"{self.label} is on {tensor.device}, but the program runs on cpu",
                hint="copy it with .cpu()",
            )
        return self.place_of(tensor, pad)

    def place_of(self, tensor: Any, pad: Scratchpad) -> tuple[int, tuple[int, ...]]:
        """
        Returns the pointer to the elements of a torch tensor on its device, and its shape. A
        tensor that is not contiguous and aligned, or is lazily negated or conjugated, is copied
        first.

        Raises ArgumentError for tensors without memory.
        """
        try:
            dense, shape = tensor.is_contiguous(), tuple(tensor.shape)
        except (RuntimeError, ValueError) as error:  # sparse and nested tensors
            raise refused(tensor, self.label) from error
        pointer = address_of(tensor, self.label, dense=dense)
        odd = pointer % self.dtype.itemsize and tensor.numel()
        turned = tensor.is_neg() or (self.is_complex and tensor.is_conj())
        if odd or turned or not dense:
            if tensor.is_cpu:
                check_copy(tensor.numel() * tensor.element_size(), self.label)
            tensor = tensor.detach().resolve_conj().resolve_neg()
            tensor = tensor.clone(memory_format=sys.modules["torch"].contiguous_format)
            pad.keep.append(tensor)
            pointer = tensor.data_ptr()
        return pointer, shape

    def _to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """The value as a contiguous, aligned array of native byte order, copied if necessary."""
        if isinstance(value, int | float | complex | np.generic) and not self.rank:
            return scalar_array(value, self.dtype, f"{self.label} ({self})")
        array = self._foreign_array(value)
        flags = array.flags
        if array.dtype is self.dtype and flags.c_contiguous and flags.aligned:
            if type(array) is np.ndarray:
                return array
        if isinstance(array, np.ma.MaskedArray):
            raise ArgumentError(f"{self.label} is a masked array", hint="use .filled()")
        if array.dtype.kind == "V" and array.dtype.itemsize == self.dtype.itemsize:
            # numpy.save stores dtypes that it does not know as void.
            array = array.view(self.dtype) if array.dtype.names is None else array
        if not array.dtype.isnative:
            check_copy(array.size * array.dtype.itemsize, self.label)
            array = array.astype(array.dtype.newbyteorder("="))
        if array.dtype not in self.accepted:
            raise self._wrong_dtype(array.dtype, f".astype({self.dtype.name!r})")
        check_copy(array.size * array.dtype.itemsize, self.label)
        dense = np.asarray(array, order="C")
        return dense if dense.flags.aligned and dense.flags.c_contiguous else dense.copy("C")

    def _foreign_array(self, value: Any) -> np.ndarray[Any, Any]:
        if isinstance(value, np.ndarray):
            return value
        if hasattr(value, "__cuda_array_interface__"):
            raise ArgumentError(f"{self.label} is on a GPU, but the program runs on cpu")
        try:
            if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
                return np.asarray(value)
            if hasattr(value, "__dlpack__"):
                return np.from_dlpack(value)
            return np.asarray(memoryview(value))
        except Exception as error:
            kind = type(value).__name__
            raise ArgumentError(
                f"{self.label} is a {kind}, but must be an array ({self})",
                hint="convert it with numpy.asarray",
            ) from error


def check_copy(size: int, label: str) -> None:
    """
    Raises OutOfMemoryError when a contiguous copy of `size` bytes exceeds physical memory.

    A view with stride 0 may be arbitrarily large, and the OS may overcommit memory.
    """
    if size > physical_memory():
        raise OutOfMemoryError(
            f"{label} is a view with gaps or repeated elements; a dense copy takes {size} bytes, "
            f"but this machine has {physical_memory()}"
        )


@cache
def physical_memory() -> int:
    """Bytes of physical memory; `sys.maxsize` if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize


def numpy_of(value: Any) -> np.ndarray[Any, Any]:
    """A numpy or torch array as a numpy array, without a copy if it is contiguous."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return np.asarray(value)
    plain = value.detach().resolve_conj().resolve_neg().contiguous()
    dtype = torch_dtypes().get(plain.dtype)
    if dtype is None or dtype.isbuiltin == 1:
        return plain.numpy()
    return plain.view(getattr(torch, f"int{8 * dtype.itemsize}")).numpy().view(dtype)


class ScalarSpec:
    """One scalar argument or result."""

    is_tensor = False
    dynamic = ()
    shape: tuple[int | None, ...] = ()

    def __init__(self, index: int, dtype: str, name: str = ""):
        self.index = index
        self.label = f"argument {index}" + (f" ({name!r})" if name else "")
        self.element = dtype
        self.dtype = numpy_dtype(dtype)
        layout = _FORMATS.get(self.dtype.name)
        self._layout = None if layout is None else struct.Struct("=" + layout)
        self._is_integer = not self.dtype.name.startswith("float")

    def __str__(self) -> str:
        return self.element

    def bind(self, value: Any, pad: Scratchpad) -> tuple[int, tuple[int, ...]]:
        """Stores a number in the scratchpad. Raises ArgumentError when it is none or too big."""
        if not isinstance(value, int | float | complex):
            torch = sys.modules.get("torch")
            single = getattr(value, "shape", None) in ((), (1,))
            if torch is not None and isinstance(value, torch.Tensor):
                pad.torch = True
            if not hasattr(value, "item") or not single:
                raise ArgumentError(
                    f"{self.label} is a {type(value).__name__}, but must be one {self.element}"
                )
            value = self._item(value)
        begin = SCALAR_BYTES * self.index
        if self._layout is None:
            array = scalar_array(value, self.dtype, f"{self.label} ({self})")
            pad.scalars[begin : begin + self.dtype.itemsize] = array.tobytes()
            return pad.address + begin, ()
        try:
            number = operator.index(value) if self._is_integer else float(value)
            self._layout.pack_into(pad.scalars, begin, number)
        except (TypeError, ValueError):
            raise ArgumentError(f"{self.label} is {value!r}, but must be {self.element}") from None
        except (OverflowError, struct.error):
            raise ArgumentError(
                f"{self.label} is {value!r}, which does not fit in {self.element}"
            ) from None
        return pad.address + begin, ()

    def _item(self, value: Any) -> Any:
        try:
            return value.item()
        except Exception as error:
            torch = sys.modules.get("torch")
            if torch is not None and isinstance(value, torch.Tensor):
                raise refused(value, self.label) from error
            raise ArgumentError(f"{self.label} has no value: {error}") from error

    def checked(self, value: Any) -> Any:
        """Returns an argument as a numpy scalar. Raises the errors of `bind`."""
        pad = Scratchpad(self.index + 1)
        self.bind(value, pad)
        return np.frombuffer(pad.scalars, self.dtype, 1, SCALAR_BYTES * self.index)[0]

    def read(self, memory: Any, begin: int) -> Any:
        """Reads a scalar result."""
        if self._layout is not None:
            return self._layout.unpack_from(memory, begin)[0]
        return np.frombuffer(memory, self.dtype, 1, begin)[0].item()


def scalar_array(value: Any, dtype: np.dtype[Any], label: str) -> np.ndarray[Any, Any]:
    """
    A number as an array of rank 0.

    Raises ArgumentError when the type cannot hold it: a float in an integer, a size too big.
    """
    if isinstance(value, np.generic):
        value = value.item()
    # Compares names, because ml_dtypes integers do not have an integer kind in numpy.
    is_integer = dtype.name.startswith(("bool", "int", "uint"))
    try:
        if is_integer:
            number = operator.index(value)
            array = np.array(number).astype(dtype)
            if int(array) != number:
                raise OverflowError
            return array
        number = complex(value) if dtype.kind == "c" else float(value)
        with np.errstate(over="ignore"):
            array = np.array(number).astype(dtype)
        if np.isfinite(number) and not np.isfinite(array):
            raise OverflowError
        return array
    except (TypeError, ValueError):
        raise ArgumentError(f"{label} is {value!r}, but must be {dtype.name}") from None
    except OverflowError:
        raise ArgumentError(f"{label} is {value!r}, which does not fit in {dtype.name}") from None


def zeros_or_random(spec: TensorSpec | ScalarSpec, random: np.random.Generator) -> Any:
    """A default value for an argument. Raises ArgumentError for a dynamic shape."""
    if isinstance(spec, ScalarSpec):
        return 0
    if spec.dynamic:
        raise ArgumentError(f"{spec.label} is {spec}: its size is dynamic", hint="use --input=")
    shape = tuple(size for _, size in spec.static)
    if spec.dtype.kind in "biu" or spec.dtype.name.startswith(("int", "uint")):
        return np.zeros(shape, spec.dtype)
    return random.standard_normal(shape).astype(spec.dtype)


def refuse_overlap(value: Any, label: str) -> None:
    """Raises ArgumentError if elements of an array may share memory (an expanded tensor)."""
    if isinstance(value, np.ndarray):
        strides, extent = value.strides, value.itemsize
    else:
        strides, extent = value.stride(), 1
    if 0 in value.shape:
        return
    for step, count in sorted((abs(s), n) for n, s in zip(value.shape, strides, strict=True)):
        if count > 1 and step < extent:
            raise ArgumentError(
                f"{label} is written to by the program, but some of its elements share memory",
                hint="pass a copy",
            )
        extent += (count - 1) * step
