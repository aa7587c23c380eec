"""
The stream of a CUDA device that one call works on, and the memory that it takes for that stream.

A call with tensors of PyTorch works on PyTorch's current stream, in PyTorch's memory: what made the
tensors may still be at work there, and what reads the results will be. Every other call works on
CuPy's current stream. Both allocators give memory that was freed on a stream to later work of that
stream only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from irees.runtime.dtypes import torch_dtype


@dataclass(frozen=True)
class Queue:
    """
    `stream` is a cudaStream_t. `home` is the stream that memory is taken for, which is another one
    only while a graph is recorded. `torch` is the module where memory is PyTorch's.
    """

    cupy: Any
    device: int
    stream: int
    home: int
    torch: Any = None

    def memory(self, size: int) -> tuple[int, Any]:
        """The address of as many bytes, and what owns them. Raises what the allocator raises."""
        if self.torch is None:
            block = self.cupy.cuda.alloc(size or 1)
            return block.ptr, block
        tensor = self.torch.empty(size or 1, dtype=self.torch.uint8, device=self.device)
        return tensor.data_ptr(), tensor

    def on(self, stream: int) -> Queue:
        """The same memory, on another stream."""
        return replace(self, stream=stream)

    def array(self, block: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array over a block: a tensor of PyTorch, or an ndarray of CuPy, without a copy."""
        if self.torch is None:
            return self.cupy.ndarray(shape, dtype, block)
        kind = torch_dtype(dtype)
        if 0 in shape:
            return self.torch.empty(shape, dtype=kind, device=self.device)
        return block.view(kind).view(shape)


def queue_of(arguments: Sequence[Any], cupy: Any, device: int) -> Queue:
    """The queue of a call with these arguments on a device."""
    torch = sys.modules.get("torch")
    if torch is not None:
        for value in arguments:
            if isinstance(value, torch.Tensor) and value.is_cuda:
                # What torch.cuda.current_stream reads, without an object for it: PyTorch's own
                # generated code calls it too.
                stream = torch._C._cuda_getCurrentRawStream(device)
                return Queue(cupy, device, stream, stream, torch)
    stream = cupy.cuda.get_current_stream().ptr
    return Queue(cupy, device, stream, stream)
