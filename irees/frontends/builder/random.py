"""
Random numbers with Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

An element's number depends only on the seed and its linear index, so tiling, threading and fusion
do not change it. A seed is an i64 value; each random tensor needs its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from . import indexing, ordering, shapes
from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, F32, F64, I64, INDEX, U32, U64, DType
from .scalars import Body, Scalar
from .special import polynomial

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def philox(key: Scalar, counter: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Four u32 of Philox 4x32-10 for a u64 key and the counter (low, high, 0, 0), from a u64."""
    keys = [key.to(U32), key.logical_shift_right(32).to(U32)]
    a, b = counter.to(U32), counter.logical_shift_right(32).to(U32)
    c = d = a._other(0)
    for i in range(_ROUNDS):
        if i:
            keys = [k + w for k, w in zip(keys, _WEYL)]
        left, right = (v.to(U64) * m for v, m in zip((a, c), _MULTIPLIERS))
        a, b, c, d = (
            right.logical_shift_right(32).to(U32) ^ b ^ keys[0],
            right.to(U32),
            left.logical_shift_right(32).to(U32) ^ d ^ keys[1],
            left.to(U32),
        )
    return a, b, c, d


def draw(b: Builder, seed: SSAValue, shape: Sequence[Size], dtype: DType, fn: Any) -> Tensor:
    """out[i...] = fn(four u32 of Philox at the linear index of i...)"""

    def element(s: Body, *at: Scalar) -> Scalar:
        place = s.number(0, INDEX)
        for size, i in zip(shape, at):
            place = place * s.as_index(b.value(size)) + i
        return fn(*philox(s.scalar(seed, I64).to(U64), place.to(U64))).to(dtype)

    return b.from_function(element, shape, dtype)


def _digits(dtype: DType) -> int:
    """The number of random bits in a uniform number of a dtype: its significand size."""
    return {"f16": 11, "bf16": 8, "f64": 53}.get(dtype.name, 24)


def _fraction(high: Scalar, low: Scalar, digits: int) -> Scalar:
    """A number 0 <= u < 1 with `digits` random bits; f64 for more than 24, else f32."""
    if digits > 24:
        bits = high.to(U64).shift_left(32) | low.to(U64)
        return bits.logical_shift_right(64 - digits).to(F64) * 2.0**-digits
    return high.logical_shift_right(32 - digits).to(F32) * 2.0**-digits


def _cosine(v: Scalar) -> Scalar:
    """cos(2 pi v) for 0 <= v < 1, with its power series on a quarter circle."""
    a = (v - 0.5).abs()
    x = a.minimum(0.5 - a) * (2 * math.pi)
    terms = 11 if v.dtype is F64 else 7
    series = [(-1.0) ** k / math.factorial(2 * k) for k in range(terms)]
    value = polynomial(x * x, series[::-1])
    return (a > 0.25).where(value, -value)


def _sine(v: Scalar) -> Scalar:
    """sin(2 pi v) = cos(2 pi (v - 1/4))"""
    return _cosine((v < 0.25).where(v + 0.75, v - 0.25))


def _normal(u: Scalar, v: Scalar) -> Scalar:
    """sqrt(-2 log(1 - u)) cos(2 pi v): the Box-Muller transform."""
    return ((1 - u).log() * -2.0).sqrt() * _cosine(v)


def uniform(b: Builder, seed: SSAValue, shape: Sequence[Size], dtype: DType) -> Tensor:
    """
    Multiples of 2^-n with 0 <= u < 1, where n is the significand size of `dtype`; f16 and bf16 give
    f32. Draws both parts of complex numbers.
    """
    part = dtype.part
    digits = _digits(part)
    if dtype.is_complex:
        return draw(
            b, seed, shape, dtype,
            lambda p, q, r, t: _fraction(p, q, digits).with_imaginary(_fraction(r, t, digits)),
        )  # fmt: skip
    return draw(b, seed, shape, dtype.computed, lambda p, q, *_: _fraction(p, q, digits))


def normal(b: Builder, seed: SSAValue, shape: Sequence[Size], dtype: DType) -> Tensor:
    """Standard normals (Box-Muller); f16 and bf16 give f32. |z|^2 has mean 1 for complex z."""
    part = dtype.part.computed
    digits = _digits(part)

    def element(p: Scalar, q: Scalar, r: Scalar, t: Scalar) -> Scalar:
        u, v = _fraction(p, q, digits), _fraction(r, t, digits)
        if not dtype.is_complex:
            return _normal(u, v)
        radius = (-(1 - u).log()).sqrt()
        return (radius * _cosine(v)).with_imaginary(radius * _sine(v))

    return draw(b, seed, shape, dtype.computed, element)


