"""
Chooses the tiles of sorts: how many elements a workgroup sorts at a time in its registers.

The unit is a cycle of a multiprocessor per digit. A tile costs a fixed number of cycles (barriers,
prefix sums of the counts), and for each element of a thread about 80 instructions per warp, of
which a multiprocessor issues two to three per cycle. Small tiles give all multiprocessors work;
large ones have fewer fixed costs, and store longer runs of elements with one digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import gpu_of
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.radix_keys import RadixKey, radix_key
from irees.transforms.codegen.common.utils.rows import other_dims
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES
from irees.transforms.codegen.gpu.utils.segments import has_its_threads, why_not_alone
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.codegen.gpu.utils.warps import count_type_for
from irees.transforms.utils.footprint import shared_memory
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, upper_bound

SORTED_BITS = "irees.bits"
"""Attribute of `iree_linalg_ext.sort`: the number of low bits in which the keys may differ."""

REGISTER_BITS = 32
"""Bits of a register, which narrow words take too."""

BUFFERS = 6
"""Buffers of a tile in shared memory; each is aligned for the widest access."""


@dataclass(frozen=True)
class Tile:
    """The elements that a workgroup sorts or moves at a time."""

    threads: int
    items: int
    """Elements per thread."""
    digit: int
    """Bits of a digit."""

    @property
    def size(self) -> int:
        """Elements of the tile."""
        return self.threads * self.items

    @property
    def warps(self) -> int:
        """Warps of the workgroup."""
        return self.threads // WARP

    @property
    def digits(self) -> int:
        """Values of a digit."""
        return 1 << self.digit


def digit_bits(width: int) -> int:
    """Returns the bits of a digit: eight, but a key has at least two digits."""
    return min(8, width // 2)


def stage_bytes(tile: Tile, width: int, origin: int) -> int:
    """
    Returns the shared memory of a tile in bytes: per warp a count for each digit and two sums, one
    position per digit, a flag per pass, words of `width` and origins of `origin` bits.
    """
    words = tile.warps * max(WARP, tile.digits) + width // tile.digit
    origins = tile.size + tile.digits + 2 * tile.warps
    return BUFFERS * ACCESS_BYTES + 4 * words + (tile.size * width + origins * origin) // 8


def tile_cycles(tile: Tile) -> int:
    """Returns the cycles that one multiprocessor takes to sort a tile by one digit."""
    warps = tile.threads // WARP
    return NVIDIA.sort_tile_setup + warps * (NVIDIA.sort_warp_setup + tile.items * NVIDIA.sort_item)


def row_tile(size: int, width: int, room: int, alone: bool = True) -> Tile | None:
    """
    Returns the cheapest tile that holds a row, or None. A sort may choose the number of threads
    only if it is the only work of its workgroup.
    """
    threads = NVIDIA.sort_threads if alone else NVIDIA.sort_threads[:1]
    found = [Tile(n, max(1, -(-size // n)), digit_bits(width)) for n in threads]
    return min((t for t in found if _fits(t, width, room)), key=tile_cycles, default=None)


def wide_tile(rows: Size, size: Size, width: int, room: int, busy: int) -> Tile:
    """Returns the tile that minimizes the time in which all multiprocessors sort the rows."""
    length = size if isinstance(size, int) else NVIDIA.assumed_row
    count = rows if isinstance(rows, int) else 1

    def cycles(tile: Tile) -> int:
        tiles = -(-length // tile.size)
        return -(-count * tiles // busy) * tile_cycles(tile)

    origin = count_type_for(size).width.data
    return min(_wide_tiles(width, room, origin), key=cycles)


def _wide_tiles(width: int, room: int, origin: int) -> Iterator[Tile]:
    """Yields candidates, the largest first."""
    threads = NVIDIA.sort_wide_threads
    for items in NVIDIA.sort_items:
        tile = Tile(threads, items, digit_bits(width))
        # Smaller ones fit anywhere.
        if items == NVIDIA.sort_items[-1] or _fits(tile, width, room, origin):
            yield tile


def _fits(tile: Tile, width: int, room: int, origin: int = 32) -> bool:
    """Whether registers and shared memory suffice for words and origins of so many bits."""
    bytes_ = tile.items * (max(REGISTER_BITS, width) + origin) // 8
    return bytes_ <= NVIDIA.sort_item_bytes and stage_bytes(tile, width, origin) <= room


@dataclass(frozen=True)
class Plan:
    """How a sort is lowered: each row in the registers of one workgroup, or by many workgroups."""

    key: RadixKey
    size: int
    """Length of a row; negative if it is dynamic."""
    row: Tile | None
    passes: int
    """Digits by which it sorts, at least two."""

    @staticmethod
    def of(op: ext.SortOp, loop: Operation) -> Plan | str:
        """Returns the plan of a sort in a loop over workgroups, or why there is none."""
        order, kind, gpu = Order.of(op.body.block), op.outputs[0].type, gpu_of(op)
        key = radix_key(order, list(op.outputs))
        if key is None or order.operand in op.generated:
            return "keys do not have 8, 16, 32 or 64 bits"
        assert isinstance(kind, MemRefType)
        bits = op.attributes.get(SORTED_BITS)
        known = bits.value.data if isinstance(bits, IntegerAttr) else key.width
        passes = max(2, -(-known // digit_bits(key.width)))
        if has_its_threads(loop, NVIDIA.sort_threads[0]):
            return "another op of the workgroup fixes its number of threads"
        dim = op.dimension.value.data
        size, other = kind.get_shape()[dim], why_not_alone(op, loop)
        room = gpu.matrix_shared_bytes - shared_memory(loop).known
        row = row_tile(size, key.width, room, other is None) if size >= 0 else None
        if row is not None:
            return Plan(key, size, row, passes)
        if gpu.multiprocessors < 2 or other is not None:
            return other or "the GPU has one multiprocessor"
        at = IndexBuilder(InsertPoint.before(op))
        others = [buffer_dim(op.outputs[0], d, at) for d in other_dims(op.outputs[0], dim)]
        if any(upper_bound(length) != 1 for length in others):
            return "a workgroup has more than one row"
        return Plan(key, size, None, passes)
