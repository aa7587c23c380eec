"""Interpolation: resizing to a regular grid, and sampling at computed positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contractions import contract
from .core import Builder, Size, Tensor, projection
from .dtypes import I32, I64, INDEX, U8, DType
from .reductions import sum_
from .scalars import Body, Scalar

Taps = list[tuple[Scalar, Scalar]]
"""Element indices along a dim with their weights."""

RADII = {"linear": 1, "cubic": 2, "lanczos": 3}
"""Filter radius in elements, without downscaling."""


@dataclass(frozen=True)
class Resizing:
    """
    How to resize one dim. `mode` is "nearest", "exact" (nearest to element centers), "linear" or
    "cubic"; `aligned` aligns the centers of the first and last elements. `factor` is the scale
    factor, if it differs from out / size.
    """

    mode: str
    size: Size
    out: Size
    aligned: bool = False
    factor: float | None = None

    def step(self, s: Body, wide: DType) -> Scalar:
        """The distance in the input between adjacent result elements."""
        if self.factor and not self.aligned:
            return s.number(1.0 / self.factor, wide)
        one = int(self.aligned)
        if isinstance(self.size, int) and isinstance(self.out, int):
            return s.number((self.size - one) / max(self.out - one, 1), wide)
        size, out = (s.as_index(n) - one for n in (self.size, self.out))
        return size.to(wide) / out.maximum(1).to(wide)

    def nearest(self, s: Body, at: Scalar, wide: DType) -> Scalar:
        """The input element that result element `at` is a copy of."""
        place = at.to(wide)
        place = (place + 0.5 if self.mode == "exact" else place) * self.step(s, wide)
        return place.to(INDEX).clamp(0, s.as_index(self.size) - 1)

    def taps(self, s: Body, at: Scalar, wide: DType) -> Taps:
        """The input elements and weights that result element `at` is interpolated from."""
        step, last = self.step(s, wide), s.as_index(self.size) - 1
        place = at.to(wide)
        place = place * step if self.aligned else (place + 0.5) * step - 0.5
        if self.mode == "linear":
            place = place.maximum(0.0)
            first = place.to(INDEX).minimum(last)
            part = (place - first.to(wide)).clamp(0.0, 1.0)
            return [(first, 1.0 - part), ((first + 1).minimum(last), part)]
        first = place.floor()
        weights = cubic_weights(place - first)
        return [
            ((first.to(INDEX) + (i - 1)).clamp(0, last), weight) for i, weight in enumerate(weights)
        ]

    def matrix(self, kind: Any = np.float32) -> np.ndarray[Any, Any]:
        """
        The weights of the inputs (columns) for each result element (rows), for static sizes;
        positions are computed in the numpy type `kind`.
        """
        assert isinstance(self.size, int)
        assert isinstance(self.out, int)
        last, found = self.size - 1, np.zeros((self.out, self.size))
        one = int(self.aligned)
        step = kind((self.size - one) / max(self.out - one, 1))
        if self.factor and not self.aligned:
            step = kind(1.0 / self.factor)
        for i in range(self.out):
            for place, weight in self._entries(kind(i), step):
                found[i, min(max(place, 0), last)] += weight
        return found

    def _entries(self, at: Any, step: Any) -> list[tuple[int, float]]:
        half = type(step)(0.5)
        if self.mode in ("nearest", "exact"):
            return [(int((at + half if self.mode == "exact" else at) * step), 1.0)]
        place = at * step if self.aligned else (at + half) * step - half
        if self.mode == "linear":
            place = max(place, place * 0)
            part = float(place) - int(place)
            return [(int(place), 1 - part), (int(place) + 1, part)]
        first = int(np.floor(place))
        weights = cubic_weights(float(place) - first)
        return [(first + i - 1, weight) for i, weight in enumerate(weights)]


def cubic_weights(t: Any, a: float = -0.75) -> list[Any]:
    """Keys' cubic convolution: the weights of four adjacent elements, t past the second."""

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


MOST_SHRUNK = 4
"""
How often dims may become smaller for the dims before them to be resized alone, which computes all
of their elements. Resizing 512 x 512 to 32 x 32, AMD EPYC: one by one takes 1.7 times as long.
"""


