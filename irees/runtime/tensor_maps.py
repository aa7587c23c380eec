"""
Tensor maps: the driver's encoding of a tensor for TMA copies in a kernel.

The format is private to the driver, and CuPy has no binding, so the runtime library calls the
driver. Encoding needs no device memory and no synchronization. A launch copies the 128 bytes, so
a graph keeps the maps that it was captured with. A thread keeps its last maps: they depend only on
the tensor and the device.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from irees.errors import DeviceError

MOST_DIMS = 5
_LIBRARIES = ("libcuda.so.1", "libcuda.so")


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


def refusal(status: int, tensor: TensorStruct) -> DeviceError:
    """The error for a failed tensor map encoding; status 0: the driver has no tensor maps."""
    if not status:
        return DeviceError(
            "the CUDA driver does not support tensor maps",
            hint="install one for CUDA 12 or later, or compile with "
            "disable_pass=irees-gpu-use-bulk-copies",
        )
    sizes = " x ".join(str(size) for size in reversed(tensor.sizes[: tensor.rank]))
    return DeviceError(f"the CUDA driver rejects a tensor map of {sizes}: error {status}")


def driver_error(status: int) -> str:
    """The driver's name of an error, such as `CUDA_ERROR_ILLEGAL_ADDRESS`."""
    name = ctypes.c_char_p()
    try:
        find_driver().cuGetErrorName(ctypes.c_int(status), ctypes.byref(name))
    except (AttributeError, DeviceError):
        pass
    return name.value.decode() if name.value else f"CUDA error {status}"
