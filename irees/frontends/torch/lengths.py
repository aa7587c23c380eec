"""
Keeps `len(x)` of a tensor symbolic while a program is exported.

Python requires that `Tensor.__len__` returns an int, so tracing it specializes a dynamic dim and
fails for a data-dependent one. While active, `len` is replaced in the modules of the program:

    with symbolic_lengths(module):
        torch.export.export(module, args)

The builtin itself is not replaced: PyTorch fills tables with it as a key while it traces.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

_OTHERS = frozenset({"torch", "irees", "builtins"})
"""Packages that never contain the program."""


def length(x: Any) -> Any:
    """`len(x)`; a SymInt for a tensor with a symbolic first dim."""
    return x.shape[0] if isinstance(x, torch.Tensor) and x.dim() else len(x)


def modules_of(program: torch.nn.Module) -> list[ModuleType]:
    """
    The Python modules that may belong to a program: those of the packages that define its layers,
    and all modules that are not installed.
    """
    packages = {type(layer).__module__.partition(".")[0] for layer in program.modules()} - _OTHERS
    installed = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
    found = []
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        file = getattr(module, "__file__", None)
        is_own = package in packages or (file and not file.startswith(installed))
        if is_own and package not in _OTHERS and isinstance(module, ModuleType):
            found.append(module)
    return found


@contextmanager
def symbolic_lengths(program: torch.nn.Module) -> Generator[None]:
    """Replaces `len` in the modules of a program, except in those that define their own."""
    changed = [m for m in modules_of(program) if "len" not in vars(m)]
    for module in changed:
        vars(module)["len"] = length
    try:
        yield
    finally:
        for module in changed:
            vars(module).pop("len", None)