def resize(b: Builder, x: Tensor, dims: Sequence[Resizing], wide: DType) -> Tensor:
    """
    Resizes the trailing dims of x in dtype `wide`, by linear or cubic interpolation.

    The dims are resized one after the other, the last one last: only its elements are gathered,
    those of the others are rows. Dims before much smaller ones are resized together with these.
    """
    lead = x.rank - len(dims)
    for i, dim in enumerate(dims):
        if _shrinkage(dims[i + 1 :]) > MOST_SHRUNK:
            return _resize_together(b, x, lead + i, dims[i:], wide)
        x = _resize_together(b, x, lead + i, [dim], wide)
    return x


def _shrinkage(dims: Sequence[Resizing]) -> float:
    """How often the dims become smaller; those of unknown sizes by their factor, if any."""
    return math.prod(
        d.size / max(d.out, 1)
        if isinstance(d.size, int) and isinstance(d.out, int)
        else 1 / (d.factor or 1)
        for d in dims
    )


def _resize_together(
    b: Builder, x: Tensor, axis: int, dims: Sequence[Resizing], wide: DType
) -> Tensor:
    """r[.., i, j, ..] = sum over taps of x[.., p, q, ..] * weight of p * weight of q"""
    behind = axis + len(dims)
    shape = [*x.shape[:axis], *(d.out for d in dims), *x.shape[behind:]]

    def element(s: Body, *at: Scalar) -> Scalar:
        taps = [d.taps(s, at[axis + i], wide) for i, d in enumerate(dims)]

        def total(i: int, chosen: list[Scalar]) -> Scalar:
            if i == len(dims):
                return s.extract(x, [*at[:axis], *chosen, *at[behind:]]).to(wide)
            return _sum([total(i + 1, [*chosen, p]) * weight for p, weight in taps[i]])

        return total(0, [])

    return b.from_function(element, shape, wide)


def _sum(terms: Sequence[Scalar]) -> Scalar:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


# --- antialiasing filters for downscaling ---


def smooth_matrix(mode: str, size: int, out: int, step: float) -> np.ndarray[Any, Any]:
    """
    Weights of a "linear", "cubic" or "lanczos" filter of width `step`; each row sums to 1. A masked
    array: elements that the filter does not read are masked, a weight may be 0.
    """
    scale = max(step, 1.0)
    radius = RADII[mode] * scale
    if size == out and step == 1:  # copied: its elements have no neighbors
        return np.ma.masked_array(np.eye(size), ~np.eye(size, dtype=bool))
    found = np.ma.masked_all((out, size))
    for i in range(out):
        middle = step * (i + 0.5)
        first = max(int(middle - radius + 0.5), 0)
        last = min(int(middle + radius + 0.5), size)
        row = [_filter(mode, (j - middle + 0.5) / scale) for j in range(first, last)]
        total = sum(row)
        found[i, first:last] = [w / total for w in row] if total else row
    return found


def _filter(mode: str, x: float) -> float:
    x = abs(x)
    if x >= RADII[mode]:
        return 0.0
    if mode == "linear":
        return 1 - x
    if mode == "lanczos":
        return float(np.sinc(x) * np.sinc(x / 3))
    weights = cubic_weights(x if x < 1 else x - 1, -0.5)
    return weights[1] if x < 1 else weights[0]


@dataclass(frozen=True)
class Band:
    """
    A matrix (out, size) with nonzero weights only in a run of each row: `counts[i]` of them, from
    column `firsts[i]`. `weights` is (out, taps), where `taps` is the length of the longest run.
    """

    taps: Size
    firsts: Tensor
    counts: Tensor
    weights: Tensor


