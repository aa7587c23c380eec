"""
Finds kernel buffers too large for any cache, and the parallel loops over their tiles.

Part of `irees-prefetch-next-tiles`, `irees-prefetch-outputs` and `irees-prefetch-streams`.
`irees-use-nontemporal-stores` and `irees-vectorize-structured-ops` use only the sizes.
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
    """Returns the size of a buffer in bytes, or 0 if it is dynamic."""
    assert isinstance(kind, MemRefType)
    return 0 if DYNAMIC_INDEX in kind.get_shape() else prod(kind.get_shape()) * element_bytes(kind)


def place_in(body: Block, op: Operation) -> Operation:
    """Returns the ancestor of an op that is directly in the block."""
    while op.parent is not body:
        outer = op.parent_op()
        assert outer is not None
        op = outer
    return op


def large_buffers(module: ModuleOp, limit: int) -> Iterator[tuple[SSAValue, Block]]:
    """Yields each kernel argument of at least `limit` bytes with the body of each parallel loop."""
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
    Returns one vector access per cache line: the first of the adjacent accesses to the line.
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
    """Splits an index into a value and a constant offset, 0 if there is none."""
    if isinstance(index.owner, arith.AddiOp):
        further = constant_value(index.owner.rhs)
        if further is not None:
            return index.owner.lhs, further
    return index, 0
