"""
Lowers scan and scatter to the threads of one workgroup. Part of `irees-gpu-lower-linalg-ext`.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common.utils.accumulating import batch_rank, scan_row, scatter_point
from irees.transforms.codegen.common.utils.rows import other_dims, rows
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.radix_rows import for_each, why_no_digits
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.scatter_costs import why_no_sort_of_updates
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.scatter_rows import scatter_in_order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, delinearize


def lower_scan(op: ext.ScanOp, at: IndexBuilder, room: int) -> str | None:
    """scan  =>  one row per thread"""
    _spread(op.input, other_dims(op.input, op.dimension.value.data), at, lambda ivs, b: scan_row(
        op, ivs, b))  # fmt: skip
    return None


def lower_scatter(op: ext.ScatterOp, at: IndexBuilder, room: int) -> str | None:
    """scatter  =>  one slice element per thread, with the updates in order; or why not"""
    assert isinstance(op.updates.type, MemRefType)
    rank, batch = op.updates.type.get_num_dims(), batch_rank(op)
    if op.unique_indices.value.data:
        _spread(op.updates, list(range(rank)), at, lambda ivs, b: scatter_point(op, ivs, b))
        return None
    reason = why_no_digits(op, why_no_sort_of_updates(op, room))
    if reason is None:
        scatter_in_order(op, room, at)
        return None
    if batch == rank:
        return reason

    def point(ivs: dict[int, Size], b: IndexBuilder) -> None:
        lead = list(range(batch))
        rows(op.updates, lead, b, lambda found, c: scatter_point(op, {**found, **ivs}, c))

    _spread(op.updates, list(range(batch, rank)), at, point)
    return None


def _spread(
    buffer: SSAValue,
    dims: list[int],
    at: IndexBuilder,
    body: Callable[[dict[int, Size], IndexBuilder], None],
) -> None:
    """Emits a loop over some dims of a buffer, one thread per index."""
    sizes = {d: buffer_dim(buffer, d, at) for d in dims}

    def one(index: SSAValue, b: IndexBuilder) -> None:
        body(delinearize(index, dims, sizes, b), b)

    for_each(at, at.product(list(sizes.values())), one)
