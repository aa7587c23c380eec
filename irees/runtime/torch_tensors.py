"""
Finds out which torch tensors have elements in memory that a program can read.

Type and layout are not enough: tensors inside of `vmap`, functional tensors, zero tensors and
tensors with freed storage all look plain, dense and on the CPU. But their pointer is 0, or their
storage is smaller than their shape.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from irees.errors import ArgumentError

_plain: tuple[type, ...] = ()


def plain_types() -> tuple[type, ...]:
    """The classes of plain tensors, without additional semantics."""
    global _plain
    torch = sys.modules["torch"]
    _plain = (torch.Tensor, torch.nn.Parameter)
    return _plain


@functools.cache
def _is_plain(kind: type) -> bool:
    """
    Whether tensors of a class have elements as plain tensors do: it may override PyTorch's Python
    functions (`__torch_function__`, as torchvision's images do), but not how operators are run.
    """
    base = sys.modules["torch"].Tensor
    return issubclass(kind, base) and kind.__torch_dispatch__ is base.__torch_dispatch__


def address_of(tensor: Any, label: str, *, dense: bool = False) -> int:
    """
    Returns the address of a tensor's elements, after checking that its storage holds all of them.
    `dense` means that they are known to have no gaps, in any order of dims.

    Raises ArgumentError for a tensor without elements in memory, naming its kind.
    """
    try:
        if type(tensor) in (_plain or plain_types()) or _is_plain(type(tensor)):
            pointer = tensor.data_ptr()
            if pointer or not tensor.numel():
                if dense and tensor.untyped_storage().nbytes() == tensor.nbytes:
                    return pointer
                if _is_inside(tensor):
                    return pointer
    except (RuntimeError, NotImplementedError, ValueError) as error:
        raise refused(tensor, label) from error
    raise refused(tensor, label)


def _is_inside(tensor: Any) -> bool:
    """Whether a tensor's storage holds all elements that its shape and strides address."""
    if not tensor.numel():
        return True
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    last = (tensor.storage_offset() + reach + 1) * tensor.element_size()
    return last <= tensor.untyped_storage().nbytes()


def refused(tensor: Any, label: str) -> ArgumentError:
    """The error for a tensor that a program cannot read, with its kind and a hint."""
    kind, hint = _kind_of(tensor)
    return ArgumentError(f"{label} is {kind}, which has no elements that irees can read", hint=hint)


def _kind_of(tensor: Any) -> tuple[str, str]:
    torch = sys.modules["torch"]
    compiled = 'use torch.compile(backend="irees") to compile the whole program'
    name = type(tensor).__name__
    if name == "FakeTensor":
        return "a FakeTensor", "call the program outside of FakeTensorMode"
    if name.startswith("Uninitialized"):
        return f"an {name}", "run its module once, so that it gets a shape"
    if tensor.layout is not torch.strided and not tensor.is_nested:
        return f"a sparse tensor ({tensor.layout})", "use .to_dense()"
    if tensor.is_nested:
        return "a nested tensor", "use torch.nested.to_padded_tensor"
    if not _is_plain(type(tensor)):
        return f"a {name}, a subclass of Tensor", "use .as_subclass(torch.Tensor)"
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "a tensor inside of vmap, grad or another function transform", compiled
    if torch._is_functional_tensor(tensor):
        return "a functional tensor", compiled
    if tensor.is_meta:
        return "a meta tensor", "make it with a device, as in torch.empty_like(x, device='cpu')"
    if tensor._is_zerotensor():
        return "a tensor of zeros without storage", "use .clone()"
    size = tensor.untyped_storage().nbytes()
    return f"a tensor whose storage has {size} bytes", "its storage was freed or made smaller"
