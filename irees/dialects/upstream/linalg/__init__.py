"""What xDSL's linalg dialect lacks: named ops, pack and softmax, map and reduce, and repairs."""

from __future__ import annotations

from . import attrs, generic, named, packing, regions

OPS = [*named.OPS, *regions.OPS, *packing.OPS]
ATTRS = attrs.ATTRS
REPLACES = regions.REPLACES


def patch() -> None:
    """Repair xDSL's own linalg ops in place."""
    generic.patch()
    generic.add_effects(OPS)


__all__ = ["ATTRS", "OPS", "REPLACES", "patch"]

patch()
