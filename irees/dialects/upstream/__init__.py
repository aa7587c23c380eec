"""
Additions to xDSL's dialects: one module per dialect, with `OPS`, `ATTRS`, `REPLACES` and `patch()`.

When `irees.dialects` first loads a dialect, its module adds the ops and patches xDSL's classes in
place. Code that builds xDSL ops without loading the dialect, such as a pass, calls `patch_all`
first.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module


@cache
def patch_all() -> None:
    """Patches the classes of every extended dialect. Cheap after the first call."""
    from irees.dialects import EXTENDED

    for name in EXTENDED:
        import_module(f"irees.dialects.upstream.{name}").patch()
