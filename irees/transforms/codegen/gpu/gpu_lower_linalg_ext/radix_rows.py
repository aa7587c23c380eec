"""
Lowers sort and topk of rows to radix sort and radix selection. Part of
`irees-gpu-lower-linalg-ext`.

Also chooses between radix and sorting network, with the cost model in `utils/block_costs.py`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.codegen.common.utils.radix_keys import RadixKey, as_key
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    load,
    load_or_position,
    other_dims,
    outside,
    place,
    rows,
    scratch,
    store,
)
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_select import Selection
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext.block_sort import Keys, sort_keys
from irees.transforms.codegen.gpu.utils.block_costs import Row, prefers_network
from irees.transforms.codegen.gpu.utils.block_radix import Pairs, Tallies, radix_sort
from irees.transforms.codegen.gpu.utils.segments import for_each
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


def why_no_sort(op: ext.SortOp, key: RadixKey | None, room: int) -> str | None:
    """Returns why rows are not radix-sorted, or None."""
    size = _length(op.outputs[0], op.dimension.value.data)
    reason = _why_no_keys(size, key, room)
    if reason is not None or size < 0:
        return reason
    assert key is not None
    row = Row(size, key.width, room)
    return prefers_network(row.radix_sort(), row.network_sort())


def why_no_select(op: ext.TopkV2Op, key: RadixKey | None, room: int) -> str | None:
    """Returns why top-k does not use radix selection, or None."""
    dim = op.dimension.value.data
    size, count = _length(op.values, dim), _length(op.output_values, dim)
    reason = _why_no_keys(size, key, room)
    if reason is not None or size < 0 or count < 0:
        return reason
    assert key is not None
    row = Row(size, key.width, room)
    return prefers_network(row.radix_select(count), row.network_select(count))


def _why_no_keys(size: int, key: RadixKey | None, room: int) -> str | None:
    if key is None:
        return "keys do not have 8, 16, 32 or 64 bits"
    needed = Tallies.bytes_for(size)
    return None if needed <= room else f"needs {needed} bytes of shared memory; {room} are free"


def _length(buffer: SSAValue, dim: int) -> int:
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.get_shape()[dim]


def sort_by_digits(op: ext.SortOp, key: RadixKey, room: int, at: IndexBuilder) -> None:
    """Radix-sorts rows of any length, even if they exceed the registers of a workgroup."""
    dim, targets = op.dimension.value.data, list(op.outputs)
    sources = op.sources
    kinds = [t.type.element_type for t in targets]  # type: ignore[attr-defined]
    size = buffer_dim(targets[0], dim, outside(op))
    tallies = Tallies.allocate(size, at)
    places = outside(op).mul(size, 2)
    pairs = Pairs.allocate(key.width, size, places, size, room - Tallies.bytes_for(size), at)
    # Copy the key operand too: keys do not keep the sign of zeros or NaN payloads.
    copies = [scratch(kind, size, at) for kind in kinds]

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        def take(i: SSAValue, c: IndexBuilder) -> None:
            typed = zip(sources, kinds, strict=True)
            values = [load_or_position(s, k, ivs, dim, i, c) for s, k in typed]
            for value, copy in zip(values, copies, strict=True):
                store(value, copy, [i], c)
            pairs.put(i, as_key(key, values[key.operand], c), i, c)

        for_each(b, size, take)
        start = radix_sort(tallies, pairs, b)

        def give(i: SSAValue, c: IndexBuilder) -> None:
            origin = pairs.origin(c.add(start, i), c)
            for target, copy in zip(targets, copies, strict=True):
                store(load(copy, [origin], c), target, place(ivs, dim, i), c)

        for_each(b, size, give)

    rows(targets[0], other_dims(targets[0], dim), at, row)


def topk_by_digits(op: ext.TopkV2Op, key: RadixKey, room: int, at: IndexBuilder) -> None:
    """topk  =>  a radix selection of each row's first k, then a sort of these k"""
    dim, source, best = op.dimension.value.data, op.values, op.output_values
    wanted = op.output_indices
    size, k = buffer_dim(source, dim, outside(op)), buffer_dim(best, dim, outside(op))
    tallies = Tallies.allocate(size, at)
    count = at.minimum(k, size)
    by_network = isinstance(count, int) and _is_short(count, key.width, room)
    places = k if by_network else outside(op).mul(k, 2)
    pairs = Pairs.allocate(key.width, count, places, size, room - Tallies.bytes_for(size), at)

    def row(ivs: dict[int, Size], b: IndexBuilder) -> None:
        def read(i: SSAValue, c: IndexBuilder) -> SSAValue:
            return as_key(key, load(source, place(ivs, dim, i), c), c)

        Selection(tallies, read, size, pairs).select(b)
        start: Size = 0
        if by_network:
            ascending = Order(op.body.block, 0, "ule")
            sort_keys(Keys(pairs.keys, pairs.origins, count, ascending), b)
        else:
            start = radix_sort(tallies, pairs, b)

        def give(i: SSAValue, c: IndexBuilder) -> None:
            origin = pairs.origin(c.add(start, i), c)
            store(load(source, place(ivs, dim, origin), c), best, place(ivs, dim, i), c)
            if wanted is None:
                return
            if op.indices is not None:
                value = load(op.indices, place(ivs, dim, origin), c)
            else:
                value = as_type(origin, wanted.type.element_type, c)  # type: ignore[attr-defined]
            store(value, wanted, place(ivs, dim, i), c)

        for_each(b, count, give)

    rows(source, other_dims(source, dim), at, row)


def _is_short(count: int, width: int, room: int) -> bool:
    """Whether a sorting network is cheaper for `count` keys."""
    row = Row(count, width, room)
    return row.network_sort() <= row.radix_sort()
