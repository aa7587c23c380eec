"""
How the threads of a workgroup load the operands of a contraction. Part of
`irees-gpu-select-strategy` and of the passes that lower contractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue

from irees.analysis.contractions import element_kinds, multiply_add, roles
from irees.dialects.irees_target import gpu_of
from irees.dialects.storage import root
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.blocking import (
    AnyBlocking,
    Blocking,
    WarpgroupBlocking,
    sides,
)
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES, Points
from irees.transforms.utils.lanes import lane_bytes
from irees.transforms.utils.shapes import Size


@dataclass
class Side:
    """One operand: the parallel loops that only it and the output use, and its shared tile."""

    operand: int
    loops: tuple[int, ...]
    extent: int
    """Tile size along those loops."""
    widen: tuple[Operation, ...]
    tile: SSAValue = field(init=False)
    lanes: int = 1
    """Elements per access."""
    along_depth: bool = False
    """Whether the operand is contiguous in memory along the reduction."""


def choose_access(
    side: Side,
    points: Points,
    depth: Sequence[int],
    sizes: Sequence[Size],
    element_bytes: int | None,
    blocking: AnyBlocking,
) -> None:
    """
    Chooses accesses in memory order, 16 bytes wide if alignment and sizes permit.

    `depth` are the loops of the reduction and `sizes` the trip counts. Without `element_bytes` the
    loads are of single elements.
    """
    indexing = points.maps[side.operand]
    last = indexing.results[-1].used_dims() if indexing.results else set[int]()
    side.along_depth = bool(last & set(depth))
    axis = depth[-1] if side.along_depth else side.loops[-1]
    size = sizes[axis]
    if element_bytes is None or not isinstance(size, int):
        return
    lanes = ACCESS_BYTES // element_bytes
    while lanes > 1 and not (
        size % lanes == 0
        and side.extent * blocking.depth // lanes % blocking.threads == 0
        and points.aligned(side.operand, axis, lanes)
    ):
        lanes //= 2
    side.lanes = lanes


def is_outside(op: linalg.GenericOp, side: Side) -> bool:
    """Whether an operand is in global memory: a function argument, not a workgroup's buffer."""
    return isinstance(root(op.operands[side.operand]), BlockArgument)


def sides_of(
    op: linalg.GenericOp, blocking: AnyBlocking, trips: Sequence[int], element_bytes: int
) -> tuple[Side, Side]:
    """Returns the rows and the columns with their accesses; `trips` are trip counts or -1."""
    parts, points = multiply_add(op), Points(op)
    assert parts is not None
    # None stands for a dynamic trip count.
    sizes: list[Size] = [None if trip < 0 else trip for trip in trips]  # type: ignore[list-item]
    (rows, row_loops), (columns, column_loops) = sides(op)
    found = (
        Side(rows, row_loops, blocking.rows, ()),
        Side(columns, column_loops, blocking.columns, ()),
    )
    for side in found:
        choose_access(side, points, roles(op, parts).k, sizes, element_bytes, blocking)
    return found


def why_no_thread_copies(
    op: linalg.GenericOp, blocking: WarpgroupBlocking, trips: Sequence[int]
) -> str | None:
    """
    Returns why the threads cannot copy the operands for `wgmma`, or None. `trips` are the trip
    counts (-1: dynamic).
    """
    parts = multiply_add(op)
    assert parts is not None
    narrow, *_ = element_kinds(op, parts)
    size, depth = getattr(narrow, "bitwidth", 16) // 8, roles(op, parts).k
    if size != 2:
        return f"no wgmma for {narrow}"
    cut = 0
    # Columns are also bounds-checked at the stores.
    names = (("rows", 1), ("columns", 2))
    for side, (name, checks) in zip(sides_of(op, blocking, trips, size), names, strict=True):
        if not is_outside(op, side):
            return f"the operand of the {name} is computed by the workgroup"
        if side.lanes == 1:
            return f"the operand of the {name} cannot be copied 4 bytes at a time"
        counts = [trips[loop] for loop in side.loops]
        if min(counts) < 0 or prod(counts) % side.extent:
            cut += side.extent * checks
    if min(trips[loop] for loop in depth) < 0:
        return "the length of the reduction is dynamic"
    most = gpu_of(op).registers_per_thread
    if (needed := blocking.registers(size, cut)) > most:
        return f"needs {needed} registers for a partial last tile; the limit is {most}"
    return None


def why_not_wide(op: linalg.GenericOp, blocking: Blocking, trips: Sequence[int]) -> str | None:
    """
    Returns why the copies of a wide block of a product would need an address register each, or
    None. `trips` are the trip counts (-1: dynamic).
    """
    parts = multiply_add(op)
    assert parts is not None
    *_, element = element_kinds(op, parts)
    size, (depth,), copies = lane_bytes(element), roles(op, parts).k, 0
    for side in sides_of(op, blocking, trips, size):
        (loop,) = side.loops
        if trips[loop] < 0 or trips[loop] % side.extent or trips[depth] % blocking.depth:
            return "a tile is partial"
        if not is_outside(op, side):
            return "an operand is computed by the workgroup"
        if not side.along_depth and side.lanes * size < ACCESS_BYTES:
            return f"an operand cannot be copied {ACCESS_BYTES} bytes at a time"
        lanes = 1 if side.along_depth else side.lanes
        copies += side.extent * blocking.depth // lanes // blocking.threads
    if copies > NVIDIA.wide_copies:
        return f"{copies} copies per thread; the limit is {NVIDIA.wide_copies}"
    return None
