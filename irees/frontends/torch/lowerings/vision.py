"""torchvision's operators on boxes."""

from __future__ import annotations

from typing import Any

from ...builder import Body, Scalar, Size, Tensor, indexing, ordering, shapes
from ...builder.dtypes import BOOL, I64, INDEX
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
