"""Copies results, and writes them back to arguments. Part of `irees-convert-to-stream`."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, cf, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StringAttr
from xdsl.ir import SSAValue

from irees.dialects.storage import root
from irees.transforms.utils.shapes import IndexBuilder, split


def copied(buffer: SSAValue, builder: IndexBuilder) -> SSAValue:
    """Returns a copy of a buffer."""
    assert isinstance(buffer.type, MemRefType)
    sizes = [
        builder.insert(memref.DimOp(buffer, builder.value(i))).results[0]
        if s == DYNAMIC_INDEX
        else s
        for i, s in enumerate(buffer.type.get_shape())
    ]
    dynamic = split(sizes)[1]
    copy = builder.insert(memref.AllocOp(dynamic, [], buffer.type)).results[0]
    builder.insert(memref.CopyOp(buffer, copy))
    return copy


def write_back(
    buffers: Mapping[int, SSAValue], targets: Mapping[int, SSAValue], builder: IndexBuilder
) -> None:
    """Copies new values to the arguments that they update, unless they were updated in place."""
    pairs: list[tuple[SSAValue, SSAValue]] = []
    for number, target in targets.items():
        buffer = buffers[number]
        if root(buffer) is target:
            continue
        if root(buffer) in targets.values():
            # The source is an updated argument, too; two arguments may be swapped.
            buffer = copied(buffer, builder)
        pairs.append((buffer, target))
    for buffer, target in pairs:
        _assert_equal_sizes(buffer, target, builder)
        builder.insert(memref.CopyOp(buffer, target))


def _assert_equal_sizes(a: SSAValue, b: SSAValue, builder: IndexBuilder) -> None:
    """Asserts equal sizes: a loop may resize a carried tensor, but an argument cannot grow."""
    assert isinstance(a.type, MemRefType)
    assert isinstance(b.type, MemRefType)
    for axis, sizes in enumerate(zip(a.type.get_shape(), b.type.get_shape(), strict=True)):
        if DYNAMIC_INDEX not in sizes:
            continue
        index = builder.value(axis)
        dims = [builder.insert(memref.DimOp(buffer, index)).results[0] for buffer in (a, b)]
        equal = builder.insert(arith.CmpiOp(*dims, "eq")).results[0]
        builder.insert(cf.AssertOp(equal, StringAttr("an argument is updated by another size")))
