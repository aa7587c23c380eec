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

from . import contractions, shapes
from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, F64, I64, DType
from .scalars import Body, Scalar

DIRECT = 64
"""Largest size computed as a single matmul: factorizing costs another pass over memory."""

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


def _twiddle(b: Builder, x: Tensor, waves: np.ndarray) -> Tensor:
    """x[a, p, k, n, c] times the complex waves[k, n], transposed to [a, k, p, n, c]."""
    real = _constant(b, waves.real, x.dtype)
    cross = _constant(b, np.stack([-waves.imag, waves.imag]), x.dtype)
    before, parts, k, n, after = x.shape
    init = b.empty(x.dtype, [before, k, parts, n, after])
    maps = [
        projection(5, (0, 2, 1, 3, 4)),
        projection(5, (1, 3)),
        projection(5, (2, 1, 3)),
        projection(5, (0, 1, 2, 3, 4)),
    ]

    def body(s: Body, v: Scalar, re: Scalar, im: Scalar, _: Scalar) -> Scalar:
        other = s.extract(x, [s.index(0), 1 - s.index(2), s.index(1), s.index(3), s.index(4)])
        return v * re + other * im

    return b.structured([x, real, cross], [init], maps, [False] * 5, body)[0]


def _factor(n: int) -> int:
    """The largest factor of n up to 32; n if there is none."""
    return next((f for f in range(32, 1, -1) if n % f == 0), n)


def _transform(b: Builder, x: Tensor, n: int, sign: int) -> Tensor:
    """Transforms [before, 1 or 2, n, after] to [before, 2, n, after]."""
    real = x.shape[1] == 1
    first = _factor(n)
    if n > DIRECT and first == n and n > LARGEST_PRIME:
        return _bluestein(b, x, n, sign)
    if n <= DIRECT or first == n:
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
    init = b.empty(x.dtype.part, [before, 2, x.shape[axis], after])
    maps = [projection(4, (0, 2, 3)), projection(4, (0, 1, 2, 3))]
    return b.structured(
        [flat], [init], maps, [False] * 4,
        lambda s, v, _: (s.index(1) == 0).where(v.re(), v.im()),
    )[0]  # fmt: skip


def _join(b: Builder, x: Tensor, shape: Sequence[Size], scale: float | None) -> Tensor:
    """Joins the parts to complex numbers of a shape, times `scale`."""

    def element(s: Body, a: Scalar, n: Scalar, c: Scalar) -> Scalar:
        re, im = (s.extract(x, [a, p, n, c]) for p in range(2))
        return (re if scale is None else re * scale).with_imaginary(
            im if scale is None else im * scale
        )

    joined = b.from_function(element, [x.shape[0], x.shape[2], x.shape[3]], x.dtype.complex)
    return shapes.reshape(b, joined, shape)


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
    if half and n <= DIRECT:
        assert isinstance(kept, int)
        waves = _waves(n, kept, n, sign)
        matrix = _constant(b, _matrix(waves, not x.dtype.is_complex), parts.dtype)
        return _join(b, _apply(b, parts, matrix), shape, scale)
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
    elif n <= DIRECT:
        assert isinstance(given, int)
        waves = _waves(given, n, n, 1) * np.where(_alone(given, n), 1, 2)[:, None]
        matrix_array = _matrix(waves, False, real_out=True)
        matrix_array[:, :, 1, _alone(given, n)] = 0
        result = _apply(b, parts, _constant(b, matrix_array, parts.dtype))
    else:
        result = _transform(b, _mirrored(b, parts, n), n, 1)
        result = shapes.slice_axis(b, result, 1, 0, 1)
    result = shapes.reshape(b, result, shape)
    return result if scale is None else b.map(lambda v: v * scale, result)


def _alone(given: int, n: int) -> np.ndarray:
    """Mask of the indices 0, ..., n / 2 that equal their mirror image."""
    places = np.arange(given)
    return (places == 0) | (2 * places == n)


def _mirrored(b: Builder, x: Tensor, n: int) -> Tensor:
    """The full spectrum of a real signal from its half spectrum [before, 2, n / 2 + 1, after]."""
    before, _, _, after = x.shape

    def element(s: Body, a: Scalar, p: Scalar, k: Scalar, c: Scalar) -> Scalar:
        upper = k * 2 > n
        value = s.extract(x, [a, p, upper.where(n - k, k), c])
        imaginary = ((k == 0) | (k * 2 == n)).where(0.0, upper.where(-value, value))
        return (p == 0).where(value, imaginary)

    return b.from_function(element, [before, 2, n, after], x.dtype)


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
