"""
Counts the elements that a thread loads with scalar loads for a block of `mma.sync`. Part of
`irees-gpu-select-strategy`.

A thread loads the elements of the next step before it multiplies those of the current one. Elements
that are not adjacent in memory take a register each, and more if each needs its own address.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.linalg import ops as linalg

from irees.analysis.contractions import element_kinds, multiply_add, roles
from irees.dialects.irees_target import gpu_of
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.blocking import MatrixBlocking, sides
from irees.transforms.codegen.gpu.utils.operands import Side, choose_access
from irees.transforms.codegen.gpu.utils.points import Points
from irees.transforms.utils.shapes import Size


def why_no_single_loads(
    op: linalg.GenericOp, blocking: MatrixBlocking, trips: Sequence[int]
) -> str | None:
    """
    Returns why a thread cannot hold the elements that it loads one at a time while it multiplies,
    or None. `trips` are the trip counts of a workgroup (-1: dynamic).

    If several loops index an operand, or its tile may be partial, each load has its own address.
    """
    parts, points = multiply_add(op), Points(op)
    assert parts is not None
    narrow, *_ = element_kinds(op, parts)
    size, depth = getattr(narrow, "bitwidth", 32) // 8, roles(op, parts).k
    # None stands for a dynamic trip count.
    sizes: list[Size] = [None if trip < 0 else trip for trip in trips]  # type: ignore[list-item]
    loads, extents = 0, (blocking.rows, blocking.columns)
    for (operand, loops), extent in zip(sides(op), extents, strict=True):
        side = Side(operand, loops, extent, ())
        choose_access(side, points, depth, sizes, size, blocking)
        if side.lanes == 1:
            apart = len(loops) > 1 or len(depth) > 1 or trips[loops[0]] % extent
            each = NVIDIA.load_registers if apart else 1
            loads += extent * blocking.depth // blocking.threads * each
    gpu, needed = gpu_of(op), blocking.registers(size) + loads
    most = min(gpu.registers_per_thread, gpu.registers // blocking.threads)
    if not loads or needed <= most:
        return None
    return f"needs {needed} registers, {loads} of them for scalar loads; the limit is {most}"
