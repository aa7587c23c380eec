"""Tiles for `local.attention`: as many queries as leave their keys and values in the L1 cache."""

from acme_attention.attention import AttentionOp
from irees.strategies import Config

MOST = 64
"""Queries of a tile; more would leave threads without work."""


class Rows:
    """Cuts the queries of `local.attention` into tiles, and its batch into single steps."""

    order = 50

    @staticmethod
    def applies(group, target):
        ops = [member.op for member in group.members]
        number = next((n for n, op in enumerate(ops) if isinstance(op, AttentionOp)), None)
        if number is None:
            return "it has no local.attention"
        shapes = [operand.type.get_shape() for operand in ops[number].operands]
        width, columns, window = shapes[0][2], shapes[2][2], shapes[3][0]
        if min(width, columns, window) < 0:
            return "the window or the width of a head is dynamic"
        row = 4 * (width + columns)
        queries = max(1, min(MOST, target.l1_bytes // 2 // row - window))
        batch, query = 0, 1
        tile_of = {batch: 1, query: queries}
        return Config([tile_of.get(each[number], 0) for each in group.classes])
