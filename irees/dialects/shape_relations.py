"""
Relations between the sizes of an op's operands and results, one table row per op.

In `linalg` and `tensor`, dynamic dims that disagree are undefined behaviour: a `?` that is 3 in one
operand and 1 in another reads out of bounds. The table states the required relations between dims
and index operands once, for three users: `irees-insert-shape-checks` asserts them on the host, the
interpreter traps on a violation, and the compiler rejects static violations.

    tensor.cast %x : tensor<?xf32> to tensor<4xf32>       Dim(%x, 0) == 4
    tensor.concat dim(0) %x, %y : ... -> tensor<7xf32>    Dim(%x, 0) + Dim(%y, 0) == 7

A row yields `Relation`s, and `Window`s for operands that are accessed through an affine map. Each
registered op on tensors has a row or a reason in `UNRELATED`; a test checks this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from irees.dialects.result_sizes import mixed, reassociation, size, sizes
from irees.dialects.sizes import (
    Expr,
    Relation,
    Scalar,
    Window,
    kept_dims,
    product,
    term,
    total,
)
from irees.dialects.upstream.linalg.winograd import transform_of
from irees.interfaces import domain_of

MAX_STRIDE = (1 << 31) - 1
"""Largest stride of a slice: offset + (size - 1) * stride fits into 64 bits for dims below 2^32."""
MAX_SIZE = 1 << 47
"""Largest dim of a non-empty tensor (47-bit addresses), and largest padding width and tile size."""
MAX_PRODUCT = 1 << 58
"""Largest product of any dims of a tensor, even if another of its dims is 0."""

Row = Callable[[Any], Iterator[Relation | Window]]


# --- helpers ------------------------------------------------------------------------------


def rank(value: SSAValue) -> int:
    """Returns the number of dims of a tensor or memref."""
    assert isinstance(value.type, ShapedType)
    return value.type.get_num_dims()


def result_is(op: Operation, wanted: Sequence[Expr]) -> Iterator[Relation]:
    """Requires the static dims of the result type to equal these sizes."""
    kind = op.results[0].type
    assert isinstance(kind, ShapedType)
    for axis, (static, expr) in enumerate(zip(kind.get_shape(), wanted, strict=True)):
        if static != DYNAMIC_INDEX:
            message = f"dim {axis} of the result of {op.name} must be {static}"
            yield Relation(expr, "eq", static, message)


def no_negative(op: Operation, numbers: Sequence[Expr], what: str) -> Iterator[Relation]:
    """Requires sizes to be non-negative."""
    for number in numbers:
        yield Relation(0, "sle", number, f"{what} of {op.name} is negative")


Place = tuple[SSAValue, int]
"""A dim of an operand: value and axis."""


def fits(op: Operation, lhs: Place, rhs: Place, predicate: str) -> Relation:
    """Requires a dim of an operand to equal ("eq"), or not exceed ("sle"), another."""
    operands = list(op.operands)
    verb = "equal" if predicate == "eq" else "be at most"
    (a, i), (b, j) = lhs, rhs
    message = (
        f"dim {i} of operand {operands.index(a)} must {verb} dim {j} of operand "
        f"{operands.index(b)} of {op.name}"
    )
    return Relation(size(a, i), predicate, size(b, j), message)


def like(op: Operation, values: Iterable[SSAValue], whole: SSAValue) -> Iterator[Relation]:
    """Requires all values to have the shape of `whole`."""
    for value in values:
        for axis in range(rank(whole)):
            yield fits(op, (value, axis), (whole, axis), "eq")


# --- loops --------------------------------------------------------------------------------


def by_maps(
    op: Operation,
    shaped: Sequence[tuple[SSAValue, AffineMap | None]],
    shorter: Collection[tuple[int, int]] = (),
) -> Iterator[Relation | Window]:
    """
    Requires all dims indexed by the same loop to be equal, and every other index expression to be
    within bounds. Dims in `shorter`, pairs of a position in `shaped` and an axis, may be smaller.
    """
    loops: dict[int, tuple[Expr, str]] = {}
    windows: list[tuple[SSAValue, int, AffineMap]] = []
    smaller: list[tuple[Expr, str, int]] = []
    operands = list(op.operands)
    for number, (value, indexing) in enumerate(shaped):
        if not isinstance(value.type, ShapedType) or indexing is None:
            continue
        for axis, expr in enumerate(indexing.results):
            if not isinstance(expr, AffineDimExpr):
                windows.append((value, axis, indexing))
                continue
            here = f"dim {axis} of operand {operands.index(value)}"
            if (number, axis) in shorter:
                smaller.append((size(value, axis), here, expr.position))
                continue
            known = loops.setdefault(expr.position, (size(value, axis), here))
            if known[1] != here:
                message = f"{here} must equal {known[1]} of {op.name}"
                yield Relation(size(value, axis), "eq", known[0], message)
    extents = {loop: known[0] for loop, known in loops.items()}
    for length, here, loop in smaller:
        message = f"{here} must be at most {loops[loop][1]} of {op.name}"
        yield Relation(length, "sle", extents[loop], message)
    for value, axis, indexing in windows:
        where = f"dim {axis} of operand {operands.index(value)}"
        message = f"the window of {op.name} must lie inside {where}"
        own = frozenset(indexing.used_dims())
        yield Window(indexing.results[axis], extents, size(value, axis), message, own)


def structured(op: LinalgStructuredOperation) -> Iterator[Relation | Window]:
    """The relations of a structured op, from its indexing maps."""
    indexing = [attr.data for attr in op.get_indexing_maps()]
    yield from by_maps(op, list(zip(op.operands, indexing, strict=True)))


def own_loops(op: Operation) -> Iterator[Relation | Window]:
    """The relations of an op that defines its own loops, from the maps of its domain."""
    domain = domain_of(op)
    assert domain is not None
    yield from by_maps(op, list(zip(op.operands, domain.maps, strict=True)), domain.shorter)


def mapped(op: Any) -> Iterator[Relation | Window]:
    """The relations of an iree_linalg_ext op with indexing maps."""
    indexing = [attr.data for attr in op.indexing_maps]
    yield from by_maps(op, list(zip((*op.inputs, *op.outputs), indexing, strict=True)))


def elementwise(op: Operation) -> Iterator[Relation]:
    """Requires all tensors to have the same shape."""
    tensors = [v for v in op.operands if isinstance(v.type, TensorType)]
    if tensors:
        yield from like(op, tensors[1:], tensors[0])


# --- tensor -------------------------------------------------------------------------------


def cast(op: Any) -> Iterator[Relation]:
    """Requires source and result of a cast to have the same shape."""
    if isinstance(op.source.type, TensorType) and isinstance(op.results[0].type, TensorType):
        yield from result_is(op, sizes(op.source))


def collapse(op: Any) -> Iterator[Relation]:
    """
    Requires each result dim to be the product of its group.

    In an empty tensor the product of a group without the zero dim may overflow, so it is bounded.
    """
    all_sizes = sizes(op.src)
    for axis, group in enumerate(reassociation(op)):
        others = [n for i, n in enumerate(all_sizes) if i not in group]
        done: Expr = 1
        for part in (all_sizes[i] for i in group):
            if done != 1 and not isinstance(part, int) and not all(map(is_positive, others)):
                left = term("floordiv", MAX_PRODUCT, term("maximum", done, 1))
                message = f"dim {axis} of the result of {op.name} is too large"
                yield Relation(part, "sle", left, message)
            done = term("mul", done, part)
    wanted = [product(size(op.src, i) for i in group) for group in reassociation(op)]
    yield from result_is(op, wanted)


def is_positive(number: Expr) -> bool:
    """Whether a size is static and positive."""
    return isinstance(number, int) and number > 0


def split(op: Operation, parts: Sequence[Expr], whole: Expr, what: str) -> Iterator[Relation]:
    """
    Requires the product of the parts to equal the whole.

    Each part is compared with the whole divided by the parts before it: a product that overflows
    cannot pass.
    """
    chosen = [part for part in parts if not isinstance(part, int)]
    yield from no_negative(op, chosen, "a size")
    done = product(part for part in parts if isinstance(part, int))
    message = f"{what} of {op.name}"
    for part in chosen if done != 0 else ():
        left = term("floordiv", whole, term("maximum", done, 1))
        yield Relation(part, "sle", left, message, unless=tuple(chosen))
        done = term("mul", done, part)
    yield Relation(done, "eq", whole, message)


def expand(op: Any) -> Iterator[Relation]:
    """Requires the product of each group to equal the source dim that it expands."""
    result = mixed(op.static_output_shape.get_values(), op.dynamic_output_shape)
    for axis, group in enumerate(reassociation(op)):
        what = f"dim {axis} of operand 0 must be the product of dims {group}"
        yield from split(op, [result[i] for i in group], size(op.src, axis), what)


def reshape(op: Any) -> Iterator[Relation]:
    """Requires source and result to have the same number of elements."""
    count = op.shape.type.get_shape()[0]
    wanted: list[Expr] = [Scalar(op.shape, at) for at in range(count)]
    yield from result_is(op, wanted)
    what = "the elements of operand 0 must be as many as the shape"
    yield from split(op, wanted, product(sizes(op.source)), what)


def bitcast_reshape(op: Any) -> Iterator[Relation]:
    """Requires source and result to have the same number of bits."""
    result = mixed(op.result.type.get_shape(), op.result_dims)
    before, after = (v.type.get_element_type().bitwidth for v in (op.source, op.result))
    whole = term("mul", product(sizes(op.source)), before)
    yield from split(op, [after, *result], whole, "the number of bits must stay the same")


def concat(op: Any) -> Iterator[Relation]:
    """Requires sizes to add up along `dim`, and all other dims to be equal."""
    along, (first, *rest) = op.dim.value.data, op.inputs
    for number, value in enumerate(rest, 1):
        for axis in range(rank(first)):
            if axis != along:
                message = f"dim {axis} of operand {number} must equal dim {axis} of operand 0"
                message += f" of {op.name}"
                yield Relation(size(value, axis), "eq", size(first, axis), message)
    wanted = sizes(first)
    wanted[along] = total(size(v, along) for v in op.inputs)
    yield from result_is(op, wanted)


def pad(op: Any) -> Iterator[Relation]:
    """Requires result dims to be low + dim + high, with non-negative widths."""
    low = mixed(op.static_low.get_values(), op.low)
    high = mixed(op.static_high.get_values(), op.high)
    for width in (*low, *high):
        yield from no_negative(op, [width], "a width")
        yield Relation(width, "sle", MAX_SIZE, f"a width of {op.name} is too large")
    whole = [term("add", term("add", a, n), b) for a, n, b in zip(low, sizes(op.source), high)]
    yield from result_is(op, whole)


def sliced(op: Any, whole: SSAValue) -> Iterator[Relation]:
    """Requires offset + (size - 1) * stride < dim on every dim, and no negative operand."""
    offsets = mixed(op.static_offsets.get_values(), op.offsets)
    lengths = mixed(op.static_sizes.get_values(), op.sizes)
    strides = mixed(op.static_strides.get_values(), op.strides)
    yield from box(op, whole, offsets, lengths, strides)


def box(
    op: Operation,
    whole: SSAValue,
    offsets: Sequence[Expr],
    lengths: Sequence[Expr],
    strides: Sequence[Expr],
) -> Iterator[Relation]:
    """Requires a slice with these offsets, lengths and strides to be within bounds."""
    for axis, (offset, length, stride) in enumerate(zip(offsets, lengths, strides, strict=True)):
        extent = size(whole, axis)
        last = product((term("sub", length, 1), stride))
        end = total((offset, length) if stride == 1 else (offset, last, 1))
        message = f"the slice of {op.name} must lie inside dim {axis}"
        yield Relation(end, "sle", extent, message)
        # Bound each operand too: the sum of two huge operands would overflow and pass.
        for value in (offset, length):
            if not isinstance(value, int):
                yield from no_negative(op, [value], "an offset or size")
                message = f"an offset or size of {op.name} is too large"
                yield Relation(value, "sle", extent, message)
        if stride != 1:
            yield Relation(1, "sle", stride, f"a stride of {op.name} is not positive")
            yield Relation(stride, "sle", MAX_STRIDE, f"a stride of {op.name} is too large")


def extract_slice(op: Any) -> Iterator[Relation]:
    """Requires the slice to be within bounds and to have the result's shape."""
    yield from sliced(op, op.source)
    lengths = mixed(op.static_sizes.get_values(), op.sizes)
    yield from result_is(op, [lengths[i] for i in kept_dims(lengths, op.result.type.get_shape())])


