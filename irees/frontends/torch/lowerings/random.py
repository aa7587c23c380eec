"""Random operators, with Philox: reproducible, but not PyTorch's number sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from xdsl.ir import SSAValue

from ...builder import Scalar, Size, Tensor, random, reductions, shapes
from ...builder.dtypes import BOOL, I64
from ..calls import Call, lowers
from ..dtypes import dtype_of

aten, prims = torch.ops.aten, torch.ops.prims


def fresh_seed(call: Call) -> SSAValue:
    """The i64 seed of a random op: a hidden program argument, drawn anew for each run."""
    return call.new_seed()


def _uniform(call: Call) -> Tensor:
    return random.uniform(call.b, fresh_seed(call), call.shape(), call.dtype())


def _normal(call: Call) -> Tensor:
    return random.normal(call.b, fresh_seed(call), call.shape(), call.dtype())


def _probability(call: Call, p: Any) -> Any:
    """p, which must be between 0 and 1."""
    message = "a probability must be between 0 and 1"
    if isinstance(p, Tensor):
        return call.require(p, lambda v: (v >= 0.0) & (v <= 1.0), message)
    if isinstance(p, int | float) and not 0 <= p <= 1:
        raise call.unsupported(message)
    return p


def _below(call: Call, p: Any, shape: Sequence[Size] | None = None) -> Tensor:
    """A bool tensor that is true with probability p, which is a number or a tensor."""
    b = call.b
    kind = p.dtype if isinstance(p, Tensor) else dtype_of(torch.float32)
    noise = random.uniform(b, fresh_seed(call), call.shape() if shape is None else shape, kind)
    if isinstance(p, Tensor):
        return b.map(lambda u, v: u < v.to(u.dtype), noise, p, dtype=BOOL)
    return b.map(lambda u: u < call.number_in(u.body, p, u.dtype), noise, dtype=BOOL)


@lowers(aten.rand.default, aten.rand.generator, aten.rand_like.default, aten.rand_like.generator)
def rand(call: Call, *_: Any) -> Tensor:
    """0 <= u < 1"""
    return call.b.cast(_uniform(call), call.dtype())


@lowers(
    aten.randn.default, aten.randn.generator, aten.randn_like.default, aten.randn_like.generator
)
def randn(call: Call, *_: Any) -> Tensor:
    """Standard normal numbers"""
    return call.b.cast(_normal(call), call.dtype())


def _integers(call: Call, low: Any, high: Any) -> Tensor:
    if isinstance(low, int) and isinstance(high, int):
        count: Any = high - low
    else:

        def count(s: Any) -> Scalar:
            return call.number_in(s, high, I64) - call.number_in(s, low, I64)

    first = low if isinstance(low, int) else (lambda s: call.number_in(s, low, I64))
    return random.integers(call.b, fresh_seed(call), call.shape(), first, count, call.dtype())


@lowers(aten.randint.default, aten.randint.generator)
def randint(call: Call, high: Any) -> Tensor:
    """0 <= k < high"""
    return _integers(call, 0, high)


@lowers(aten.randint.low, aten.randint.low_generator)
def randint_low(call: Call, low: Any, high: Any) -> Tensor:
    """low <= k < high"""
    return _integers(call, low, high)


@lowers(aten.randint_like.default, aten.randint_like.generator)
def randint_like(call: Call, x: Tensor, high: Any) -> Tensor:
    """0 <= k < high, in the shape of x"""
    return _integers(call, 0, high)


@lowers(aten.randint_like.Tensor, aten.randint_like.Tensor_generator)
def randint_like_tensor(call: Call, x: Tensor, high: Tensor) -> Tensor:
    """0 <= k < high, where `high` is a one-element tensor"""
    b = call.b
    bound = b.item(high, [0] * high.rank)

    def count(s: Any) -> Scalar:
        return s.scalar(bound, high.dtype).to(I64)

    return random.integers(b, fresh_seed(call), call.shape(), 0, count, call.dtype())


@lowers(aten.randint_like.low_dtype, aten.randint_like.low_generator_dtype)
def randint_like_low(call: Call, x: Tensor, low: Any, high: Any) -> Tensor:
    """low <= k < high, in the shape of x"""
    return _integers(call, low, high)


_WHOLE_BITS = {torch.float32: 24, torch.float64: 53, torch.float16: 11, torch.bfloat16: 8}


def _largest(kind: torch.dtype) -> int:
    """The upper bound of `random`: all integers up to it are representable in the dtype."""
    return 1 << _WHOLE_BITS[kind] if kind in _WHOLE_BITS else torch.iinfo(kind).max


@lowers(aten.random.default)
def random_(call: Call, x: Tensor) -> Tensor:
    """0 <= k <= the largest integer of the dtype"""
    if x.dtype is BOOL:
        return _integers(call, 0, 2)
    return _integers(call, 0, _largest(call.fake().dtype) + 1)


@lowers(aten.random.to)
def random_to(call: Call, x: Tensor, high: int) -> Tensor:
    """0 <= k < high"""
    return _integers(call, 0, high)


@lowers(getattr(aten.random, "from"))
def random_from(call: Call, x: Tensor, low: int, high: Any) -> Tensor:
    """low <= k < high, or up to the largest integer of the dtype"""
    return _integers(call, low, _largest(call.fake().dtype) + 1 if high is None else high)


@lowers(aten.randperm.default, aten.randperm.generator)
def randperm(call: Call, size: Any) -> Tensor:
    """0, ..., n - 1 in a random order"""
    b = call.b
    return b.cast(random.permutation(b, fresh_seed(call), size), call.dtype())


# --- distributions ---


@lowers(aten.uniform.default)
def uniform(call: Call, x: Tensor, low: float, high: float) -> Tensor:
    """low + (high - low) u"""
    return call.elementwise(lambda u, p, q: p + (q - p) * u, _uniform(call), low, high)


@lowers(prims.uniform.default)
def prims_uniform(call: Call, *_: Any, low: float, high: float) -> Tensor:
    """low + (high - low) u"""
    return call.elementwise(lambda u, p, q: p + (q - p) * u, _uniform(call), low, high)


def _scaled_normal(call: Call, mean: Any, deviation: Any) -> Tensor:
    message = "a standard deviation must not be negative"
    if isinstance(deviation, Tensor):
        deviation = call.require(deviation, lambda s: s >= 0.0, message)
    elif isinstance(deviation, int | float) and not deviation >= 0:
        raise call.unsupported(message)
    return call.elementwise(lambda z, m, s: m + s * z, _normal(call), mean, deviation)


@lowers(prims.normal.default)
def prims_normal(call: Call, *_: Any, mean: float, std: float) -> Tensor:
    """mean + std z"""
    return _scaled_normal(call, mean, std)


@lowers(aten.normal_functional.default)
def normal_functional(call: Call, x: Tensor, mean: float, deviation: float) -> Tensor:
    """mean + std z"""
    return _scaled_normal(call, mean, deviation)


@lowers(
    aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor,
    aten.normal.float_float,
)  # fmt: skip
def normal(call: Call, mean: Any, deviation: Any) -> Tensor:
    """mean + std z, for tensors or numbers"""
    return _scaled_normal(call, mean, deviation)


@lowers(aten.log_normal.default)
def log_normal(call: Call, x: Tensor, mean: float, deviation: float) -> Tensor:
    """exp(mean + std z)"""
    return call.elementwise(lambda z, m, s: (m + s * z).exp(), _normal(call), mean, deviation)


@lowers(aten.bernoulli.default)
def bernoulli(call: Call, p: Tensor) -> Tensor:
    """1 with probability p, else 0"""
    return call.b.cast(_below(call, _probability(call, p)), call.dtype())


@lowers(aten.bernoulli.p, aten.bernoulli.Tensor)
def bernoulli_p(call: Call, x: Tensor, p: Any) -> Tensor:
    """1 with probability p, else 0, in the shape of x"""
    return call.b.cast(_below(call, _probability(call, p)), call.dtype())


@lowers(aten.exponential.default)
def exponential(call: Call, x: Tensor, rate: float) -> Tensor:
    """-log(u) / rate"""
    noise = random.exponential(call.b, fresh_seed(call), call.shape(), call.dtype())
    return call.elementwise(lambda e, r: e / r, noise, rate)


def _open(call: Call) -> Tensor:
    return random.open_uniform(call.b, fresh_seed(call), call.shape(), call.dtype())


@lowers(aten.geometric.default)
def geometric(call: Call, x: Tensor, p: float) -> Tensor:
    """ceil(log(u) / log(1 - p)): the number of trials up to the first success"""
    scale = 1 / math.log1p(-p) if p < 1 else 0.0
    noise = _open(call)
    return call.b.map(
        lambda u: (u.log() * scale).ceil().maximum(1.0).to(call.dtype()), noise, dtype=call.dtype()
    )


@lowers(aten.cauchy.default)
def cauchy(call: Call, x: Tensor, median: float, scale: float) -> Tensor:
    """median + scale tan(pi (u - 1/2))"""
    return call.elementwise(
        lambda u, m, s: m + s * ((u - 0.5) * math.pi).tan(), _open(call), median, scale
    )


@lowers(aten.poisson.default)
def poisson(call: Call, rate: Tensor) -> Tensor:
    """The number of arrivals of a Poisson process before time `rate`"""
    rate = call.require(
        rate, lambda v: v >= 0.0, "the rate of a Poisson process must be at least 0"
    )
    return call.b.cast(random.poisson(call.b, fresh_seed(call), rate), call.dtype())


@lowers(aten.binomial.default)
def binomial(call: Call, count: Tensor, p: Tensor) -> Tensor:
    """The number of successes in `count` trials of probability p"""
    return call.b.cast(random.binomial(call.b, fresh_seed(call), count, p), call.dtype())


@lowers(aten._standard_gamma.default)
def standard_gamma(call: Call, shape: Tensor) -> Tensor:
    """Variates of the gamma distribution of scale 1"""
    return call.b.cast(random.gamma(call.b, fresh_seed(call), shape), call.dtype())


@lowers(aten._sample_dirichlet.default)
def sample_dirichlet(call: Call, concentration: Tensor) -> Tensor:
    """g / sum(g) of gamma variates g, for each row"""
    b, limits = call.b, torch.finfo(call.fake().dtype)
    drawn = random.gamma(b, fresh_seed(call), concentration)
    last = drawn.rank - 1
    sums = shapes.unsqueeze(b, reductions.sum_(b, drawn, [last]), last)
    least, most = limits.tiny, 1 - limits.eps / 2
    shares = b.map(lambda g, s: (g / s).maximum(least).minimum(most), drawn, sums)
    return b.cast(shares, call.dtype())


@lowers(aten.multinomial.default)
def multinomial(call: Call, weights: Tensor, count: Any, replacement: bool) -> Tensor:
    """Indices of each row, drawn by weight"""
    b = call.b
    weights = call.require(
        weights, lambda w: (w >= 0.0) & (w < math.inf), "weights must be finite and at least 0"
    )
    sums = reductions.sum_(b, weights, [weights.rank - 1])
    drawn = reductions.all_(b, b.map(lambda v: v > 0.0, sums, dtype=BOOL), range(sums.rank))
    b.check(b.item(drawn), "each row of weights must have one above 0")
    return random.multinomial(b, fresh_seed(call), weights, count, replacement)


# --- dropout ---


def dropped(call: Call, x: Tensor, p: float, shape: Sequence[Size]) -> tuple[Tensor, Tensor]:
    """x / (1 - p) where kept, with probability 1 - p, else 0; also returns the mask."""
    mask = _below(call, 1 - p, shape)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    wide = x.dtype.computed
    result = call.b.map(
        lambda v, m: m.where(v.to(wide) * scale, v._other(0).to(wide)), x, mask, dtype=x.dtype
    )
    return result, mask


@lowers(aten.native_dropout.default)
def native_dropout(call: Call, x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """x / (1 - p) where the mask is true, else 0; the mask"""
    if train is False:
        return x, call.b.full(1, BOOL, x.shape)
    return dropped(call, x, p, x.shape)


@lowers(aten.dropout.default)
def dropout(call: Call, x: Tensor, p: float, train: bool) -> Tensor:
    """x / (1 - p) with probability 1 - p, else 0; x if not in training"""
    return dropped(call, x, p, x.shape)[0] if train and p > 0 else x


def _per_feature(x: Tensor) -> list[Size]:
    return [size if i < 2 else 1 for i, size in enumerate(x.shape)]


@lowers(aten.feature_dropout.default)
def feature_dropout(call: Call, x: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels"""
    return dropped(call, x, p, _per_feature(x))[0] if train and p > 0 else x


