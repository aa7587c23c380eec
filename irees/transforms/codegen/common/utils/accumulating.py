"""
Lowers one row of a scan, and one element of a scatter. Part of `irees-lower-linalg-ext-to-loops`,
`irees-gpu-lower-scans` and `irees-gpu-lower-scatters`.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common.utils.rows import as_type, compare, load, place, store
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


def scan_row(op: ext.ScanOp, ivs: dict[int, Size], b: IndexBuilder) -> None:
    """
    Scans one row along the dim. An empty row leaves the accumulator unchanged.

    Each input element is read before the output at its index is written, since both may be the
    same buffer.
    """
    size = buffer_dim(op.input, op.dimension.value.data, b)
    if isinstance(size, int):
        if size:
            _scan_elements(op, ivs, size, b)
        return
    close, c = if_else(b, compare(size, 1, "sge", b))
    _scan_elements(op, ivs, size, c)
    close()


def _scan_elements(op: ext.ScanOp, ivs: dict[int, Size], size: Size, b: IndexBuilder) -> None:
    """Scans one non-empty row; the accumulator receives the final running value."""
    dim, block = op.dimension.value.data, op.body.block
    where = [ivs[d] for d in sorted(ivs)]
    if op.inclusive.value.data:
        first = load(op.input, place(ivs, dim, 0), b)
        store(first, op.output, place(ivs, dim, 0), b)
        close, i, c = for_loop(b, 1, size, 1, [first])
        (running,) = close.arguments
        following = inline_region(block, [running, load(op.input, place(ivs, dim, i), c)], c)[0]
        store(following, op.output, place(ivs, dim, i), c)
        last = close([following])[0]
    else:
        end = b.sub(size, 1)
        close, i, c = for_loop(b, 0, end, 1, [load(op.accumulator, where, b)])
        (running,) = close.arguments
        value = load(op.input, place(ivs, dim, i), c)
        store(running, op.output, place(ivs, dim, i), c)
        last = close([inline_region(block, [running, value], c)[0]])[0]
        store(last, op.output, place(ivs, dim, end), b)
    store(last, op.accumulator, where, b)


def batch_rank(op: ext.ScatterOp) -> int:
    """Returns the number of leading batch dims of the updates; the rest index a slice."""
    assert isinstance(op.updates.type, MemRefType)
    assert isinstance(op.original.type, MemRefType)
    indexed = len(op.dimension_map.get_values())
    return op.updates.type.get_num_dims() - (op.original.type.get_num_dims() - indexed)


def destination(
    op: ext.ScatterOp, ivs: dict[int, Size], b: IndexBuilder
) -> tuple[list[Size], SSAValue | None]:
    """Returns the target indices of an update, and whether it is written (None: always)."""
    target, updates, indices = op.original, op.updates, op.indices
    assert isinstance(indices.type, MemRefType)
    assert isinstance(updates.type, MemRefType)
    assert isinstance(target.type, MemRefType)
    rank, batch = updates.type.get_num_dims(), batch_rank(op)
    has_depth = indices.type.get_num_dims() > batch
    lead = [ivs[d] for d in range(batch)]
    found: dict[int, Size] = {}
    valid: SSAValue | None = None
    for position, dim in enumerate(op.dimension_map.get_values()):
        raw = load(indices, [*lead, position] if has_depth else lead, b)
        index = as_type(raw, IndexType(), b)
        inside = compare(index, buffer_dim(target, dim, b), "ult", b)
        valid = inside if valid is None else b.insert(arith.AndIOp(valid, inside)).results[0]
        found[dim] = index
    if op.mask is not None:
        allowed = load(op.mask, lead, b)
        valid = allowed if valid is None else b.insert(arith.AndIOp(valid, allowed)).results[0]
    rest = iter(range(batch, rank))
    where = [found[d] if d in found else ivs[next(rest)] for d in range(target.type.get_num_dims())]
    return where, valid


def scatter_point(op: ext.ScatterOp, ivs: dict[int, Size], b: IndexBuilder) -> None:
    """Applies one element of the updates if its index is in bounds and not masked."""
    where, valid = destination(op, ivs, b)

    def write(c: IndexBuilder) -> None:
        new = load(op.updates, [ivs[d] for d in range(len(ivs))], c)
        old = load(op.original, where, c)
        store(inline_region(op.body.block, [new, old], c)[0], op.original, where, c)

    if valid is None:
        write(b)
        return
    close, c = if_else(b, valid)
    write(c)
    close()
