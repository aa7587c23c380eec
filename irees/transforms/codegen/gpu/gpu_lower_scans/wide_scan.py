"""
Scans long rows by many workgroups each. Part of `irees-gpu-lower-scans`.

Each workgroup owns a part of a row, in whole tiles. The first kernel reduces each part. In the
second one, each workgroup combines the results of all earlier parts, and scans its part with this
prefix. The kernel launches are the only synchronization.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.scf import ForallOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.rows import compare, load, scratch, store
from irees.transforms.codegen.gpu.gpu_lower_scans.block_scan import BlockScan
from irees.transforms.codegen.gpu.utils.segments import (
    is_free,
    set_fewest_workgroups,
    set_threads,
    threads,
    workgroups,
)
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size, delinearize

Body = Callable[[BlockScan, SSAValue, SSAValue, IndexBuilder], None]


@dataclass
class WideScan:
    """The kernels that replace a scan of one row per workgroup of a loop."""

    op: ext.ScanOp
    loop: ForallOp
    counts: list[int]
    """Workgroups of the loop, per dim."""
    most: int
    """Maximum number of parts of a row."""
    size: Size
    tile: int
    at: IndexBuilder
    """A builder just after the loop."""

    def __post_init__(self) -> None:
        at, self.rows = self.at, prod(self.counts)
        tiles = at.ceildiv(self.size, self.tile)
        self.length = at.mul(at.maximum(1, at.ceildiv(tiles, self.most)), self.tile)
        self.parts = at.ceildiv(self.size, self.length)
        element = self.op.input.type.element_type  # type: ignore[attr-defined]
        self.totals = scratch(element, self.rows * (self.most + 1), at)

    def lower(self) -> None:
        """Emits the kernels."""
        self._kernel(self._combine)
        self._kernel(self._scan)

    def _kernel(self, body: Body) -> None:
        """Emits a kernel with a workgroup per part; it recomputes its row and the views of it."""
        block = Block(arg_types=[IndexType()])
        loop = workgroups(block, [self.at.mul(self.rows, self.parts)])
        self.at.insert(loop)
        assert block.last_op is not None
        b = IndexBuilder(InsertPoint.before(block.last_op))
        parts = b.value(self.parts)
        row = b.value(b.floordiv(block.args[0], parts))
        part = b.value(b.rem(block.args[0], parts))
        dims = list(range(len(self.counts)))
        where = delinearize(row, dims, self.counts, b)
        known = {a: b.value(where[d]) for d, a in enumerate(self.loop.region.block.args)}
        for inner in self.loop.region.block.ops:
            if is_free(inner):
                b.insert(inner.clone(value_mapper=known))
        op = b.insert(self.op.clone(value_mapper=known))
        assert isinstance(op, ext.ScanOp)
        scan = BlockScan(op, NVIDIA.wide_scan_threads, b)
        close, scan.thread, inside = threads(b, NVIDIA.wide_scan_threads)
        body(scan, row, part, inside)
        close()
        op.detach()
        op.erase()
        set_threads(loop, NVIDIA.wide_scan_threads)
        set_fewest_workgroups(loop, 1)

    def _bounds(self, part: SSAValue, at: IndexBuilder) -> tuple[Size, Size]:
        first = at.mul(part, self.length)
        return first, at.minimum(at.add(first, self.length), self.size)

    def _entry(self, row: SSAValue, number: Size, at: IndexBuilder) -> Size:
        """Returns the index of entry `number` of a row: entry 0 is its prefix, then part totals."""
        return at.add(at.mul(row, self.most + 1), number)

    def _combine(self, scan: BlockScan, row: SSAValue, part: SSAValue, at: IndexBuilder) -> None:
        """Stores the reduction of a part, and the initial prefix of the row."""
        ivs: dict[int, Size] = {d: 0 for d in scan.other_dims}
        body, first, b = for_loop(at, *self._bounds(part, at), scan.tile, [scan.neutral(at)])
        (mine,) = body([scan.both(body.arguments[0], scan.total(scan.read(ivs, first, b), b), b)])
        _, whole = scan.across(mine, at)
        close, b = if_else(at, compare(scan.thread, 0, "eq", at))
        store(whole, self.totals, [self._entry(row, b.add(part, 1), b)], b)
        end, c = if_else(b, compare(part, 0, "eq", b))
        store(scan.start(ivs, c), self.totals, [self._entry(row, 0, c)], c)
        end()
        close()

    def _scan(self, scan: BlockScan, row: SSAValue, part: SSAValue, at: IndexBuilder) -> None:
        """Scans a part with the combined totals of the earlier parts as its prefix."""
        each, nothing = -(-self.most // NVIDIA.wide_scan_threads), scan.neutral(at)
        values: list[SSAValue] = []
        for number in range(each):
            index = at.add(at.mul(scan.thread, each), number)
            inside = compare(index, part, "sle", at)
            value = load(self.totals, [self._entry(row, at.minimum(index, part), at)], at)
            values.append(at.insert(arith.SelectOp(inside, value, nothing)).results[0])
        _, carry = scan.across(scan.total(values, at), at)
        ivs: dict[int, Size] = {d: 0 for d in scan.other_dims}
        scan.row(ivs, self._bounds(part, at), carry, at)
