"""
Vectorizes elementwise ops that read along one loop and write along another, with register
transposes of square tiles. Part of `irees-vectorize-shuffled-ops`.

    out[i, j] = f(x[j, i], y[i, j])

N vectors of x, one per value of j, are transposed into N vectors along j, one per value of i. Each
of log2(N) rounds of N two-vector shuffles swaps one bit of the vector number with one bit of the
lane number.

If a vector is shorter than a cache line, several adjacent tiles are transposed before the first is
stored, so that stores cover whole lines: partial nontemporal lines cost more bandwidth.

Tiles are ordered along j within strips of i that are a few cache lines of x wide, so that memory
serves long runs of a few rows. If x exceeds all caches, each tile prefetches what the next tile
along j will read, after the rest of the strip: every row is on another page, where hardware
prefetchers start over.

Rows of x with a power-of-two stride map to a few cache sets, so a line is evicted before the next
tile reads the rest of it. If all rows have the same alignment, tiles are therefore aligned to
vectors: the first and the last tile of a row are shifted inwards and recompute some elements.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.transposes import crossing_loops
from irees.dialects.storage import root
from irees.dialects.upstream.memref import L2, PrefetchOp
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.utils.element_accesses import ElementAccesses
from irees.transforms.codegen.cpu.utils.large_buffers import bytes_of
from irees.transforms.codegen.cpu.utils.register_transpose import transposed
from irees.transforms.utils.lanes import LINE, NotVectorizableError
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size, element_bytes
from irees.transforms.utils.views import strides_of


def transposing(nest: ElementAccesses, large: int) -> Tiles:
    """
    Returns the lowering of an op to tiles. Raises NotVectorizableError for an op without this form,
    and for one with contiguous vectors. Buffers of `large` bytes or more exceed all caches.
    """
    found = crossing_loops(nest.op)
    if found is None:
        raise NotVectorizableError("it does not read along one loop and write along another")
    nest.require_lanes()
    if any(nest.is_contiguous(loop) for loop in range(len(nest.kinds))):
        raise NotVectorizableError("vectors along a loop need no shuffles")
    across, along = found
    turned = [i for i, s in enumerate(nest.strides(along)) if s == "other"]
    through = nest.strides(across)
    if any(i >= nest.inputs or through[i] != "unit" for i in turned):
        raise NotVectorizableError("a loop is strided in both an input and the output")
    nest.take(along)
    nest.lanes = min(nest.lanes, CPU.transposed_vectors)
    return Tiles(nest, across, along, turned, large)


class Tiles:
    """Builds the loops of one op."""

    def __init__(
        self, nest: ElementAccesses, across: int, along: int, turned: list[int], large: int
    ):
        self.nest, self.across, self.along, self.turned = nest, across, along, turned
        self.large = large

    def build(self) -> None:
        """Replaces the op with loops. Raises NotVectorizableError for a body without vectors."""
        nest = self.nest
        here = IndexBuilder(InsertPoint.before(nest.op))
        nest.sizes = nest.trip_counts(here)
        others = [i for i in range(len(nest.kinds)) if i not in (self.across, self.along)]
        self.back = self._back(here)
        self.in_runs = all(map(self._in_runs, nest.op.outputs))
        nest.around(others, self._tiles, here)
        Rewriter.erase_op(nest.op)

    def _tiles(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits whole tiles in strips, then scalar epilogues of both loops."""
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
        """Returns the strip width in tiles."""
        size = element_bytes(self.nest.op.operands[self.turned[0]].type)
        lines = CPU.strip_lines if self.in_runs else 1
        return max(1, lines * LINE // (size * self.nest.lanes))

    def _in_runs(self, output: SSAValue) -> bool:
        """
        Whether many output rows can be written at a time without evicting incomplete lines. Either
        the output exceeds all caches and has line-aligned rows, so nontemporal stores write whole
        lines, or it is cached and its rows map to different cache sets.
        """
        assert isinstance(output.type, MemRefType)
        apart = [s for s in strides_of(output.type)[:-1] if s != DYNAMIC_INDEX]
        unit = element_bytes(output.type)
        if bytes_of(root(output).type) >= self.large:
            return all(s * unit % LINE == 0 for s in apart)
        return all(s * unit % CPU.crowded_stride for s in apart)

    def _back(self, at: IndexBuilder) -> Size | None:
        """
        Returns the misalignment of each row to a vector, in elements, or None: if rows differ in
        alignment, are short or dynamic, or if computing an element twice could read its output.
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
        least = CPU.aligned_row_tiles * nest.lanes
        if others or twice or not alike or not isinstance(rows, int) or rows < least:
            return None
        metadata = at.insert(memref.ExtractStridedMetaDataOp(source))
        base = at.insert(memref.ExtractAlignedPointerAsIndexOp.get(source)).results[0]
        address = at.add(base, at.mul(metadata.results[1], size))
        return at.floordiv(at.rem(address, width), size)

    def _beside(self) -> int:
        """Returns the number of adjacent tiles whose output vectors form a cache line."""
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
        """Emits `beside` tiles of N x N: all loads, the transposes, then N vector bodies each."""
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
        """Loads and transposes a tile of each transposed input."""
        nest, lanes = self.nest, self.nest.lanes
        return {
            position: transposed(
                [nest.read(position, p, at, lanes, self.across).value for p in self._rows(ivs, at)],
                at,
            )
            for position in self.turned
        }

    def _rows(self, ivs: dict[int, Size], at: IndexBuilder) -> list[dict[int, Size]]:
        """Returns the induction variables at the start of each of the N rows of a tile."""
        along = ivs[self.along]
        return [{**ivs, self.along: at.add(along, n)} for n in range(self.nest.lanes)]

    def _ask(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Prefetches the rows of a tile of inputs that exceed all caches."""
        for position in self.turned:
            source = self.nest.op.operands[position]
            # With strips of one tile, the prefetched tile is the next one: too late.
            if not self.in_runs or bytes_of(root(source).type) < self.large:
                continue
            for place in self._rows(ivs, at):
                indices = self.nest.indices(position, place, at)
                at.insert(PrefetchOp(source, indices, locality=L2))

    def _vector(
        self, place: dict[int, Size], turned: dict[int, SSAValue], at: IndexBuilder
    ) -> None:
        """Emits the body for N elements along the contiguous loop of the output."""
        nest, lanes = self.nest, self.nest.lanes
        for position, value in enumerate(nest.body(place, at, lanes, turned)):
            nest.write(position, value, place, at)
