"""Data movement: views, reshapes, slices, concatenation, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...builder import Body, Scalar, Size, Tensor, indexing, shapes
from ...builder.dtypes import I64, INDEX, U8, U16, U32, U64
from ..calls import Call, NotLowered, lowers
from ..dtypes import dtype_of
from ..operators import aten

_WORDS = {8: U8, 16: U16, 32: U32, 64: U64}


@lowers(
    aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.view_copy.default,
    aten._reshape_alias.default, aten.flatten.using_ints, aten.unflatten.int, aten.ravel.default,
    aten.view_as.default, aten.unsqueeze.default, aten.unsqueeze_copy.default,
    aten.reshape_as.default, aten._reshape_copy.default, aten.atleast_1d.default,
    aten.atleast_2d.default,
)  # fmt: skip
def view(call: Call, x: Tensor, *_: Any) -> Tensor:
    """Reshape in row-major order"""
    return shapes.reshape(call.b, x, call.shape())


@lowers(
    aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.squeeze_copy.default, aten.squeeze_copy.dim, aten.squeeze_copy.dims,
)  # fmt: skip
def squeeze(call: Call, x: Tensor, dims: Any = None) -> Tensor:
    """x without those of `dims` (all by default) that are 1; dynamic ones must not be 1"""
    asked = range(x.rank) if dims is None else [dims] if isinstance(dims, int) else dims
    for d in asked if x.rank else ():
        if not isinstance(size := x.shape[d], int):
            message = f"the program is compiled for another size than 1 of dim {d} of a squeeze"
            call.b.check(call.b.compute(lambda n: n != 1, (size, INDEX)).value, message)
    return shapes.reshape(call.b, x, call.shape())


@lowers(
    aten.expand.default,
    aten.expand_as.default,
    aten.broadcast_to.default,
    aten.expand_copy.default,
)
def expand(call: Call, x: Tensor, *_: Any) -> Tensor:
    """x broadcast to a shape"""
    return shapes.broadcast_to(call.b, x, call.shape())


@lowers(aten.copy.default)
def copy(call: Call, x: Tensor, source: Tensor, _: bool) -> Tensor:
    """source converted to the shape and dtype of x"""
    return shapes.broadcast_to(call.b, call.b.cast(source, x.dtype), x.shape)


@lowers(aten.permute.default, aten.permute_copy.default)
def permute(call: Call, x: Tensor, dims: list[int]) -> Tensor:
    """out dim n is dim dims[n] of x"""
    return shapes.transpose(call.b, x, [d % max(x.rank, 1) for d in dims])


@lowers(aten.transpose.int, aten.swapaxes.default, aten.swapdims.default, aten.transpose_copy.int)
def transpose(call: Call, x: Tensor, first: int, second: int) -> Tensor:
    """x with two dims exchanged"""
    if not x.rank:
        return x
    order = list(range(x.rank))
    first, second = first % x.rank, second % x.rank
    order[first], order[second] = order[second], order[first]
    return shapes.transpose(call.b, x, order)


@lowers(
    aten.t.default,
    aten.numpy_T.default,
    aten.mT.default,
    aten.t_copy.default,
    aten.adjoint.default,
    aten.mH.default,
    aten.matrix_H.default,
)
def t(call: Call, x: Tensor) -> Tensor:
    """x with its last two dims exchanged (all dims reversed for `.T`); adjoints also conjugate"""
    if x.rank < 2:
        return x
    if call.target is aten.numpy_T.default:
        return shapes.transpose(call.b, x, list(range(x.rank))[::-1])
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    result = shapes.transpose(call.b, x, order)
    adjoint = call.target in (aten.adjoint.default, aten.mH.default, aten.matrix_H.default)
    if adjoint and x.dtype.is_complex:
        return call.b.map(lambda v: v.conj(), result)
    return result


@lowers(aten.movedim.int, aten.movedim.intlist, aten.moveaxis.int, aten.moveaxis.intlist)
def movedim(call: Call, x: Tensor, source: Any, target: Any) -> Tensor:
    """Moves dims to other positions; the others keep their order"""
    sources = [source] if isinstance(source, int) else source
    targets = [target] if isinstance(target, int) else target
    if not x.rank:
        return x
    order: list[int | None] = [None] * x.rank
    for s, d in zip(sources, targets):
        order[d % x.rank] = s % x.rank
    rest = iter(i for i in range(x.rank) if i not in order)
    return shapes.transpose(call.b, x, [next(rest) if i is None else i for i in order])


def bound(call: Call, index: Any, size: Size, default: Size) -> Size:
    """Normalizes a slice bound: negative counts from the end, then clamped to 0 .. size."""
    b = call.b
    if index is None:
        return default
    if isinstance(index, int):
        if isinstance(size, int):
            return min(max(index + size if index < 0 else index, 0), size)
        if index >= 2**62:
            return size
        if index >= 0:
            return b.minimum(index, size) if index else 0
        return b.maximum(b.add(size, index), 0)
    pair = ((index, INDEX), (b.value(size), INDEX))
    return b.compute(lambda i, n: (i < 0).where(i + n, i).clamp(0, n), *pair).value


@lowers(aten.slice.Tensor, aten.slice_copy.Tensor)
def slice_(call: Call, x: Tensor, dim: int, start: Any, end: Any, step: Any) -> Tensor:
    """x[..., start:end:step, ...]"""
    b, axis = call.b, dim % x.rank
    size = x.shape[axis]
    begin = bound(call, start, size, 0)
    if call.has_symbols():
        count = call.shape()[axis]
    else:
        stop = b.maximum(bound(call, end, size, size), begin)
        count = b.floordiv(b.add(b.sub(stop, begin), step - 1), step)
    return shapes.slice_axis(b, x, axis, begin, count, step)


@lowers(aten.narrow.default, aten.narrow_copy.default)
def narrow(call: Call, x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """x[..., start : start + length, ...]"""
    if isinstance(start, Tensor):
        raise NotLowered
    axis = dim % x.rank
    begin = bound(call, start, x.shape[axis], 0)
    return shapes.slice_axis(call.b, x, axis, begin, length)


@lowers(aten.select.int, aten.select_copy.int)
def select(call: Call, x: Tensor, dim: int, index: Any) -> Tensor:
    """x[..., index, ...]"""
    axis = dim % x.rank
    return shapes.select(call.b, x, axis, bound(call, index, x.shape[axis], 0))


@lowers(
    aten.split_with_sizes.default, aten.split.Tensor, aten.split.sizes, aten.chunk.default,
    aten.unsafe_split.Tensor, aten.unsafe_split_with_sizes.default, aten.unsafe_chunk.default,
    aten.tensor_split.sections, aten.tensor_split.indices, aten.split_copy.Tensor,
    aten.split_with_sizes_copy.default, aten.hsplit.int, aten.hsplit.array,
    aten.vsplit.int, aten.vsplit.array, aten.dsplit.int, aten.dsplit.array,
)  # fmt: skip
def split(call: Call, x: Tensor, _: Any, *dim: int) -> tuple[Tensor, ...]:
    """Splits into consecutive pieces along a dim"""
    name = call.target.__name__.split(".")[0]
    fixed = {"hsplit": 1 if x.rank > 1 else 0, "vsplit": 0, "dsplit": 2}
    axis = fixed[name] if name in fixed else dim[0] % x.rank
    pieces: list[Tensor] = []
    begin: Size = 0
    for i in range(len(call.value)):
        size = call.shape(i)[axis]
        pieces.append(shapes.slice_axis(call.b, x, axis, begin, size))
        begin = call.b.add(begin, size)
    return tuple(pieces)


@lowers(aten.unbind.int, aten.unbind_copy.int)
def unbind(call: Call, x: Tensor, dim: int) -> tuple[Tensor, ...]:
    """The slices along a dim, with the dim removed"""
    axis = dim % x.rank
    return tuple(shapes.select(call.b, x, axis, i) for i in range(len(call.value)))


@lowers(aten.cat.default, aten.concat.default, aten.concatenate.default)
def cat(call: Call, tensors: list[Tensor], dim: int) -> Tensor:
    """Concatenation along a dim; ignores empty vectors"""
    rank = len(call.shape())
    kept = [t for t in tensors if t.rank == rank and (rank > 1 or t.shape != (0,))]
    if not kept:
        return call.b.empty(call.dtype(), call.shape())
    parts = [call.b.cast(t, call.dtype()) for t in kept]
    return shapes.concatenate(call.b, parts, dim % max(rank, 1))


@lowers(aten.stack.default)
def stack(call: Call, tensors: list[Tensor], dim: int) -> Tensor:
    """Concatenation along a new dim"""
    parts = [call.b.cast(t, call.dtype()) for t in tensors]
    return shapes.stack(call.b, parts, dim % len(call.shape()))


@lowers(aten.constant_pad_nd.default)
def constant_pad_nd(call: Call, x: Tensor, amounts: list[Any], value: Any) -> Tensor:
    """x padded with a number; negative amounts crop"""
    b, rank = call.b, x.rank
    low: list[Size] = [0] * rank
    high: list[Size] = [0] * rank
    for i in range(len(amounts) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
    for i in range(rank):
        cut = [-n if isinstance(n, int) and n < 0 else 0 for n in (low[i], high[i])]
        if any(cut):
            x = shapes.slice_axis(b, x, i, cut[0], b.sub(x.shape[i], cut[0] + cut[1]))
            low[i], high[i] = (0 if c else n for c, n in zip(cut, (low[i], high[i])))
    if x.dtype.is_integer:
        value = int(value)
    return shapes.pad(b, x, low, high, value)


@lowers(aten.pad.default)
def pad(call: Call, x: Tensor, amounts: list[Any], mode: str, value: Any) -> Tensor:
    """x padded according to `mode`"""
    if mode == "constant":
        return constant_pad_nd(call, x, amounts, value or 0)
    return _bordered(call, x, amounts, mode)


@lowers(aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default)
def reflection_pad(call: Call, x: Tensor, amounts: list[Any]) -> Tensor:
    """x[|i|], mirrored at both ends without repeating the edge elements"""
    return _bordered(call, x, amounts, "reflect")


@lowers(
    aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default
)
def replication_pad(call: Call, x: Tensor, amounts: list[Any]) -> Tensor:
    """x[clamp(i)]"""
    return _bordered(call, x, amounts, "replicate")


@lowers(aten._pad_circular.default)
def pad_circular(call: Call, x: Tensor, amounts: list[Any]) -> Tensor:
    """x[i mod n]"""
    return _bordered(call, x, amounts, "circular")


def _require_borders(call: Call, x: Tensor, amounts: list[Any], mode: str) -> None:
    """Aborts a run in which a dynamic dim is too small for its border."""
    b = call.b
    for i, amount in enumerate(amounts):
        size = x.shape[x.rank - 1 - i // 2]
        least = 1 if mode == "replicate" else b.add(amount, 1) if mode == "reflect" else amount
        if not isinstance(size, int):
            pair = (size, INDEX), (b.value(b.maximum(least, 0)), INDEX)
            fine = b.compute(lambda n, m: n >= m, *pair).value
            b.check(fine, f"a dim is too small for a border of mode {mode}")


def _bordered(call: Call, x: Tensor, amounts: list[Any], mode: str) -> Tensor:
    b = call.b
    before = {x.rank - 1 - i: amounts[2 * i] for i in range(len(amounts) // 2)}
    _require_borders(call, x, amounts, mode)

    def wrapped(s: Any, i: int, at: Any) -> Any:
        # The period excludes elements cropped by negative amounts.
        low, high = before[i], amounts[2 * (x.rank - 1 - i) + 1]
        cut = [max(-n, 0) if isinstance(n, int) else 0 for n in (low, high)]
        at = at - s.as_index(max(low, 0) if isinstance(low, int) else low)
        return at.mod(s.as_index(x.shape[i]) - sum(cut)) + cut[0]

    def place(s: Any, i: int, at: Any) -> Any:
        if i not in before:
            return at
        if mode == "circular":
            return wrapped(s, i, at)
        at, size = at - s.as_index(before[i]), s.as_index(x.shape[i])
        if mode == "replicate":
            return at.clamp(0, size - 1)
        at = at.abs()
        return (at >= size).where(size * 2 - 2 - at, at)

    return b.from_function(
        lambda s, *at: s.extract(x, [place(s, i, v) for i, v in enumerate(at)]),
        call.shape(),
        x.dtype,
    )


@lowers(aten.flip.default)
def flip(call: Call, x: Tensor, dims: list[int]) -> Tensor:
    """x reversed along dims"""
    return shapes.flip(call.b, x, call.axes(dims, x.rank)) if dims else x


@lowers(aten.fliplr.default)
def fliplr(call: Call, x: Tensor) -> Tensor:
    """x reversed along dim 1"""
    return shapes.flip(call.b, x, [1])


@lowers(aten.flipud.default)
def flipud(call: Call, x: Tensor) -> Tensor:
    """x reversed along dim 0"""
    return shapes.flip(call.b, x, [0])


@lowers(aten.roll.default)
def roll(call: Call, x: Tensor, shifts: list[Any], dims: list[int]) -> Tensor:
    """Rotates elements along dims"""
    b = call.b
    if not dims:
        flat = shapes.roll(b, shapes.flatten(b, x), shifts[:1], [0])
        return shapes.reshape(b, flat, x.shape)
    return shapes.roll(b, x, shifts, [dim % x.rank for dim in dims]) if x.rank else x


@lowers(aten.repeat.default, aten.tile.default)
def repeat(call: Call, x: Tensor, repeats: list[Any]) -> Tensor:
    """Repeats x along each dim"""
    b, shape = call.b, call.shape()
    repeats = [1] * (len(shape) - len(repeats)) + list(repeats)
    x = shapes.reshape(b, x, [1] * (len(shape) - x.rank) + list(x.shape))
    inner: list[Size] = []
    outer: list[Size] = []
    for count, size in zip(repeats, x.shape):
        inner += [1, size]
        outer += [count, size]
    wide = shapes.broadcast_to(b, shapes.reshape(b, x, inner), outer)
    return shapes.reshape(b, wide, shape)


@lowers(aten.diagonal.default, aten.diagonal_copy.default)
def diagonal(call: Call, x: Tensor, offset: int, first: int, second: int) -> Tensor:
    """x[..., k, ..., k + offset, ...] as the last dim"""
    size = call.shape()[-1]
    return shapes.diagonal(call.b, x, offset, first % x.rank, second % x.rank, size)


@lowers(aten.tril.default, aten.triu.default)
def triangle(call: Call, x: Tensor, diagonal: Any) -> Tensor:
    """The lower or upper triangle; 0 elsewhere"""
    return shapes.triangle(call.b, x, diagonal, upper=call.target is aten.triu.default)


@lowers(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(call: Call, x: Tensor, size: list[Any], stride: list[Any], offset: Any) -> Tensor:
    """Elements of the storage of x at the given strides and offset"""
    b = call.b
    begin = call.raw[0].storage_offset() if offset is None else offset
    given = call.raw[0]
    base, source = call.bases.get(x.value, (x, given))
    if source.untyped_storage()._cdata == given.untyped_storage()._cdata:
        x = base
    else:  # a copy of a view, for which `contiguous` keeps the same SSA value
        source = given
    if not all(isinstance(s, int) for s in (*size, *stride, begin, *source.shape)):
        flat = shapes.flatten(b, shapes.transpose(b, x, _dense_order(call, source)))
        first = _offset_in(call, begin, source)
        return b.from_function(
            lambda s, *at: s.extract(flat, [_place(s, first, at, stride)]), call.shape(), x.dtype
        )
    begin -= source.storage_offset()
    end = begin + sum((n - 1) * step for n, step in zip(size, stride))
    if 0 in size:
        return b.empty(x.dtype, call.shape())
    flat = _storage_order(call, x, source)
    if begin < 0 or end >= source.numel():
        raise call.unsupported("as_strided beyond the tensor that it is given")

    return b.from_function(
        lambda s, *at: s.extract(flat, [_place(s, begin, at, stride)]), call.shape(), x.dtype
    )


def _place(s: Body, begin: Size, at: Sequence[Scalar], stride: Sequence[Size]) -> Scalar:
    """begin + sum of at[i] * stride[i]"""
    place = s.as_index(begin)
    for v, step in zip(at, stride):
        place = place + v * s.as_index(step)
    return place


def _offset_in(call: Call, begin: Any, source: torch.Tensor) -> Size:
    """The distance of an offset in a storage from the first element of a tensor."""
    sizes = call.symbols.size
    begin = sizes(begin) if isinstance(begin, torch.SymInt) else begin
    return call.b.sub(begin, sizes(source.storage_offset()))


def _dense_order(call: Call, source: torch.Tensor) -> list[int]:
    """`_memory_order` of a tensor that may have symbolic sizes: those must be row-major."""
    if all(isinstance(n, int) for n in source.shape):
        return _memory_order(call, source)
    if not source.is_contiguous():
        raise call.unsupported("as_strided with sizes that are not known")
    return list(range(source.dim()))


@lowers(aten.as_strided_scatter.default, torch.ops.prims.as_strided_scatter.default)
def as_strided_scatter(
    call: Call, x: Tensor, part: Tensor, size: list[Any], stride: list[Any], offset: Any
) -> Tensor:
    """x with the elements of its storage at the given strides and offset replaced"""
    b, source = call.b, call.raw[0]
    first = _offset_in(call, source.storage_offset() if offset is None else offset, source)
    order = _dense_order(call, source)
    flat = shapes.flatten(b, shapes.transpose(b, x, order))
    places = b.from_function(lambda s, *at: _place(s, first, at, stride).to(I64), size, I64)
    places = shapes.flatten(b, places)
    values = shapes.flatten(b, b.cast(shapes.broadcast_to(b, part, size), x.dtype))
    done = indexing.scatter(b, flat, shapes.unsqueeze(b, places, 1), values, None)
    done = shapes.reshape(b, done, [x.shape[i] for i in order])
    return shapes.transpose(b, done, [order.index(i) for i in range(x.rank)])


@lowers(aten.resize.default)
def resize(call: Call, x: Tensor, _: Any) -> Tensor:
    """The first elements in memory order, reshaped; missing elements are 0"""
    b = call.b
    flat = shapes.flatten(b, shapes.transpose(b, x, _memory_order(call, call.raw[0])))
    count, given = b.product(call.shape()), flat.shape[0]
    if not (isinstance(count, int) and isinstance(given, int)):
        raise call.unsupported("resize to a size that is not known")
    flat = shapes.slice_axis(b, flat, 0, 0, min(count, given))
    return shapes.reshape(b, shapes.pad(b, flat, [0], [max(count - given, 0)]), call.shape())


def _storage_order(call: Call, x: Tensor, source: torch.Tensor) -> Tensor:
    """Flattens in memory order; the tensor must be dense in some order of its dims."""
    return shapes.flatten(call.b, shapes.transpose(call.b, x, _memory_order(call, source)))


def _memory_order(call: Call, source: torch.Tensor) -> list[int]:
    """The dims by decreasing stride. Raises UnsupportedError for a non-dense layout."""
    strides, sizes = source.stride(), source.shape
    order = sorted(range(source.dim()), key=lambda i: (-strides[i], i))
    expected = 1
    for i in reversed(order):
        if sizes[i] != 1 and strides[i] != expected:
            raise call.unsupported("the layout of a tensor that is not dense")
        expected *= sizes[i]
    return order


@lowers(aten.unfold.default, aten.unfold_copy.default)
def unfold(call: Call, x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """out[..., i, ..., k] = x[..., i * step + k, ...]"""
    if not x.rank:
        return shapes.reshape(call.b, x, call.shape())
    axis = dim % x.rank

    def element(s: Any, *at: Any) -> Any:
        places = list(at[:-1])
        places[axis] = places[axis] * step + at[-1]
        return s.extract(x, places)

    return call.b.from_function(element, call.shape(), x.dtype)


@lowers(aten.view_as_real.default, aten.view_as_real_copy.default)
def view_as_real(call: Call, x: Tensor) -> Tensor:
    """Real and imaginary parts as a new last dim"""
    return shapes.parts(call.b, x)


@lowers(aten.view_as_complex.default, aten.view_as_complex_copy.default)
def view_as_complex(call: Call, x: Tensor) -> Tensor:
    """Joins the last dim, of size 2, to complex numbers"""
    return shapes.joined_parts(call.b, call.b.cast(x, call.dtype().part))


@lowers(aten.view.dtype, aten.view_copy.dtype)
def view_dtype(call: Call, x: Tensor, dtype: torch.dtype) -> Tensor:
    """Reinterprets the bits as another dtype; the last dim is rescaled if the sizes differ"""
    return _viewed(call.b, x, dtype_of(dtype), call.shape())


def _viewed(b: Any, x: Tensor, to: Any, shape: Sequence[Size]) -> Tensor:
    """The bits of x as another dtype, in the given shape"""
    if to is x.dtype:
        return shapes.reshape(b, x, shape)
    if x.dtype.is_complex:
        flat = [*x.shape[:-1], b.product([x.shape[-1], 2])] if x.rank else [2]
        return _viewed(b, shapes.reshape(b, shapes.parts(b, x), flat), to, shape)
    if to.is_complex:
        pairs = [*shape, 2]
        flat = [*shape[:-1], b.product(pairs[-2:])] if shape else [2]
        parts = _viewed(b, x, to.part, flat)
        return shapes.joined_parts(b, shapes.reshape(b, parts, pairs))
    if to.bits != x.dtype.bits:
        return _resized_bits(b, x, to, shape)
    return b.map(lambda v: v.bitcast(to), x, dtype=to)


def _resized_bits(b: Any, x: Tensor, to: Any, shape: Sequence[Size]) -> Tensor:
    """Splits the last dim's elements into narrower ones, or joins them to wider ones"""
    ratio = max(to.bits, x.dtype.bits) // min(to.bits, x.dtype.bits)
    wide, narrow = (_WORDS[max(to.bits, x.dtype.bits)], _WORDS[min(to.bits, x.dtype.bits)])

    def cut(s: Any, *at: Any) -> Any:
        word = s.extract(x, [*at[:-1], at[-1].truncdiv(ratio)]).bitcast(wide)
        shift = at[-1].rem(ratio).to(wide) * narrow.bits
        return word.shift_right(shift).to(narrow).bitcast(to)

    def join(s: Any, *at: Any) -> Any:
        total = s.number(0, wide)
        for k in range(ratio):
            part = s.extract(x, [*at[:-1], at[-1] * ratio + k]).bitcast(narrow).to(wide)
            total = total | part.shift_left(s.number(k * narrow.bits, wide))
        return total.bitcast(to)

    return b.from_function(cut if to.bits < x.dtype.bits else join, shape, to)


@lowers(aten.slice_scatter.default)
def slice_scatter(
    call: Call, x: Tensor, part: Tensor, dim: int, start: Any, end: Any, step: Any
) -> Tensor:
    """x with x[..., start:end:step, ...] = part"""
    axis = dim % x.rank
    begin = bound(call, start, x.shape[axis], 0)
    offsets: list[Size] = [begin if i == axis else 0 for i in range(x.rank)]
    strides: list[Size] = [step if i == axis else 1 for i in range(x.rank)]
    return shapes.update_slice(call.b, x, call.b.cast(part, x.dtype), offsets, strides)


@lowers(aten.select_scatter.default)
def select_scatter(call: Call, x: Tensor, part: Tensor, dim: int, index: Any) -> Tensor:
    """x with x[..., index, ...] = part"""
    axis = dim % x.rank
    at = bound(call, index, x.shape[axis], 0)
    part = shapes.unsqueeze(call.b, call.b.cast(part, x.dtype), axis)
    return shapes.update_slice(call.b, x, part, [at if i == axis else 0 for i in range(x.rank)])
