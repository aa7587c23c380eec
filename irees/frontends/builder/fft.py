"""
Discrete Fourier transforms as real matrix products.

One axis is viewed as [before, 2, n, after] with real and imaginary parts, so a transform of n
elements is a 2n by 2n matmul. Composite sizes use Cooley-Tukey factorization; sizes with a large
prime factor use Bluestein's convolution with a chirp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from irees.targets.common import COMMON

from . import contractions, shapes
from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, F64, I64, DType
from .scalars import Body, Scalar

LARGEST_PRIME = 512
"""Largest prime factor computed as a matmul; its f32 matrix takes 2 MiB."""


def _numpy(dtype: DType) -> type:
    return np.float64 if dtype is F64 else np.float32


@lru_cache(64)
def _waves(rows: int, columns: int, n: int, sign: int) -> np.ndarray:
    """e^(sign 2 pi i j k / n), with j k reduced modulo n."""
    places = np.outer(np.arange(rows), np.arange(columns)) % n
    return np.exp(sign * 2j * np.pi * places / n)


def _matrix(waves: np.ndarray, real_in: bool, real_out: bool = False) -> np.ndarray:
    """The real matrix [parts out, k, parts in, j] of a complex matrix [j, k]."""
    w = waves.T
    rows = [np.stack([w.real, -w.imag], 1), np.stack([w.imag, w.real], 1)]
    full = np.stack(rows[:1] if real_out else rows)
    return full[:, :, :1] if real_in else full


def _apply(b: Builder, x: Tensor, matrix: Tensor) -> Tensor:
    """out[a, q, k, c] = sum over p, j of matrix[q, k, p, j] x[a, p, j, c]"""
    q, k, p, j = matrix.shape
    flat = shapes.reshape(b, matrix, [b.mul(q, k), b.mul(p, j)])
    before, _, _, after = x.shape
    if isinstance(after, int) and after == 1:
        rows = shapes.reshape(b, x, [before, flat.shape[1]])
        result = contractions.contract(b, "aj,kj->ak", rows, flat)
    else:
        rows = shapes.reshape(b, x, [before, flat.shape[1], after])
        result = contractions.contract(b, "kj,ajc->akc", flat, rows)
    return shapes.reshape(b, result, [before, q, k, after])


def _constant(b: Builder, array: np.ndarray, dtype: DType) -> Tensor:
    return b.constant(np.ascontiguousarray(array, dtype=_numpy(dtype)), dtype)


PARTS_FIRST, PARTS_INSIDE = (0, 2, 1, 3, 4), (0, 1, 2, 3, 4)
"""Orders of the dims of a matrix of transforms: [a, p, k, n, c] and [a, k, p, n, c]."""


def _twiddle(b: Builder, x: Tensor, waves: np.ndarray, back: bool = False) -> Tensor:
    """
    x[a, p, k, n, c] times the complex waves[k, n], transposed to [a, k, p, n, c]; `back` reads the
    second order and writes the first.
    """
    real = _constant(b, waves.real, x.dtype)
    cross = _constant(b, np.stack([-waves.imag, waves.imag]), x.dtype)
    orders = (PARTS_FIRST, PARTS_INSIDE)
    source, target = orders[::-1] if back else orders
    init = b.empty(x.dtype, [x.shape[i] for i in PARTS_FIRST])
    maps = [
        projection(5, source), projection(5, (1, 3)), projection(5, (2, 1, 3)),
        projection(5, target),
    ]  # fmt: skip

    def body(s: Body, v: Scalar, re: Scalar, im: Scalar, _: Scalar) -> Scalar:
        at = [s.index(0), s.index(1), 1 - s.index(2), s.index(3), s.index(4)]
        other = s.extract(x, [at[loop] for loop in source])
        return v * re + other * im

    return b.structured([x, real, cross], [init], maps, [False] * 5, body)[0]


@lru_cache(1024)
def _plan(n: int, after: int, half: bool = False) -> tuple[float, int]:
    """
    The cost of a transform of [before, n, after], and its first factor; n if it is one matmul.

    A matmul of a factor costs its multiply-adds per element, more if its columns do not fill
    vectors. `half`: of the first factor f only f / 2 + 1 rows are computed, and it is not n.
    """
    direct = n * _idle(after) if n <= COMMON.direct_transform or _is_indivisible(n) else math.inf
    plans = [] if half else [(direct, n)]
    for factor in range(2, min(n, COMMON.transform_factor + 1)):
        if n % factor == 0:
            rest = COMMON.transform_twiddle + _plan(n // factor, after)[0]
            cost = factor * _idle(n // factor * after) + rest
            plans.append((cost * (factor // 2 + 1) / factor if half else cost, factor))
    return min(plans, default=(math.inf, n))


def _is_indivisible(n: int) -> bool:
    """Whether n has no factor up to the largest one, but itself."""
    return all(n % factor for factor in range(2, min(n, COMMON.transform_factor + 1)))


def _idle(columns: int) -> float:
    """The lanes of the vectors of some columns, over the columns. One column is a row of k."""
    return (
        1.0
        if columns == 1
        else -(-columns // COMMON.transform_columns) * COMMON.transform_columns / columns
    )


def _factor(n: int, after: Size, half: bool = False) -> int:
    """The first factor of a transform; n if it is one matmul."""
    return _plan(n, after if isinstance(after, int) else COMMON.transform_columns, half)[1]


def _transform(b: Builder, x: Tensor, n: int, sign: int) -> Tensor:
    """Transforms [before, 1 or 2, n, after] to [before, 2, n, after]."""
    real, first = x.shape[1] == 1, _factor(n, x.shape[3])
    if first == n > max(COMMON.direct_transform, LARGEST_PRIME):
        return _bluestein(b, x, n, sign)
    if first == n:
        return _apply(b, x, _constant(b, _matrix(_waves(n, n, n, sign), real), x.dtype))
    second = n // first
    before, parts, _, after = x.shape
    x = shapes.reshape(b, x, [before, parts, first, b.mul(second, after)])
    x = _apply(b, x, _constant(b, _matrix(_waves(first, first, first, sign), real), x.dtype))
    x = shapes.reshape(b, x, [before, 2, first, second, after])
    x = _twiddle(b, x, _waves(first, second, n, sign))
    x = shapes.reshape(b, x, [b.mul(before, first), 2, second, after])
    x = shapes.reshape(b, _transform(b, x, second, sign), [before, first, 2, second, after])
    return shapes.reshape(b, shapes.transpose(b, x, [0, 2, 3, 1, 4]), [before, 2, n, after])


def _rows(b: Builder, x: Tensor, n: int, sign: int) -> Tensor:
    """
    The part k1 <= first / 2 of the transform of a real signal [before, 1, n, after]: X[k1 + first
    k2] as [before, k1, 2, k2, after]. The rest mirrors it, since X[n - k] = conj(X[k]).
    """
    first = _factor(n, x.shape[3], half=True)
    second, rows = n // first, first // 2 + 1
    before, _, _, after = x.shape
    x = shapes.reshape(b, x, [before, 1, first, b.mul(second, after)])
    x = _apply(b, x, _constant(b, _matrix(_waves(first, rows, first, sign), True), x.dtype))
    x = shapes.reshape(b, x, [before, 2, rows, second, after])
    x = _twiddle(b, x, _waves(rows, second, n, sign))
    x = shapes.reshape(b, x, [b.mul(before, rows), 2, second, after])
    return shapes.reshape(b, _transform(b, x, second, sign), [before, rows, 2, second, after])


def _half_spectrum(b: Builder, x: Tensor, n: int, sign: int, scale: float | None) -> Tensor:
    """X[k] for k = 0, ..., n / 2 of a real signal [before, 1, n, after], as complex numbers."""
    parts, kept = _rows(b, x, n, sign), n // 2 + 1
    first = _factor(n, x.shape[3], half=True)
    before, rows, _, second, after = parts.shape
    assert isinstance(rows, int)

    def element(s: Body, a: Scalar, k2: Scalar, k1: Scalar, c: Scalar) -> Scalar:
        upper = k1 >= rows
        place = [upper.where(first - k1, k1), upper.where(second - 1 - k2, k2)]
        re, im = (s.extract(parts, [a, place[0], p, place[1], c]) for p in range(2))
        return _scaled_number(re, upper.where(-im, im), scale)

    filled = -(-kept // first)
    joined = b.from_function(element, [before, filled, first, after], x.dtype.complex)
    joined = shapes.reshape(b, joined, [before, filled * first, after])
    return shapes.slice_axis(b, joined, 1, 0, kept)


def _bluestein(b: Builder, x: Tensor, n: int, sign: int) -> Tensor:
    """
    X[k] = w[k] sum over j of (x[j] w[j]) conj(w)[k - j] with w[k] = e^(sign pi i k^2 / n): a cyclic
    convolution whose size is a power of two.
    """
    size = 1 << (2 * n - 2).bit_length()
    squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    chirp = np.exp(sign * 1j * np.pi * squares / n)
    kernel = np.zeros(size, complex)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[:0:-1].conj()
    response = np.fft.fft(kernel) / size
    if x.shape[1] == 1:
        x = shapes.pad(b, x, [0, 0, 0, 0], [0, 1, 0, 0], 0.0)
    x = _scaled(b, x, chirp)
    x = _transform(b, shapes.pad(b, x, [0] * 4, [0, 0, size - n, 0], 0.0), size, -1)
    x = _transform(b, _scaled(b, x, response), size, 1)
    return _scaled(b, shapes.slice_axis(b, x, 2, 0, n), chirp)


def _scaled(b: Builder, x: Tensor, waves: np.ndarray) -> Tensor:
    """x[a, p, n, c] times the complex waves[n]."""
    before, parts, n, after = x.shape
    x = shapes.reshape(b, x, [before, parts, 1, n, after])
    return shapes.reshape(b, _twiddle(b, x, waves[None]), [before, parts, n, after])


def _computed_matrix(
    b: Builder, dtype: DType, n: Size, shape: Sequence[Size], sign: int, weigh: bool = False
) -> Tensor:
    """The matrix [parts out, k, parts in, j] for a dynamic size, computed at run time."""

    def element(s: Body, q: Scalar, k: Scalar, p: Scalar, j: Scalar) -> Scalar:
        period = s.as_index(b.value(n)).maximum(1)
        angle = (j * k).rem(period).to(I64).to(F64) / period.to(I64).to(F64) * (2 * math.pi)
        cross = (q == 0).where(-sign, s.number(sign, F64)) * angle.sin()
        value = (q == p).where(angle.cos(), cross)
        if weigh:
            twice = (j == 0) | (j + j == period)
            value = twice.where((p == 0).where(value, 0.0), value * 2.0)
        return value.to(dtype)

    return b.from_function(element, shape, dtype)


# --- one axis ---


def _split(b: Builder, x: Tensor, axis: int) -> Tensor:
    """Splits x into real and imaginary parts, [before, 1 or 2, n, after]."""
    before, after = b.product(x.shape[:axis]), b.product(x.shape[axis + 1 :])
    flat = shapes.reshape(b, x, [before, x.shape[axis], after])
    if not x.dtype.is_complex:
        return shapes.reshape(b, flat, [before, 1, x.shape[axis], after])
    return shapes.transpose(b, shapes.parts(b, flat), [0, 3, 1, 2])


def _scaled_number(re: Scalar, im: Scalar, scale: float | None) -> Scalar:
    """scale (re + i im)"""
    if scale is not None:
        re, im = re * scale, im * scale
    return re.with_imaginary(im)


def _join(b: Builder, x: Tensor, shape: Sequence[Size], scale: float | None) -> Tensor:
    """Joins the parts to complex numbers of a shape, times `scale`."""
    pairs = shapes.transpose(b, x, [0, 2, 3, 1])
    if scale is not None:
        pairs = b.map(lambda v: v * scale, pairs)
    return shapes.reshape(b, shapes.joined_parts(b, pairs), shape)


def _empty(shape: Sequence[Size]) -> bool:
    return any(isinstance(s, int) and s == 0 for s in shape)


def transform(
    b: Builder, x: Tensor, axis: int, forward: bool, half: bool = False, scale: float | None = None
) -> Tensor:
    """
    X[k] = scale sum over j of x[j] e^(-+2 pi i j k / n) along an axis of a real or complex tensor;
    `half` keeps k = 0, ..., n / 2.
    """
    n, sign = x.shape[axis], -1 if forward else 1
    kept: Size = b.add(b.floordiv(n, 2), 1) if half else n
    shape = [*x.shape[:axis], kept, *x.shape[axis + 1 :]]
    if _empty(shape):
        return b.empty(x.dtype.complex, shape)
    parts = _split(b, x, axis)
    if not isinstance(n, int):
        matrix = _computed_matrix(b, parts.dtype, n, [2, kept, parts.shape[1], n], sign)
        return _join(b, _apply(b, parts, matrix), shape, scale)
    if half and n <= COMMON.direct_transform:
        assert isinstance(kept, int)
        waves = _waves(n, kept, n, sign)
        matrix = _constant(b, _matrix(waves, not x.dtype.is_complex), parts.dtype)
        return _join(b, _apply(b, parts, matrix), shape, scale)
    if half and not x.dtype.is_complex and not _is_indivisible(n):
        return shapes.reshape(b, _half_spectrum(b, parts, n, sign, scale), shape)
    result = _transform(b, parts, n, sign)
    if half:
        result = shapes.slice_axis(b, result, 2, 0, kept)
    return _join(b, result, shape, scale)


def to_real(b: Builder, x: Tensor, axis: int, n: Size, scale: float | None = None) -> Tensor:
    """
    The inverse transform to n real numbers, from the half spectrum k = 0, ..., n / 2 with X[n - k]
    = conj(X[k]). Ignores the imaginary parts of X[0] and X[n / 2].
    """
    given: Size = b.add(b.floordiv(n, 2), 1)
    x = shapes.slice_axis(b, x, axis, 0, given)
    shape = [*x.shape[:axis], n, *x.shape[axis + 1 :]]
    if _empty(shape):
        return b.empty(x.dtype.part, shape)
    parts = _split(b, x, axis)
    if not isinstance(n, int):
        matrix = _computed_matrix(b, parts.dtype, n, [1, n, 2, given], 1, weigh=True)
        result = _apply(b, parts, matrix)
    elif n <= COMMON.direct_transform:
        assert isinstance(given, int)
        waves = _waves(given, n, n, 1) * np.where(_alone(given, n), 1, 2)[:, None]
        matrix_array = _matrix(waves, False, real_out=True)
        matrix_array[:, :, 1, _alone(given, n)] = 0
        result = _apply(b, parts, _constant(b, matrix_array, parts.dtype))
    elif not _is_indivisible(n):
        result = _from_half(b, parts, n)
    else:
        whole = shapes.reshape(
            b, _mirrored(b, parts, n, 1, 1), [*parts.shape[:2], n, parts.shape[3]]
        )
        result = _transform(b, whole, n, 1)
        result = shapes.slice_axis(b, result, 1, 0, 1)
    result = shapes.reshape(b, result, shape)
    return result if scale is None else b.map(lambda v: v * scale, result)


def _alone(given: int, n: int) -> np.ndarray:
    """Mask of the indices 0, ..., n / 2 that equal their mirror image."""
    places = np.arange(given)
    return (places == 0) | (2 * places == n)


def _from_half(b: Builder, x: Tensor, n: int) -> Tensor:
    """
    The real signal of a half spectrum [before, 2, n / 2 + 1, after] as [before, 1, n, after].

    x[j1 second + j2] is a sum over k1 of transforms of X[k1 + first k2] along k2. The terms of k1
    and first - k1 are conjugates, so those up to first / 2 are summed, twice their real part.
    """
    first = _factor(n, x.shape[3], half=True)
    second, rows = n // first, first // 2 + 1
    before, _, _, after = x.shape
    x = _mirrored(b, x, n, first, rows)
    x = shapes.reshape(b, x, [b.mul(before, rows), 2, second, after])
    x = shapes.reshape(b, _transform(b, x, second, 1), [before, rows, 2, second, after])
    x = _twiddle(b, x, _waves(rows, second, n, 1), back=True)
    x = shapes.reshape(b, x, [before, 2, rows, b.mul(second, after)])
    weights = np.where(_alone(rows, first), 1, 2)[:, None]
    waves = _waves(rows, first, first, 1) * weights
    x = _apply(b, x, _constant(b, _matrix(waves, False, real_out=True), x.dtype))
    return shapes.reshape(b, x, [before, 1, n, after])


def _mirrored(b: Builder, x: Tensor, n: int, step: int, count: int) -> Tensor:
    """
    Returns elements X[k1 + step k2] of the spectrum of a real signal as [before, k1 < count, 2, k2,
    after]. `x` is the lower half of the spectrum, [before, 2, n / 2 + 1, after].
    """
    before, _, _, after = x.shape

    def element(s: Body, a: Scalar, k1: Scalar, p: Scalar, k2: Scalar, c: Scalar) -> Scalar:
        k = k1 + k2 * step
        upper = k * 2 > n
        value = s.extract(x, [a, p, upper.where(n - k, k), c])
        imaginary = ((k == 0) | (k * 2 == n)).where(0.0, upper.where(-value, value))
        return (p == 0).where(value, imaginary)

    return b.from_function(element, [before, count, 2, n // step, after], x.dtype)


# --- short-time transforms ---


def overlap_add(b: Builder, frames: Tensor, hop: int) -> Tensor:
    """out[n, t] = sum over f of frames[n, f, t - f hop]"""
    batch, count, size = frames.shape
    assert isinstance(size, int)
    length = b.add(b.mul(b.sub(count, 1), hop), size)
    most = -(-size // hop)
    init = b.full(0, frames.dtype, [batch, length])
    steps = b.empty(BOOL, [most])
    maps = [projection(3, (2,)), projection(3, (0, 1))]

    def body(s: Body, _: Scalar, total: Scalar) -> Scalar:
        place = s.index(1)
        f = place.truncdiv(hop) - s.index(2)
        at = place - f * hop
        inside = (f >= 0) & (f < s.as_index(b.value(count))) & (at < size)
        value = s.extract(frames, [s.index(0), inside.where(f, 0), inside.where(at, 0)])
        return total + inside.where(value, 0)

    return b.structured([steps], [init], maps, [False, False, True], body)[0]
