"""
Blocks of a contraction on a GPU: what a workgroup computes, and what a thread of it keeps in
registers. Part of `irees-gpu-select-strategy` and `irees-gpu-lower-contractions`.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.transforms.utils.lanes import has_lanes, lane_bytes

PADDING_BYTES = 16
"""After each row of a tile in shared memory, so that a column of it is not in one bank."""


@dataclass(frozen=True)
class Blocking:
    """
    `rows` x `columns` of the output for a workgroup, a part of `depth` of the reduction at a time,
    `thread_rows` x `thread_columns` for a thread. Of `stages` parts of the operands one is
    multiplied while the others are on their way.
    """

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int
    depth: int
    stages: int = 1

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    def shared_bytes(self, element_bytes: int) -> int:
        """What the tiles of both operands take."""
        row = (self.rows + self.columns) * element_bytes + 2 * PADDING_BYTES
        return self.stages * self.depth * row

    def registers(self, element_bytes: int) -> int:
        """About what a thread needs: its part of the output, of both operands, and addresses."""
        values = self.thread_rows * self.thread_columns + self.thread_rows + self.thread_columns
        return values * -(-element_bytes // 4) + 40

    def as_entries(self) -> dict[str, int | Sequence[int]]:
        """What a lowering config says of it."""
        *block, stages = astuple(self)
        return {"block": block} | ({"stages": stages} if stages > 1 else {})


@dataclass(frozen=True)
class MatrixBlocking:
    """
    `rows` x `columns` of the output for a workgroup, `depth` of the reduction at a time, and
    `warp_rows` x `warp_columns` for a warp, whose matrix instructions make 16 x 8 each. Of
    `stages` parts of the operands one is multiplied while the others are on their way.
    """

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    depth: int
    stages: int

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return 32 * (self.rows // self.warp_rows) * (self.columns // self.warp_columns)

    def shared_bytes(self, element_bytes: int) -> int:
        """What the tiles of both operands take."""
        row = self.depth * element_bytes + PADDING_BYTES
        return self.stages * (self.rows + self.columns) * row

    def registers(self, element_bytes: int) -> int:
        """About what a thread needs: its sums, a row and a column of fragments, and addresses."""
        sums = self.warp_rows * self.warp_columns // 32
        return sums + self.warp_rows // 4 + self.warp_columns // 4 + 48

    def as_entries(self) -> dict[str, int | Sequence[int]]:
        """What a lowering config says of it."""
        return {"block": astuple(self)}


WARPGROUP_ROWS = 64
"""Of which four warps multiply all, 16 rows each."""


@dataclass(frozen=True)
class WarpgroupBlocking:
    """
    `rows` x `columns` of the output for a workgroup, 64 rows for four warps, `depth` of the
    reduction at a time. Of `stages` parts of the operands two are multiplied, one after the other,
    while the others are on their way.
    """

    rows: int
    columns: int
    depth: int
    stages: int

    warp_rows = 16

    @property
    def warp_columns(self) -> int:
        """Columns of a warp."""
        return self.columns

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return 128 * (self.rows // WARPGROUP_ROWS)

    def shared_bytes(self, element_bytes: int) -> int:
        """What the tiles of both operands take, barriers, and what may be lost before the first."""
        part = (self.rows + self.columns) * self.depth * element_bytes + 8
        return self.stages * part + 1024

    def registers(self, element_bytes: int, cut: int = 0) -> int:
        """
        About what a thread needs: its sums, and addresses of what it copies. Of `cut` points, since
        the last may be copied instead of them, each has an address of its own.
        """
        copy = 16 * self.threads // (self.depth * element_bytes)
        return self.columns // 2 + 3 * ((self.rows + self.columns) // copy) + 5 * cut // copy + 40

    def by_warps(self) -> MatrixBlocking:
        """The same block and threads for the instructions of single warps."""
        columns = self.columns // (self.threads // 64)
        stages = 3 if self.threads > 128 else 4
        return MatrixBlocking(self.rows, self.columns, self.rows // 2, columns, 32, stages)

    def as_entries(self) -> dict[str, int | Sequence[int]]:
        """What a lowering config says of it."""
        return {"block": astuple(self)}


AnyBlocking = Blocking | MatrixBlocking | WarpgroupBlocking


def _staged(*stages: int) -> tuple[MatrixBlocking, ...]:
    sizes = ((256, 128, 64, 64), (128, 128, 64, 32), (64, 64, 32, 32), (32, 32, 16, 16))
    return tuple(
        MatrixBlocking(*size, 32, count) for size, count in zip(sizes, stages, strict=True) if count
    )


MATRIX_CANDIDATES = _staged(0, 1, 1, 1)
"""For matrix instructions on halves, from the one that reads the least on."""

ASYNCHRONOUS_CANDIDATES = (
    *_staged(3, 3, 0, 0),
    *_staged(0, 2, 4, 4),
)
"""Where copies to shared memory need not be waited for: more stages first, where they fit."""


def matrix_candidates(element_bytes: int, *, asynchronous: bool) -> tuple[MatrixBlocking, ...]:
    """The candidates for elements of a size: a part of the reduction is 64 bytes."""
    found = ASYNCHRONOUS_CANDIDATES if asynchronous else MATRIX_CANDIDATES
    return tuple(replace(each, depth=64 // element_bytes) for each in found)


WARPGROUP_CANDIDATES = (
    WarpgroupBlocking(128, 256, 64, 4),
    WarpgroupBlocking(128, 128, 64, 3),
    WarpgroupBlocking(64, 128, 64, 4),
    WarpgroupBlocking(64, 64, 64, 4),
)
"""For products of warpgroups, from the one that reads the least on."""


def blocking_of(op: linalg.GenericOp) -> AnyBlocking:
    """The blocking that an op's lowering config has, or a middling one."""
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
    Whether matrix instructions for those element types multiply what the op reads: halves into
    f32, in an order of their own, f32 that is rounded to tf32, or signed bytes into i32.
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


