"""What xDSL's linalg dialect lacks: named ops, pack and softmax, map and reduce, and repairs."""

from __future__ import annotations

from . import attrs, generic, named

OPS = [*named.OPS]
ATTRS = attrs.ATTRS
REPLACES: frozenset[str] = frozenset()


def patch() -> None:
    """Repair xDSL's own linalg ops in place."""
    generic.patch()
    generic.add_effects(OPS)


__all__ = ["ATTRS", "OPS", "REPLACES", "patch"]

patch()