def insert_slice(op: Any) -> Iterator[Relation]:
    """Requires the slice to be within bounds and to have the source's shape."""
    lengths = mixed(op.static_sizes.get_values(), op.sizes)
    axes = kept_dims(lengths, op.source.type.get_shape())
    for axis, (extent, at) in enumerate(zip(sizes(op.source), axes, strict=True)):
        message = f"dim {axis} of operand 0 must equal the size of the slice of {op.name}"
        yield Relation(extent, "eq", lengths[at], message)
    yield from sliced(op, op.dest)


def flow_slice(op: Any) -> Iterator[Relation]:
    """Requires the slice to be within bounds and to have the result's shape."""
    lengths = [Scalar(n) for n in op.lengths]
    yield from box(
        op, op.source, [Scalar(i) for i in op.start_indices], lengths, [1] * len(lengths)
    )
    yield from result_is(op, lengths)


def flow_update(op: Any) -> Iterator[Relation]:
    """Requires the update to have the dims that the op states and to be within bounds."""
    stated, lengths = iter(op.update_dims), sizes(op.update)
    for axis, static in enumerate(op.update.type.get_shape()):
        if static == DYNAMIC_INDEX:
            message = f"dim {axis} of the update of {op.name} must be the stated dim"
            yield Relation(lengths[axis], "eq", Scalar(next(stated)), message)
    yield from box(
        op, op.target, [Scalar(i) for i in op.start_indices], lengths, [1] * len(lengths)
    )


