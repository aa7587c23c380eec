"""
Chooses how many threads scan a row. Part of `irees-gpu-select-strategy` and
`irees-gpu-lower-scans`.

The unit is a nanosecond. Costs are estimated, not measured: they only separate variants that differ
by a factor of several.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import AnyFloat, IntegerType, MemRefType
from xdsl.ir import Operation

from irees.dialects import iree_linalg_ext as ext
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES
from irees.transforms.utils.combiners import COMBINERS
from irees.transforms.utils.shapes import element_bytes


def combiner_of(op: ext.ScanOp) -> Operation | None:
    """Returns the op that combines two elements, or None if the region may not be associative."""
    ops = list(op.body.block.ops)
    if len(ops) != 2 or ops[0].name not in COMBINERS:
        return None
    arguments = set(op.body.block.args)
    whole = set(ops[0].operands) == arguments and list(ops[1].operands) == [ops[0].results[0]]
    return ops[0] if whole else None


def why_in_order(op: ext.ScanOp, reassociate: bool) -> str | None:
    """Returns why a thread scans each row in order, or None."""
    combiner, kind = combiner_of(op), op.input.type
    assert isinstance(kind, MemRefType)
    element, inner = kind.element_type, kind.get_shape()[op.dimension.value.data + 1 :]
    if combiner is None:
        return "the region is not known to be associative"
    if isinstance(element, AnyFloat) and not reassociate:
        return "fp=strict keeps the order of floats"
    if not isinstance(element, AnyFloat | IntegerType) or element.bitwidth not in (8, 16, 32, 64):
        return f"{element} cannot be shuffled"
    if min(inner, default=1) < 0 or prod(inner) * element_bytes(kind) > NVIDIA.sector_bytes:
        return "adjacent threads read adjacent rows"
    return None


def elements_per_thread(bits: int) -> int:
    """Returns the elements of a tile per thread: those of one access, but at least four."""
    return max(4, ACCESS_BYTES * 8 // bits)


@dataclass(frozen=True)
class Scanned:
    """Rows to scan, on a GPU of `busy` multiprocessors; -1 is a dynamic size."""

    rows: int
    size: int
    bits: int
    busy: int
    threads: int
    """Threads of a workgroup that scans whole rows."""

    @property
    def _size(self) -> int:
        return NVIDIA.assumed_scan if self.size < 0 else self.size

    @property
    def _rows(self) -> int:
        return NVIDIA.assumed_trip_count if self.rows < 0 else max(1, self.rows)

    def _waves(self, threads: int) -> int:
        return -(-threads // (self.busy * NVIDIA.resident_threads))

    def in_order(self) -> int:
        """Returns the cost of a thread per row."""
        return self._waves(self._rows) * self._size * NVIDIA.scan_element

    def by_workgroup(self) -> int:
        """Returns the cost of a workgroup per row, which scans it in tiles."""
        tiles = -(-self._size // (self.threads * elements_per_thread(self.bits)))
        return self._waves(self._rows * self.threads) * tiles * NVIDIA.scan_tile

    @property
    def most_parts(self) -> int:
        """Returns how many workgroups at most scan a row."""
        return max(1, NVIDIA.scan_waves * self.busy // self._rows)

    def by_parts(self) -> int:
        """Returns the cost of many workgroups per row, which read their parts of it twice."""
        tiles = -(-self._size // (NVIDIA.wide_scan_threads * elements_per_thread(self.bits)))
        parts = min(self.most_parts, max(1, tiles))
        waves = self._waves(self._rows * parts * NVIDIA.wide_scan_threads)
        return waves * 2 * -(-tiles // parts) * NVIDIA.scan_tile + NVIDIA.scan_launch

    def prefers_order(self) -> bool:
        """Whether a thread per row is cheapest."""
        return self.in_order() <= min(self.by_workgroup(), self.by_parts())

    def prefers_parts(self) -> bool:
        """Whether many workgroups per row are cheapest; their rows are counted at compile time."""
        return self.rows > 0 and self.busy > 1 and self.by_parts() < self.by_workgroup()


def scanned(op: ext.ScanOp, rows: int, busy: int, threads: int) -> Scanned:
    """Returns the problem size of an op that scans `rows` rows."""
    kind = op.input.type
    assert isinstance(kind, MemRefType)
    shape, dim = kind.get_shape(), op.dimension.value.data
    others = [n for d, n in enumerate(shape) if d != dim]
    count = -1 if min(others, default=1) < 0 or rows < 0 else rows * prod(others)
    return Scanned(count, shape[dim], 8 * element_bytes(kind), busy, threads)
