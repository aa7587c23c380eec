"""
Lowers contractions to dot products of narrow elements. Part of `irees-lower-contractions`.

    acc[r, v] += broadcast(A[r, 4k : 4k + 4]) . B[4k : 4k + 4, v]

K is split into groups of four i8 or two bf16 that are contiguous. In A they are if K is
contiguous, else A is packed; B is packed as [K/4, NR, 4]. To pack B, vectors from the rows of a
group are interleaved. If B is contiguous along K already, a group is a 32-bit word, and tiles of
words are transposed in registers. An incomplete last group is padded with zeros, in B with -0.0:
adding their product changes no sum, not even a sum of -0.0.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import SSAValue

from irees.analysis.dot_products import DotProduct
from irees.dialects.irees import DotOp
from irees.dialects.x86vector import Avx512DotOp
from irees.transforms.codegen.cpu.lower_contractions.epilogue import Slice
from irees.transforms.codegen.cpu.lower_contractions.pack import (
    Columns,
    Panels,
    neighbours,
    spread,
    write_offsets,
)
from irees.transforms.codegen.cpu.lower_contractions.plan import Plan
from irees.transforms.codegen.cpu.utils.register_transpose import transposed
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop, if_both
from irees.transforms.utils.shapes import IndexBuilder, Size

SIGNS = 0x80808080 - (1 << 32)
"""The sign bits of four i8: xor with it adds 128 to each, giving an unsigned value."""

SIGN = -128
"""-128 as i8, 128 as unsigned i8."""


# --- the kernel ---------------------------------------------------------------------------


def flipping(panels: Panels, at: IndexBuilder) -> SSAValue | None:
    """Returns the mask that flips the signs of a broadcast group; None if packing flipped them."""
    dot = panels.plan.dot
    if dot is None or not dot.biased or panels.a is not None:
        return None
    return at.insert(arith.ConstantOp(IntegerAttr(SIGNS, i32))).results[0]


def wide_broadcast(
    plan: Plan, source: SSAValue, row: Size, flip: SSAValue | None, at: IndexBuilder
) -> SSAValue:
    """Returns the group of A at `row`, broadcast to every 32-bit lane."""
    assert plan.dot is not None
    element, group, lanes = plan.dot.element, plan.dot.group, plan.lanes
    part = at.insert(vector.LoadOp(source, [at.value(row)], vector_of(element, group))).results[0]
    word = at.insert(vector.ExtractOp(bits(part, vector_of(i32, 1), at), [0], i32)).results[0]
    if flip is not None:
        word = at.insert(arith.XOrIOp(word, flip)).results[0]
    words = at.insert(vector.BroadcastOp(word, vector_of(i32, lanes))).results[0]
    return bits(words, vector_of(element, lanes * group), at)


def multiply_group(
    dot: DotProduct, acc: SSAValue, a: SSAValue, b: SSAValue, at: IndexBuilder
) -> SSAValue:
    """acc + a . b in each 32-bit lane"""
    if not isinstance(dot.element, IntegerType):
        return at.insert(Avx512DotOp(acc, a, b)).results[0]
    return at.insert(DotOp(acc, *((b, a) if dot.swapped else (a, b)))).results[0]


def column_sums(
    panels: Panels,
    columns: Columns,
    base: Size,
    part: Slice,
    zero: SSAValue,
    at: IndexBuilder,
) -> list[SSAValue]:
    """-128 * sum over k of B[k, columns], one vector at a time"""
    plan = panels.plan
    assert plan.dot is not None
    kind = vector_of(plan.packed_element, plan.lanes * plan.group)
    last = plan.loops.k[-1][-1]
    size: Size = (
        at.product([plan.sizes[x] for x in plan.loops.k[-1]]) if part.depth is None else part.depth
    )
    if panels.b is not None:
        source, start, step = panels.b, 0, columns.vectors * plan.lanes * plan.group
    else:
        source, start = plan.b.flat, at.add(base, at.mul(part.start, plan.b.steps[last]))
        step = at.mul(plan.b.steps[last], plan.group)
    ones = splat_of(SIGN, plan.packed_element, plan.lanes * plan.group, at)
    begin = [zero] * columns.vectors
    close, k, b = for_loop(at, 0, at.ceildiv(size, plan.group), 1, begin)
    row, sums = b.add(start, b.mul(k, step)), list[SSAValue]()
    for v, total in enumerate(close.arguments):
        place = b.value(b.add(row, v * plan.lanes * plan.group))
        read = b.insert(vector.LoadOp(source, [place], kind)).results[0]
        sums.append(b.insert(DotOp(total, ones, read)).results[0])
    return [at.insert(arith.SubiOp(zero, total)).results[0] for total in close(sums)]


# --- panels -------------------------------------------------------------------------------


def pack_row_groups(panels: Panels, base: Size, rows: Size, depth: Size, at: IndexBuilder) -> None:
    """panel[i, k] = A[i, k] for some rows, with the bias if any, padded to a whole group of K"""
    plan, dot = panels.plan, panels.plan.dot
    assert dot is not None
    step, across = plan.a.steps[plan.loops.k[-1][-1]], plan.row_step(plan.a)
    main: Size = 0
    if isinstance(step, int) and step == 1:
        main = _copy_runs(panels, base, rows, depth, at)
    if isinstance(across, int) and across == 1:
        # Rows are contiguous in A: read along them, though each element goes to another packed row.
        close_outer, k, outer = for_loop(at, main, depth, 1)
        close, i, b = for_loop(outer, 0, rows, 1)
    else:
        close_outer, i, outer = for_loop(at, 0, rows, 1)
        close, k, b = for_loop(outer, main, depth, 1)
    source = b.value(b.add(b.add(base, b.mul(i, across)), b.mul(k, step)))
    value = b.insert(memref.LoadOp.get(plan.a.flat, [source])).results[0]
    if dot.biased:
        sign = b.insert(arith.ConstantOp(IntegerAttr(SIGN, dot.element))).results[0]
        value = b.insert(arith.XOrIOp(value, sign)).results[0]
    there = b.value(b.add(b.mul(i, panels.row), k))
    b.insert(memref.StoreOp.get(value, panels.a, [there]))
    close()
    close_outer()
    close_outer, i, outer = for_loop(at, 0, rows, 1)
    filled = outer.mul(outer.ceildiv(depth, dot.group), dot.group)
    close, k, b = for_loop(outer, depth, filled, 1)
    pad = b.insert(arith.ConstantOp(padding(dot, 0.0))).results[0]
    there = b.value(b.add(b.mul(i, panels.row), k))
    b.insert(memref.StoreOp.get(pad, panels.a, [there]))
    close()
    close_outer()


def _copy_runs(panels: Panels, base: Size, rows: Size, depth: Size, at: IndexBuilder) -> Size:
    """Packs the whole vectors of rows of A; returns the number of K elements that it packed."""
    plan, dot = panels.plan, panels.plan.dot
    assert dot is not None
    chunk = plan.lanes * dot.group
    kind = vector_of(dot.element, chunk)
    main = at.mul(at.floordiv(depth, chunk), chunk)
    close_rows, i, row = for_loop(at, 0, rows, 1)
    source = row.add(base, row.mul(i, plan.row_step(plan.a)))
    close, k, b = for_loop(row, 0, main, chunk)
    part = b.insert(vector.LoadOp(plan.a.flat, [b.value(b.add(source, k))], kind)).results[0]
    if dot.biased:
        signs = splat_of(SIGN, dot.element, chunk, b)
        part = b.insert(arith.XOrIOp(part, signs)).results[0]
    there = b.value(b.add(b.mul(i, panels.row), k))
    b.insert(vector.StoreOp(part, panels.a, [there]))
    close()
    close_rows()
    return main


def pack_column_groups(
    panels: Panels, columns: Columns, linear: bool, base: Size, part: Slice, at: IndexBuilder
) -> None:
    """
    panel[k, j, g] = B[part.start + 4k + g, columns.start + j]

    Columns past the last valid one repeat it. `linear` says that adjacent columns are contiguous
    everywhere in B.
    """
    plan, lanes, group = panels.plan, panels.plan.lanes, panels.plan.group
    k0, depth = part.start, part.depth
    assert depth is not None
    whole = [_whole(columns, v, lanes) for v in range(columns.vectors)]
    full = at.mul(at.floordiv(depth, group), group)
    write_offsets(panels, columns, at)
    start: Size = 0
    if along_k(plan) and all(whole):
        start = _turn_columns(panels, columns, base, k0, full, at)
    together = [
        None if linear and whole[v] else neighbours(panels, v, at) for v in range(columns.vectors)
    ]
    width = columns.vectors * lanes
    close, k, b = for_loop(at, start, full, group)
    places = [
        b.add(base, spread(plan.loops.k[-1], b.add(b.add(k0, k), g), plan.b, plan.sizes, b))
        for g in range(group)
    ]
    for v, condition in enumerate(together):
        place = b.add(b.mul(k, width), v * lanes * group)
        column = b.add(columns.start, v * lanes)
        if linear and whole[v]:
            _join(panels, [b.add(p, column) for p in places], place, b)
        elif condition is None:
            _copy_groups(panels, places, v, place, b)
        else:
            _join_neighbours(panels, places, v, place, condition, b)
    close()
    if not (isinstance(full, int) and full == depth):
        _last_group(panels, columns, base, part, full, at)


def _join_neighbours(
    panels: Panels, places: list[Size], v: int, place: Size, condition: SSAValue, at: IndexBuilder
) -> None:
    """Joins vector `v` of columns where the condition says that they are contiguous in B."""
    end, yes, no = if_both(at, condition)
    number = yes.value(v * panels.plan.lanes)
    first = yes.insert(memref.LoadOp.get(panels.offsets, [number])).results[0]
    _join(panels, [yes.add(p, first) for p in places], place, yes)
    _copy_groups(panels, places, v, place, no)
    end()


def along_k(plan: Plan) -> bool:
    """Whether a group's elements are contiguous in B, with a constant stride between columns."""
    b, k, n = plan.b, plan.loops.k[-1], plan.loops.n
    if not (plan.is_one_loop(k, b) and plan.is_one_loop(n, b)):
        return False
    return isinstance(b.steps[k[-1]], int) and b.steps[k[-1]] == 1


