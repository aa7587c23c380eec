"""
What of a tuned lowering config is legal for its kernel. Part of `irees-select-strategy`.
"""

from __future__ import annotations

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr

from irees.analysis.contractions import packed_columns
from irees.analysis.distribution import Group, Loops
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.remarks import remark

NAME = "irees-select-strategy"
MAX_VECTORS = 4
"""Vectors that a row of a tuned register block may have."""

DIVISIONS = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv, AffineBinaryOpKind.Mod)


def tuned_tiles(group: Group, tiles: list[int]) -> list[int]:
    """
    The tiles of a group's classes that its first op was given, or else the chosen ones.

    Panels of a packed operand are not cut: such a tile is refused, with a remark.
    """
    first = group.members[0]
    given = LoweringConfigAttr.on(first.op).ints("workgroup")
    if given is None or len(given) != len(first.kinds):
        return tiles
    tuned: list[int] = []
    for group_class, extent in zip(group.classes, group.extents(), strict=True):
        tile = given[group_class[0]]
        tuned.append(0 if 0 <= extent <= tile else tile)
        for member, loop in group_class.items():
            if any(tuned[-1] % panel for panel in panels(group.members[member], loop)):
                text = f"not tuned: a tile of {tile} cuts a panel"
                remark("missed", NAME, first.op, text)
                return tiles
    return tuned


def panels(member: Loops, loop: int) -> list[int]:
    """The sizes by which the indices of an op divide a loop."""
    return [
        part.rhs.value
        for access in member.accesses
        for expr in access.map.results
        if loop in expr.used_dims()
        for part in expr.dfs()
        if isinstance(part, AffineBinaryOpExpr)
        and part.kind in DIVISIONS
        and isinstance(part.rhs, AffineConstantExpr)
    ]


def tuned_block(op: Operation, block: tuple[int, int], lanes: int) -> tuple[int, ...]:
    """The register block that a contraction was given, if it is whole vectors and not packed."""
    given = LoweringConfigAttr.on(op).ints("block")
    if given is None or len(given) != 2 or given == block:
        return block
    assert isinstance(op, linalg.GenericOp)
    packed = any(packed_columns(m.data) is not None for m in op.indexing_maps)
    if packed or not 0 < given[1] <= MAX_VECTORS * lanes or given[1] % lanes:
        text = f"not tuned: a block of {given[1]} columns does not fit"
        remark("missed", NAME, op, text)
        return block
    return given
