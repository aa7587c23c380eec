"""Additions to xDSL's linalg: named ops, pack, softmax, map, reduce, and patched classes."""

from __future__ import annotations

from xdsl.dialects.linalg.ops import GenericOp

from irees.dialects.canonicalization import UNUSED_RESULTS

from . import attrs, generic, named, packing, regions

OPS = [*named.OPS, *regions.OPS, *packing.OPS]
ATTRS = attrs.ATTRS
REPLACES = regions.REPLACES


def patch() -> None:
    """Patches xDSL's own linalg ops in place."""
    generic.patch()
    generic.add_effects(OPS)
    GenericOp.traits.add_trait(UNUSED_RESULTS)


__all__ = ["ATTRS", "OPS", "REPLACES", "patch"]

patch()