def slices_of(op: Any, whole: SSAValue, dims: Sequence[int], count: int) -> list[Expr]:
    """
    Returns the shape, of rank `count`, of the slices that indices select from a tensor: the dims of
    the indices except the last, then those of the tensor with `dims` set to 1 or dropped.
    """
    batch = sizes(op.indices)[:-1]
    if count == len(batch) + rank(whole):
        return [*batch, *(1 if i in dims else n for i, n in enumerate(sizes(whole)))]
    return [*batch, *(n for i, n in enumerate(sizes(whole)) if i not in dims)]


def names_dims(op: Any, dims: Sequence[int]) -> Iterator[Relation]:
    """Requires an index to have one coordinate per indexed dim."""
    message = f"the last dim of the indices of {op.name} must be {len(dims)}"
    yield Relation(sizes(op.indices)[-1], "eq", len(dims), message)


def gather(op: Any) -> Iterator[Relation]:
    """tensor.gather"""
    dims = op.gather_dims.get_values()
    yield from names_dims(op, dims)
    yield from result_is(op, slices_of(op, op.source, dims, rank(op.result)))


def scatter(op: Any) -> Iterator[Relation]:
    """tensor.scatter"""
    dims = op.scatter_dims.get_values()
    yield from names_dims(op, dims)
    wanted = slices_of(op, op.dest, dims, rank(op.source))
    for axis, (mine, other) in enumerate(zip(sizes(op.source), wanted, strict=True)):
        message = f"dim {axis} of the slices of {op.name} must be that of what is indexed"
        yield Relation(mine, "eq", other, message)