def integers(
    b: Builder, seed: SSAValue, shape: Sequence[Size], low: Any, count: Any, dtype: DType
) -> Tensor:
    """
    low + k with 0 <= k < count. Uniform to within 2^-32 if `count` is a constant up to 2^32 (the
    high word of a product), otherwise a 64-bit remainder. Both are ints, or functions from the body
    to an i64 Scalar.
    """

    def element(p: Scalar, q: Scalar, *_: Scalar) -> Scalar:
        first = low if isinstance(low, int) else low(p.body)
        if isinstance(count, int) and count <= 1 << 32:
            k = (p.to(U64) * count).logical_shift_right(32)
        else:
            n = p.body.number(count, U64) if isinstance(count, int) else count(p.body).to(U64)
            k = (p.to(U64).shift_left(32) | q.to(U64)).rem((n == 0).where(1, n))
        return k.to(I64) + first

    return draw(b, seed, shape, dtype, element)


def permutation(b: Builder, seed: SSAValue, size: Size) -> Tensor:
    """A random permutation of 0, ..., size - 1 in i64: the sort order of random keys."""
    keys = draw(
        b, seed, [size], I64,
        lambda p, q, *_: (p.to(U64).shift_left(32) | q.to(U64)).to(I64),
    )  # fmt: skip
    return ordering.sort(b, keys, 0, False)[1]


def exponential(b: Builder, seed: SSAValue, shape: Sequence[Size], dtype: DType) -> Tensor:
    """-log(1 - u), never 0; f16 and bf16 give f32."""
    digits = _digits(dtype.computed)
    least = 2.0**-digits / 2

    def element(p: Scalar, q: Scalar, *_: Scalar) -> Scalar:
        return (-(1 - _fraction(p, q, digits)).log()).maximum(least)

    return draw(b, seed, shape, dtype.computed, element)


def open_uniform(b: Builder, seed: SSAValue, shape: Sequence[Size], dtype: DType) -> Tensor:
    """Uniform numbers 0 < u < 1, in f64 for f64, else in f32."""
    wide = F64 if dtype is F64 else F32
    digits = _digits(wide) - 1
    half = 2.0 ** -(digits + 1)
    return draw(b, seed, shape, wide, lambda p, q, *_: _fraction(p, q, digits) + half)


def multinomial(
    b: Builder, seed: SSAValue, weights: Tensor, count: Size, replacement: bool
) -> Tensor:
    """
    Draws `count` indices from each row of weights. With replacement, by inverting the cumulative
    sum; without, the indices of the largest weight / e for exponential e.
    """
    wide = F64 if weights.dtype is F64 else F32
    rows, last = b.cast(weights, wide), weights.rank - 1
    if not replacement:
        noise = exponential(b, seed, rows.shape, wide)
        keys = b.map(lambda w, e: w / e, rows, noise)
        return ordering.topk(b, keys, count, last, True)[1]
    sums = indexing.scan(b, rows, last, lambda acc, v: acc + v)
    total = shapes.slice_axis(b, sums, last, b.sub(rows.shape[last], 1), 1)
    places = uniform(b, seed, [*rows.shape[:last], count], wide)
    return ordering.search(b, sums, b.map(lambda u, t: u * t, places, total), True)


def bernoulli(b: Builder, seed: SSAValue, shape: Sequence[Size], p: float) -> Tensor:
    """true with probability p."""
    return b.map(lambda u: u < p, uniform(b, seed, shape, F32), dtype=BOOL)


_FOURS = 60
"""The bit of a counter above all linear indices."""


def _trials(
    b: Builder,
    seed: SSAValue,
    given: Sequence[Tensor],
    inits: Sequence[Tensor],
    count: int,
    trial: Any,
) -> list[Tensor]:
    """
    Repeats `count` trials for each element of equally shaped tensors: the carried values become
    trial(draw, elements, carried values), where draw(0), draw(1) ... are four random u32 each.
    """
    shape = given[0].shape
    rank = len(shape)
    whole = projection(rank + 1, tuple(range(rank)))
    maps = [*[whole] * len(given), projection(rank + 1, (rank,)), *[whole] * len(inits)]

    def step(s: Body, *values: Scalar) -> tuple[Scalar, ...]:
        place = s.number(0, INDEX)
        for i, size in enumerate([*shape, count]):
            place = place * s.as_index(b.value(size)) + s.index(i)
        key = s.scalar(seed, I64).to(U64)
        counter = place.to(U64)

        def draw(i: int) -> tuple[Scalar, ...]:
            return philox(key, counter | i << _FOURS if i else counter)

        return trial(draw, values[: len(given)], values[len(given) + 1 :])

    steps = b.empty(BOOL, [count])
    return b.structured([*given, steps], inits, maps, [False] * rank + [True], step)


