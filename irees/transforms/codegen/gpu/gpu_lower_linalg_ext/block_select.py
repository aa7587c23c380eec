"""
Radix selection of the first k elements of a row, by all threads of a workgroup. Part of
`irees-gpu-lower-linalg-ext`.

A selection starts at the highest digit (MSD): it finds the digit of the k-th element, then counts
only elements with that prefix by the next digit. Nothing moves until the key of the k-th element is
known. A last pass collects the smaller elements, and the first of the equal ones. It needs no copy
of the row (Alabi et al., "Fast k-selection algorithms for GPUs", 2012). `utils/block_radix.py` has
the digits and their counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue

from irees.dialects.upstream.gpu import BarrierOp
from irees.transforms.codegen.common.utils.rows import as_type, compare, load, select, store
from irees.transforms.codegen.gpu.utils.block_radix import (
    DIGIT,
    DIGITS,
    WARPS,
    Lane,
    Pairs,
    Tallies,
)
from irees.transforms.codegen.gpu.utils.segments import threads
from irees.transforms.codegen.gpu.utils.warps import both, digit_of, integer, resized
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size

Read = Callable[[SSAValue, IndexBuilder], SSAValue]
"""Emits a load of the key of a row element."""


@dataclass(frozen=True)
class Selection:
    """A row of `size` keys, which `read` loads; the smallest of them become `kept`."""

    tallies: Tallies
    read: Read
    size: Size
    kept: Pairs

    def select(self, at: IndexBuilder) -> None:
        """Collects the `kept.size` smallest keys: those below the k-th key, then its equals."""
        tallies, kept, width = self.tallies, self.kept, self.kept.width
        want = as_type(at.value(kept.size), tallies.kind, at)
        kind, zero = IntegerType(width), integer(0, tallies.kind, at)
        close, place, b = threads(at, 2)
        store(integer(0, tallies.kind, b), tallies.found, [place], b)
        close()
        nothing = integer(0, kind, at)
        loop, number, b = for_loop(at, 0, width // DIGIT, 1, [nothing, nothing, want])
        known, bits, left = loop.arguments
        above = b.sub(width // DIGIT - 1, number)
        shift = as_type(b.value(b.mul(above, DIGIT)), kind, b)

        def count(lane: Lane, c: IndexBuilder) -> None:
            key = self.read(lane.index, c)
            mine = both(arith.AndIOp, key, bits, c)
            alike = c.insert(arith.CmpiOp(mine, known, "eq")).results[0]
            inside = both(arith.AndIOp, lane.inside, alike, c)
            tallies.tally(replace(lane, inside=inside), digit_of(key, shift, c, DIGIT), c)

        def choose(digit: SSAValue, before: SSAValue, total: SSAValue, c: IndexBuilder) -> None:
            after = both(arith.AddiOp, before, total, c)
            some = c.insert(arith.CmpiOp(before, left, "slt")).results[0]
            enough = c.insert(arith.CmpiOp(left, after, "sle")).results[0]
            close, d = if_else(c, both(arith.AndIOp, some, enough, c))
            store(as_type(digit, tallies.kind, d), tallies.found, [0], d)
            store(both(arith.SubiOp, left, before, d), tallies.found, [1], d)
            close()

        tallies.clear(b)
        tallies.each(self.size, b, count)
        tallies.scan(b, choose)
        digit = resized(load(tallies.found, [0], b), kind, b)
        more = both(arith.ShLIOp, digit, shift, b)
        ones = both(arith.ShLIOp, integer(DIGITS - 1, kind, b), shift, b)
        known, _, left = loop(
            [
                both(arith.OrIOp, known, more, b),
                both(arith.OrIOp, bits, ones, b),
                load(tallies.found, [1], b),
            ]
        )
        self._collect(known, both(arith.SubiOp, want, left, at), zero, at)

    def _collect(self, last: SSAValue, smaller: SSAValue, zero: SSAValue, at: IndexBuilder) -> None:
        """Collects the `smaller` keys below the k-th one in row order, then those equal to it."""
        tallies, kept = self.tallies, self.kept

        def group(lane: Lane, c: IndexBuilder) -> tuple[Lane, SSAValue, SSAValue]:
            key = self.read(lane.index, c)
            equal = c.insert(arith.CmpiOp(key, last, "eq")).results[0]
            wanted = c.insert(arith.CmpiOp(key, last, "ule")).results[0]
            inside = both(arith.AndIOp, lane.inside, wanted, c)
            return replace(lane, inside=inside), c.insert(arith.ExtUIOp(equal, i32)).results[0], key

        def count(lane: Lane, c: IndexBuilder) -> None:
            mine, number, _ = group(lane, c)
            tallies.tally(mine, number, c)

        def take(lane: Lane, c: IndexBuilder) -> None:
            mine, number, key = group(lane, c)

            def give(place: SSAValue, d: IndexBuilder) -> None:
                close, e = if_else(d, compare(place, kept.size, "slt", d))
                kept.put(place, key, lane.index, e)
                close()

            tallies.rank(mine, number, c, give)

        tallies.clear(at)
        tallies.each(self.size, at, count)
        close, number, b = threads(at, 2)
        start = select(compare(number, 0, "eq", b), zero, smaller, b)
        loop, warp, c = for_loop(b, 0, WARPS, 1, [start])
        before = load(tallies.counts, [warp, number], c)
        store(loop.arguments[0], tallies.counts, [warp, number], c)
        loop([both(arith.AddiOp, loop.arguments[0], before, c)])
        close()
        at.insert(BarrierOp())
        tallies.each(self.size, at, take)