# --- linalg and iree_linalg_ext -----------------------------------------------------------


def softmax(op: Any) -> Iterator[Relation]:
    """Requires input and output to have the same shape."""
    yield from like(op, [op.input], op.output)


def _relayout(op: Any, unpacked: SSAValue, packed: SSAValue, whole: bool) -> Iterator[Relation]:
    """Relates tile counts and tile sizes to the unpacked dims; `whole` forbids partial tiles."""
    tiles = mixed(op.static_inner_tiles.get_values(), op.inner_tiles)
    positions = op.inner_dims_pos.get_values()
    tile_of = dict(zip(positions, tiles, strict=True))
    count = rank(unpacked)
    order = op.outer_dims_perm.get_values() or tuple(range(count))
    for axis, tile in enumerate(tiles, count):
        if not isinstance(tile, int):
            # This check comes first because the relations below divide by the tile.
            yield Relation(1, "sle", tile, f"a tile of {op.name} must be positive")
            yield Relation(tile, "sle", MAX_SIZE, f"a tile of {op.name} is too large")
        message = f"dim {axis} of the tiles of {op.name} must be the size of a tile"
        yield Relation(size(packed, axis), "eq", tile, message)
    for axis, source in enumerate(order):
        outer, extent = size(packed, axis), size(unpacked, source)
        tile = tile_of.get(source, 1)
        message = f"dim {axis} of the tiles of {op.name} must count dim {source} of the rest"
        if tile == 1 or not whole:
            yield Relation(outer, "eq", term("ceildiv", extent, tile), message)
        else:
            yield Relation(term("mul", outer, tile), "eq", extent, message)


