"""
Arguments and results that are neither tensors nor numbers: constants of the program.

`torch.export` takes numbers and strings as constants, but no dtype, device, Enum, slice, path, set
or function. While a program is exported, each of them is replaced by a string, which its `forward`
turns back into the object:

    model(x, torch.float16)  =>  export(model, (x, 'irees:fixed:[{"torch": ["dtype", ...]}, ...]'))

Each call of the compiled program compares its argument with the constant. Results are replaced
likewise, where PyTorch has refused one.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from irees.runtime.objects import PLAIN, encoded, is_constant

_PREFIX = "irees:fixed:"


def is_fixed(value: Any) -> bool:
    """Whether an argument is a constant that `torch.export` does not take."""
    return type(value) not in PLAIN and is_constant(value)


@contextmanager
def fixed_arguments(
    module: torch.nn.Module, args: tuple, kwargs: dict[str, Any], results: bool = False
) -> Generator[tuple[tuple, dict[str, Any]]]:
    """
    The arguments with strings for fixed values, which the module's `forward` understands. With
    `results` it returns such strings, too.
    """
    values: dict[str, Any] = {}

    def text(value: Any) -> Any:
        if not is_fixed(value):
            return value
        found = _PREFIX + json.dumps([encoded(value), repr(value)])
        values[found] = value
        return found

    def value_of(leaf: Any) -> Any:
        return values.get(leaf, leaf) if type(leaf) is str else leaf

    if not results and not any(map(is_fixed, tree_leaves((args, kwargs)))):
        yield args, kwargs
        return
    args, kwargs = tree_map(text, (args, kwargs))
    own = module.forward

    @functools.wraps(own)
    def forward(*given: Any, **named: Any) -> Any:
        given, named = tree_map(value_of, (given, named))
        found = own(*given, **named)
        return tree_map(text, found) if results else found

    forward.__signature__ = inspect.signature(own)  # type: ignore[attr-defined]
    had = vars(module).get("forward")
    module.forward = forward
    try:
        yield args, kwargs
    finally:
        if had is None:
            del vars(module)["forward"]
        else:
            module.forward = had


def constant_leaf(value: Any) -> dict[str, Any]:
    """The leaf of a signature for a constant argument of an exported program."""
    if isinstance(value, str) and value.startswith(_PREFIX):
        constant, shown = json.loads(value.removeprefix(_PREFIX))
        return {"constant": constant, "shown": shown}
    return {"constant": encoded(value)}
