"""torchvision's operators on boxes, and convolutions with windows that are data."""

from __future__ import annotations

from typing import Any

from ...builder import Body, Scalar, Size, Tensor, indexing, ordering, shapes
from ...builder.contractions import contract
from ...builder.core import projection
from ...builder.dtypes import BOOL, I32, I64, INDEX
from ...builder.loops import for_, scalar_for
from ..calls import Call, NotLowered, lowers_named


@lowers_named("torchvision::nms")
def nms(call: Call, boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """
    Non-maximum suppression: the indices of the kept boxes, by descending score. A box is dropped if
    it overlaps a kept box of a higher score by more than `threshold`. Boxes are rows (x1, y1, x2,
    y2); the overlap is the area of the intersection divided by that of the union.
    """
    b, count = call.b, boxes.shape[0]
    if isinstance(count, int) and count == 0:
        return b.empty(I64, [0])
    order = ordering.sort(b, scores, 0, True)[1]
    sides = [indexing.take(b, shapes.select(b, boxes, 1, n), order, 0) for n in range(4)]
    first = [shapes.reshape(b, side, [count, 1]) for side in sides]
    second = [shapes.reshape(b, side, [1, count]) for side in sides]

    def covers(*both: Scalar) -> Scalar:
        one, two = both[:4], both[4:]
        overlap = _intersection(one, two)
        share = overlap / (_area(one) + _area(two) - overlap)
        s = share.body
        return (s.index(1) > s.index(0)) & (share > threshold)

    table = b.map(covers, *first, *second, dtype=BOOL)

    def step(i: Any, kept: Tensor) -> Tensor:
        row, is_kept = shapes.select(b, table, 0, i), shapes.slice_axis(b, kept, 0, i, 1)
        return b.map(lambda k, c, by: k & ~(c & by), kept, row, is_kept)

    (kept,) = for_(b, 0, count, [b.full(True, BOOL, [count])], step)
    places = indexing.nonzero(b, kept)
    return indexing.take(b, order, shapes.reshape(b, places, [places.shape[0]]), 0)


def _area(box: Any) -> Scalar:
    return (box[2] - box[0]) * (box[3] - box[1])


def _intersection(one: Any, two: Any) -> Scalar:
    width, height = (
        (one[2 + n].minimum(two[2 + n]) - one[n].maximum(two[n])).maximum(0) for n in (0, 1)
    )
    return width * height


@lowers_named("torchvision::roi_align")
def roi_align(call: Call, image: Tensor, boxes: Tensor, *settings: Any) -> Tensor:
    """
    The mean of bilinear samples of an image [n, c, h, w] in each bin of each box. Boxes are rows
    (image, x1, y1, x2, y2). `settings` are the scale of the corners, the rows and columns of bins,
    the samples per bin in each direction (if not positive: one per element), and whether half an
    element is subtracted from the corners.
    """
    scale, rows, columns, samples, aligned = settings
    if not image.dtype.kind == "float" or image.dtype != boxes.dtype:
        raise NotLowered
    kind, offset = boxes.dtype, 0.5 if aligned else 0.0

    def side(s: Body, k: Scalar, first: int, size: Size) -> tuple[Scalar, Scalar, Scalar]:
        """The begin and the size of a bin, and its number of samples."""
        begin, end = (s.extract(boxes, [k, n]) * scale - offset for n in (first, first + 2))
        length = end - begin if aligned else (end - begin).maximum(1.0)
        bin_size = length / s.as_index(size).to(kind)
        number = s.as_index(samples) if samples > 0 else bin_size.ceil().to(INDEX)
        return begin, bin_size, number

    def element(s: Body, k: Scalar, c: Scalar, i: Scalar, j: Scalar) -> Scalar:
        batch = s.extract(boxes, [k, 0]).to(INDEX)
        (left, width, across), (top, height, down) = side(s, k, 1, columns), side(s, k, 2, rows)
        zero = s.number(0, kind)

        def place(n: Scalar, t: Scalar, begin: Scalar, size: Scalar, number: Scalar) -> Scalar:
            of = n.body
            within = (t.to(kind) + 0.5) * of.scalar(size.value, kind)
            step = within / of.scalar(number.value, INDEX).to(kind)
            return of.scalar(begin.value, kind) + n.to(kind) * of.scalar(size.value, kind) + step

        def row(y: Scalar, total: Scalar) -> Scalar:
            at_y = place(y.body.scalar(i.value), y, top, height, down)

            def sample(x: Scalar, total: Scalar) -> Scalar:
                body = x.body
                at_x = place(body.scalar(j.value), x, left, width, across)
                at = (body.scalar(at_y.value, kind), at_x)
                return total + _bilinear(body, image, (body.scalar(batch.value), c), at)

            return scalar_for(y.body, 0, y.body.scalar(across.value), [total], sample)[0]

        total = scalar_for(s, 0, down, [zero], row)[0]
        return total / (down * across).maximum(1).to(kind)

    return call.b.from_function(element, call.shape(), image.dtype)


def _bilinear(s: Body, image: Tensor, plane: Any, at: tuple[Scalar, Scalar]) -> Scalar:
    """A bilinear sample of an image; 0 more than one element outside of it."""
    kind, sizes = image.dtype, [s.as_index(size) for size in image.shape[2:]]
    inside, low, high, weight = [], [], [], []
    for place, size in zip(at, sizes, strict=True):
        inside.append((place >= -1.0) & (place <= size.to(kind)))
        near = place.maximum(0.0).minimum((size - 1).to(kind))
        low.append(near.to(INDEX))
        high.append((low[-1] + 1).minimum(size - 1))
        weight.append(near - low[-1].to(kind))
    batch, channel = plane

    def read(y: Scalar, x: Scalar) -> Scalar:
        return s.extract(image, [batch, s.scalar(channel.value), y, x])

    rest = [1.0 - w for w in weight]
    upper, lower = (
        read(y, low[1]) * rest[1] + read(y, high[1]) * weight[1] for y in (low[0], high[0])
    )
    mixed = upper * rest[0] + lower * weight[0]
    return (inside[0] & inside[1]).where(mixed, 0.0)


def _nearest(v: Scalar) -> Scalar:
    """The nearest integer; of two, the one that is farther from 0."""
    return (v.abs() + 0.5).floor().copysign(v)


@lowers_named("torchvision::roi_pool")
def roi_pool(
    call: Call, image: Tensor, boxes: Tensor, scale: float, rows: Size, columns: Size
) -> tuple[Tensor, Tensor]:
    """
    The largest element of an image [n, c, h, w] in each bin of each box, and its index in the plane
    (i32); 0 and -1 for an empty bin. Boxes are rows (image, x1, y1, x2, y2), whose scaled corners
    are rounded to elements.
    """
    if not image.dtype.kind == "float" or image.dtype != boxes.dtype:
        raise NotLowered
    kind, sizes = boxes.dtype, image.shape[2:]

    def side(s: Body, k: Scalar, at: Scalar, first: int, count: Size) -> tuple[Scalar, Scalar]:
        """The first element of a bin, and the one behind its last."""
        begin, end = (_nearest(s.extract(boxes, [k, n]) * scale) for n in (first, first + 2))
        bin_size = (end - begin + 1.0).maximum(1.0) / s.as_index(count).to(kind)
        limit = s.as_index(sizes[0 if first == 2 else 1]).to(kind)
        low = (at.to(kind) * bin_size).floor() + begin
        high = ((at + 1).to(kind) * bin_size).ceil() + begin
        low, high = (v.maximum(0.0).minimum(limit) for v in (low, high))
        return low.to(INDEX), high.to(INDEX)

    def bin_of(s: Body, k: Scalar, c: Scalar, i: Scalar, j: Scalar) -> list[Scalar]:
        batch = s.extract(boxes, [k, 0]).to(INDEX)
        (top, below), (left, right) = side(s, k, i, 2, rows), side(s, k, j, 1, columns)
        is_empty = (below <= top) | (right <= left)
        start = is_empty.where(s.number(0, kind), s.number(_LOWEST[kind.bits], kind))

        def row(y: Scalar, most: Scalar, place: Scalar) -> list[Scalar]:
            def element(x: Scalar, most: Scalar, place: Scalar) -> list[Scalar]:
                of = x.body
                at = [of.scalar(v.value) for v in (batch, c, y)]
                value = of.extract(image, [*at, x])
                is_more = value > most
                here = (at[2] * of.as_index(sizes[1]) + x).to(I32)
                return [is_more.where(value, most), is_more.where(here, place)]

            bounds = [y.body.scalar(v.value) for v in (left, right)]
            return scalar_for(y.body, *bounds, [most, place], element)

        return scalar_for(s, top, below, [start, s.number(-1, I32)], row)

    b, shape = call.b, call.shape()
    inits, maps = [b.empty(kind, shape), b.empty(I32, shape)], [projection(4, (0, 1, 2, 3))] * 2

    def body(s: Body, *_: Scalar) -> tuple[Scalar, ...]:
        return tuple(bin_of(s, *(s.index(n) for n in range(4))))

    largest, places = b.structured([], inits, maps, [False] * 4, body)
    return largest, places


_LOWEST = {16: -65504.0, 32: -3.4028234663852886e38, 64: -1.7976931348623157e308}
"""The lowest number of a float of so many bits, with which PyTorch's maximum begins."""


@lowers_named("torchvision::deform_conv2d")
def deform_conv2d(
    call: Call, image: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, *settings: Any
) -> Tensor:
    """
    A convolution whose windows have elements at places of their own: sum over c, i, j of weight[o,
    c, i, j] mask[n, g, i, j, y, x] image[n, c, place + offset[n, g, i, j, :, y, x]], in which g is
    the group of c, and an image between its elements is bilinear. `settings` are the bias, strides,
    paddings and dilations, the groups of weights and of offsets, and whether there is a mask.
    """
    bias, *numbers, has_mask = settings
    down, across, top, left, row_step, column_step, groups, parts = numbers
    b, (batch, channels) = call.b, image.shape[:2]
    outputs, _, height, width = call.static(weight.shape, "kernel")
    (channels,) = call.static([channels], "number of channels")
    rows, columns = call.shape()[2:]
    kind, taps = image.dtype, height * width
    if kind.bits < 32:
        raise NotLowered

    def column(s: Body, n: Scalar, c: Scalar, tap: Scalar, y: Scalar, x: Scalar) -> Scalar:
        part = c.floordiv(channels // parts)
        i, j, at = tap.floordiv(width), tap.rem(width), part * taps + tap
        shifts = [s.extract(offset, [n, at * 2 + k, y, x]) for k in (0, 1)]
        bases = [y * down + i * row_step - top, x * across + j * column_step - left]
        places = [p.to(I64).to(kind) + shift for p, shift in zip(bases, shifts, strict=True)]
        value = _between(s, image, (n, c), places)
        return value * s.extract(mask, [n, at, y, x]) if has_mask else value

    found = b.from_function(column, [batch, channels, taps, rows, columns], kind)
    depth, count = channels // groups * taps, b.mul(rows, columns)
    found = shapes.reshape(b, found, [batch, groups, depth, count])
    kernel = shapes.reshape(b, weight, [groups, outputs // groups, depth])
    result = shapes.reshape(b, contract(b, "ngkp,gok->ngop", found, kernel), call.shape())
    return b.map(lambda v, w: v + w, result, shapes.reshape(b, bias, [outputs, 1, 1]))


def _between(s: Body, image: Tensor, plane: Any, at: Any) -> Scalar:
    """A bilinear sample of an image that is 0 outside."""
    kind = image.dtype
    sizes = [s.as_index(size).to(kind) for size in image.shape[2:]]
    inside = s.number(True, BOOL)
    corners: list[list[tuple[Scalar, Scalar, Scalar]]] = []
    for place, size in zip(at, sizes, strict=True):
        inside = inside & (place > -1.0) & (place < size)
        low = place.floor()
        near = place - low
        corners.append([])
        for corner, weight in ((low, 1.0 - near), (low + 1.0, near)):
            is_inside = (corner >= 0.0) & (corner < size)
            corners[-1].append((is_inside, is_inside.where(corner, 0.0).to(INDEX), weight))
    total = s.number(0, kind)
    for is_row, y, row_weight in corners[0]:
        for is_column, x, weight in corners[1]:
            value = s.extract(image, [*plane, y, x]) * (row_weight * weight)
            total = total + (is_row & is_column).where(value, 0.0)
    return inside.where(total, 0.0)
