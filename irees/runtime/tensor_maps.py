"""
Tensor maps: what a kernel that copies boxes is told of a tensor, as the GPU's driver encodes it.

The format is the driver's own, so it is asked through ctypes: CuPy has no name for it. It needs no
memory of the device and waits for nothing; a launch copies the 128 bytes, so that a graph
keeps what it was recorded with.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from irees.errors import DeviceError

MOST_DIMS = 5
_LIBRARIES = ("libcuda.so.1", "libcuda.so")
_UNSIGNED = {1: 0, 2: 1, 4: 2, 8: 4}
"""CU_TENSOR_MAP_DATA_TYPE_UINT8 and its like, by bytes: elements are moved as they are."""
_SWIZZLES = {32: 1, 64: 2, 128: 3}
"""CU_TENSOR_MAP_SWIZZLE_32B and its like."""
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
    Writes the map of a tensor to an address of the host that is a multiple of 64.

    Raises DeviceError where the driver has no such maps (before CUDA 12), or refuses.
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
    """What the driver calls an error: `CUDA_ERROR_ILLEGAL_ADDRESS`."""
    name = ctypes.c_char_p()
    try:
        find_driver().cuGetErrorName(ctypes.c_int(status), ctypes.byref(name))
    except (AttributeError, DeviceError):
        pass
    return name.value.decode() if name.value else f"CUDA error {status}"