def _whole(columns: Columns, v: int, lanes: int) -> bool:
    valid = columns.valid
    return valid is None or (isinstance(valid, int) and (v + 1) * lanes <= valid)


def _join(panels: Panels, places: list[Size], place: Size, at: IndexBuilder) -> None:
    """panel[.., j, g] = B[places[g] + j] for one vector of columns"""
    plan = panels.plan
    kind = vector_of(plan.packed_element, plan.lanes)
    parts = [
        at.insert(vector.LoadOp(plan.b.flat, [at.value(source)], kind)).results[0]
        for source in places
    ]
    for number, part in enumerate(joined(parts, at)):
        there = at.value(at.add(place, number * plan.lanes))
        at.insert(vector.StoreOp(bits(part, kind, at), panels.b, [there]))


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


def _store_words(panels: Panels, word: SSAValue, place: Size, at: IndexBuilder) -> None:
    plan = panels.plan
    value = bits(word, vector_of(plan.packed_element, plan.lanes * plan.group), at)
    at.insert(vector.StoreOp(value, panels.b, [at.value(place)]))


def _turn_columns(
    panels: Panels, columns: Columns, base: Size, k0: Size, full: Size, at: IndexBuilder
) -> Size:
    """Packs square tiles of words by transposing them; returns the K elements that it packed."""
    plan, lanes, group = panels.plan, panels.plan.lanes, panels.plan.group
    chunk = lanes * group
    main = at.mul(at.floordiv(full, chunk), chunk)
    kind = vector_of(plan.packed_element, chunk)
    step = plan.b.steps[plan.loops.n[-1]]
    close, k, b = for_loop(at, 0, main, chunk)
    for v in range(columns.vectors):
        first = b.add(b.add(base, b.add(k0, k)), b.mul(b.add(columns.start, v * lanes), step))
        rows: list[SSAValue] = []
        for lane in range(lanes):
            place = b.value(b.add(first, b.mul(step, lane)))
            read = b.insert(vector.LoadOp(plan.b.flat, [place], kind)).results[0]
            rows.append(bits(read, vector_of(i32, lanes), b))
        target = b.add(b.mul(k, columns.vectors * lanes), v * chunk)
        for number, word in enumerate(transposed(rows, b)):
            _store_words(panels, word, b.add(target, number * columns.vectors * chunk), b)
    close()
    return main


