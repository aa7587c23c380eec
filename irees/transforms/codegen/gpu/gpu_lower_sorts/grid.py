"""
The three kernels that sort rows by one digit with many workgroups. Part of
`irees-gpu-lower-sorts`.

Rows are cut into tiles, one per workgroup. `count` counts the digits of each tile, `scan` computes
the prefix sums of a digit over the tiles of a row, and `move` sorts each tile by the digit
(`ranks.py`) and stores it. Elements with one digit are adjacent in the sorted tile, and so are
their new positions: a tile of 4096 stores runs of 16 elements on average, not single ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, i32
from xdsl.ir import SSAValue

from irees.dialects.upstream.gpu import BarrierOp
from irees.dialects.upstream.memref import atomic_rmw
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.rows import as_type, compare, load, scratch, store
from irees.transforms.codegen.gpu.gpu_lower_sorts.ranks import Ranks, Thread, add_earlier, scan_warp
from irees.transforms.codegen.gpu.utils.segments import kernel, threads
from irees.transforms.codegen.gpu.utils.sort_tiles import Tile
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.codegen.gpu.utils.warps import (
    before,
    both,
    count_type_for,
    integer,
    private,
    shared,
    truth,
    unrolled,
    widened,
)
from irees.transforms.utils.loops import for_loop, if_else, if_values
from irees.transforms.utils.shapes import IndexBuilder, Size

Read = Callable[[Size, IndexBuilder], SSAValue]
"""Emits a load of the word, or of the origin, at a position of a row."""

Give = Callable[[SSAValue, SSAValue, SSAValue, IndexBuilder], None]
"""Emits the stores of an element: its new position, its word and its origin."""

Digit = Callable[[SSAValue, IndexBuilder], SSAValue]
"""Emits the digit, an i32, of a word."""


@dataclass(frozen=True)
class Grid:
    """Rows in tiles, and the counts of the digits of each tile."""

    rows: Size
    size: Size
    word: IntegerType
    tile: Tile
    tiles: Size
    counts: SSAValue
    """[row, digit, tile], linear: the count of the tile; after `scan`, of all earlier tiles."""
    totals: SSAValue
    """[row, digit], linear: the count of the row."""

    @staticmethod
    def of(rows: Size, size: Size, width: int, tile: Tile, at: IndexBuilder) -> Grid:
        """Allocates the counts."""
        tiles, kind = at.ceildiv(size, tile.size), count_type_for(size)
        every = at.mul(rows, tile.digits)
        counts = scratch(kind, at.mul(every, tiles), at)
        totals = scratch(kind, every, at)
        return Grid(rows, size, IntegerType(width), tile, tiles, counts, totals)

    @property
    def kind(self) -> IntegerType:
        """The type of counts and origins."""
        return count_type_for(self.size)

    def kernel(
        self, at: IndexBuilder, body: Callable[[SSAValue, SSAValue, IndexBuilder], None]
    ) -> None:
        """Emits a kernel with a workgroup per row and tile."""

        def work(workgroup: SSAValue, b: IndexBuilder) -> None:
            row = b.value(b.floordiv(workgroup, self.tiles))
            body(row, b.value(b.rem(workgroup, self.tiles)), b)

        kernel(
            at, at.mul(self.rows, self.tiles), work, self.tile.threads, NVIDIA.sort_wide_workgroups
        )

    def part(self, which: SSAValue, b: IndexBuilder) -> tuple[Size, SSAValue]:
        """Returns the position of a tile's first element, and its number of elements."""
        offset = b.mul(which, self.tile.size)
        if self.is_exact:
            return offset, b.value(self.tile.size)
        return offset, b.value(b.minimum(self.tile.size, b.sub(self.size, offset)))

    @property
    def is_exact(self) -> bool:
        """Whether all tiles are full, so that no place needs a bounds check."""
        return isinstance(self.size, int) and self.size % self.tile.size == 0

    def inside(self, place: Size, left: SSAValue, at: IndexBuilder) -> SSAValue:
        """Whether a place in a tile is before the end of the row; `left` (i32) elements remain."""
        return truth(at) if self.is_exact else before(place, left, at)

    def total_place(self, row: SSAValue, digit: SSAValue, b: IndexBuilder) -> Size:
        """Returns the index in `totals` of a digit."""
        return b.add(b.mul(row, self.tile.digits), digit)

    def count_place(self, row: SSAValue, digit: SSAValue, which: SSAValue, b: IndexBuilder) -> Size:
        """Returns the index in `counts` of a digit in a tile."""
        return b.add(b.mul(self.total_place(row, digit, b), self.tiles), which)

    def count(
        self, at: IndexBuilder, words: Callable[[SSAValue, IndexBuilder], Read], digit: Digit
    ) -> None:
        """Emits the kernel that counts the digits of each tile."""
        tile = self.tile

        def work(row: SSAValue, which: SSAValue, b: IndexBuilder) -> None:
            offset, left = self.part(which, b)
            read, counts = words(row, b), shared(i32, [tile.digits], b)
            close, index, c = threads(b, tile.threads)
            inside = compare(index, tile.digits, "slt", c)
            end, d = if_else(c, inside)
            store(integer(0, i32, d), counts, [index], d)
            end()
            c.insert(BarrierOp())
            body, i, d = unrolled(c, tile.items)
            where = d.value(d.add(index, d.mul(i, tile.threads)))
            place = where if self.is_exact else d.minimum(where, d.sub(left, 1))
            mine = as_type(digit(read(d.add(offset, place), d), d), IndexType(), d)
            end, e = if_else(d, self.inside(where, as_type(left, i32, d), d))
            e.insert(atomic_rmw("addi", integer(1, i32, e), counts, [mine]))
            end()
            body()
            c.insert(BarrierOp())
            end, d = if_else(c, inside)
            total = widened(load(counts, [index], d), self.kind, d)
            store(total, self.counts, [self.count_place(row, index, which, d)], d)
            end()
            close()

        self.kernel(at, work)

    def scan(self, at: IndexBuilder) -> None:
        """Emits the kernel that replaces counts by their prefix sums over the tiles of a row."""
        size = NVIDIA.sort_scan_threads

        def work(which: SSAValue, b: IndexBuilder) -> None:
            first, sums = b.mul(which, self.tiles), shared(self.kind, [WARP], b)
            close, index, c = threads(b, size)
            warp, lane = c.value(c.floordiv(index, WARP)), c.value(c.rem(index, WARP))
            none = integer(0, self.kind, c)
            loop, begin, d = for_loop(c, 0, self.tiles, size, [none])
            (before,) = loop.arguments
            tile = d.value(d.add(begin, index))
            inside = compare(tile, self.tiles, "slt", d)
            place = d.value(d.add(first, d.minimum(tile, d.sub(self.tiles, 1))))
            count = load(self.counts, [place], d)
            mine = d.insert(arith.SelectOp(inside, count, none)).results[0]
            earlier = scan_warp(lane, warp, mine, sums, [], d)
            d.insert(BarrierOp())
            found = [load(sums, [w], d) for w in range(size // WARP)]
            start = add_earlier(warp, both(arith.AddiOp, before, earlier, d), found[:-1], d)
            end, e = if_else(d, inside)
            store(start, self.counts, [place], e)
            end()
            # All warps have read the sums before the next ones are stored.
            d.insert(BarrierOp())
            for each in found:
                before = both(arith.AddiOp, before, each, d)
            (total,) = loop([before])
            end, d = if_else(c, compare(index, 0, "eq", c))
            store(total, self.totals, [which], d)
            end()
            close()

        kernel(at, at.mul(self.rows, self.tile.digits), work, size)

    def move(
        self, at: IndexBuilder, words: Callable[[SSAValue, IndexBuilder], Read],
        origins: Callable[[SSAValue, IndexBuilder], Read],
        give: Callable[[SSAValue, IndexBuilder], Give], digit: Digit,
    ) -> None:  # fmt: skip
        """Emits the kernel that sorts each tile by a digit and stores it."""

        def work(row: SSAValue, which: SSAValue, b: IndexBuilder) -> None:
            part = Part.of(self, row, which, digit, b)
            part.sort(words(row, b), origins(row, b), give(row, b), b)

        self.kernel(at, work)


@dataclass(frozen=True)
class Part:
    """A tile of a row that a workgroup moves, and its shared memory."""

    grid: Grid
    row: SSAValue
    which: SSAValue
    offset: Size
    left: SSAValue
    """Its number of elements."""
    digit: Digit
    ranks: Ranks
    starts: SSAValue
    """Per digit: the new position of an element, less its place in the sorted tile."""
    words: SSAValue
    origins: SSAValue

    @staticmethod
    def of(grid: Grid, row: SSAValue, which: SSAValue, digit: Digit, at: IndexBuilder) -> Part:
        """Allocates the shared memory."""
        offset, left = grid.part(which, at)
        ranks = Ranks.allocate(grid.tile, grid.kind, at)
        starts = shared(grid.kind, [grid.tile.digits], at)
        staged = [shared(k, [grid.tile.size], at) for k in (grid.word, grid.kind)]
        return Part(grid, row, which, offset, left, digit, ranks, starts, *staged)

    def sort(self, words: Read, origins: Read, give: Give, at: IndexBuilder) -> None:
        """Emits the loop over threads."""
        tile = self.grid.tile
        close, index, b = threads(at, tile.threads)
        thread = Thread.of(index, tile, b)
        mine, places = private(self.grid.word, tile.items, b), private(i32, tile.items, b)
        self._load(thread, words, self.grid.word, b, lambda i, word, c: store(word, mine, [i], c))
        self.ranks.clear(thread, b)
        left = as_type(b.value(b.sub(self.left, thread.first)), i32, b)

        def digit(i: SSAValue, c: IndexBuilder) -> SSAValue:
            found = self.digit(load(mine, [i], c), c)
            if self.grid.is_exact:
                return found
            inside = before(c.mul(i, WARP), left, c)
            last = integer(tile.digits - 1, i32, c)
            return c.insert(arith.SelectOp(inside, found, last)).results[0]

        self.ranks.count(thread, places, digit, b)
        self._scan(thread, b)

        def stage(i: SSAValue, origin: SSAValue, c: IndexBuilder) -> None:
            where = self.ranks.place(thread, places, i, c)
            store(load(mine, [i], c), self.words, [where], c)
            store(origin, self.origins, [where], c)

        self._load(thread, origins, self.grid.kind, b, stage)
        b.insert(BarrierOp())
        self._store(thread, give, b)
        close()

    def _load(
        self, thread: Thread, read: Read, kind: IntegerType, at: IndexBuilder,
        use: Callable[[SSAValue, SSAValue, IndexBuilder], None],
    ) -> None:  # fmt: skip
        """Loads the words, or the origins, of a thread; 0 past the end."""
        body, i, b = unrolled(at, self.grid.tile.items)
        place = thread.place(i, b)
        if self.grid.is_exact:
            use(i, read(b.add(self.offset, place), b), b)
            body()
            return
        # A branch, not a bounded place: the loads of a thread then share one address.
        close, yes, no = if_values(b, compare(place, self.left, "slt", b), [kind])
        (value,) = close([read(yes.add(self.offset, place), yes)], [integer(0, kind, no)])
        use(i, value, b)
        body()

    def _scan(self, thread: Thread, at: IndexBuilder) -> None:
        """Computes the places in the sorted tile, and where they start in the sorted row."""
        grid = self.grid

        def total(digit: SSAValue, b: IndexBuilder) -> SSAValue:
            return load(grid.totals, [grid.total_place(self.row, digit, b)], b)

        def use(digit: SSAValue, first: SSAValue, sums: Sequence[SSAValue], b: IndexBuilder):
            earlier = load(grid.counts, [grid.count_place(self.row, digit, self.which, b)], b)
            start = both(arith.AddiOp, sums[1], earlier, b)
            less = both(arith.SubiOp, start, widened(first, grid.kind, b), b)
            store(less, self.starts, [digit], b)

        self.ranks.scan(thread, at, use, [total])

    def _store(self, thread: Thread, give: Give, at: IndexBuilder) -> None:
        """Stores the sorted tile: adjacent threads have adjacent elements."""
        grid, tile = self.grid, self.grid.tile
        left = as_type(at.value(at.sub(self.left, thread.index)), i32, at)
        last = as_type(at.value(at.sub(grid.size, 1)), grid.kind, at)
        body, i, b = unrolled(at, tile.items)
        skipped = b.mul(i, tile.threads)
        where = b.value(b.add(thread.index, skipped))
        word, origin = (load(buffer, [where], b) for buffer in (self.words, self.origins))
        digit = as_type(self.digit(word, b), IndexType(), b)
        place = both(arith.AddiOp, load(self.starts, [digit], b), as_type(where, grid.kind, b), b)
        # Bounds the place for `irees-verify-accesses`, in one instruction.
        place = as_type(both(arith.MinUIOp, place, last, b), IndexType(), b)
        close, c = if_else(b, grid.inside(skipped, left, b))
        give(place, word, origin, c)
        close()
        body()