CANDIDATES = (
    Blocking(128, 128, 8, 8, 8),
    Blocking(64, 64, 4, 4, 16),
    Blocking(32, 64, 4, 4, 16),
    Blocking(16, 64, 2, 4, 32),
    Blocking(8, 64, 1, 4, 32),
)
"""From the one that reads the least to the one that makes the most workgroups."""

STAGES = 4
"""Parts of the operands where copies need not be waited for: three are on their way."""


def candidates_for(op: linalg.GenericOp, *, asynchronous: bool) -> tuple[Blocking, ...]:
    """The candidates for an op, in stages too where its operands can be copied as they are."""
    parts = multiply_add(op)
    assert parts is not None
    *_, output = element_kinds(op, parts)
    if not asynchronous or parts.widen_lhs or parts.widen_rhs or lane_bytes(output) < 4:
        return CANDIDATES
    return tuple(c for each in CANDIDATES for c in (replace(each, stages=STAGES), each))


ATTENTION_BLOCKING = Blocking(64, 64, 4, 4, 16)
ATTENTION_MATRIX_BLOCKING = MatrixBlocking(64, 64, 32, 32, 32, 1)
"""Of both products of an attention."""


def why_no_blocks(op: linalg.GenericOp) -> str | None:
    """Why an op cannot be computed in blocks, or None."""
    parts = multiply_add(op)
    if parts is None or not is_contraction(op):
        return "no contraction"
    found = roles(op, parts)
    if not found.m or not found.n:
        return "no operand is used again"
    if vector_side(op, parts) is None:
        return "neither operand moves along the last dim of the output"
    *_, output = element_kinds(op, parts)
    if not has_lanes(output):
        return f"no vectors of {output}"
    return None


def sides(op: linalg.GenericOp) -> tuple[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]]:
    """Operand and loops of the rows, and of the columns, which are along the output's last dim."""
    parts = multiply_add(op)
    assert parts is not None
    found = roles(op, parts)
    lhs, rhs = (parts.lhs, found.m), (parts.rhs, found.n)
    return (lhs, rhs) if vector_side(op, parts) == parts.rhs else (rhs, lhs)


def tiles_of(loops: Sequence[int], sizes: Sequence[int], most: int) -> dict[int, int]:
    """A tile for each loop of a side, whole loops from the innermost on, of `most` points."""
    tiles: dict[int, int] = {}
    left = most
    for loop in reversed(loops):
        size = sizes[loop]
        tiles[loop] = max(1, left if size < 0 else min(size, left))
        left //= tiles[loop]
    return tiles


def workgroups(sizes: Sequence[int], tiles: dict[int, int], guess: int) -> int:
    """How many workgroups there are; a loop of unknown length is taken for `guess` points."""
    return prod(-(-(guess if sizes[x] < 0 else max(1, sizes[x])) // t) for x, t in tiles.items())


def fits(blocking: AnyBlocking, op: linalg.GenericOp, shared_bytes: int) -> str | None:
    """Why a blocking is too large for a workgroup, or None."""
    parts = multiply_add(op)
    assert parts is not None
    lhs, _, output = element_kinds(op, parts)
    matrix = isinstance(blocking, MatrixBlocking | WarpgroupBlocking)
    size = max(1, getattr(lhs, "bitwidth", 64) // 8) if matrix else lane_bytes(output)
    if (needed := blocking.shared_bytes(size)) > shared_bytes:
        return f"{needed} bytes of shared memory, and {shared_bytes} at most"
    if (needed := blocking.registers(size)) > 255:
        return f"{needed} registers, and 255 at most"
    if isinstance(blocking, MatrixBlocking | WarpgroupBlocking):
        return None
    if blocking.thread_columns * size % PADDING_BYTES and PADDING_BYTES % size:
        return "columns of a thread are no whole accesses"
    return None
