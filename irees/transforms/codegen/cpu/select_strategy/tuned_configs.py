"""
Checks which parts of a tuned lowering config are legal for a kernel. Part of
`irees-select-strategy`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr

from irees.analysis.contractions import packed_columns
from irees.analysis.distribution import Group, Loops
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.remarks import remark
from irees.targets.cpu import CPU

NAME = "irees-select-strategy"

DIVISIONS = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv, AffineBinaryOpKind.Mod)


def tuned_tiles(group: Group, tiles: Sequence[int]) -> Sequence[int]:
    """
    Returns the tile sizes that the first op with a config has for its loops, or else `tiles`.

    A config is rejected with a remark if a tile splits a panel of a packed operand.
    """
    for number, member in enumerate(group.members):
        given = LoweringConfigAttr.on(member.op).ints("workgroup")
        if given is not None and len(given) == len(member.kinds):
            return _tiles_of(group, number, given, tiles)
    return tiles


def _tiles_of(
    group: Group, number: int, given: Sequence[int], tiles: Sequence[int]
) -> Sequence[int]:
    """Returns the tile sizes `given` for the loops of one member, or else `tiles`."""
    tuned: list[int] = []
    for group_class, extent in zip(group.classes, group.extents(), strict=True):
        tile = given[group_class[number]]
        tuned.append(0 if 0 <= extent <= tile else tile)
        for member, loop in group_class.items():
            if any(tuned[-1] % panel for panel in panels(group.members[member], loop)):
                text = f"not tuned: a tile of {tile} cuts a panel"
                remark("missed", NAME, group.members[number].op, text)
                return tiles
    return tuned


def panels(member: Loops, loop: int) -> list[int]:
    """Returns the constants by which an op's index expressions divide a loop: its panel sizes."""
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
    """Returns the tuned register block if legal (whole vectors, B not packed), or else `block`."""
    given = LoweringConfigAttr.on(op).ints("block")
    if given is None or len(given) != 2 or given == block:
        return block
    assert isinstance(op, linalg.GenericOp)
    packed = any(packed_columns(m.data) is not None for m in op.indexing_maps)
    if packed or not 0 < given[1] <= CPU.most_block_vectors * lanes or given[1] % lanes:
        text = f"not tuned: a block of {given[1]} columns does not fit"
        remark("missed", NAME, op, text)
        return block
    return given
