"""
Copies columns of B into a panel of groups of K, for dot products. Part of `irees-pack-panels`.

    panel[k, j, g] = B[row + 4k + g, column + j]

K is split into groups of four i8 or two bf16, which a dot product multiplies and adds. Vectors from
the rows of a group are interleaved. If B is contiguous along K already, a group is a 32-bit word,
and tiles of words are transposed in registers. An incomplete last group is padded with zeros, for
floats with -0.0: adding their product changes no sum, not even a sum of -0.0.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, VectorType, i64
from xdsl.ir import SSAValue

from irees.dialects.panel import element_of
from irees.dialects.sizes import Size
from irees.transforms.codegen.cpu.pack_panels.columns import Columns, bits, turn_columns
from irees.transforms.codegen.cpu.pack_panels.rows import padding
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop, if_both
from irees.transforms.utils.shapes import IndexBuilder


def pack_column_groups(to: Columns, at: IndexBuilder) -> None:
    """
    panel[k, j, g] = B[row + 4k + g, column + j]; columns past the last valid one repeat it.
    """
    lanes, group = to.lanes, to.group
    offsets = [to.vector_offset(v, at) for v in range(to.vectors)]
    full = at.mul(at.floordiv(to.depth, group), group)
    if None in offsets or full != to.depth:
        to.write_offsets(at)
    start: Size = 0
    if to.runs_along_k:
        start = turn_columns(to, full, at)
    together = [to.neighbours(v, at) if o is None else None for v, o in enumerate(offsets)]
    close, k, b = for_loop(at, start, full, group)
    places = [b.add(to.base, to.k.at(b.add(b.add(to.row, k), g), b)) for g in range(group)]
    for v, (offset, condition) in enumerate(zip(offsets, together, strict=True)):
        place = b.add(b.mul(k, to.vectors * lanes), v * lanes * group)
        if offset is not None:
            _join(to, [b.add(p, offset) for p in places], place, b)
        elif condition is None:
            _copy_groups(to, places, v, place, b)
        else:
            _join_neighbours(to, places, v, place, condition, b)
    close()
    if full != to.depth:
        _last_group(to, full, at)


def _join_neighbours(
    to: Columns, places: list[Size], v: int, place: Size, condition: SSAValue, at: IndexBuilder
) -> None:
    """Joins vector `v` of columns where the condition says that they are contiguous in B."""
    end, yes, no = if_both(at, condition)
    first = to.offset(v * to.lanes, yes)
    _join(to, [yes.add(p, first) for p in places], place, yes)
    _copy_groups(to, places, v, place, no)
    end()


def _join(to: Columns, places: list[Size], place: Size, at: IndexBuilder) -> None:
    """panel[.., j, g] = B[places[g] + j] for one vector of columns"""
    kind = vector_of(element_of(to.op.panel), to.lanes)
    parts = [
        at.insert(vector.LoadOp(to.op.source, [at.value(source)], kind)).results[0]
        for source in places
    ]
    for number, part in enumerate(joined(parts, at)):
        there = at.value(at.add(place, number * to.lanes))
        at.insert(vector.StoreOp(bits(part, kind, at), to.op.panel, [there]))


def joined(parts: list[SSAValue], at: IndexBuilder) -> list[SSAValue]:
    """Interleaves two or four vectors: lane 0 of each, lane 1 of each, ...; returns as many."""
    if len(parts) == 4:
        # Interleave pairs, then interleave the results as lanes of twice the width.
        pairs = [joined(parts[:2], at), joined(parts[2:], at)]
        kind = pairs[0][0].type
        assert isinstance(kind, VectorType)
        wide = vector_of(IntegerType(16), kind.get_shape()[0] // 2)
        halves = [[bits(half, wide, at) for half in pair] for pair in pairs]
        return [x for pair in zip(*halves, strict=True) for x in joined(list(pair), at)]
    kind = parts[0].type
    assert isinstance(kind, VectorType)
    count = kind.get_shape()[0]
    masks = [
        [lane + side * count for lane in range(first, first + count // 2) for side in (0, 1)]
        for first in (0, count // 2)
    ]
    return [
        at.insert(
            vector.ShuffleOp(*parts, DenseArrayBase.from_list(i64, mask), result_type=kind)
        ).results[0]
        for mask in masks
    ]


def _each_lane(
    to: Columns, v: int, place: Size, b: IndexBuilder, inside: Callable[..., None]
) -> None:
    """Calls inside(offset of a column in B, offset of its group in the panel, builder) per lane."""
    close, lane, c = for_loop(b, 0, to.lanes, 1)
    offset = to.offset(c.add(lane, v * to.lanes), c)
    inside(offset, c.add(place, c.mul(lane, to.group)), c)
    close()


def _copy_groups(to: Columns, places: list[Size], v: int, place: Size, b: IndexBuilder) -> None:
    def inside(offset: Size, target: Size, c: IndexBuilder) -> None:
        for g, source in enumerate(places):
            _move(to, c.add(source, offset), c.add(target, g), c)

    _each_lane(to, v, place, b, inside)


def _last_group(to: Columns, full: Size, at: IndexBuilder) -> None:
    """Packs the incomplete last group, which starts at `full`, if there is one."""
    lanes, group = to.lanes, to.group
    close_group, k, b = for_loop(at, full, to.depth, group)
    pad = b.insert(arith.ConstantOp(padding(element_of(to.op.panel), -0.0))).results[0]
    rest = b.sub(to.depth, k)

    def inside(offset: Size, target: Size, c: IndexBuilder) -> None:
        close, g, d = for_loop(c, 0, rest, 1)
        source = d.add(d.add(to.base, to.k.at(d.add(d.add(to.row, k), g), d)), offset)
        _move(to, source, d.add(target, g), d)
        close()
        close, g, d = for_loop(c, rest, group, 1)
        d.insert(memref.StoreOp.get(pad, to.op.panel, [d.value(d.add(target, g))]))
        close()

    for v in range(to.vectors):
        place = b.add(b.mul(k, to.vectors * lanes), v * lanes * group)
        _each_lane(to, v, place, b, inside)
    close_group()


def _move(to: Columns, place: Size, there: Size, at: IndexBuilder) -> None:
    """panel[there] = B[place]"""
    value = at.insert(memref.LoadOp.get(to.op.source, [at.value(place)])).results[0]
    at.insert(memref.StoreOp.get(value, to.op.panel, [at.value(there)]))