def smooth_band(b: Builder, dim: Resizing, wide: DType) -> Band:
    """`smooth_matrix` of sizes that are known at run time, with weights in dtype `wide`."""

    def scale(s: Body) -> Scalar:
        return dim.step(s, wide).maximum(1.0)

    def middle(s: Body, i: Scalar) -> Scalar:
        return (i.to(wide) + 0.5) * dim.step(s, wide)

    def edge(s: Body, i: Scalar, side: float) -> Scalar:
        radius = scale(s) * float(RADII[dim.mode])
        found = (middle(s, i) + radius * side + 0.5).to(INDEX).clamp(0, s.as_index(dim.size))
        # A dim that keeps its size is copied: its elements have no neighbors.
        kept = s.as_index(dim.size) == s.as_index(dim.out)
        return kept.where(i + int(side > 0), found)

    # Weights and elements are both found from these integers: an edge that is computed twice may be
    # rounded to either side.
    firsts = b.from_function(lambda s, i: edge(s, i, -1.0).to(I64), [dim.out], I64)
    counts = b.from_function(
        lambda s, i: edge(s, i, 1.0).to(I64) - s.extract(firsts, [i]), [dim.out], I64
    )

    def weight(s: Body, i: Scalar, k: Scalar) -> Scalar:
        place = (s.extract(firsts, [i]).to(INDEX) + k).to(wide)
        value = _filter_of(dim.mode, (place - middle(s, i) + 0.5) / scale(s))
        return (k < s.extract(counts, [i]).to(INDEX)).where(value, 0.0)

    known = next(n for n in (dim.size, dim.out) if not isinstance(n, int))
    taps = b.compute(
        lambda n: (scale(n.body) * (2.0 * RADII[dim.mode])).to(INDEX) + 2, (known, INDEX)
    ).value
    weights = b.from_function(weight, [dim.out, taps], wide)
    totals = sum_(b, weights, [1])

    def share(s: Body, i: Scalar, k: Scalar) -> Scalar:
        total = s.extract(totals, [i])
        return s.extract(weights, [i, k]) / (total == 0.0).where(1.0, total)

    return Band(taps, firsts, counts, b.from_function(share, [dim.out, taps], wide))


def _band_of(b: Builder, matrix: np.ndarray[Any, Any], dtype: DType) -> Band:
    """The band of a matrix that is known, with weights in f32 or f64."""
    kind = {"f32": np.float32, "f64": np.float64}[dtype.name]
    used = matrix != 0
    if isinstance(matrix, np.ma.MaskedArray):
        used, matrix = ~np.ma.getmaskarray(matrix), matrix.filled(0)
    first = np.where(used.any(1), used.argmax(1), 0)
    counts = np.where(used.any(1), matrix.shape[1] - used[:, ::-1].argmax(1) - first, 0)
    taps = max(int(counts.max(initial=0)), 1)
    columns = np.minimum(first[:, None] + np.arange(taps), matrix.shape[1] - 1)
    weights = np.take_along_axis(matrix, columns, 1).astype(kind)
    firsts, lengths = (b.constant(a.astype(np.int64), I64) for a in (first, counts))
    return Band(taps, firsts, lengths, b.constant(weights, dtype))


def _filter_of(mode: str, x: Scalar) -> Scalar:
    """`_filter` of a scalar."""
    x = x.abs()
    if mode == "linear":
        return (1.0 - x).maximum(0.0)
    if mode == "lanczos":
        return (x < 3.0).where(_sinc(x) * _sinc(x / 3.0), 0.0)
    near, far = cubic_weights(x, -0.5)[1], cubic_weights(x - 1.0, -0.5)[0]
    return (x < 1.0).where(near, (x < 2.0).where(far, 0.0))


def mean_matrix(size: int, out: int) -> np.ndarray[Any, Any]:
    """Row i has the mean of elements floor(i * size / out) to ceil((i + 1) * size / out)."""
    found = np.zeros((out, size))
    for i in range(out):
        begin, end = i * size // out, -(-(i + 1) * size // out)
        found[i, begin:end] = 1 / (end - begin)
    return found


def _sinc(x: Scalar) -> Scalar:
    """sin(pi x) / (pi x), 1 at 0"""
    angle = x * math.pi
    return (x == 0.0).where(1.0, angle.sin() / angle)


