"""Tiles of whole blocks, so that only the edges of a product leave the unit partly idle."""

from acme_npu.lower import Product, why_not
from irees.strategies import Config

SIDE = 32
"""Rows and columns of a tile: the blocks of a row are loaded once for four blocks of columns."""


class Blocks:
    """Cuts rows and columns of a product into tiles of 32, and all other loops into single steps."""

    order = 50

    @staticmethod
    def applies(group, target):
        products = [n for n, member in enumerate(group.members) if why_not(member.op) is None]
        if not products:
            return "it has no product of f32"
        number = products[0]
        product = Product.of(group.members[number].op)
        blocked = (product.row, product.column)
        return Config([SIDE if each[number] in blocked else 1 for each in group.classes])