def _each_lane(
    panels: Panels, v: int, place: Size, b: IndexBuilder, inside: Callable[..., None]
) -> None:
    """Calls inside(offset of a column in B, offset of its group in the panel, builder) per lane."""
    plan = panels.plan
    close, lane, c = for_loop(b, 0, plan.lanes, 1)
    number = c.value(c.add(lane, v * plan.lanes))
    offset = c.insert(memref.LoadOp.get(panels.offsets, [number])).results[0]
    inside(offset, c.add(place, c.mul(lane, plan.group)), c)
    close()


def _copy_groups(panels: Panels, places: list[Size], v: int, place: Size, b: IndexBuilder) -> None:
    def inside(offset: Size, target: Size, c: IndexBuilder) -> None:
        for g, source in enumerate(places):
            move(panels.plan.b.flat, c.add(source, offset), panels.b, c.add(target, g), c)

    _each_lane(panels, v, place, b, inside)


def _last_group(
    panels: Panels, columns: Columns, base: Size, part: Slice, full: Size, at: IndexBuilder
) -> None:
    """Packs the incomplete last group, which starts at `full`, if there is one."""
    plan = panels.plan
    assert plan.dot is not None
    assert part.depth is not None
    group, width = plan.group, columns.vectors * plan.lanes
    close_group, k, b = for_loop(at, full, part.depth, group)
    pad = b.insert(arith.ConstantOp(padding(plan.dot, -0.0))).results[0]
    rest = b.sub(part.depth, k)

    def inside(offset: Size, target: Size, c: IndexBuilder) -> None:
        close, g, d = for_loop(c, 0, rest, 1)
        inner = d.add(d.add(part.start, k), g)
        source = d.add(d.add(base, spread(plan.loops.k[-1], inner, plan.b, plan.sizes, d)), offset)
        move(plan.b.flat, source, panels.b, d.add(target, g), d)
        close()
        close, g, d = for_loop(c, rest, group, 1)
        d.insert(memref.StoreOp.get(pad, panels.b, [d.value(d.add(target, g))]))
        close()

    for v in range(columns.vectors):
        _each_lane(panels, v, b.add(b.mul(k, width), v * plan.lanes * group), b, inside)
    close_group()


# --- values -------------------------------------------------------------------------------


def bits(value: SSAValue, kind: object, at: IndexBuilder) -> SSAValue:
    """Returns the value bitcast to another vector type."""
    return at.insert(vector.BitcastOp(value, kind)).results[0]


def splat_of(number: int, element: IntegerType, lanes: int, at: IndexBuilder) -> SSAValue:
    """Returns a constant vector."""
    value = DenseIntOrFPElementsAttr.from_list(vector_of(element, lanes), [number])
    return at.insert(arith.ConstantOp(value)).results[0]


def padding(dot: DotProduct, zero: float) -> IntegerAttr | FloatAttr:
    """Returns the padding of an incomplete last group."""
    if isinstance(dot.element, IntegerType):
        return IntegerAttr(0, dot.element)
    return FloatAttr(zero, dot.element)


def move(
    source: SSAValue, place: Size, target: SSAValue | None, there: Size, at: IndexBuilder
) -> None:
    """target[there] = source[place]"""
    value = at.insert(memref.LoadOp.get(source, [at.value(place)])).results[0]
    at.insert(memref.StoreOp.get(value, target, [at.value(there)]))