def pack(op: Any) -> Iterator[Relation]:
    """linalg.pack"""
    yield from _relayout(op, op.source, op.dest, whole=op.padding_value is None)


def unpack(op: Any) -> Iterator[Relation]:
    """linalg.unpack"""
    yield from _relayout(op, op.dest, op.source, whole=False)


def sort(op: Any) -> Iterator[Relation]:
    """Requires all operands to have the same shape."""
    first, *rest = (*op.outputs, *op.inputs)
    yield from like(op, rest, first)


def topk(op: Any) -> Iterator[Relation]:
    """
    Requires outputs to match the values in all dims but K.

    topk_v2 needs K <= the number of values. topk starts with the contents of its outs, so its K is
    unbounded.
    """
    along = op.dimension.value.data
    is_bounded = op.name == "iree_linalg_ext.topk_v2"
    yield from like(op, [op.indices] if op.indices is not None else [], op.values)
    for output in op.outputs:
        for axis in range(rank(output)):
            if axis != along:
                yield fits(op, (output, axis), (op.values, axis), "eq")
            elif is_bounded:
                yield fits(op, (output, axis), (op.values, axis), "sle")
    yield from like(op, op.outputs[1:], op.outputs[0])


def reduced(op: Any, source: SSAValue, results: Sequence[SSAValue]) -> Iterator[Relation]:
    """Requires results to have the source's dims without the reduced one."""
    axes = [axis for axis in range(rank(source)) if axis != op.dimension.value.data]
    for value in results:
        for axis, origin in enumerate(axes):
            yield fits(op, (value, axis), (source, origin), "eq")


def arg_compare(op: Any) -> Iterator[Relation]:
    """iree_linalg_ext.arg_compare"""
    yield from like(op, op.inputs[1:], op.inputs[0])
    yield from reduced(op, op.inputs[0], op.outputs)


def scan(op: Any) -> Iterator[Relation]:
    """iree_linalg_ext.scan"""
    yield from like(op, [op.output], op.input)
    yield from reduced(op, op.input, [op.accumulator])


def indexed(op: Any, whole: SSAValue, part: SSAValue, within: str) -> Iterator[Relation]:
    """Requires `part` to have the indices' batch dims, then slices that fit into `whole`."""
    named = list(op.dimension_map.get_values())
    slices = [d for d in range(rank(whole)) if d not in named]
    batch = rank(part) - len(slices)
    if rank(op.indices) > batch:
        message = f"the last dim of the indices of {op.name} must be {len(named)}"
        yield Relation(size(op.indices, batch), "eq", len(named), message)
    for beside in (op.indices, op.mask):
        if beside is not None:
            for axis in range(batch):
                yield fits(op, (beside, axis), (part, axis), "eq")
    for axis, target in enumerate(slices):
        yield fits(op, (part, batch + axis), (whole, target), within)


def ext_gather(op: Any) -> Iterator[Relation]:
    """iree_linalg_ext.gather"""
    yield from indexed(op, op.source, op.output, "eq")


def ext_scatter(op: Any) -> Iterator[Relation]:
    """iree_linalg_ext.scatter"""
    yield from indexed(op, op.original, op.updates, "sle")


def fft(op: Any) -> Iterator[Relation]:
    """Requires the real and the imaginary part to have the same shape."""
    yield from like(op, [op.imag], op.real)
    if op.real_coeff is not None:
        yield from like(op, [op.imag_coeff], op.real_coeff)


def winograd(op: Any) -> Iterator[Relation]:
    """Requires the tiles to cover the image, and all other dims to be equal."""
    transform = transform_of(op)
    if transform is None:
        return
    is_output = transform.kind == "output"
    flat, tiles = op.operands[::-1] if is_output else op.operands[:2]
    for mine, other in transform.rest:
        yield fits(op, (flat, mine), (tiles, other), "eq")
    for axis, image in enumerate(transform.image):
        step, matrix = transform.outputs(axis), transform.matrix(axis)
        count = 1 if transform.counts is None else size(tiles, transform.counts[axis])
        margin = 0 if is_output else len(matrix[0]) - step
        covered = term("add", term("mul", count, step), margin)
        message = f"the tiles of {op.name} must cover dim {image} of the image"
        yield Relation(size(flat, image), "sle", covered, message)
        points = len(matrix[0]) if is_output else len(matrix)
        message = f"dim {axis} of the tiles of {op.name} must be {points}"
        yield Relation(size(tiles, axis), "eq", points, message)


