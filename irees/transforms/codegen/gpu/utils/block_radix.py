"""
Radix sort of one row by all threads of a workgroup. Part of `irees-gpu-lower-linalg-ext` and
`irees-gpu-lower-scatters`.

Keys are unsigned integers with the order of the original numbers (`common/utils/radix_sort.py`), in
digits of eight bits. Every warp processes a part of the row, 32 adjacent elements at a time. Lanes
with the same digit find each other with `nvvm.match.sync`: the first of them updates the count, and
each knows how many of them precede it. Counts therefore need no atomics. The position of an element
follows from the smaller digits, the earlier warps, and the preceding elements of its own warp.

    tally:  counts[warp, digit] += ctpop(same)                      by the first of `same`
    scan:   starts[digit] = sum of counts[., smaller digits] ; counts[warp, digit] = those of the
            digit in earlier warps
    move:   place = starts[digit] + counts[warp, digit] + ctpop(same & earlier lanes)

A sort is a stable move by each digit, lowest first (LSD) (Knuth, TAOCP 3, 5.2.5; Ashkiani et al.,
"GPU multisplit", 2016, for the warp-level part).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    MemRefType,
    i16,
    i32,
    i64,
)
from xdsl.ir import Operation, SSAValue

from irees.dialects.upstream.gpu import BarrierOp, ShuffleOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    compare,
    load,
    scratch,
    store,
)
from irees.transforms.codegen.gpu.utils.segments import (
    has_its_threads,
    set_fewest_workgroups,
    set_threads,
    threads,
)
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.codegen.gpu.utils.warps import (
    both,
    count_type_for,
    digit_of,
    integer,
    match,
    resized,
    shared,
    wait,
)
from irees.transforms.utils.loops import for_loop, if_else, if_values
from irees.transforms.utils.shapes import IndexBuilder, Size

DIGIT = 8
DIGITS = 1 << DIGIT
THREADS = DIGITS
"""Threads per workgroup: one per digit value in the prefix sum."""

WARPS = THREADS // WARP


def why_no_digits(op: Operation, reason: str | None) -> str | None:
    """Returns why radix sort is not used, or sets the thread count for it and returns None."""
    loop = op.parent_op()
    assert loop is not None
    if reason is not None or has_its_threads(loop, THREADS):
        return reason or "another op of the workgroup fixes its number of threads"
    set_threads(loop, THREADS)
    set_fewest_workgroups(loop, 1)
    return None


def index_type_for(size: Size) -> IntegerType:
    """Returns the type for indices into a row (i16, i32 or i64)."""
    if not isinstance(size, int):
        return i64
    return i16 if size <= 1 << 15 else i32 if size < 1 << 31 else i64


@dataclass(frozen=True)
class Pairs:
    """Keys and their origins: one row, or two halves for double buffering."""

    keys: SSAValue
    origins: SSAValue
    size: Size

    @staticmethod
    def allocate(
        width: int, size: Size, places: Size, row: Size, room: int, at: IndexBuilder
    ) -> Pairs:
        """Allocates the buffers, in shared memory if `room` (bytes) suffices."""
        kinds = (IntegerType(width), index_type_for(row))
        taken = sum(k.width.data // 8 for k in kinds) * places if isinstance(places, int) else None
        if taken is None or taken > room:
            return Pairs(*(scratch(kind, places, at) for kind in kinds), size)
        return Pairs(*(shared(kind, [places], at) for kind in kinds), size)

    @property
    def width(self) -> int:
        """Bits of a key."""
        kind = self.keys.type
        assert isinstance(kind, MemRefType)
        assert isinstance(kind.element_type, IntegerType)
        return kind.element_type.width.data

    def put(self, place: Size, key: SSAValue, origin: Size, at: IndexBuilder) -> None:
        """Stores the key and the origin of an element at a place."""
        kind = self.origins.type.element_type  # type: ignore[attr-defined]
        store(key, self.keys, [place], at)
        store(as_type(at.value(origin), kind, at), self.origins, [place], at)

    def origin(self, place: Size, at: IndexBuilder) -> SSAValue:
        """Returns the original index of the element at a place."""
        return as_type(load(self.origins, [place], at), IndexType(), at)


@dataclass(frozen=True)
class Lane:
    """The current element of a lane; clamped to a valid index if not `inside`."""

    index: SSAValue
    inside: SSAValue
    warp: Size
    earlier: SSAValue
    """Bit mask of the preceding lanes."""


@dataclass(frozen=True)
class Tallies:
    """Counts of each digit in each warp's part of the row, in shared memory."""

    kind: IntegerType
    counts: SSAValue
    starts: SSAValue
    sums: SSAValue
    found: SSAValue

    @staticmethod
    def allocate(size: Size, at: IndexBuilder) -> Tallies:
        """Allocates counts for rows of that size."""
        kind = count_type_for(size)
        shapes = ([WARPS, DIGITS], [DIGITS], [WARPS], [2])
        return Tallies(kind, *(shared(kind, shape, at) for shape in shapes))

    @staticmethod
    def bytes_for(size: Size) -> int:
        """Returns their shared memory in bytes."""
        numbers = WARPS * DIGITS + DIGITS + WARPS + 2
        return numbers * count_type_for(size).width.data // 8

    # --- run by all threads ----------------------------------------------------------------------

    def clear(self, at: IndexBuilder) -> None:
        """Zeroes the counts."""
        close, thread, b = threads(at, THREADS)
        body, warp, c = for_loop(b, 0, WARPS, 1)
        store(integer(0, self.kind, c), self.counts, [warp, thread], c)
        body()
        close()
        at.insert(BarrierOp())

    def each(self, size: Size, at: IndexBuilder, visit: Callable[[Lane, IndexBuilder], None]):
        """Visits all elements of a row, in order within a warp; ends with a barrier."""
        close, thread, b = threads(at, THREADS)
        warp, lane = b.floordiv(thread, WARP), b.value(b.rem(thread, WARP))
        bit = both(arith.ShLIOp, integer(1, i32, b), as_type(lane, i32, b), b)
        earlier = both(arith.SubiOp, bit, integer(1, i32, b), b)
        share = b.mul(b.ceildiv(size, THREADS), WARP)
        first = b.mul(warp, share)
        end = b.minimum(b.add(first, share), size)
        body, group, c = for_loop(b, first, end, WARP)
        index = c.add(group, lane)
        inside = compare(index, end, "slt", c)
        visit(Lane(c.value(c.minimum(index, c.sub(end, 1))), inside, warp, earlier), c)
        body()
        close()
        at.insert(BarrierOp())

    def tally(self, lane: Lane, digit: SSAValue, at: IndexBuilder) -> None:
        """counts[warp, digit] += 1, for each lane that has an element"""
        self._add(lane, digit, _same(lane, digit, at), at)

    def rank(
        self, lane: Lane, digit: SSAValue, at: IndexBuilder,
        use: Callable[[SSAValue, IndexBuilder], None],
    ) -> None:  # fmt: skip
        """Passes counts[warp, digit] plus the preceding lanes' matches to `use`, then tallies."""
        same = _same(lane, digit, at)
        close, b = if_else(at, lane.inside)
        before = load(self.counts, [lane.warp, as_type(digit, IndexType(), b)], b)
        mine = _counted(both(arith.AndIOp, same, lane.earlier, b), self.kind, b)
        use(as_type(both(arith.AddiOp, before, mine, b), IndexType(), b), b)
        close()
        wait(at)
        self._add(lane, digit, same, at)

    def _add(self, lane: Lane, digit: SSAValue, same: SSAValue, at: IndexBuilder) -> None:
        """Lets the first lane of those with the same digit add their number to the count."""
        before = both(arith.AndIOp, same, lane.earlier, at)
        first = at.insert(arith.CmpiOp(before, integer(0, i32, at), "eq")).results[0]
        close, b = if_else(at, both(arith.AndIOp, first, lane.inside, at))
        place: list[Size] = [lane.warp, as_type(digit, IndexType(), b)]
        count = both(arith.AddiOp, load(self.counts, place, b), _counted(same, self.kind, b), b)
        store(count, self.counts, place, b)
        close()
        wait(at)

    def scan(
        self, at: IndexBuilder, use: Callable[[SSAValue, SSAValue, SSAValue, IndexBuilder], None],
        counts: SSAValue | None = None, parts: Size = WARPS,
    ) -> None:  # fmt: skip
        """
        Calls `use` in one thread per digit with the number of elements with smaller digits and with
        this digit. Replaces the counts of warps (or other parts) with their exclusive prefix sums.
        Ends with a barrier.
        """
        counts = self.counts if counts is None else counts
        close, thread, b = threads(at, THREADS)
        loop, number, c = for_loop(b, 0, parts, NVIDIA.counts_ahead, [integer(0, self.kind, b)])
        (total,) = loop([self._scan_parts(loop.arguments[0], counts, number, thread, parts, c)])
        warp, lane = b.floordiv(thread, WARP), b.value(b.rem(thread, WARP))
        before, whole = self._scan_warp(total, as_type(lane, i32, b), b)
        end, c = if_else(b, compare(lane, 0, "eq", b))
        store(whole, self.sums, [warp], c)
        end()
        b.insert(BarrierOp())
        loop, number, c = for_loop(b, 0, warp, 1, [before])
        (before,) = loop([both(arith.AddiOp, loop.arguments[0], load(self.sums, [number], c), c)])
        use(thread, before, total, b)
        close()
        at.insert(BarrierOp())

    def _scan_parts(
        self, total: SSAValue, counts: SSAValue, number: SSAValue, digit: SSAValue, parts: Size,
        at: IndexBuilder,
    ) -> SSAValue:  # fmt: skip
        """Replaces some counts of a digit with exclusive prefix sums; loads all of them first."""
        numbers = [at.add(number, i) for i in range(NVIDIA.counts_ahead)]
        if isinstance(parts, int) and parts % NVIDIA.counts_ahead == 0:
            for i, count in [(i, load(counts, [i, digit], at)) for i in numbers]:
                store(total, counts, [i, digit], at)
                total = both(arith.AddiOp, total, count, at)
            return total
        last = at.sub(parts, 1)
        found = [load(counts, [at.minimum(i, last), digit], at) for i in numbers]
        for i, count in zip(numbers, found, strict=True):
            inside = compare(i, parts, "slt", at)
            close, b = if_else(at, inside)
            store(total, counts, [i, digit], b)
            close()
            none = integer(0, self.kind, at)
            more = at.insert(arith.SelectOp(inside, count, none)).results[0]
            total = both(arith.AddiOp, total, more, at)
        return total

    def _scan_warp(
        self, value: SSAValue, lane: SSAValue, at: IndexBuilder
    ) -> tuple[SSAValue, SSAValue]:
        """Returns the exclusive prefix sum over the lanes, and the sum of the warp."""
        zero = integer(0, self.kind, at)
        before, whole = zero, value
        for distance in (1, 2, 4, 8, 16):
            width, step = integer(WARP, i32, at), integer(distance, i32, at)
            theirs = at.insert(ShuffleOp(whole, step, width)).results[0]
            bit = both(arith.AndIOp, lane, step, at)
            later = at.insert(arith.CmpiOp(bit, integer(0, i32, at), "ne")).results[0]
            more = at.insert(arith.SelectOp(later, theirs, zero)).results[0]
            before = both(arith.AddiOp, before, more, at)
            whole = both(arith.AddiOp, whole, theirs, at)
        return before, whole