def apply_matrices(
    b: Builder, x: Tensor, matrices: Sequence[np.ndarray[Any, Any] | Band], wide: DType
) -> Tensor:
    """
    Multiplies each trailing dim of x by a (result, input) matrix. Elements of x before the first
    and after the last weight of a row are not read: an infinity or a NaN reaches only the results
    that depend on it.
    """
    x = b.cast(x, wide)
    for i, matrix in enumerate(matrices):
        band = matrix if isinstance(matrix, Band) else _band_of(b, matrix, wide)
        x = _apply_band(b, x, x.rank - len(matrices) + i, band)
    return x


MOST_UNROLLED = 40
"""Weights of a row that are added in one expression, which is vectorized along any dim of x."""


def _apply_band(b: Builder, x: Tensor, axis: int, band: Band) -> Tensor:
    """Multiplies dim `axis` of x by a matrix."""
    shape: list[Size] = list(x.shape)
    shape[axis] = band.weights.shape[0]
    known = band.firsts, band.counts, band.weights

    def term(s: Body, at: Sequence[Scalar], k: Scalar, row: Sequence[Scalar]) -> Scalar:
        first, count, weight = row
        place = (first.to(INDEX) + k).minimum(s.as_index(x.shape[axis]) - 1)
        value = s.extract(x, [place if i == axis else n for i, n in enumerate(at)]) * weight
        return (k < count.to(INDEX)).where(value, 0.0)

    def unrolled(s: Body, at: Sequence[Scalar], k: Scalar) -> Scalar:
        places = [at[axis]], [at[axis]], [at[axis], k]
        return term(s, at, k, [s.extract(t, place) for t, place in zip(known, places)])

    taps = band.taps
    if isinstance(taps, int) and taps <= MOST_UNROLLED:
        numbers = range(taps)
        return b.from_function(
            lambda s, *at: _sum([unrolled(s, at, s.number(k, INDEX)) for k in numbers]),
            shape,
            x.dtype,
        )

    def body(s: Body, *scalars: Scalar) -> Scalar:
        at = [s.index(i) for i in range(x.rank)]
        return scalars[-1] + term(s, at, s.index(x.rank), scalars[:-1])

    loops = x.rank + 1
    indexing = (axis,), (axis,), (axis, x.rank), tuple(range(x.rank))
    maps = [projection(loops, dims) for dims in indexing]
    reduced = [i == x.rank for i in range(loops)]
    return b.structured(known, [b.full(0, x.dtype, shape)], maps, reduced, body)[0]


def apply_matrices_to_bytes(
    b: Builder, x: Tensor, matrices: Sequence[np.ndarray[Any, Any]]
) -> Tensor:
    """
    The u8 version of `apply_matrices`, as in PyTorch: 16-bit weights, (sum of x * w + half) >>
    bits, clamped to 0 ... 255, one dim at a time starting with the last.
    """
    letters = "abcdefgh"[: x.rank]
    for i, matrix in reversed(list(enumerate(matrices))):
        matrix = np.ma.filled(matrix, 0)
        axis = x.rank - len(matrices) + i
        bits = next(
            n for n in range(22) if int(0.5 + matrix.max() * (1 << (n + 1))) >= 1 << 15 or n == 21
        )
        whole = np.trunc(matrix * (1 << bits) + np.copysign(0.5, matrix)).astype(np.int32)
        constant = b.constant(np.ascontiguousarray(whole), I32)
        into = letters.replace(letters[axis], "z")
        total = contract(b, f"{letters},z{letters[axis]}->{into}", x, constant, I32)
        half = (1 << bits) >> 1
        x = b.map(
            lambda v, bits=bits, half=half: (v + half).shift_right(bits).clamp(0, 255).to(U8),
            total, dtype=U8,
        )  # fmt: skip
    return x


# --- sampling ---