_ARRIVALS, _MOST = 160, 64.0
"""Arrivals drawn for means up to 64: 12 standard deviations above the mean."""


def poisson(b: Builder, seed: SSAValue, rate: Tensor) -> Tensor:
    """
    The number of arrivals of a Poisson process before time `rate`: counted individually for rates
    up to 64; above, a normal quantile with the Cornish-Fisher skewness correction.
    """
    wide = F64 if rate.dtype is F64 else F32
    rate = b.cast(rate, wide)
    inits = [b.full(0.0, wide, rate.shape), b.full(0.0, wide, rate.shape)]

    def arrive(draw: Any, given: Any, carried: Any) -> tuple[Scalar, Scalar]:
        (limit,), (time, n) = given, carried
        p, q, *_ = draw(0)
        time = time - (1 - _fraction(p, q, _digits(wide))).log()
        return time, n + (time <= limit).to(wide)

    _, counts = _trials(b, seed, [rate], inits, _ARRIVALS, arrive)

    def choose(r: Scalar, n: Scalar, z: Scalar) -> Scalar:
        far = (r + r.sqrt() * z + (z * z - 1) / 6 + 0.5).floor().maximum(0.0)
        return (r <= _MOST).where(n, far)

    return b.map(choose, rate, counts, normal(b, seed, rate.shape, wide))


def binomial(b: Builder, seed: SSAValue, count: Tensor, p: Tensor) -> Tensor:
    """
    The number of successes in `count` trials of probability p. The rarer of success and failure is
    counted: by the trials between two of it for means up to 64, else as `poisson` does.
    """
    wide = F64 if count.dtype is F64 else F32
    count, p = b.cast(count, wide), b.cast(p, wide)
    rare = b.map(lambda v: v.minimum(1 - v).maximum(0.0), p)
    inits = [b.full(0.0, wide, count.shape), b.full(0.0, wide, count.shape)]

    def succeed(draw: Any, given: Any, carried: Any) -> tuple[Scalar, Scalar]:
        (limit, chance), (trial, n) = given, carried
        p, q, *_ = draw(0)
        noise = (1 - _fraction(p, q, _digits(wide))).log()
        # Without a chance the first success never comes: its trial is infinite or nan.
        trial = trial + (noise / (-chance).log1p()).floor() + 1
        return trial, n + (trial <= limit).to(wide)

    _, counts = _trials(b, seed, [count, rare], inits, _ARRIVALS, succeed)

    def choose(n: Scalar, p: Scalar, q: Scalar, k: Scalar, z: Scalar) -> Scalar:
        mean = n * q
        skew = (z * z - 1) * (1 - q * 2) / 6
        far = (mean + (mean * (1 - q)).sqrt() * z + skew + 0.5).floor().maximum(0.0).minimum(n)
        found = (mean <= _MOST).where(k, far)
        return (p > 0.5).where(n - found, found)

    return b.map(choose, count, p, rare, counts, normal(b, seed, count.shape, wide))


_ATTEMPTS = 24
"""Attempts to draw a gamma variate; each is accepted with probability 0.95 or more."""
_LEAST = {"f32": 2.0**-126, "f64": 2.0**-1022}


def gamma(b: Builder, seed: SSAValue, shape: Tensor) -> Tensor:
    """
    Gamma variates of scale 1, never 0 (Marsaglia and Tsang, "A simple method for generating gamma
    variables"); f16 and bf16 give f32. A variate of a shape a < 1 is one of a + 1, times u^(1/a).
    """
    wide = F64 if shape.dtype is F64 else F32
    shape = b.cast(shape, wide)

    def attempt(draw: Any, given: Any, carried: Any) -> Scalar:
        (a,), (found,) = given, carried
        words = [*draw(0), *draw(1)]
        first, second, third, fourth = (
            _fraction(high, low, _digits(wide)) for high, low in zip(words[::2], words[1::2])
        )
        d = (a < 1.0).where(a + 1, a) - 1 / 3
        x = _normal(first, second)
        v = x / (d * 9).sqrt() + 1
        v = v * v * v
        bound = x * x * 0.5 + d - d * v + d * v.log()
        accepted = (v > 0.0) & ((1 - third).log() < bound)
        scale = (a < 1.0).where(((1 - fourth).log() / a).exp(), 1.0)
        new = (d * v * scale).maximum(_LEAST[wide.name])
        return ((found < 0.0) & accepted).where(new, found)

    start = b.full(-1.0, wide, shape.shape)
    (found,) = _trials(b, seed, [shape], [start], _ATTEMPTS, attempt)
    return b.map(lambda v, a: (v < 0.0).where(a.maximum(_LEAST[wide.name]), v), found, shape)
