"""
What a program was compiled from, so that `Program.report` can compile it once more.

A program holds neither weights nor arrays for this: paths and texts are kept, modules and functions
are referenced weakly, and of example arguments only shapes and dtypes remain.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError


@dataclass(frozen=True)
class Origin:
    """Functions that return the source and the example arguments; and the options of a program."""

    source: Callable[[], Any]
    arguments: Callable[[], dict[str, Any]]
    options: dict[str, Any]

    @staticmethod
    def of(source: Any, arguments: dict[str, Any], options: dict[str, Any]) -> Origin:
        """The origin of a program; `arguments` are those of `irees.compile` by keyword."""
        return Origin(_reference(source), _stand_in(arguments), options)

    def current(self) -> Any:
        """The source. Raises ArgumentError if it does not exist any more."""
        if (source := self.source()) is None:
            raise ArgumentError(
                "the module that the program was compiled from does not exist any more",
                hint="keep it in a variable, or use irees.report(model, inputs)",
            )
        return source


def _reference(source: Any) -> Callable[[], Any]:
    if isinstance(source, str | Path):
        return lambda: source
    try:
        if isinstance(source, types.MethodType):
            return weakref.WeakMethod(source)
        return weakref.ref(source)
    except TypeError:
        return lambda: source


def _stand_in(value: Any) -> Callable[[], Any]:
    """Returns a function that creates `value` with its arrays as zeros of the same shape."""
    kind = type(value)
    if kind in (tuple, list):
        parts = [_stand_in(each) for each in value]
        return lambda: kind(part() for part in parts)
    if kind is dict:
        named = {name: _stand_in(each) for name, each in value.items()}
        return lambda: {name: part() for name, part in named.items()}
    if isinstance(value, np.ndarray):
        shape, dtype = value.shape, value.dtype
        return lambda: np.zeros(shape, dtype)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        size, element, device = value.shape, value.dtype, value.device
        return lambda: torch.zeros(size, dtype=element, device=device)
    return lambda: value
