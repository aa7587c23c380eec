"""
Tile sizes of a contraction on a GPU: per workgroup, per warp, and per thread. Part of
`irees-gpu-select-strategy` and of the passes that lower contractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from math import prod

from xdsl.dialects.linalg import ops as linalg

from irees.analysis.contractions import (
    element_kinds,
    is_contraction,
    multiply_add,
    roles,
    vector_side,
)
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import gpu_of
from irees.target import GpuFacts
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.lanes import has_lanes, lane_bytes

PADDING_BYTES = 16
"""Padding per row of a shared-memory tile, in bytes, which avoids bank conflicts."""


@dataclass(frozen=True)
class Blocking:
    """
    Tile sizes for SIMT code: `rows` x `columns` per workgroup, `thread_rows` x `thread_columns` per
    thread, `depth` steps of the reduction at a time. Of the `stages` slices in shared memory, one
    is multiplied while the others are being copied.
    """

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int
    depth: int
    stages: int = 1

    @property
    def threads(self) -> int:
        """Threads per workgroup."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    def shared_bytes(self, element_bytes: int) -> int:
        """Returns the bytes of both operands' tiles."""
        row = (self.rows + self.columns) * element_bytes + 2 * PADDING_BYTES
        return self.stages * self.depth * row

    def registers(self, element_bytes: int) -> int:
        """Estimates the registers per thread: accumulators, operand values, and addresses."""
        values = self.thread_rows * self.thread_columns + self.thread_rows + self.thread_columns
        return values * -(-element_bytes // 4) + NVIDIA.simt_registers

    def as_entries(self) -> dict[str, int | Sequence[int]]:
        """Returns the entries of a lowering config."""
        *block, stages = astuple(self)
        return {"block": block} | ({"stages": stages} if stages > 1 else {})


@dataclass(frozen=True)
class MatrixBlocking:
    """
    Tile sizes for `mma.sync`: `rows` x `columns` per workgroup, `warp_rows` x `warp_columns` per
    warp (each instruction computes 16 x 8), `depth` steps of the reduction at a time. Of the
    `stages` slices in shared memory, one is multiplied while the others are being copied.
    """

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    depth: int
    stages: int

    @property
    def threads(self) -> int:
        """Threads per workgroup."""
        return WARP * (self.rows // self.warp_rows) * (self.columns // self.warp_columns)

    def shared_bytes(self, element_bytes: int) -> int:
        """Returns the bytes of both operands' tiles."""
        # The rows of a tile are those of the operand, or the steps of the reduction.
        lines = max(self.rows, self.depth) + max(self.columns, self.depth)
        elements = (self.rows + self.columns) * self.depth
        return self.stages * (elements * element_bytes + lines * PADDING_BYTES)

    def registers(self, element_bytes: int) -> int:
        """Estimates the registers per thread: accumulators, operand fragments, and addresses."""
        sums = self.warp_rows * self.warp_columns // WARP
        fragments = self.warp_rows // 4 + self.warp_columns // 4
        return sums + fragments + NVIDIA.matrix_registers

    def as_entries(self) -> dict[str, int | Sequence[int]]:
        """Returns the entries of a lowering config."""
        return {"block": astuple(self)}


WARPGROUP_ROWS, WARPGROUP_THREADS = 64, 4 * WARP
"""A warpgroup (`wgmma` M): four warps of 16 rows each."""


@dataclass(frozen=True)
class WarpgroupBlocking:
    """
    Tile sizes for `wgmma`: `rows` x `columns` per workgroup, 64 rows per warpgroup, `depth` steps
    of the reduction at a time. Of the `stages` slices in shared memory, up to two are in use by
    `wgmma` while the others are being copied.
    """

    rows: int
    columns: int
    depth: int
    stages: int

    warp_rows = 16
    alignment = 1024
    """Alignment of a tile in bytes: one swizzle pattern, eight rows of 128 bytes."""

    @property
    def warp_columns(self) -> int:
        """Columns per warp: all of the block."""
        return self.columns

    @property
    def threads(self) -> int:
        """Threads per workgroup."""
        return WARPGROUP_THREADS * (self.rows // WARPGROUP_ROWS)

    def shared_bytes(self, element_bytes: int) -> int:
        """Returns the bytes of both operands' tiles, the mbarriers, and the alignment."""
        part = (self.rows + self.columns) * self.depth * element_bytes + 2 * 8
        return self.stages * part + self.alignment

    def registers(self, element_bytes: int, cut: int = 0) -> int:
        """
        Estimates the registers per thread: accumulators and copy addresses. The `cut` rows and
        columns of partial tiles are clamped individually, so each copy needs its own address.
        """
        copy = ACCESS_BYTES * self.threads // (self.depth * element_bytes)
        copies = NVIDIA.copy_registers * ((self.rows + self.columns) // copy)
        copies += NVIDIA.cut_copy_registers * cut // copy
        return self.columns // 2 + copies + NVIDIA.warpgroup_registers

    def sharing_registers(self, *, cut: bool) -> int:
        """
        Estimates the registers per thread where workgroups share tiles: accumulators, partial sums
        of others, and bounds checks where the last tiles are `cut`.
        """
        checks = NVIDIA.cut_store_registers if cut else 0
        return self.columns // 2 + self.columns // 4 + checks + NVIDIA.warpgroup_registers

    def by_warps(self) -> MatrixBlocking:
        """Returns the blocking with the same block and threads for `mma.sync`."""
        columns = self.columns // (self.threads // 64)
        stages = NVIDIA.wide_stages if self.threads > WARPGROUP_THREADS else NVIDIA.stages
        depth = NVIDIA.matrix_depth_bytes // 2
        return MatrixBlocking(self.rows, self.columns, self.rows // 2, columns, depth, stages)

    def as_entries(self) -> dict[str, int | Sequence[int]]:
        """Returns the entries of a lowering config."""
        return {"block": astuple(self)}


@dataclass(frozen=True)
class AttentionBlocking:
    """Tile sizes of an attention of warpgroups: `rows` of queries per workgroup, 64 each."""

    rows: int

    @property
    def threads(self) -> int:
        """Threads per workgroup."""
        return WARPGROUP_THREADS * (self.rows // WARPGROUP_ROWS)

    def as_entries(self) -> dict[str, int | Sequence[int]]:
        """Returns the entries of a lowering config."""
        return {"block": [self.rows]}

    @staticmethod
    def on(op: ext.AttentionOp) -> AttentionBlocking | None:
        """Returns the blocking in an op's lowering config, None without one."""
        block = LoweringConfigAttr.on(op).ints("block")
        return None if block is None else AttentionBlocking(*block)


AnyBlocking = Blocking | MatrixBlocking | WarpgroupBlocking


def may_share(blocking: AnyBlocking, gpu: GpuFacts, *, cut: bool) -> bool:
    """Whether a thread has enough registers for shared tiles, with partial last tiles if `cut`."""
    if not isinstance(blocking, WarpgroupBlocking):
        return blocking != WIDE_CANDIDATE
    return blocking.sharing_registers(cut=cut) <= gpu.registers_per_thread


def _staged(stages: Sequence[int]) -> Iterator[MatrixBlocking]:
    depth = NVIDIA.matrix_depth_bytes // 2
    for (rows, columns, high, wide), count in zip(NVIDIA.matrix_blocks, stages, strict=True):
        if count:
            yield MatrixBlocking(rows, columns, high, wide, depth, count)


MATRIX_CANDIDATES = tuple(_staged(NVIDIA.matrix_stages))
"""Candidates for `mma.sync` on 16-bit operands, in order of increasing operand traffic."""

ASYNCHRONOUS_CANDIDATES = tuple(each for s in NVIDIA.asynchronous_stages for each in _staged(s))
"""Candidates with asynchronous copies to shared memory; those with more stages come first."""


def matrix_candidates(element_bytes: int, *, asynchronous: bool) -> tuple[MatrixBlocking, ...]:
    """Returns the candidates for an element size, with slices of as many bytes of the reduction."""
    found = ASYNCHRONOUS_CANDIDATES if asynchronous else MATRIX_CANDIDATES
    return tuple(replace(each, depth=NVIDIA.matrix_depth_bytes // element_bytes) for each in found)


WARPGROUP_CANDIDATES = tuple(WarpgroupBlocking(*block) for block in NVIDIA.warpgroup_blocks)
"""Candidates for `wgmma`, in order of increasing operand traffic."""


def blocking_of(op: linalg.GenericOp) -> AnyBlocking:
    """Returns the blocking in an op's lowering config, or a medium-sized default."""
    config = LoweringConfigAttr.on(op)
    block = config.ints("block")
    if block is None:
        return CANDIDATES[1]
    by_length: dict[int, type[MatrixBlocking | WarpgroupBlocking]] = {
        4: WarpgroupBlocking,
        6: MatrixBlocking,
    }
    if (kind := by_length.get(len(block))) is not None:
        return kind(*block)
    return Blocking(*block, config.int("stages") or 1)


def has_matrix_form(
    op: linalg.GenericOp, kinds: Sequence[str], *, reassociate: bool = True
) -> bool:
    """
    Whether matrix instructions of the given operand types can compute the op: f16/bf16 into f32,
    f32 rounded to tf32 (both reassociate the sum), or signed i8 into i32.
    """
    parts = multiply_add(op)
    assert parts is not None
    lhs, rhs, output = element_kinds(op, parts)
    widened = (*parts.widen_lhs, *parts.widen_rhs)
    if "tf32" in kinds and {str(kind) for kind in (lhs, rhs, output)} == {"f32"}:
        return reassociate
    if not parts.widen_lhs or not parts.widen_rhs or lhs != rhs or str(lhs) not in kinds:
        return False
    if str(lhs) == "i8":
        return str(output) == "i32" and {w.name for w in widened} == {"arith.extsi"}
    return reassociate and str(output) == "f32"


CANDIDATES = tuple(Blocking(*block) for block in NVIDIA.simt_blocks)
"""SIMT candidates, from the least operand traffic to the most workgroups."""

WIDE_CANDIDATE = Blocking(*NVIDIA.simt_wide_block)
"""The candidate whose sums leave few registers for addresses (see `why_not_wide`)."""


def candidates_for(op: linalg.GenericOp, *, asynchronous: bool) -> tuple[Blocking, ...]:
    """
    Returns the candidates for an op. If operands need no widening, products also have the wide one,
    and convolutions those with several stages: on an H200 other products were slower with stages.
    """
    parts = multiply_add(op)
    assert parts is not None
    *_, output = element_kinds(op, parts)
    if not asynchronous or parts.widen_lhs or parts.widen_rhs or lane_bytes(output) < 4:
        return CANDIDATES
    if is_product(op):
        return (WIDE_CANDIDATE, *CANDIDATES)
    return tuple(c for each in CANDIDATES for c in (replace(each, stages=NVIDIA.stages), each))


def is_product(op: linalg.GenericOp) -> bool:
    """Whether the rows, the columns and the reduction of a contraction are one loop each."""
    parts = multiply_add(op)
    assert parts is not None
    return all(len(loops) == 1 for loops in (*(x for _, x in sides(op)), roles(op, parts).k))


ATTENTION_BLOCKING = Blocking(*NVIDIA.attention_block)
ATTENTION_MATRIX_BLOCKING = MatrixBlocking(*NVIDIA.attention_matrix_block)
"""Tile sizes of both products of an attention op."""


def why_no_blocks(op: linalg.GenericOp) -> str | None:
    """Returns why an op cannot be computed in blocks, or None."""
    parts = multiply_add(op)
    if parts is None or not is_contraction(op):
        return "not a contraction"
    found = roles(op, parts)
    if not found.m or not found.n:
        return "no operand is reused"
    if vector_side(op, parts) is None:
        return "neither operand moves along the last dim of the output"
    *_, output = element_kinds(op, parts)
    if not has_lanes(output):
        return f"{output} has no vector type"
    return None


def sides(op: linalg.GenericOp) -> tuple[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]]:
    """Returns (operand, loops) of the rows and of the columns (along the output's last dim)."""
    parts = multiply_add(op)
    assert parts is not None
    found = roles(op, parts)
    lhs, rhs = (parts.lhs, found.m), (parts.rhs, found.n)
    return (lhs, rhs) if vector_side(op, parts) == parts.rhs else (rhs, lhs)


def tiles_of(loops: Sequence[int], sizes: Sequence[int], most: int) -> dict[int, int]:
    """Returns a tile size per loop of a side, innermost first, at most `most` elements in all."""
    tiles: dict[int, int] = {}
    left = most
    for loop in reversed(loops):
        size = sizes[loop]
        tiles[loop] = max(1, left if size < 0 else min(size, left))
        left //= tiles[loop]
    return tiles


def workgroups(sizes: Sequence[int], tiles: dict[int, int], guess: int) -> int:
    """Returns the number of workgroups; a dynamic trip count is assumed to be `guess`."""
    return prod(-(-(guess if sizes[x] < 0 else max(1, sizes[x])) // t) for x, t in tiles.items())


def fits(blocking: AnyBlocking, op: linalg.GenericOp, shared_bytes: int) -> str | None:
    """Returns why a blocking exceeds the limits of a workgroup, or None."""
    parts = multiply_add(op)
    assert parts is not None
    lhs, _, output = element_kinds(op, parts)
    matrix = isinstance(blocking, MatrixBlocking | WarpgroupBlocking)
    size = max(1, getattr(lhs, "bitwidth", 64) // 8) if matrix else lane_bytes(output)
    if (needed := blocking.shared_bytes(size)) > shared_bytes:
        return f"needs {needed} bytes of shared memory; the limit is {shared_bytes}"
    most = gpu_of(op).registers_per_thread
    if (needed := blocking.registers(size)) > most:
        return f"needs {needed} registers; the limit is {most}"
    if isinstance(blocking, MatrixBlocking | WarpgroupBlocking):
        return None
    if blocking.thread_columns * size % PADDING_BYTES and PADDING_BYTES % size:
        return "the columns of a thread are not a multiple of its access width"
    return None
