"""
The user's `dynamic_shapes`: as `torch.export` takes them, and the bounds that they declare.

`torch.export` nests the shapes of `*args` once more than the call does, and wants no entry for an
argument that is left to its default.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import Dim
from torch.utils._pytree import tree_leaves

ANY_SIZE = 2
"""Lower bounds up to this one are not checked: PyTorch gives them to every dynamic dim."""


def as_exported(
    module: torch.nn.Module, args: tuple, kwargs: Mapping[str, Any], shapes: Any
) -> Any:
    """
    `dynamic_shapes` as `torch.export` takes them. Each positional argument of the call may have its
    own entry; those of arguments that are left out must be None.
    """
    parameters = inspect.signature(module.forward).parameters
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    except TypeError:  # torch.export reports arguments that do not fit
        return shapes
    if not isinstance(shapes, tuple | list):
        return shapes
    many = [parameters[name].kind is inspect.Parameter.VAR_POSITIONAL for name in bound]
    if len(shapes) == len(bound) and not any(
        is_many and isinstance(shape, Mapping) for is_many, shape in zip(many, shapes)
    ):
        return shapes
    if any(many):
        return _nested_places(parameters, bound, shapes)
    left_out = shapes[len(bound) :]
    return shapes[: len(bound)] if all(shape is None for shape in left_out) else shapes


def _nested_places(
    parameters: Mapping[str, inspect.Parameter], bound: Mapping[str, Any], shapes: Any
) -> Any:
    """Gathers the entries of arguments that `*args` takes."""
    found: list[Any] = []
    entries = list(shapes)
    for name, value in bound.items():
        many = parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        taken = entries[: len(value) if many else 1]
        del entries[: len(taken)]
        found += [tuple(taken)] if many else taken
    return tuple(found) if len(found) == len(bound) and not entries else shapes


def unchecked_bound(shapes: Any) -> int:
    """
    The greatest lower bound of a dim that is not checked. PyTorch gives hints (`Dim.AUTO`) a bound
    of 2 that the program does not need; it leaves named dims as they are, so their bounds are the
    user's.
    """
    dims = [d for d in tree_leaves(shapes) if d is not None and not isinstance(d, int)]
    named = dims and all(isinstance(d, Dim) or d.min is not None for d in dims)
    return 0 if named else ANY_SIZE
