"""
Every pass of irees, found by the rule that names them.

A pass `irees-foo-bar` lives alone in a file `foo_bar.py` somewhere below this folder,
and is the last class of that file. The table is therefore the folder itself: nothing
is imported until a pass is asked for, and no list has to be kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

from xdsl.passes import ModulePass

from irees.integrity import record

_ROOT = Path(__file__).parent


def pass_name(stem: str) -> str:
    """The pass name of a file: `fold_memref_alias_ops` => `irees-fold-memref-alias-ops`."""
    return "irees-" + stem.replace("_", "-")


@cache
def pass_modules() -> dict[str, str]:
    """Pass name => dotted module, for every pass file (names that start with `_` are helpers)."""
    return {
        pass_name(path.stem): ".".join(
            ("irees.transforms", *path.relative_to(_ROOT).with_suffix("").parts)
        )
        for path in sorted(_ROOT.rglob("*.py"))
        if not path.stem.startswith("_") and "utils" not in path.parts
    }


def load_pass(name: str) -> type[ModulePass]:
    """The pass class of that name. Raises KeyError when there is none."""
    module = import_module(pass_modules()[name])
    # A pass builds ops of dialects that its input may not have loaded: repair them now.
    import_module("irees.dialects.upstream").patch_all()
    record()
    return next(
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, ModulePass)
        and value.__module__ == module.__name__
    )


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass name => a function that imports and returns its class."""
    return {name: lambda name=name: load_pass(name) for name in pass_modules()}
