"""Interpolation: resizing to a regular grid, and sampling at computed positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contractions import contract
from .core import Builder, Size, Tensor
from .dtypes import I32, INDEX, U8, DType
from .reductions import sum_
from .scalars import Body, Scalar

Taps = list[tuple[Scalar, Scalar | None]]
"""Element indices along a dim with their weights; a weight of None is 1."""

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

    def taps(self, s: Body, at: Scalar, wide: DType) -> Taps:
        """The input elements and weights that result element `at` is interpolated from."""
        step, last = self.step(s, wide), s.as_index(self.size) - 1
        place = at.to(wide)
        if self.mode in ("nearest", "exact"):
            place = (place + 0.5 if self.mode == "exact" else place) * step
            return [(place.to(INDEX).clamp(0, last), None)]
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


def resize(b: Builder, x: Tensor, dims: Sequence[Resizing], wide: DType) -> Tensor:
    """Resizes the trailing dims of x, in dtype `wide`."""
    lead = x.rank - len(dims)
    shape = [*x.shape[:lead], *(d.out for d in dims)]

    def element(s: Body, *at: Scalar) -> Scalar:
        taps = [d.taps(s, at[lead + i], wide) for i, d in enumerate(dims)]

        def total(i: int, chosen: list[Scalar]) -> Scalar:
            if i == len(dims):
                return s.extract(x, [*at[:lead], *chosen]).to(wide)
            terms = [
                value if weight is None else value * weight
                for value, weight in ((total(i + 1, [*chosen, p]), w) for p, w in taps[i])
            ]
            return _sum(terms)

        return total(0, [])

    return b.from_function(element, shape, wide)


def _sum(terms: Sequence[Scalar]) -> Scalar:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


# --- antialiasing filters for downscaling ---


def smooth_matrix(mode: str, size: int, out: int, step: float) -> np.ndarray[Any, Any]:
    """Weights of a "linear", "cubic" or "lanczos" filter of width `step`; each row sums to 1."""
    scale = max(step, 1.0)
    radius = RADII[mode] * scale
    found = np.zeros((out, size))
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


def smooth_weights(b: Builder, dim: Resizing, wide: DType) -> Tensor:
    """`smooth_matrix` of sizes that are known at run time: (out, size) weights in dtype `wide`."""

    def weight(s: Body, i: Scalar, j: Scalar) -> Scalar:
        step = dim.step(s, wide)
        scale = step.maximum(1.0)
        radius, middle = scale * float(RADII[dim.mode]), (i.to(wide) + 0.5) * step
        first = (middle - radius + 0.5).to(INDEX).maximum(0)
        last = (middle + radius + 0.5).to(INDEX).minimum(s.as_index(dim.size))
        value = _filter_of(dim.mode, (j.to(wide) - middle + 0.5) / scale)
        return ((j >= first) & (j < last)).where(value, 0.0)

    weights = b.from_function(weight, [dim.out, dim.size], wide)
    totals = sum_(b, weights, [1])

    def share(s: Body, i: Scalar, j: Scalar) -> Scalar:
        total = s.extract(totals, [i])
        return s.extract(weights, [i, j]) / (total == 0.0).where(1.0, total)

    return b.from_function(share, [dim.out, dim.size], wide)


def _filter_of(mode: str, x: Scalar) -> Scalar:
    """`_filter` of a scalar."""
    x = x.abs()
    if mode == "linear":
        return (1.0 - x).maximum(0.0)
    if mode == "lanczos":
        return (x < 3.0).where(_sinc(x) * _sinc(x / 3.0), 0.0)
    near, far = cubic_weights(x, -0.5)[1], cubic_weights(x - 1.0, -0.5)[0]
    return (x < 1.0).where(near, (x < 2.0).where(far, 0.0))


def _sinc(x: Scalar) -> Scalar:
    """sin(pi x) / (pi x), 1 at 0"""
    angle = x * math.pi
    return (x == 0.0).where(1.0, angle.sin() / angle)


def apply_matrices(
    b: Builder, x: Tensor, matrices: Sequence[np.ndarray[Any, Any] | Tensor], wide: DType
) -> Tensor:
    """Multiplies each trailing dim of x by a (result, input) matrix."""
    kinds = {"f32": np.float32, "f64": np.float64}
    letters = "abcdefgh"[: x.rank]
    for i, matrix in enumerate(matrices):
        axis = x.rank - len(matrices) + i
        if not isinstance(matrix, Tensor):
            matrix = b.constant(np.ascontiguousarray(matrix, kinds[wide.name]), wide)
        into = letters.replace(letters[axis], "z")
        x = contract(b, f"{letters},z{letters[axis]}->{into}", b.cast(x, wide), matrix)
    return x


def apply_matrices_to_bytes(
    b: Builder, x: Tensor, matrices: Sequence[np.ndarray[Any, Any]]
) -> Tensor:
    """
    The u8 version of `apply_matrices`, as in PyTorch: 16-bit weights, (sum of x * w + half) >>
    bits, clamped to 0 ... 255, one dim at a time starting with the last.
    """
    letters = "abcdefgh"[: x.rank]
    for i, matrix in reversed(list(enumerate(matrices))):
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
