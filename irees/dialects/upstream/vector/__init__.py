"""The ops that xDSL's vector dialect lacks."""

from __future__ import annotations

from functools import cache

from . import arithmetic, shapes

OPS = [*shapes.OPS, *arithmetic.OPS]
ATTRS = arithmetic.ATTRS


@cache
def patch() -> None:
    """Nothing to patch."""
