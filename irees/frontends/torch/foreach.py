"""
Decomposes operators on lists of tensors (`_foreach_add`), which optimizers use, to operators on
tensors.

`aten._foreach_X` applies `torch.X` to the elements of its lists: those of the first tensors, of the
second ones, and so on. An argument that is no list is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

PREFIX = "_foreach_"

_OTHERS: dict[str, Callable[..., Any]] = {
    "addcdiv": lambda x, a, c, value=1: torch.addcdiv(x, a, c, value=value),
    "addcmul": lambda x, a, c, value=1: torch.addcmul(x, a, c, value=value),
    "copy": lambda x, y, *_: y.to(x.dtype).expand(x.shape),
    "maximum": lambda x, y: torch.clamp(x, min=y),
    "minimum": lambda x, y: torch.clamp(x, max=y),
    "norm": lambda x, ord=2, dtype=None: torch.linalg.vector_norm(x, ord, dtype=dtype),
    "zero": torch.zeros_like,
}
"""Functions of one tensor each, for names that `torch` lacks or calls in another way."""


def decompositions() -> dict[Any, Any]:
    """The decomposition of each functional operator on lists of tensors."""
    found: dict[Any, Any] = {}
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.removeprefix("aten::").partition(".")
        single = base.removeprefix(PREFIX)
        function = _OTHERS.get(single, getattr(torch, single, None))
        if base == single or function is None or base.endswith("_") or "out" in overload:
            continue
        op = getattr(getattr(torch.ops.aten, base), overload or "default")
        found[op] = _over_lists(op, function)
    return found


def _over_lists(op: Any, function: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A function that applies `function` to the first elements of all lists, the second ones..."""
    names = [arg.name for arg in op._schema.arguments if not arg.kwarg_only]

    def apply(*args: Any, **kwargs: Any) -> list[Any]:
        values = [*args, *(kwargs.pop(name) for name in names[len(args) :] if name in kwargs)]
        count = next(len(value) for value in values if isinstance(value, list | tuple))
        columns = [v if isinstance(v, list | tuple) else [v] * count for v in values]
        return [function(*row, **kwargs) for row in zip(*columns, strict=True)]

    return apply
