"""
Which tensors of torch have elements in memory of this process that a program may read.

A type and a layout say nothing of that: a tensor inside of `vmap`, a functional tensor, one of
zeros and one whose storage was freed are all plain, dense and on the CPU, and their pointer is 0 or
points to less than their shape says.
"""

from __future__ import annotations

import sys
from typing import Any

from irees.errors import ArgumentError

_plain: tuple[type, ...] = ()


def plain_types() -> tuple[type, ...]:
    """The classes of tensors that are their elements and nothing else."""
    global _plain
    torch = sys.modules["torch"]
    _plain = (torch.Tensor, torch.nn.Parameter)
    return _plain


def address_of(tensor: Any, label: str, *, dense: bool = False) -> int:
    """
    Where the elements of a tensor begin, all of which are in its storage. `dense` says that they
    are known to have no gaps, in whatever order their dims are.

    Raises ArgumentError for a tensor without elements in memory, by its kind.
    """
    try:
        if type(tensor) in (_plain or plain_types()):
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
    """Whether the storage of a tensor has all elements that its shape and strides reach."""
    if not tensor.numel():
        return True
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    last = (tensor.storage_offset() + reach + 1) * tensor.element_size()
    return last <= tensor.untyped_storage().nbytes()


def refused(tensor: Any, label: str) -> ArgumentError:
    """The error for a tensor that a program cannot read, with its kind and the way out."""
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
    if type(tensor) not in plain_types():
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
