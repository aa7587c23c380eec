"""
The CUDA stream of one call, and the allocator for memory on it.

A call with PyTorch tensors uses PyTorch's current stream and allocator: the tensors' producers may
still run on that stream, and the consumers of the results will. All other calls use CuPy's current
stream. Both allocators are stream-ordered: memory freed on a stream is reused on that stream only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from irees.runtime.dtypes import torch_dtype


@dataclass(frozen=True)
class Queue:
    """
    `stream` is a cudaStream_t. `home` is the stream that memory is allocated for; it differs from
    `stream` only during graph capture. `torch` is the module if memory comes from PyTorch.
    """

    cupy: Any
    device: int
    stream: int
    home: int
    torch: Any = None

    def memory(self, size: int) -> tuple[int, Any]:
        """Allocates `size` bytes; returns address and owner. Raises the allocator's errors."""
        if self.torch is None:
            block = self.cupy.cuda.alloc(size or 1)
            return block.ptr, block
        tensor = self.torch.empty(size or 1, dtype=self.torch.uint8, device=self.device)
        return tensor.data_ptr(), tensor

    def on(self, stream: int) -> Queue:
        """A queue with the same allocator on another stream."""
        return replace(self, stream=stream)

    def array(self, block: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """Wraps a block as a PyTorch tensor or a CuPy ndarray, without a copy."""
        if self.torch is None:
            return self.cupy.ndarray(shape, dtype, block)
        kind = torch_dtype(dtype)
        if 0 in shape:
            return self.torch.empty(shape, dtype=kind, device=self.device)
        return block.view(kind).view(shape)


def stream_of(torch: Any, device: int) -> int:
    """PyTorch's current stream of a device."""
    try:
        # Creates no object; Inductor's generated code calls it, too.
        return torch._C._cuda_getCurrentRawStream(device)
    except AttributeError:
        return torch.cuda.current_stream(device).cuda_stream


def maker(torch: Any, device: int) -> Callable[[Any, Any, Any], Any]:
    """Returns a function that makes a PyTorch tensor on a device: (shape, strides, dtype)."""
    quick = _quick_maker(torch)

    def make(shape: Any, strides: Any, dtype: Any) -> Any:
        if quick is not None:
            made = quick(shape, strides, dtype)
            # The tensor was made on the current device.
            if made.get_device() == device:
                return made
        return torch.empty(shape, dtype=dtype, device=device)

    return make


def _quick_maker(torch: Any) -> Callable[[Any, Any, Any], Any] | None:
    """The allocation function of Inductor's generated code, if it exists and passes a test."""
    try:
        quick = torch._C._dynamo.guards._empty_strided_cuda
        made = quick((2, 3), (3, 1), torch.float16)
        found = (type(made), made.is_cuda, tuple(made.shape), made.stride(), made.dtype)
    except Exception:
        return None
    return quick if found == (torch.Tensor, True, (2, 3), (3, 1), torch.float16) else None


def device_of(arguments: Sequence[Any]) -> int | None:
    """The device number of the first PyTorch tensor on a CUDA device; None without one."""
    torch = sys.modules.get("torch")
    if torch is not None:
        for value in arguments:
            if isinstance(value, torch.Tensor) and value.is_cuda:
                return value.get_device()
    return None


def queue_of(arguments: Sequence[Any], cupy: Any, device: int) -> Queue:
    """The queue of a call with these arguments on a device."""
    if device_of(arguments) is not None:
        torch = sys.modules["torch"]
        stream = stream_of(torch, device)
        return Queue(cupy, device, stream, stream, torch)
    stream = cupy.cuda.get_current_stream().ptr
    return Queue(cupy, device, stream, stream)
