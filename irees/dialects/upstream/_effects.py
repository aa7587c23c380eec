"""
Memory effects of ops on tensors and memrefs, which xDSL does not declare for linalg and other
dialects.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, get_effects


class DestinationStyleEffects(MemoryEffect):
    """
    An op that reads and writes its memref operands and has the effects of its regions.

    On tensors it has no effects of its own, so that CSE and DCE apply.
    """

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance] | None:
        effects: set[EffectInstance] = set()
        if any(isinstance(operand.type, MemRefType) for operand in op.operands):
            effects.add(EffectInstance(MemoryEffectKind.READ))
            effects.add(EffectInstance(MemoryEffectKind.WRITE))
        for region in op.regions:
            for block in region.blocks:
                for child in block.ops:
                    child_effects = get_effects(child)
                    if child_effects is None:
                        return None
                    effects |= child_effects
        return effects


class ReadsMemory(MemoryEffect):
    """An op that only reads memory."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.READ)}


class WritesMemory(MemoryEffect):
    """An op that only writes memory."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.WRITE)}


class ReadsMemRefOperands(MemoryEffect):
    """An op that reads its memref operands and has no effects on tensors."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        if any(isinstance(operand.type, MemRefType) for operand in op.operands):
            return {EffectInstance(MemoryEffectKind.READ)}
        return set()
