"""
Tensor maps: the driver's encoding of a tensor for TMA copies in a kernel.

The format is private to the driver, and CuPy has no binding, so the driver is called through
ctypes. Encoding needs no device memory and no synchronization. A launch copies the 128 bytes, so
a graph keeps the maps that it was captured with.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from irees.errors import DeviceError

MOST_DIMS = 5
_LIBRARIES = ("libcuda.so.1", "libcuda.so")
_UNSIGNED = {1: 0, 2: 1, 4: 2, 8: 4}
"""Element bytes => CU_TENSOR_MAP_DATA_TYPE_UINT8 etc.: elements are copied as raw bits."""
_SWIZZLES = {32: 1, 64: 2, 128: 3}
"""Swizzle bytes => CU_TENSOR_MAP_SWIZZLE_32B etc."""
_INTERLEAVE_NONE = _PROMOTION_NONE = _FILL_ZEROS = 0


class TensorStruct(ctypes.Structure):
    """`irees_tensor` of irees.h."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        *((name, ctypes.c_int32) for name in ("rank", "element_bytes", "swizzle_bytes")),
        ("sizes", ctypes.c_int64 * MOST_DIMS),
        ("strides", ctypes.c_int64 * MOST_DIMS),
        ("box", ctypes.c_int32 * MOST_DIMS),
    ]


@cache
def find_driver() -> Any:
    """The library of the CUDA driver. Raises DeviceError when there is none."""
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(
        f"the CUDA driver cannot be loaded: no {_LIBRARIES[0]}",
        hint="install the driver, or compile with target=cuda-emulated",
    )


def encode(address: int, tensor: TensorStruct) -> None:
    """
    Encodes the map of a tensor to a host address, which must be 64-byte aligned.

    Raises DeviceError if the driver has no tensor maps (before CUDA 12) or rejects the tensor.
    """
    try:
        make = find_driver().cuTensorMapEncodeTiled
    except AttributeError:
        raise DeviceError(
            "the CUDA driver makes no tensor maps",
            hint="it must be one for CUDA 12 or later; or compile with "
            "disable_pass=irees-gpu-use-bulk-copies",
        ) from None
    rank = tensor.rank
    status = make(
        ctypes.c_void_p(address),
        ctypes.c_int(_UNSIGNED[tensor.element_bytes]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(tensor.address),
        (ctypes.c_uint64 * rank)(*(max(1, size) for size in tensor.sizes[:rank])),
        (ctypes.c_uint64 * (rank - 1))(*tensor.strides[1:rank]),
        (ctypes.c_uint32 * rank)(*tensor.box[:rank]),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        ctypes.c_int(_INTERLEAVE_NONE),
        ctypes.c_int(_SWIZZLES[tensor.swizzle_bytes]),
        ctypes.c_int(_PROMOTION_NONE),
        ctypes.c_int(_FILL_ZEROS),
    )
    if status:
        sizes = " x ".join(str(size) for size in reversed(tensor.sizes[:rank]))
        raise DeviceError(f"the CUDA driver refuses a tensor map of {sizes}: error {status}")


def driver_error(status: int) -> str:
    """The driver's name of an error, such as `CUDA_ERROR_ILLEGAL_ADDRESS`."""
    name = ctypes.c_char_p()
    try:
        find_driver().cuGetErrorName(ctypes.c_int(status), ctypes.byref(name))
    except (AttributeError, DeviceError):
        pass
    return name.value.decode() if name.value else f"CUDA error {status}"