def dim(op: Any) -> Iterator[Relation]:
    """Requires the index to be in [0, rank)."""
    index, last = Scalar(op.index), rank(op.source) - 1
    message = f"the index of {op.name} must be in [0, {last}]"
    yield Relation(0, "sle", index, message)
    yield Relation(index, "sle", last, message)


TABLE: dict[str, Row] = {
    **{f"linalg.winograd_{kind}_transform": winograd for kind in ("input", "filter", "output")},
    **{
        f"iree_linalg_ext.winograd.{kind}_transform": winograd
        for kind in ("input", "filter", "output")
    },
    "tensor.dim": dim,
    "tensor.cast": cast,
    "tensor.bitcast": cast,
    "tensor.collapse_shape": collapse,
    "tensor.expand_shape": expand,
    "tensor.reshape": reshape,
    "tensor.concat": concat,
    "tensor.pad": pad,
    "tensor.extract_slice": extract_slice,
    "tensor.insert_slice": insert_slice,
    "tensor.parallel_insert_slice": insert_slice,
    "flow.tensor.slice": flow_slice,
    "flow.tensor.update": flow_update,
    "tensor.gather": gather,
    "tensor.scatter": scatter,
    "linalg.softmax": softmax,
    "linalg.pack": pack,
    "linalg.unpack": unpack,
    "iree_linalg_ext.sort": sort,
    "iree_linalg_ext.topk": topk,
    "iree_linalg_ext.topk_v2": topk,
    "iree_linalg_ext.arg_compare": arg_compare,
    "iree_linalg_ext.scan": scan,
    "iree_linalg_ext.scatter": ext_scatter,
    "iree_linalg_ext.gather": ext_gather,
    "iree_linalg_ext.fft": fft,
    "iree_linalg_ext.attention": mapped,
    "iree_linalg_ext.online_attention": mapped,
    "iree_linalg_ext.exp_reduction": mapped,
    "iree_tensor_ext.bitcast": bitcast_reshape,
}
"""Op name => row. Structured linalg ops are not listed: they use `structured`."""

SAME = "its result is its operand"
CLAMPED = "each element is read at an index that is moved inside"
ALLOCATED = "the allocator refuses negative sizes"
UNRELATED: dict[str, str] = {
    "tensor.empty": ALLOCATED,
    "tensor.splat": ALLOCATED,
    "tensor.generate": ALLOCATED,
    "tensor.extract": CLAMPED,
    "tensor.insert": "a store outside is left out",
    "tensor.from_elements": "its result is static",
    "tensor.rank": "it reads no element",
    "flow.tensor.constant": "its result is static",
    "flow.tensor.dynamic_constant": "its result has the dims of the constant",
    "flow.tensor.tie_shape": SAME,
    "flow.tensor.clone": SAME,
    "flow.tensor.transfer": SAME,
    "flow.tensor.barrier": SAME,
    "flow.tensor.trace": "it has no result",
    "irees.view_parts": "its result has the sizes of its operand",
    "flow.tensor.splat": ALLOCATED,
    "flow.tensor.empty": ALLOCATED,
    "flow.tensor.load": CLAMPED,
    "flow.tensor.store": "a store outside is left out",
    "flow.tensor.reshape": "it becomes a tensor.reshape, which has a row",
    "flow.tensor.bitcast": "it ends in a tensor.reshape, which has a row",
    "iree_linalg_ext.map_load": CLAMPED,
    "iree_linalg_ext.map_store": "a store outside is left out",
    "iree_linalg_ext.im2col": CLAMPED,
}
"""Ops without relations between their sizes, with the reason."""


ELEMENTWISE = ("arith.", "math.", "complex.")
"""Prefixes of dialects whose ops on tensors are elementwise."""


def row_of(op: Operation) -> Row | None:
    """Returns the row of an op, or None."""
    if op.name in TABLE:
        return TABLE[op.name]
    if isinstance(op, LinalgStructuredOperation):
        return structured
    if op.name.startswith(ELEMENTWISE):
        return elementwise
    return None if domain_of(op) is None else own_loops