@dataclass(frozen=True)
class Sampling:
    """
    How to read x at a position in -1 to 1: `mode` is "linear", "nearest" or "cubic"; positions out
    of bounds read 0 (`outside` "zeros"), the nearest element ("border") or a mirrored one
    ("reflection").
    """

    mode: str
    outside: str
    aligned: bool

    def scaled(self, place: Scalar, size: Size) -> Scalar:
        """Converts a position in -1 to 1 to element units."""
        n = place.body.as_index(size).to(place.dtype)
        if self.aligned:
            return (place + 1.0) / 2.0 * (n - 1.0)
        return ((place + 1.0) * n - 1.0) / 2.0

    def moved(self, place: Scalar, size: Size) -> Scalar:
        """Clamps or mirrors a position in element units into bounds; unchanged for "zeros"."""
        if self.outside == "zeros":
            return place
        n = place.body.as_index(size).to(place.dtype)
        if self.outside == "reflection":
            place = self._mirrored(place, n)
        return place.maximum(0.0).minimum(n - 1.0)

    def _mirrored(self, place: Scalar, n: Scalar) -> Scalar:
        low = n._other(0.0 if self.aligned else -0.5)
        span = n - 1.0 if self.aligned else n
        divisor = (span == 0).where(1.0, span)
        distance = (place - low).abs()
        rest, turns = distance.rem(divisor), (distance / divisor).floor()
        odd = turns.rem(2.0) != 0
        return (span == 0).where(0.0, odd.where(span - rest, rest) + low)


def _read(s: Body, x: Tensor, lead: Sequence[Scalar], places: Sequence[Scalar]) -> Scalar:
    """Reads the element at integral float positions; 0 out of bounds."""
    inside, at = None, []
    for place, size in zip(places, x.shape[len(lead) :], strict=True):
        last = s.as_index(size) - 1
        here = (place >= 0.0) & (place <= last.to(place.dtype))
        inside = here if inside is None else inside & here
        at.append(here.where(place, 0.0).to(INDEX).clamp(0, last))
    assert inside is not None
    value = s.extract(x, [*lead, *at]).to(places[0].dtype)
    return inside.where(value, 0.0)


def sample(b: Builder, x: Tensor, grid: Tensor, how: Sampling, wide: DType) -> Tensor:
    """
    out[n, c, i...] = x[n, c] at the position grid[n, i..., :], whose components are in reverse
    order of the dims of x, in dtype `wide`.
    """
    rank = x.rank - 2
    shape = [*x.shape[:2], *grid.shape[1:-1]]
    readers: dict[str, Callable[..., Scalar]] = {
        "linear": _sample_linear, "nearest": _sample_nearest, "cubic": _sample_cubic,
    }  # fmt: skip

    def element(s: Body, *at: Scalar) -> Scalar:
        places: list[Scalar] = []
        for i in range(rank):
            index = [at[0], *at[2:], s.number(rank - 1 - i, INDEX)]
            place = s.extract(grid, index).to(wide)
            places.append(how.scaled(place, x.shape[2 + i]))
        return readers[how.mode](s, x, at[:2], places, how)

    return b.from_function(element, shape, wide)


def _sample_nearest(
    s: Body, x: Tensor, lead: Sequence[Scalar], places: list[Scalar], how: Sampling
) -> Scalar:
    moved = [how.moved(p, x.shape[2 + i]).round() for i, p in enumerate(places)]
    return _read(s, x, lead, moved)


def _sample_linear(
    s: Body, x: Tensor, lead: Sequence[Scalar], places: list[Scalar], how: Sampling
) -> Scalar:
    moved = [how.moved(p, x.shape[2 + i]) for i, p in enumerate(places)]
    firsts = [p.floor() for p in moved]

    def total(i: int, chosen: list[Scalar]) -> Scalar:
        if i == len(moved):
            return _read(s, x, lead, chosen)
        part = moved[i] - firsts[i]
        near = total(i + 1, [*chosen, firsts[i]])
        far = total(i + 1, [*chosen, firsts[i] + 1.0])
        return near * (1.0 - part) + far * part

    return total(0, [])


def _sample_cubic(
    s: Body, x: Tensor, lead: Sequence[Scalar], places: list[Scalar], how: Sampling
) -> Scalar:
    firsts = [p.floor() for p in places]
    weights = [cubic_weights(p - f) for p, f in zip(places, firsts)]

    def total(i: int, chosen: list[Scalar]) -> Scalar:
        if i == len(places):
            return _read(s, x, lead, chosen)
        terms = [
            total(i + 1, [*chosen, how.moved(firsts[i] + float(k - 1), x.shape[2 + i])]) * weight
            for k, weight in enumerate(weights[i])
        ]
        return _sum(terms)

    return total(0, [])
