"""Copies results, and writes them back to arguments. Part of `irees-convert-to-stream`."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import SSAValue

from irees.transforms.stream.convert_to_stream.control_flow import root
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
        builder.insert(memref.CopyOp(buffer, target))
