"""
Radix-sorts long rows with many workgroups. Part of `irees-gpu-lower-sorts`.

Rows are cut into tiles, and each digit takes three kernels (`grid.py`). Kernel launches are
the only synchronization:

    count (words of %x) ; scan ; move (words of %x, positions)  to %words, %origins
    scf.for %digit = 1 to 3 { count ; scan ; move %words, %origins  to their other half }
    count ; scan ; move %words, %origins  to the operands of the op

A word holds the bits of a value, which keeps the sign of zeros and NaN payloads; its key is
recomputed for each digit. An origin is a position in the row, an i32 if it fits. The first pass
reads the operand itself and computes the origins; the last one stores values and positions, and
gathers other operands by origin. An element of b bytes takes 3 * b + 8 bytes per digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import gpu_of
from irees.dialects.upstream.scf import ForallOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.radix_keys import (
    RadixKey,
    bits_of,
    key_of_bits,
    value_of_bits,
)
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    load,
    other_dims,
    place,
    scratch,
    store,
)
from irees.transforms.codegen.gpu.gpu_lower_sorts.grid import Grid, Read
from irees.transforms.codegen.gpu.utils.predictions import add_cycles
from irees.transforms.codegen.gpu.utils.segments import threads, views_outside
from irees.transforms.codegen.gpu.utils.sort_tiles import Plan, tile_cycles, wide_tile
from irees.transforms.codegen.gpu.utils.warps import digit_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size, delinearize, mixed

KeyOf = Callable[[SSAValue, IndexBuilder], SSAValue]
"""Emits the key of a word."""


@dataclass(frozen=True)
class Halves:
    """Words and origins of all rows in device memory, in two halves."""

    grid: Grid
    words: SSAValue
    origins: SSAValue

    @staticmethod
    def allocate(grid: Grid, halves: int, at: IndexBuilder) -> Halves:
        """Allocates the buffers; one half is enough for two passes."""
        places = at.mul(at.mul(grid.rows, grid.size), halves)
        return Halves(grid, scratch(grid.word, places, at), scratch(grid.kind, places, at))

    def read(self, buffer: SSAValue, start: Size) -> Callable[[SSAValue, IndexBuilder], Read]:
        """Returns a reader of a half of a buffer."""

        def opened(row: SSAValue, b: IndexBuilder) -> Read:
            base = b.add(start, b.mul(row, self.grid.size))
            return lambda i, c: load(buffer, [c.add(base, i)], c)

        return opened

    def give(self, start: Size):
        """Returns a writer of elements to a half."""

        def opened(row: SSAValue, b: IndexBuilder):
            base = b.add(start, b.mul(row, self.grid.size))

            def give(i: SSAValue, word: SSAValue, origin: SSAValue, c: IndexBuilder) -> None:
                where = c.add(base, i)
                store(word, self.words, [where], c)
                store(origin, self.origins, [where], c)

            return give

        return opened

    def sort(self, number: SSAValue, half: Size, key_of: KeyOf, at: IndexBuilder) -> Size:
        """Sorts a half (0 or 1) by digit `number`; returns the position of the other half."""
        size = at.mul(self.grid.rows, self.grid.size)
        start = at.value(at.mul(half, size))
        target = at.value(at.sub(size, start))
        digit = digit_at(self.grid, number, key_of, at)
        words = self.read(self.words, start)
        self.grid.count(at, words, digit)
        self.grid.scan(at)
        self.grid.move(at, words, self.read(self.origins, start), self.give(target), digit)
        return target


def digit_at(
    grid: Grid, number: Size, key_of: KeyOf, at: IndexBuilder
) -> Callable[[SSAValue, IndexBuilder], SSAValue]:
    """Returns a function that emits a digit of a word."""
    shift = at.value(at.mul(number, grid.tile.digit))

    def digit(word: SSAValue, b: IndexBuilder) -> SSAValue:
        by = as_type(shift, grid.word, b)
        return digit_of(key_of(word, b), by, b, grid.tile.digit)

    return digit


def counts_of(loop: ForallOp) -> list[Size]:
    """Returns the numbers of workgroups of a loop, per dim."""
    known = loop.properties["staticUpperBound"].get_values()  # type: ignore[attr-defined]
    return mixed(known, list(loop.dynamicUpperBound))


@dataclass(frozen=True)
class WideSort:
    """The lowering of a sort of rows in tiles."""

    op: ext.SortOp
    loop: ForallOp
    plan: Plan
    size: Size

    @property
    def key(self) -> RadixKey:
        """The sort key."""
        return self.plan.key

    @property
    def dim(self) -> int:
        """The sorted dim."""
        return self.op.dimension.value.data

    def lower(self, at: IndexBuilder) -> None:
        """Emits the kernels in order."""
        gpu = gpu_of(self.op)
        bounds = counts_of(self.loop)
        rows, width = at.product(bounds), self.key.width
        tile = wide_tile(rows, self.size, width, gpu.matrix_shared_bytes, gpu.multiprocessors)
        grid = Grid.of(rows, self.size, width, tile, at)
        if isinstance(tiles := at.mul(rows, grid.tiles), int):
            counted = tile.warps * tile.items * NVIDIA.sort_count
            waves = -(-tiles // gpu.multiprocessors)
            add_cycles(self.op, self.plan.passes * waves * (counted + tile_cycles(tile)))
        passes, end = self.plan.passes, at.mul(at.mul(rows, self.size), self.plan.passes % 2)
        halves = Halves.allocate(grid, 1 if passes == 2 else 2, at)
        row = Row.of(self, bounds, grid, at)
        first = digit_at(grid, 0, self._key_of, at)
        grid.count(at, row.words, first)
        grid.scan(at)
        grid.move(at, row.words, row.positions, halves.give(0), first)
        if passes > 2:
            close, number, host = for_loop(at, 1, passes - 1, 1)
            halves.sort(number, host.rem(host.sub(number, 1), 2), self._key_of, host)
            close()
        last = digit_at(grid, passes - 1, self._key_of, at)
        words, origins = (halves.read(b, end) for b in (halves.words, halves.origins))
        grid.count(at, words, last)
        grid.scan(at)
        grid.move(at, words, origins, row.give, last)

    def _key_of(self, word: SSAValue, b: IndexBuilder) -> SSAValue:
        return key_of_bits(self.key, word, b)


@dataclass(frozen=True)
class Row:
    """The operands of the op, in a kernel with a workgroup per row and tile."""

    sort: WideSort
    bounds: Sequence[Size]
    grid: Grid
    copies: dict[int, SSAValue]
    """The unsorted values, of all rows, of the other operands that are sorted in place."""

    @staticmethod
    def of(sort: WideSort, bounds: Sequence[Size], grid: Grid, at: IndexBuilder) -> Row:
        """Emits the copies, if there are any."""
        row, op = Row(sort, bounds, grid, {}), sort.op
        if op.inputs:
            return row
        for number, target in enumerate(op.outputs):
            if number != sort.key.operand:
                kind = target.type.element_type  # type: ignore[attr-defined]
                row.copies[number] = scratch(kind, at.mul(grid.rows, grid.size), at)
        if row.copies:
            grid.kernel(at, row._copy)
        return row

    def _copy(self, row: SSAValue, which: SSAValue, b: IndexBuilder) -> None:
        """Copies a tile of the operands."""
        known = self._views(row, b)
        offset, left = self.grid.part(which, b)
        base = b.add(b.mul(row, self.grid.size), offset)

        close, i, c = threads(b, left)
        for number, copy in self.copies.items():
            source = self._view(known, self.sort.op.outputs[number])
            store(load(source, self._place(c.add(offset, i)), c), copy, [c.add(base, i)], c)
        close()

    def _views(self, row: SSAValue, b: IndexBuilder) -> dict[SSAValue, SSAValue]:
        sizes = dict(enumerate(self.bounds))
        ids = delinearize(row, list(sizes), sizes, b)
        return views_outside(self.sort.loop, b, [b.value(ids[d]) for d in sizes])

    @staticmethod
    def _view(known: dict[SSAValue, SSAValue], value: SSAValue) -> SSAValue:
        return known.get(value, value)

    def _place(self, i: Size) -> list[Size]:
        dims = other_dims(self.sort.op.outputs[0], self.sort.dim)
        return place({d: 0 for d in dims}, self.sort.dim, i)

    def words(self, row: SSAValue, b: IndexBuilder) -> Read:
        """Returns a reader of the words of a row."""
        op, key = self.sort.op, self.sort.key
        given = op.sources[key.operand]
        assert given is not None
        source = self._view(self._views(row, b), given)
        return lambda i, c: bits_of(key, load(source, self._place(i), c), c)

    def positions(self, row: SSAValue, b: IndexBuilder) -> Read:
        """Returns a reader of the origins of the unsorted row."""
        return lambda i, c: as_type(c.value(i), self.grid.kind, c)

    def give(self, row: SSAValue, b: IndexBuilder):
        """Returns a writer of the operands of a sorted element."""
        op, key, known = self.sort.op, self.sort.key, self._views(row, b)
        base = b.mul(row, self.grid.size)

        def give(i: SSAValue, word: SSAValue, origin: SSAValue, c: IndexBuilder) -> None:
            source = as_type(origin, IndexType(), c)
            for number, target in enumerate(op.outputs):
                if number == key.operand:
                    value = value_of_bits(key, word, c)
                elif number in self.copies:
                    value = load(self.copies[number], [c.add(base, source)], c)
                else:
                    value = self._gathered(op.sources[number], target, source, known, c)
                store(value, self._view(known, target), self._place(i), c)

        return give

    def _gathered(
        self, given: SSAValue | None, target: SSAValue, origin: SSAValue,
        known: dict[SSAValue, SSAValue], b: IndexBuilder,
    ) -> SSAValue:  # fmt: skip
        """Returns the unsorted value of an operand that the op does not sort in place."""
        if given is None:
            return as_type(origin, target.type.element_type, b)  # type: ignore[attr-defined]
        return load(self._view(known, given), self._place(origin), b)