def radix_sort(tallies: Tallies, pairs: Pairs, at: IndexBuilder) -> SSAValue:
    """Sorts the first half of the pairs; returns the offset of the result (0 or size)."""
    width, size = pairs.width, pairs.size
    loop, number, b = for_loop(at, 0, width // DIGIT, 1, [at.value(0)])
    (start,) = loop.arguments
    shift = as_type(b.value(b.mul(number, DIGIT)), IntegerType(width), b)

    def key_of(lane: Lane, c: IndexBuilder) -> SSAValue:
        return load(pairs.keys, [c.add(start, lane.index)], c)

    tallies.clear(b)
    tallies.each(
        size, b, lambda lane, c: tallies.tally(lane, digit_of(key_of(lane, c), shift, c, DIGIT), c)
    )

    def starts(digit: SSAValue, before: SSAValue, total: SSAValue, c: IndexBuilder) -> None:
        store(before, tallies.starts, [digit], c)
        # Stored by the thread of the highest digit that occurs; 0 if it is the only digit.
        every = as_type(c.value(size), tallies.kind, c)
        after = both(arith.AddiOp, before, total, c)
        some = c.insert(arith.CmpiOp(total, integer(0, tallies.kind, c), "ne")).results[0]
        last = c.insert(arith.CmpiOp(after, every, "eq")).results[0]
        close, d = if_else(c, both(arith.AndIOp, some, last, c))
        store(before, tallies.found, [0], d)
        close()

    tallies.scan(b, starts)
    # If all elements share the digit, the move pass is skipped.
    first = load(tallies.found, [0], b)
    moves = b.insert(arith.CmpiOp(first, integer(0, tallies.kind, b), "ne")).results[0]
    end, yes, _ = if_values(b, moves, [IndexType()])
    target = yes.value(yes.sub(size, start))

    def move(lane: Lane, c: IndexBuilder) -> None:
        key = key_of(lane, c)
        digit = digit_of(key, shift, c, DIGIT)

        def give(place: SSAValue, d: IndexBuilder) -> None:
            first = as_type(
                load(tallies.starts, [as_type(digit, IndexType(), d)], d), IndexType(), d
            )
            origin = pairs.origin(d.add(start, lane.index), d)
            pairs.put(d.add(target, d.add(first, place)), key, origin, d)

        tallies.rank(lane, digit, c, give)

    tallies.each(size, yes, move)
    (result,) = end([target], [start])
    return loop([result])[0]


def _same(lane: Lane, digit: SSAValue, at: IndexBuilder) -> SSAValue:
    """Returns the mask of lanes whose element has the same digit."""
    none = integer(DIGITS, i32, at)
    mine = at.insert(arith.SelectOp(lane.inside, digit, none)).results[0]
    return match(mine, DIGIT + 1, at)


def _counted(lanes: SSAValue, kind: IntegerType, at: IndexBuilder) -> SSAValue:
    """Returns the number of lanes in a mask."""
    return resized(at.insert(math.CtPopOp(lanes)).results[0], kind, at)
