"""
Elementwise ops that read along one loop and write along another, in square tiles of registers. Part
of `irees-vectorize-structured-ops`.

    out[i, j] = f(x[j, i], y[i, j])

N vectors of x, one for each of N values of j, are turned in registers into N vectors along j, one
for each i. Turning swaps the bits of the number of a vector with those of the number of a lane, one
bit at a time: log2(N) rounds of N shuffles of two vectors.

Where a vector is a part of a line of the cache, as many such tiles are turned before the first is
written as make whole lines: a part that passes by the caches costs memory more than a whole line.

Tiles follow each other along j, in strips of i that are some lines of x wide: memory is given long
runs of some rows at a time, and not each line somewhere else. Of an x that no cache holds a tile
asks for what the tile beside it along j will read, a strip later: each row is another page, where
the processor's own prefetchers begin anew.

Rows of x that are a power of two apart share a few sets of the cache, which forget a line before
the next tile needs the rest of it. So where all rows lie alike in their lines, tiles begin where
lines do: the first and the last tile of a row are moved inwards and do some points twice.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.distribution import root
from irees.analysis.transposes import crossing_loops
from irees.dialects.upstream.memref import PrefetchOp
from irees.transforms.codegen.cpu.utils.large_buffers import bytes_of
from irees.transforms.codegen.cpu.utils.register_transpose import transposed
from irees.transforms.codegen.cpu.vectorize_structured_ops.nest import Nest
from irees.transforms.utils.lanes import (
    LINE,
    Kind,
    Lane,
    NotVectorizableError,
    evaluate,
    materialize,
)
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size, element_bytes
from irees.transforms.utils.views import strides_of

STRIP_LINES = 16
"""
Lines of the cache that are read of a row before those of the next rows: runs that memory gives fast
(Zen 4: 4 lines take 1.2 times as long), in as many rows of the output.
"""

CROWDED = 2048
"""Bytes; rows that are a multiple of it apart share a set or two of an L1 cache."""

SHORT = 8
"""Tiles of a row that are too few for one more to cost little."""

L2 = 2
"""The locality of a hint for the L2 cache: a strip lies between it and the load."""

MOST_LANES = 16
"""Vectors of a tile: as many again are made in a round, and there are 32 registers at most."""


def lower_transposing(nest: Nest, large: int) -> None:
    """
    Replaces the op by loops over tiles. Raises NotVectorizableError before it is changed.

    No cache holds buffers of `large` bytes and more.
    """
    found = crossing_loops(nest.op)
    if found is None:
        raise NotVectorizableError("it does not read along one loop and write along another")
    nest.require_lanes()
    across, along = found
    turned = [i for i, s in enumerate(nest.strides(along)) if s == "other"]
    through = nest.strides(across)
    if any(i >= nest.inputs or through[i] != "unit" for i in turned):
        raise NotVectorizableError("a loop is strided for what is read and what is written")
    nest.take(along)
    nest.lanes = min(nest.lanes, MOST_LANES)
    Tiles(nest, across, along, turned, large).build()


class Tiles:
    """The loops of one such op under construction."""

    def __init__(self, nest: Nest, across: int, along: int, turned: list[int], large: int):
        self.nest, self.across, self.along, self.turned = nest, across, along, turned
        self.large = large

    def build(self) -> None:
        """All loops."""
        nest = self.nest
        here = IndexBuilder(InsertPoint.before(nest.op))
        nest.start_loops(here)
        others = [i for i in range(len(nest.kinds)) if i not in (self.across, self.along)]
        self.back = self._back(here)
        self.in_runs = all(map(self._in_runs, nest.op.outputs))
        self._outer(others, {}, here)
        Rewriter.erase_op(nest.op)

    def _outer(self, loops: list[int], ivs: dict[int, Size], at: IndexBuilder) -> None:
        if not loops:
            self._tiles(ivs, at)
            return
        close, iv, b = for_loop(at, 0, self.nest.sizes[loops[0]], 1)
        self._outer(loops[1:], {**ivs, loops[0]: iv}, b)
        close()

    def _tiles(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Whole tiles in strips, and point by point what is left of either loop."""
        nest, across, along = self.nest, self.across, self.along
        lanes = nest.lanes
        rows, columns = nest.sizes[across], nest.sizes[along]
        if self.back is None:
            tiles = at.floordiv(rows, lanes)
            main_rows = at.mul(tiles, lanes)
        else:
            tiles, main_rows = at.ceildiv(at.add(rows, self.back), lanes), rows
        beside, start = self._beside(), 0
        strip = self._strip()
        for width in dict.fromkeys((lanes * beside, lanes)):
            main_columns = at.mul(at.floordiv(columns, width), width)
            if main_columns == start and isinstance(start, int):
                continue
            close_strips, first, b = for_loop(at, 0, tiles, strip)
            close, j, inner = for_loop(b, start, main_columns, width)
            end = inner.minimum(inner.add(first, strip), tiles)
            close_tiles, tile, inner = for_loop(inner, first, end, 1)
            i = inner.mul(tile, lanes)
            if self.back is not None:
                i = inner.maximum(inner.sub(i, self.back), 0)
                i = inner.minimum(i, inner.sub(rows, lanes))
            self._tile({**ivs, across: i, along: j}, width // lanes, inner)
            close_tiles()
            close()
            close_strips()
            self._points(ivs, (main_rows, rows), (start, main_columns), at)
            start = main_columns
        self._points(ivs, (0, rows), (start, columns), at)

    def _strip(self) -> int:
        """Tiles that lie side by side along the lines that are read of a row at a time."""
        size = element_bytes(self.nest.op.operands[self.turned[0]].type)
        lines = STRIP_LINES if self.in_runs else 1
        return max(1, lines * LINE // (size * self.nest.lanes))

    def _in_runs(self, output: SSAValue) -> bool:
        """
        Whether many rows can be written at a time: no cache holds the output and whole lines pass
        by the caches, or a cache does and its rows have room beside each other. Else a line that
        was begun would be forgotten before the rest of it is written.
        """
        assert isinstance(output.type, MemRefType)
        apart = [s for s in strides_of(output.type)[:-1] if s != DYNAMIC_INDEX]
        unit = element_bytes(output.type)
        if bytes_of(root(output).type) >= self.large:
            return all(s * unit % LINE == 0 for s in apart)
        return all(s * unit % CROWDED for s in apart)

    def _back(self, at: IndexBuilder) -> Size | None:
        """
        How many points before the first of a row a vector begins. None where rows lie differently,
        are short or their number is not known, or where the op may read what it has written.
        """
        nest, (first, *others) = self.nest, self.turned
        rows, source = nest.sizes[self.across], nest.op.operands[first]
        kind = source.type
        assert isinstance(kind, MemRefType)
        size = element_bytes(kind)
        width = nest.lanes * size
        apart = strides_of(kind)[:-1]
        alike = all(s != DYNAMIC_INDEX and s * size % width == 0 for s in apart)
        read = [i for i, a in enumerate(nest.block.args) if a.uses and i not in self.turned]
        twice = any(isinstance(nest.op.operands[i].type, MemRefType) for i in read)
        if others or twice or not alike or not isinstance(rows, int) or rows < SHORT * nest.lanes:
            return None
        metadata = at.insert(memref.ExtractStridedMetaDataOp(source))
        base = at.insert(memref.ExtractAlignedPointerAsIndexOp.get(source)).results[0]
        address = at.add(base, at.mul(metadata.results[1], size))
        return at.floordiv(at.rem(address, width), size)

    def _beside(self) -> int:
        """Tiles whose vectors of an output are a line of the cache together."""
        kinds = [o.type for o in self.nest.op.outputs]
        wide = max(element_bytes(kind) for kind in kinds if isinstance(kind, MemRefType))
        return max(1, LINE // (wide * self.nest.lanes))

    def _points(
        self,
        ivs: dict[int, Size],
        rows: tuple[Size, Size],
        columns: tuple[Size, Size],
        at: IndexBuilder,
    ) -> None:
        if any(isinstance(a, int) and a == b for a, b in (rows, columns)):
            return
        close, i, b = for_loop(at, *rows, 1)
        close_columns, j, inner = for_loop(b, *columns, 1)
        self.nest.point({**ivs, self.across: i, self.along: j}, inner)
        close_columns()
        close()

    def _tile(self, ivs: dict[int, Size], beside: int, at: IndexBuilder) -> None:
        """N x N points, `beside` times: all loads first, the turning, then N times the bodies."""
        lanes = self.nest.lanes
        starts = [{**ivs, self.along: at.add(ivs[self.along], t * lanes)} for t in range(beside)]
        for start in starts:
            self._ask({**start, self.along: at.add(start[self.along], beside * lanes)}, at)
        tiles = [self._turned(start, at) for start in starts]
        for n in range(lanes):
            line = at.add(ivs[self.across], n)
            for start, tile in zip(starts, tiles, strict=True):
                turned = {i: rows[n] for i, rows in tile.items()}
                self._vector({**start, self.across: line}, turned, at)

    def _turned(self, ivs: dict[int, Size], at: IndexBuilder) -> dict[int, list[SSAValue]]:
        """N vectors of what is turned, along the loop that is written along."""
        nest, lanes = self.nest, self.nest.lanes
        return {
            position: transposed(
                [nest.read(position, p, at, lanes, self.across).value for p in self._rows(ivs, at)],
                at,
            )
            for position in self.turned
        }

    def _rows(self, ivs: dict[int, Size], at: IndexBuilder) -> list[dict[int, Size]]:
        """Where each of the N rows of a tile begins."""
        along = ivs[self.along]
        return [{**ivs, self.along: at.add(along, n)} for n in range(self.nest.lanes)]

    def _ask(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """memref.prefetch of the rows of a tile that no cache holds"""
        for position in self.turned:
            source = self.nest.op.operands[position]
            # Where strips are one tile wide, that is the next one, and too late.
            if not self.in_runs or bytes_of(root(source).type) < self.large:
                continue
            for place in self._rows(ivs, at):
                indices = self.nest.access(position, place, at)
                at.insert(PrefetchOp(source, indices, locality=L2))

    def _vector(
        self, place: dict[int, Size], turned: dict[int, SSAValue], at: IndexBuilder
    ) -> None:
        """f of N points along the loop that is written along."""
        nest, lanes = self.nest, self.nest.lanes
        arguments = [
            Lane(turned[i], Kind.VECTOR)
            if i in turned
            else nest.read(i, place, at, lanes, self.along)
            if argument.uses
            else Lane(nest.op.operands[i], Kind.UNIFORM)
            for i, argument in enumerate(nest.block.args)
        ]

        def index_of(loop: int) -> Lane:
            kind = Kind.IOTA if loop == self.along else Kind.UNIFORM
            return Lane(at.value(place[loop]), kind)

        results = evaluate(nest.block, arguments, lanes, at.insert, index_of, {})
        for position, result in enumerate(results):
            nest.write(position, materialize(result, lanes, at.insert), place, at, lanes)
