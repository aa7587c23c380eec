"""
Exports programs that differentiate: `torch.func.grad`, `jvp`, `vjp`, `jacrev`, `hessian`.

`torch.export` records the steps of these transforms as calls (`_make_dual`, `_unwrap_for_grad`),
which nothing can run afterwards. Below autograd it records the operators that they compute instead:

    with undifferentiated():
        torch.export.export(module, args)            # raises Differentiates
    export_derivatives(module, args, kwargs, shapes)

Composite operators are decomposed there, so other programs are exported above autograd.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any
from unittest.mock import patch

import torch
from torch._functorch import eager_transforms
from torch.autograd import forward_ad
from torch.export import _trace
from torch.utils._pytree import tree_leaves, tree_map


class Differentiates(Exception):
    """A program calls a transform that differentiates."""


@contextlib.contextmanager
def undifferentiated() -> Generator[None]:
    """Makes the transforms that differentiate raise Differentiates."""

    def refuse() -> Any:
        raise Differentiates

    with (
        patch.object(eager_transforms, "grad_increment_nesting", refuse),
        patch.object(eager_transforms, "jvp_increment_nesting", refuse),
    ):
        yield


def export_derivatives(module: Any, args: tuple, kwargs: dict, dynamic_shapes: Any) -> Any:
    """Exports below autograd, where a derivative is the operators that compute it."""
    with with_gradients(module):
        return _trace._export(
            module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False, pre_dispatch=False
        )


@contextlib.contextmanager
def with_gradients(module: Any) -> Generator[None]:
    """Turns gradients on in calls of a module, as in eager: PyTorch exports without them."""
    before: list[bool] = []

    def begin(*_: Any) -> None:
        before.append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(True)

    def end(_: Any, args: Any, kwargs: Any, result: Any) -> Any:
        torch._C._set_grad_enabled(before.pop())
        # PyTorch counts results that need gradients twice, and what is written to.
        for value in tree_leaves((args, kwargs, list(module.buffers()))):
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                value.detach_()
        return tree_map(_detached, result)

    hooks = [
        module.register_forward_pre_hook(begin, prepend=True),
        module.register_forward_hook(end, always_call=True, with_kwargs=True),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _detached(value: Any) -> Any:
    is_computed = isinstance(value, torch.Tensor) and value.grad_fn is not None
    return value.detach() if is_computed else value


@contextlib.contextmanager
def levels_kept() -> Generator[None]:
    """Leaves the transforms that a failed trace has entered: later traces would run inside them."""
    depth = torch._C._functorch.get_dynamic_layer_stack_depth()
    nesting = eager_transforms.JVP_NESTING
    dual = forward_ad._current_level
    try:
        yield
    finally:
        torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
        eager_transforms.JVP_NESTING = nesting
        if dual < 0:
            with contextlib.suppress(RuntimeError):
                torch._C._exit_dual_level(level=0)
            forward_ad._current_level = dual
