"""
What xDSL's own dialects lack: one module per dialect, each with `OPS`, `ATTRS`, `REPLACES` and
`patch()`.

The first time that a dialect is loaded through `irees.dialects`, its module adds the ops and
repairs xDSL's classes in place. Code that builds ops of xDSL without loading a dialect (a pass
does) calls `patch_all` first.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module


@cache
def patch_all() -> None:
    """Repair the classes of every dialect that irees adds to. Cheap after the first call."""
    from irees.dialects import EXTENDED

    for name in EXTENDED:
        import_module(f"irees.dialects.upstream.{name}").patch()
