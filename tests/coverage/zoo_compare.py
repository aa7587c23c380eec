"""Results of models: all tensors of a tree, and where two trees differ."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

TOLERANCE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-4, "complex64": 2e-4}
"""Largest error beside the largest element of a tensor, or 1 if that is smaller."""


def leaves(value: Any, path: str = "result") -> Iterator[tuple[str, Any]]:
    """The tensors and numbers of a tree with where they are."""
    import torch

    if isinstance(value, torch.Tensor | int | float | str | bool):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(each, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            yield from leaves(each, f"{path}[{i}]")
    elif hasattr(value, "self_attention_cache"):
        yield from leaves(value.self_attention_cache, f"{path}.self_attention_cache")
        yield from leaves(value.cross_attention_cache, f"{path}.cross_attention_cache")
    elif hasattr(value, "layers") and "cache" in type(value).__module__:
        for i, layer in enumerate(value.layers):
            state = {
                k: v
                for k, v in vars(layer).items()
                if isinstance(v, torch.Tensor) and not k.startswith("_")
            }
            yield from leaves(state, f"{path}.layers[{i}]")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), f"{path}.{field.name}")


def same_rank(got: Any, want: Any) -> str | None:
    """Where two trees differ in structure, ranks or dtypes; None if they do not."""
    return same_kind(got, want, lambda shape: len(shape))


def same_kind(got: Any, want: Any, of: Callable[[Any], Any] = tuple) -> str | None:
    """Where two trees differ in structure, in `of` their shapes, or dtypes; None if they do not."""
    import torch

    mine, theirs = list(leaves(got)), list(leaves(want))
    if [p for p, _ in mine] != [p for p, _ in theirs]:
        paths = [p for p, _ in mine], [p for p, _ in theirs]
        odd = sorted(set(paths[0]) ^ set(paths[1]))[:4]
        return f"{len(mine)} leaves for {len(theirs)}: {', '.join(odd)}"
    for (path, a), (_, b) in zip(mine, theirs):
        if isinstance(b, torch.Tensor):
            if not isinstance(a, torch.Tensor) or (of(a.shape), a.dtype) != (of(b.shape), b.dtype):
                return f"{path} is {_kind(a)}, should be {_kind(b)}"
    return None


def _kind(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else repr(value)


def difference(got: Any, want: Any) -> str | None:
    """Where two results differ; None if they do not."""
    import torch

    if (odd := same_kind(got, want)) is not None:
        return odd
    for (path, a), (_, b) in zip(leaves(got), leaves(want)):
        if not isinstance(b, torch.Tensor):
            if a != b:
                return f"{path} is {a!r}, should be {b!r}"
            continue
        worst = _error(a.detach(), b.detach())
        if worst is not None:
            return f"{path}: {worst}"
    return None


def _error(a: Any, b: Any) -> str | None:
    import torch

    if a.numel() == 0:
        return None
    name = str(b.dtype).removeprefix("torch.")
    if name not in TOLERANCE:
        return None if torch.equal(a, b) else f"{int((a != b).sum())} of {b.numel()} differ"
    odd = ~torch.isfinite(b)
    if not torch.equal(odd, ~torch.isfinite(a)):
        return "infinities or nans differ"
    a, b = (torch.where(odd, torch.zeros_like(t), t) for t in (a, b))
    error, scale = (a - b).abs().max().item(), max(b.abs().max().item(), 1.0)
    if error <= TOLERANCE[name] * scale:
        return None
    return f"error {error:.3g} with elements up to {scale:.3g}"


def wider(value: Any) -> Any:
    """A copy of a model or of arguments in which floats are f64."""
    import torch
    from torch.utils._pytree import tree_map

    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value).double()
    return tree_map(
        lambda x: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, value
    )


def all_as_near(got: Any, want: Any, exact: Any) -> bool:
    """Whether all floats of `got` are as near to `exact` as those of `want`, and all else is equal."""
    import torch
    from nearness import as_near

    trees = [list(leaves(tree)) for tree in (got, want, exact)]
    if same_kind(got, want) is not None or len(trees[1]) != len(trees[2]):
        return False
    for (_, a), (_, b), (_, c) in zip(*trees, strict=True):
        if not isinstance(b, torch.Tensor):
            equal = a == b == c
        elif b.is_floating_point() and b.numel():
            equal = as_near(a, b, c)
        else:
            equal = torch.equal(a, b) and torch.equal(b, c)
        if not equal:
            return False
    return True