_ALPHA = 1.7580993408473766
"""scale * alpha of selu; dropped elements become its negative."""


@lowers(aten.alpha_dropout.default, aten.feature_alpha_dropout.default)
def alpha_dropout(call: Call, x: Tensor, p: float, train: bool) -> Tensor:
    """Dropout to -alpha, then scaled and shifted to preserve mean 0 and variance 1"""
    if not train or p == 0:
        return x
    if p == 1:
        return call.elementwise(lambda v: v * 0.0, x)
    whole = call.target is aten.alpha_dropout.default
    mask = _below(call, 1 - p, x.shape if whole else _per_feature(x))
    scale = 1 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    move = _ALPHA * scale * p
    wide = x.dtype.computed

    def body(v: Scalar, m: Scalar) -> Scalar:
        v = v.to(wide)
        return m.where(v * scale, v._other(-_ALPHA * scale)) + move

    return call.b.map(body, x, mask, dtype=x.dtype)


@lowers(aten.rrelu_with_noise_functional.default, aten.rrelu_with_noise.default)
def rrelu_with_noise(
    call: Call, x: Tensor, noise: Tensor, low: float, high: float, training: bool
) -> Any:
    """x if positive, else x times a random slope low <= a < high; also returns the slopes"""
    b = call.b
    both = call.target is aten.rrelu_with_noise_functional.default
    if not training:

        def slope(v: Scalar) -> Any:
            lowest, highest = call.numbers_in(v, (low, high))
            return (lowest + highest) / 2

        result = call.elementwise(lambda v: (v > 0).where(v, v * slope(v)), x, dtype=x.dtype)
        return (result, noise) if both else result
    wide = x.dtype.computed
    drawn = random.uniform(b, fresh_seed(call), x.shape, wide)

    def drawn_slope(u: Scalar, v: Scalar) -> Scalar:
        lowest, highest = call.numbers_in(u, (low, high))
        return (v.to(wide) <= 0).where(lowest + (highest - lowest) * u, 1.0)

    slopes = b.map(drawn_slope, drawn, x, dtype=x.dtype)
    result = call.b.map(lambda v, a: v.to(wide) * a.to(wide), x, slopes, dtype=x.dtype)
    return (result, slopes) if both else result


@lowers(aten.rrelu.default)
def rrelu(call: Call, x: Tensor, low: float, high: float, training: bool) -> Tensor:
    """x if positive, else x times a random slope"""
    result = rrelu_with_noise(call, x, x, low, high, training)
    return result[0] if isinstance(result, tuple) else result
