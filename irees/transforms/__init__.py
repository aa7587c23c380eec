"""
Every pass of irees, found by the rule that names them.

A pass `irees-foo-bar` is the last class of a file `foo_bar.py` somewhere below this folder, or
of `foo_bar/__init__.py`: the other files of that folder are its helpers. What several passes
share is in folders named `utils`. The table is the folder itself: nothing is imported until a
pass is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    """Returns the dotted module of each pass, by the name of the pass."""
    return dict(_modules_below(_ROOT, "irees.transforms"))


def _modules_below(folder: Path, package: str) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.iterdir()):
        module = f"{package}.{path.stem}"
        if path.name == "utils" or path.stem.startswith("_"):
            continue
        if path.suffix == ".py":
            yield pass_name(path.stem), module
        elif (start := path / "__init__.py").exists():
            if b"(ModulePass)" in start.read_bytes():
                yield pass_name(path.stem), module
            else:
                yield from _modules_below(path, module)


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
