"""
Selects the tiles and the register block of a contraction. Part of `irees-select-strategy`.

Smaller tiles amortize packing less, so there is one tile per thread, equally large: in whole
panels, or in whole vectors if the kernel packs B. If nothing is packed, each thread gets several
tiles, which balances the load when a thread is slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineDimExpr

from irees.analysis.contractions import (
    in_blocks,
    multiply_add,
    packed_columns,
    roles,
    vector_side,
)
from irees.analysis.distribution import Group
from irees.analysis.register_blocking import (
    Blocking,
    block_cycles,
    choose_blocking,
    embeds_broadcasts,
)
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.select_strategy.chunks import even
from irees.transforms.utils.shapes import element_bytes


@dataclass(frozen=True)
class Machine:
    """Target facts that tile sizes depend on."""

    threads: int
    vector_bytes: int
    registers: int
    l2_bytes: int

    @property
    def rows(self) -> int:
        """Maximum rows of a tile: a slice of K of them fills half of the L2 cache."""
        return max(CPU.least_tile_rows, self.l2_bytes // 2 // (CPU.kc * 4))

    @property
    def lanes(self) -> int:
        """f32 lanes of a vector."""
        return self.vector_bytes // 4

    @property
    def embeds(self) -> bool:
        """Whether FMA instructions take an embedded broadcast."""
        return embeds_broadcasts(self.vector_bytes)

    def block(self, rows: int, columns: int, vectors: int | None = None) -> Blocking:
        """Returns the register block for a number of rows and columns."""
        return choose_blocking(
            rows, columns, self.lanes, self.registers, vectors, embeds=self.embeds
        )

    def cycles(self, rows: int, columns: int, block: Blocking) -> float:
        """Estimates the cycles of one step of K for a number of rows and columns."""
        return block_cycles(rows, columns, self.lanes, self.registers, block, embeds=self.embeds)


@dataclass(frozen=True)
class Problem:
    """A contraction of a group: its loops by role, and the storage of B, which has the vectors."""

    machine: Machine
    sizes: tuple[int, ...]
    """Trip counts, -1 if dynamic."""
    loops: list[int]
    """The loops that are tiled, in the order of the classes of the group."""
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    packed: int | None
    """Columns of a panel if `irees-pack-constant-operands` has packed B."""
    blocked: bool
    """Whether B comes in blocks of columns, with a loop for each part."""
    unfolds: bool
    """Whether columns are windows of an image, which packing unfolds (im2col)."""
    bytes: int
    """Size of an element of B."""

    @property
    def height(self) -> int:
        """Rows of a tile for the choice of the register block."""
        return min(self.machine.rows, _extent(self.sizes, self.rows[-1:]))

    @property
    def is_low(self) -> bool:
        """Whether there are so few rows that B is better read in place than packed."""
        most = CPU.direct_rows if self.unfolds else CPU.unpacked_rows
        return _extent(self.sizes, self.rows) <= most

    def block(self) -> Blocking:
        """Returns the register block of a tile of `height` rows; panels fix its vectors."""
        lanes = self.machine.lanes
        vectors = None if self.packed is None or self.packed % lanes else self.packed // lanes
        return self.machine.block(self.height, _extent(self.sizes, self.columns), vectors)

    def tile_block(self, most: int) -> tuple[int, int]:
        """Returns the rows and columns of the register block of a tile of at most `most` rows."""
        rows = min(most, _extent(self.sizes, self.rows[-1:]))
        block = self.machine.block(rows, _extent(self.sizes, self.columns))
        return block.rows, block.vectors * self.machine.lanes

    def limits(self) -> tuple[bool, int, int]:
        """Returns whether columns are tiled first, and the most rows and columns of a tile."""
        first, rows, columns = self.unfolds or self.blocked, self.machine.rows, CPU.tile_columns
        if self.packed is not None or self.blocked:
            return first, rows, columns
        known = self.sizes[self.rows[0]] if len(self.rows) == 1 and not self.unfolds else 0
        # Panels of narrow elements are smaller by a factor of 2 or 4.
        if known > 2 * CPU.mc and self.bytes >= 4:
            first |= _extent(self.sizes, self.columns) >= known
            return first, known, columns * CPU.strip_factor
        columns *= CPU.stream_factor if self.is_low else 1
        return first, rows * CPU.pack_factor, columns

    def column_tile(self, loop: int, panel: int, wanted: int, most: int) -> int:
        """Returns about `most` columns of a loop, fewer for `wanted` tiles."""
        tile = _column_tile(self.sizes, loop, self.columns, panel, wanted, most)
        if not (self.blocked and tile > 0 and self.sizes[loop] > 0):
            return tile
        width = _extent(self.sizes, tuple(x for x in self.columns if x > loop))
        return _dividing(self.sizes[loop], tile, -(-panel // (2 * width)), wanted)

    def evened(self, loop: int, tile: int, block: Blocking) -> tuple[int, Blocking]:
        """Returns a column tile and its block, in whole vectors if the kernel packs B."""
        if self.packed is not None or self.blocked or len(self.columns) > 1:
            return tile, block
        return _even_columns(self.sizes[loop], tile, self.height, block, self.machine)

    def workgroups(self) -> int:
        """Returns how many tiles are wanted."""
        # Prepacked weights that are read once: a tile costs a call and no packing.
        unpacked = self.packed is not None and self.is_low and self.machine.threads > 1
        return self.machine.threads * (CPU.tiles_per_thread if unpacked else 1)


def problem_of(group: Group, number: int, machine: Machine) -> Problem:
    """The contraction that is member `number` of a group."""
    member = group.members[number]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    parts = multiply_add(op)
    assert parts is not None
    found, side = roles(op, parts), vector_side(op, parts)
    assert side is not None
    rows, columns = (found.n, found.m) if side == parts.lhs else (found.m, found.n)
    unfolds = any(
        not isinstance(expr, AffineDimExpr) and expr.used_dims() & set(columns)
        for indexing in op.indexing_maps
        for expr in indexing.data.results
    )
    return Problem(
        machine, member.sizes, [c[number] for c in group.classes], found.batch, rows, columns,
        packed_columns(op.indexing_maps.data[side].data), in_blocks(op, parts, side), unfolds,
        element_bytes(op.operands[side].type),
    )  # fmt: skip


def contraction_config(
    group: Group, number: int, machine: Machine
) -> tuple[list[int], tuple[int, int]]:
    """
    Returns the tile of each loop class of a group with a contraction, and its register block.

    Batch loops get tiles of 1. Then rows and columns are tiled until there are enough workgroups.
    Columns come first if packing them again for each row tile is expensive (an im2col image, or
    strips with at least as many columns as rows), or if B comes in blocks, so that one thread
    reads each. Otherwise rows come first.
    """
    p = problem_of(group, number, machine)
    block = p.block()
    panel = p.packed or block.vectors * machine.lanes
    columns_first, most, columns_at_most = p.limits()
    tiles = {loop: 1 if loop in p.batch else 0 for loop in p.loops}
    count = prod(CPU.assumed_trip_count if p.sizes[x] < 0 else max(1, p.sizes[x]) for x in p.batch)
    order = (p.columns, p.rows) if columns_first else (p.rows, p.columns)
    for part in order:
        for loop in (x for x in p.loops if x in part):
            missing = -(-p.workgroups() // count)
            if part is p.rows:
                last = part is order[1]
                tiles[loop] = _row_tile(p.sizes, loop, part, missing, most, last=last)
            else:
                tile = p.column_tile(loop, panel, missing, columns_at_most)
                tiles[loop], block = p.evened(loop, tile, block)
            count *= _tiles_in(p.sizes[loop], tiles[loop])
    panel = p.packed or block.vectors * machine.lanes
    return [tiles[loop] for loop in p.loops], (block.rows, panel)


def _extent(sizes: tuple[int, ...], loops: tuple[int, ...]) -> int:
    """Returns the product of trip counts; dynamic ones are assumed."""
    return prod(CPU.assumed_trip_count if sizes[x] < 0 else sizes[x] for x in loops)


def _tiles_in(size: int, tile: int) -> int:
    return 1 if tile == 0 else CPU.assumed_trip_count if size < 0 else max(1, -(-size // tile))


def _row_tile(
    sizes: tuple[int, ...],
    loop: int,
    side: tuple[int, ...],
    wanted: int,
    most: int,
    *,
    last: bool,
) -> int:
    """
    Returns at most `most` rows, fewer for `wanted` tiles, but enough to amortize packing B.

    Rows that span several loops belong to windows, so no slice of A is kept in the cache.
    """
    size = sizes[loop]
    inner = [sizes[other] for other in side if other > loop]
    if size < 0 and inner:
        return 1
    least = CPU.least_last_tile_rows if last else CPU.least_tile_rows
    if inner:
        each = prod(CPU.assumed_trip_count if n < 0 else max(1, n) for n in inner)
        least, most = -(-least // each), size
    limit = max(least, min(most, -(-size // wanted)))
    if size < 0:
        return most if wanted == 1 else CPU.least_tile_rows
    return 0 if size <= limit else even(size, limit)


def _column_tile(
    sizes: tuple[int, ...], loop: int, side: tuple[int, ...], panel: int, wanted: int, most: int
) -> int:
    """Returns about `most` columns in whole panels, fewer for `wanted` tiles."""
    inner = 1
    for other in side:
        if other > loop:
            inner *= CPU.assumed_trip_count if sizes[other] < 0 else max(1, sizes[other])
    size = sizes[loop]
    tile = max(1, most // inner)
    if size < 0:
        return -(-tile // panel) * panel if inner == 1 else tile
    pieces = max(1, -(-size // tile), min(wanted, -(-size * inner // (2 * panel))))
    # Round up to a multiple of the threads: a partial last wave would leave some idle.
    pieces = -(-pieces // wanted) * wanted if pieces > wanted else pieces
    tile = -(-size // pieces)
    if inner == 1:
        tile = panel * _panels(-(-size // panel), -(-tile // panel), wanted)
    return 0 if tile >= size else tile


def _dividing(size: int, tile: int, least: int, wanted: int) -> int:
    """
    Returns the divisor of `size` nearest to `tile` that balances best over `wanted` threads, of
    those from `least` on: a kernel needs a static number of blocks of columns. 0 stands for `size`
    itself.
    """
    fitting = [d for d in range(min(least, size), size + 1) if size % d == 0]
    busiest = {d: -(-(size // d) // wanted) * d for d in fitting}
    best = min(busiest.values())
    even = [d for d in fitting if busiest[d] <= CPU.load_imbalance * best]
    found = min(even, key=lambda d: max(d, tile) / min(d, tile))
    return 0 if found == size else found


def _panels(panels: int, most: int, wanted: int) -> int:
    """
    Returns the panels per tile, at most `most`, that balance best over `wanted` threads: 64 panels
    become eight tiles of 8, not five of 11 and one of 9.
    """

    def longest(each: int) -> int:
        tiles = -(-panels // each)
        return -(-tiles // wanted) * each

    if wanted == 1 or most == 0:
        return most
    choices = range(most, most // 2, -1)
    best = min(map(longest, choices))
    return next(each for each in choices if longest(each) <= CPU.load_imbalance * best)


def _even_columns(
    size: int, tile: int, rows: int, block: Blocking, machine: Machine
) -> tuple[int, Blocking]:
    """
    Returns a column tile in whole vectors, not panels, and its block, if that is faster: two
    threads take 256 of 512 columns each, not six and five panels of 48.
    """
    if tile == 0 or size < 0:
        return tile, block
    even = -(-size // -(-size // tile))
    even = -(-even // machine.lanes) * machine.lanes
    other = machine.block(rows, even)
    sooner = machine.cycles(rows, even, other) < machine.cycles(rows, tile, block)
    return (even, other) if sooner else (tile, block)
