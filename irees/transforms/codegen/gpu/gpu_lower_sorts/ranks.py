"""
Ranks the elements of a tile by one digit of their keys. Part of `irees-gpu-lower-sorts`.

A tile is the set of elements that a workgroup holds in registers: `items` per thread. The elements
of a warp are adjacent, and item i of lane l is number 32 * i + l of them, so that global accesses
are coalesced. A warp's elements are thus ordered by item, then by lane.

    count:  rank[i] = counts[warp, digit] + ctpop(same & earlier lanes)
            counts[warp, digit] += ctpop(same)                        by the first of `same`
    scan:   counts[warp, digit] = elements of the tile with smaller digits, and with this digit in
            earlier warps
    place:  rank[i] + counts[warp, digit]

`same` is the set of lanes with the same digit (`nvvm.match.sync`). A digit needs one match per
element, no atomics, and three barriers: the loop over items is the only serial part. Elements past
the end take the largest digit. They are the last of the tile, so they rank last and displace none
(Adinets and Merrill, "Onesweep", 2022, for the order of the steps).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, IntegerType, i32
from xdsl.ir import SSAValue

from irees.dialects.upstream.gpu import BarrierOp, ShuffleOp
from irees.transforms.codegen.common.utils.rows import as_type, compare, load, store
from irees.transforms.codegen.gpu.utils.sort_tiles import Tile
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.codegen.gpu.utils.warps import (
    both,
    integer,
    match,
    narrowed,
    shared,
    unrolled,
    wait,
    widened,
)
from irees.transforms.utils.loops import if_else
from irees.transforms.utils.shapes import IndexBuilder, Size

RANK_BITS = 16
"""Bits of a rank in a warp; the digit is stored in the bits above, to avoid recomputing it."""

Digit = Callable[[SSAValue, IndexBuilder], SSAValue]
"""Emits the digit, an i32, of an item of the thread."""


@dataclass(frozen=True)
class Thread:
    """The ids of a thread, and the place of its first item in the tile."""

    index: SSAValue
    warp: SSAValue
    lane: SSAValue
    first: SSAValue
    earlier: SSAValue
    """Bit mask of the preceding lanes."""

    @staticmethod
    def of(index: SSAValue, tile: Tile, at: IndexBuilder) -> Thread:
        """Computes the ids from the index of the thread."""
        warp, lane = at.value(at.floordiv(index, WARP)), at.value(at.rem(index, WARP))
        first = at.value(at.add(at.mul(warp, WARP * tile.items), lane))
        bit = both(arith.ShLIOp, integer(1, i32, at), as_type(lane, i32, at), at)
        return Thread(index, warp, lane, first, both(arith.SubiOp, bit, integer(1, i32, at), at))

    def place(self, item: SSAValue, at: IndexBuilder) -> SSAValue:
        """Returns the place of an item in the tile."""
        return at.value(at.add(self.first, at.mul(item, WARP)))


@dataclass(frozen=True)
class Ranks:
    """The counts of each digit in each warp, in shared memory."""

    tile: Tile
    counts: SSAValue
    sums: SSAValue

    @staticmethod
    def allocate(tile: Tile, sums: IntegerType, at: IndexBuilder) -> Ranks:
        """Allocates counts; `sums` is the type of the sums of `scan`."""
        counts = shared(i32, [tile.warps, max(WARP, tile.digits)], at)
        return Ranks(tile, counts, shared(sums, [2, tile.warps], at))

    def clear(self, thread: Thread, at: IndexBuilder) -> None:
        """Zeroes the counts of the thread's warp."""
        body, i, b = unrolled(at, max(WARP, self.tile.digits) // WARP)
        place = b.add(b.mul(i, WARP), thread.lane)
        store(integer(0, i32, b), self.counts, [thread.warp, place], b)
        body()
        wait(at)

    def count(self, thread: Thread, ranks: SSAValue, digit: Digit, at: IndexBuilder) -> None:
        """
        Stores the rank of each item among the items of the warp with the same digit, with the digit
        in the bits above, and counts the item.
        """
        body, i, b = unrolled(at, self.tile.items)
        mine = digit(i, b)
        same = match(mine, self.tile.digit, b)
        place = [thread.warp, as_type(mine, IndexType(), b)]
        before = load(self.counts, place, b)
        earlier = both(arith.AndIOp, same, thread.earlier, b)
        rank = both(arith.AddiOp, before, b.insert(math.CtPopOp(earlier)).results[0], b)
        high = both(arith.ShLIOp, mine, integer(RANK_BITS, i32, b), b)
        store(both(arith.OrIOp, rank, high, b), ranks, [i], b)
        # Orders the reads of the count by all lanes before its update by one, and vice versa.
        wait(b)
        first = b.insert(arith.CmpiOp(earlier, integer(0, i32, b), "eq")).results[0]
        close, c = if_else(b, first)
        more = c.insert(math.CtPopOp(same)).results[0]
        store(both(arith.AddiOp, before, more, c), self.counts, place, c)
        close()
        wait(b)
        body()

    def scan(
        self, thread: Thread, at: IndexBuilder,
        use: Callable[[SSAValue, SSAValue, Sequence[SSAValue], IndexBuilder], None],
        more: Sequence[Callable[[SSAValue, IndexBuilder], SSAValue]] = (),
    ) -> None:  # fmt: skip
        """
        Replaces the counts by the place of the first element of each digit and warp. Calls `use` in
        one thread per digit with the digit's first place, its number of elements and, for each
        count in `more`, the sum of that count over all smaller digits. Starts and ends with a
        barrier.
        """
        tile, kind = self.tile, self.sums.type.element_type  # type: ignore[attr-defined]
        at.insert(BarrierOp())
        digit = at.value(at.minimum(thread.index, tile.digits - 1))
        inside = compare(thread.index, tile.digits, "slt", at)
        found = [load(self.counts, [warp, digit], at) for warp in range(tile.warps)]
        total = found[0]
        for count in found[1:]:
            total = both(arith.AddiOp, total, count, at)
        values = [widened(total, kind, at), *(get(digit, at) for get in more)]
        none = integer(0, kind, at)
        kept = [at.insert(arith.SelectOp(inside, v, none)).results[0] for v in values]
        before = [
            scan_warp(thread.lane, thread.warp, v, self.sums, [i], at) for i, v in enumerate(kept)
        ]
        at.insert(BarrierOp())
        close, b = if_else(at, inside)
        warps = max(1, tile.digits // WARP) - 1
        sums = [[load(self.sums, [i, w], b) for w in range(warps)] for i in range(len(before))]
        starts = [add_earlier(thread.warp, v, row, b) for v, row in zip(before, sums, strict=True)]
        start = first = narrowed(starts[0], b)
        for warp, count in enumerate(found):
            store(start, self.counts, [warp, digit], b)
            start = both(arith.AddiOp, start, count, b)
        use(digit, first, [total, *starts[1:]], b)
        close()
        at.insert(BarrierOp())

    def place(self, thread: Thread, ranks: SSAValue, item: SSAValue, at: IndexBuilder) -> SSAValue:
        """Returns the place of an item in the sorted tile, once counts are scanned."""
        packed = load(ranks, [item], at)
        rank = both(arith.AndIOp, packed, integer((1 << RANK_BITS) - 1, i32, at), at)
        mine = both(arith.ShRUIOp, packed, integer(RANK_BITS, i32, at), at)
        # Bounds the digit for `irees-verify-accesses`; the compiler drops it.
        mine = both(arith.AndIOp, mine, integer(self.tile.digits - 1, i32, at), at)
        mine = as_type(mine, IndexType(), at)
        place = both(arith.AddiOp, rank, load(self.counts, [thread.warp, mine], at), at)
        # Bounds the place for `irees-verify-accesses`, in one instruction.
        last = integer(self.tile.size - 1, i32, at)
        return as_type(both(arith.MinUIOp, place, last, at), IndexType(), at)


def scan_warp(
    lane: SSAValue, warp: SSAValue, value: SSAValue, sums: SSAValue, row: Sequence[Size],
    at: IndexBuilder,
) -> SSAValue:  # fmt: skip
    """Returns the sum of the preceding lanes; stores the sum of the warp in `sums[row, warp]`."""
    number_of_lane = as_type(lane, i32, at)
    zero = integer(0, value.type, at)
    before, whole = zero, value
    for distance in (1, 2, 4, 8, 16):
        step = integer(distance, i32, at)
        theirs = at.insert(ShuffleOp(whole, step, integer(WARP, i32, at))).results[0]
        bit = both(arith.AndIOp, number_of_lane, step, at)
        later = at.insert(arith.CmpiOp(bit, integer(0, i32, at), "ne")).results[0]
        more = at.insert(arith.SelectOp(later, theirs, zero)).results[0]
        before = both(arith.AddiOp, before, more, at)
        whole = both(arith.AddiOp, whole, theirs, at)
    close, b = if_else(at, compare(lane, 0, "eq", at))
    store(whole, sums, [*row, warp], b)
    close()
    return before


def add_earlier(
    warp: SSAValue, value: SSAValue, sums: Sequence[SSAValue], at: IndexBuilder
) -> SSAValue:
    """Adds the sums of the warps before one."""
    zero = integer(0, value.type, at)
    for other, sum_ in enumerate(sums):
        earlier = compare(other, warp, "slt", at)
        more = at.insert(arith.SelectOp(earlier, sum_, zero)).results[0]
        value = both(arith.AddiOp, value, more, at)
    return value
