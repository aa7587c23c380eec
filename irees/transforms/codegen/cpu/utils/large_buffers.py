"""
The buffers of a kernel that no cache holds, and the loops over their tiles. Part of
`irees-prefetch-next-tiles`, `irees-prefetch-outputs` and `irees-prefetch-streams`; what asks for no
loops, `irees-use-nontemporal-stores` and transposes of `irees-vectorize-structured-ops`, for bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeVar

from xdsl.dialects import arith, func, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from irees.dialects.upstream.scf import ForallOp
from irees.transforms.utils.lanes import LINE
from irees.transforms.utils.shapes import constant_value, element_bytes

Access = TypeVar("Access", vector.LoadOp, vector.StoreOp)


def bytes_of(kind: Attribute) -> int:
    """The bytes of a buffer, 0 where its sizes are not known."""
    assert isinstance(kind, MemRefType)
    return 0 if DYNAMIC_INDEX in kind.get_shape() else prod(kind.get_shape()) * element_bytes(kind)


def place_in(body: Block, op: Operation) -> Operation:
    """The op of the block that another is in."""
    while op.parent is not body:
        outer = op.parent_op()
        assert outer is not None
        op = outer
    return op


def large_buffers(module: ModuleOp, limit: int) -> Iterator[tuple[SSAValue, Block]]:
    """Each argument of a kernel of `limit` bytes or more, with the body of each parallel loop."""
    for function in [f for f in module.walk() if isinstance(f, func.FuncOp)]:
        if function.is_declaration:
            continue
        block = function.body.block
        for argument in block.args:
            if not isinstance(argument.type, MemRefType) or bytes_of(argument.type) < limit:
                continue
            for loop in [o for o in block.ops if isinstance(o, ForallOp)]:
                yield argument, loop.regions[0].block


def one_per_line(accesses: Sequence[Access]) -> list[Access]:
    """
    Those of some vectors that are read or written that begin a line: of vectors that follow each
    other in one, the first.
    """
    begun: dict[tuple[object, ...], int] = {}
    found: list[Access] = []
    indexed = [
        (access, *less_constant(access.indices[-1])) for access in accesses if access.indices
    ]
    for access, last, further in sorted(indexed, key=lambda each: each[2]):
        row = [constant_value(index) for index in access.indices[:-1]]
        row = [index if n is None else n for n, index in zip(row, access.indices)]
        place = (access.parent, access.base, last, *row)
        if place not in begun or further - begun[place] >= LINE // element_bytes(access.base.type):
            begun[place] = further
            found.append(access)
    return found


def less_constant(index: SSAValue) -> tuple[SSAValue, int]:
    """A value and the constant that an index is further; 0 where there is none."""
    if isinstance(index.owner, arith.AddiOp):
        further = constant_value(index.owner.rhs)
        if further is not None:
            return index.owner.lhs, further
    return index, 0
