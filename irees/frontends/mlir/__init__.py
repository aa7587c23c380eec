"""
Import and printing of MLIR text.

    module = import_mlir("model.mlir")
    text = print_module(module, elide_resources=False)

Names are imported lazily: `open_source`, which splits a text from its weights and suffices for a
cache lookup, must not load any dialects.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .admission import admit
    from .importer import import_mlir, import_opened
    from .parser import ImportParser
    from .printing import print_module, write_module
    from .sections import open_source
    from .verify import verify_module

__all__ = [
    "ImportParser",
    "admit",
    "import_mlir",
    "import_opened",
    "open_source",
    "print_module",
    "verify_module",
    "write_module",
]

_HOMES = {
    "ImportParser": "parser",
    "admit": "admission",
    "import_mlir": "importer",
    "import_opened": "importer",
    "open_source": "sections",
    "print_module": "printing",
    "verify_module": "verify",
    "write_module": "printing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
