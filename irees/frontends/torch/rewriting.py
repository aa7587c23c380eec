"""
Functions of PyTorch that ask for data in Python, as ones that `torch.export` can trace.

    with Traceable():
        torch.export.export(module, args)

`gaussian_nll_loss` looks whether a variance is negative, which becomes a check of the program;
`one_hot` looks for the largest class, which becomes a size that is known when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode


def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """(log(v) + (input - target)^2 / v) / 2 for v = max(var, eps)"""
    if isinstance(var, float | int):
        return functional.gaussian_nll_loss(input, target, float(var), full, eps, reduction)
    if var.size() != input.size() and input.size()[:-1] == var.size():
        var = var.unsqueeze(-1)
    torch._assert_async((var >= 0).all(), "var has negative entry/entries")
    var = var.clone().detach().clamp(min=eps) if not var.requires_grad else var.clamp(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    return {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum}[reduction]()


def one_hot(x: Any, num_classes: int = -1) -> Any:
    """Whether each element is 0, 1, ..., num_classes - 1; by default up to the largest one"""
    count: Any = num_classes
    if num_classes == -1:
        count = (x.max() + 1).item()
        torch._check(count >= 0)
    classes = torch.arange(count, device=x.device)
    return (x.unsqueeze(-1) == classes).long()


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """PyTorch's own, which traces wrong shapes for a negative dim"""
    dim = dim % input.dim() if dim is not None and dim < 0 and input.dim() else dim
    return torch.unique_consecutive(input, return_inverse, return_counts, dim)


_REWRITES: dict[Any, Callable[..., Any]] = {
    functional.gaussian_nll_loss: gaussian_nll_loss,
    torch.unique_consecutive: unique_consecutive,
    torch.Tensor.unique_consecutive: unique_consecutive,
    functional.one_hot: one_hot,
}
"""What PyTorch's function is replaced by while a program is traced."""


class Traceable(TorchFunctionMode):
    """Replaces the functions that look at data while it is entered."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rewrite = _REWRITES.get(func)
        if rewrite is None or (func is functional.one_hot and _classes(args, kwargs) >= 0):
            return func(*args, **kwargs)
        return rewrite(*args, **kwargs)


def _classes(args: Any, kwargs: Any) -> int:
    return args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
