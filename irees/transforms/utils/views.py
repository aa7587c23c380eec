"""Strides and subviews of buffers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    i64,
)
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from irees.dialects.storage import slice_of
from irees.transforms.utils.shapes import IndexBuilder, Size, split

UNBOUNDED = (1 << 62) - 1
"""The size of a flat buffer: accesses are proved where it comes from."""


def strides_of(buffer: MemRefType) -> list[int]:
    """Returns the static strides of a memref type, DYNAMIC_INDEX if unknown."""
    if isinstance(buffer.layout, StridedLayoutAttr):
        return [DYNAMIC_INDEX if isinstance(s, NoneAttr) else s.data for s in buffer.layout.strides]
    strides: list[int] = []
    step = 1
    for size in reversed(buffer.get_shape()):
        strides.append(step)
        step = DYNAMIC_INDEX if size == DYNAMIC_INDEX or step == DYNAMIC_INDEX else step * size
    return strides[::-1]


def row_major_view(
    source: SSAValue, sizes: Sequence[Size], kind: MemRefType, builder: IndexBuilder
) -> SSAValue:
    """Emits a view of a contiguous buffer of type `kind` with these sizes, row-major."""
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(sizes):
        strides.append(step)
        step = builder.mul(step, size)
    shape = kind.get_shape()
    static = [
        s if s != DYNAMIC_INDEX else builder.value(d) for s, d in zip(shape, sizes, strict=True)
    ]
    view = memref.ReinterpretCastOp.from_dynamic(source, [0], static, strides[::-1], kind)
    return builder.insert(view).results[0]


def subview(
    source: SSAValue,
    offsets: Sequence[Size],
    sizes: Sequence[Size],
    strides: Sequence[Size],
    kept: Sequence[int] | None = None,
) -> memref.SubviewOp:
    """Returns a subview of a buffer, not inserted; `kept`: the dims kept by rank reduction."""
    source_type = source.type
    assert isinstance(source_type, MemRefType)
    kept = range(len(sizes)) if kept is None else kept
    static_offsets, dynamic_offsets = split(offsets)
    static_sizes, dynamic_sizes = split(sizes)
    static_strides, dynamic_strides = split(strides)
    base = strides_of(source_type)

    def times(a: int, b: int) -> int:
        return DYNAMIC_INDEX if DYNAMIC_INDEX in (a, b) else a * b

    result_strides = [times(base[d], static_strides[d]) for d in kept]
    start = (
        0
        if not isinstance(source_type.layout, StridedLayoutAttr)
        else (
            DYNAMIC_INDEX
            if source_type.layout.offset is None or isinstance(source_type.layout.offset, NoneAttr)
            else source_type.layout.offset.data
        )
    )
    for offset, stride in zip(static_offsets, base, strict=True):
        if offset == 0:
            continue
        step = times(offset, stride)
        start = DYNAMIC_INDEX if DYNAMIC_INDEX in (start, step) else start + step
    result = MemRefType(
        source_type.get_element_type(),
        [static_sizes[d] for d in kept],
        StridedLayoutAttr(
            [None if s == DYNAMIC_INDEX else s for s in result_strides],
            None if start == DYNAMIC_INDEX else start,
        ),
        source_type.memory_space,
    )
    return memref.SubviewOp(
        source,
        dynamic_offsets,
        dynamic_sizes,
        dynamic_strides,
        DenseArrayBase.from_list(i64, static_offsets),
        DenseArrayBase.from_list(i64, static_sizes),
        DenseArrayBase.from_list(i64, static_strides),
        result,
    )


def share_views(block: Block) -> None:
    """Replaces equal subviews in a block by the first of them."""
    found: dict[tuple[object, ...], SSAValue] = {}
    for op in [o for o in block.ops if slice_of(o)]:
        key = (*op.operands, *op.properties.values(), op.results[0].type)
        first = found.setdefault(key, op.results[0])
        if first is not op.results[0]:
            Rewriter.replace_op(op, [], [first])


def strides_in(buffer: SSAValue, builder: IndexBuilder) -> list[Size]:
    """Returns the strides of a buffer in elements."""
    assert isinstance(buffer.type, MemRefType)
    known = strides_of(buffer.type)
    if DYNAMIC_INDEX not in known:
        return list(known)
    metadata = builder.insert(memref.ExtractStridedMetaDataOp(buffer))
    first = 2 + len(known)
    return [metadata.results[first + i] if s == DYNAMIC_INDEX else s for i, s in enumerate(known)]


def flatten(buffer: SSAValue, builder: IndexBuilder) -> SSAValue:
    """Returns the buffer as memref<?xT>, starting at its first element."""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    metadata = builder.insert(memref.ExtractStridedMetaDataOp(buffer))
    flat = MemRefType(
        kind.element_type, [DYNAMIC_INDEX], StridedLayoutAttr([1], None), kind.memory_space
    )
    size = builder.value(UNBOUNDED)
    return builder.insert(
        memref.ReinterpretCastOp.from_dynamic(
            metadata.results[0], [metadata.results[1]], [size], [1], flat
        )
    ).results[0]
