"""Reductions along axes; f16 and bf16 accumulate in f32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block

from irees.dialects.iree_linalg_ext import YieldOp
from irees.dialects.iree_linalg_ext.sorting import ArgCompareOp
from irees.dialects.upstream.linalg.packing import SoftmaxOp

from .core import Builder, Size, Tensor, projection
from .dtypes import BOOL, C128, F32, F64, I64, DType
from .scalars import Body, Scalar
from .shapes import reshape, select, slice_axis

Axes = Sequence[int]


def keep_dims(b: Builder, x: Tensor, reduced: Tensor, axes: Axes) -> Tensor:
    """Restores the reduced dims of a reduction of x with size 1."""
    return reshape(b, reduced, [1 if i in axes else s for i, s in enumerate(x.shape)])


def fold(b: Builder, x: Tensor, axes: Axes, start: Any, wide: DType, fn: Any) -> Tensor:
    """acc = fn(acc, x) along axes from `start`, in dtype `wide`."""
    if not axes:
        return b.map(lambda v: fn(v._other(0).to(wide)._other(start), v.to(wide)), x, dtype=wide)
    return b.reduce(lambda s, v, acc: fn(acc, v.to(wide)), [x], axes, [(start, wide)])[0]


def sum_(b: Builder, x: Tensor, axes: Axes, wide: DType | None = None) -> Tensor:
    """The sum along axes, in `wide` (default: f32 for f16 and bf16, else the dtype of x)."""
    wide = wide or x.dtype.computed
    if not axes:
        return b.cast(x, wide)
    return b.reduce(lambda s, v, acc: acc + v.to(wide), [x], axes, [(0, wide)])[0]


def prod(b: Builder, x: Tensor, axes: Axes, wide: DType | None = None) -> Tensor:
    """The product along axes."""
    wide = wide or x.dtype.computed
    if not axes:
        return b.cast(x, wide)
    return b.reduce(lambda s, v, acc: acc * v.to(wide), [x], axes, [(1, wide)])[0]


def count(b: Builder, x: Tensor, axes: Axes) -> Size:
    """The number of elements reduced into one."""
    return b.product([x.shape[i] for i in axes])


def size_as(b: Builder, size: Size, dtype: DType) -> Any:
    """A size for use in a body: a function from the body to a Scalar."""
    if isinstance(size, int):
        return lambda s: s.number(size, dtype)
    return lambda s: s.scalar(size).to(dtype)


def mean(b: Builder, x: Tensor, axes: Axes, wide: DType | None = None) -> Tensor:
    """sum(x) / n along axes; NaN if n is 0."""
    total = sum_(b, x, axes, wide)
    n = size_as(b, count(b, x, axes), total.dtype.part)
    return b.map(lambda v: _over(v, n(v.body)), total)


def var_mean(
    b: Builder, x: Tensor, axes: Axes, correction: float | Tensor
) -> tuple[Tensor, Tensor]:
    """
    sum(|x - mean|^2) / max(n - correction, 0) along axes, and the mean. Sums are in f64 to keep the
    precision of deviations from a large mean, and to let one pass over x compute both. The
    correction is a number or an f64 of rank 0.
    """
    narrow = x.dtype.computed
    wide = C128 if narrow.is_complex else F64
    total = sum_(b, x, axes, wide)
    n = size_as(b, count(b, x, axes), F64)
    around = keep_dims(b, x, total, axes)

    def square(s: Body, v: Scalar, t: Scalar, acc: Scalar) -> Scalar:
        # Divides here because `irees-merge-variance-passes` matches the sum, not the mean.
        d = v.to(wide) - _over(t, n(s))
        if wide.is_complex:
            return acc + d.re() * d.re() + d.im() * d.im()
        return acc + d * d

    rank = x.rank
    kept = tuple(i for i in range(rank) if i not in axes)
    init = b.full(0, F64, [x.shape[i] for i in kept])
    maps = [
        projection(rank, tuple(range(rank))),
        b.broadcast_map(around.shape, x.shape),
        projection(rank, kept),
    ]
    reduced = [i in axes for i in range(rank)]
    (squares,) = b.structured([x, around], [init], maps, reduced, square)
    given = [correction] if isinstance(correction, Tensor) else []

    def over_rest(v: Scalar, *computed: Scalar) -> Scalar:
        if not computed and not correction:
            return v / n(v.body)
        return v / (n(v.body) - (computed[0] if computed else correction)).maximum(0.0)

    spread = b.map(over_rest, squares, *given, dtype=narrow.part)
    return spread, b.map(lambda v: _over(v, n(v.body)), total, dtype=narrow)


def _over(v: Scalar, n: Scalar) -> Scalar:
    """v / n for a real n."""
    return (v.re() / n).with_imaginary(v.im() / n) if v.dtype.is_complex else v / n


def max_(b: Builder, x: Tensor, axes: Axes) -> Tensor:
    """The largest element along axes; NaN if any element is NaN."""
    return fold(b, x, axes, x.dtype.lowest, x.dtype, Scalar.maximum)


def min_(b: Builder, x: Tensor, axes: Axes) -> Tensor:
    """The smallest element along axes; NaN if any element is NaN."""
    return fold(b, x, axes, x.dtype.highest, x.dtype, Scalar.minimum)


def any_(b: Builder, x: Tensor, axes: Axes) -> Tensor:
    """Whether any element along axes is nonzero."""
    return fold(b, x, axes, 0, BOOL, lambda acc, v: acc | v)


def all_(b: Builder, x: Tensor, axes: Axes) -> Tensor:
    """Whether all elements along axes are nonzero."""
    return fold(b, x, axes, 1, BOOL, lambda acc, v: acc & v)


def arg_best(b: Builder, x: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """
    The largest (or smallest) element along an axis and its index in i64. Ties give the first index;
    NaN compares above every number, and the first NaN wins.
    """
    if x.dtype is BOOL:
        from .dtypes import U8

        values, indices = arg_best(b, b.cast(x, U8), axis, largest)
        return b.cast(values, BOOL), indices
    kind = x.dtype
    block = Block(arg_types=[kind.element, kind.element])
    s = Body(block, b.location)
    left, right = (Scalar(s, arg, kind) for arg in block.args)
    better = left > right if largest else left < right
    if kind.is_float:
        better = better | (left.isnan() & ~right.isnan())
    block.add_op(YieldOp(better.value))
    if x.shape[axis] == 1:
        best = select(b, x, axis, 0)
        return best, b.full(0, I64, best.shape)
    best, where, first = _start(b, x, axis, kind.lowest if largest else kind.highest)
    rest = x if first == 0 else slice_axis(b, x, axis, first, b.sub(x.shape[axis], first))
    op = ArgCompareOp.build(
        operands=[rest.value, [], best.value, where.value, [b.value(first)]],
        result_types=[[best.value.type, where.value.type]],
        properties={"dimension": IntegerAttr(axis, i64)},
        regions=[[block]],
    )
    b.insert(op)
    return Tensor(op.res[0], kind, best.shape), Tensor(op.res[1], I64, best.shape)


def _start(b: Builder, x: Tensor, axis: int, neutral: float) -> tuple[Tensor, Tensor, int]:
    """
    The value and index that a search along an axis starts from, and the first element it reads. No
    element loses against the neutral value but an equal one, so that index 0 is right. An axis of
    unknown size starts from element 0, whose slice checks that there is one.
    """
    shape = [size for i, size in enumerate(x.shape) if i != axis]
    if isinstance(x.shape[axis], int) and x.shape[axis] > 0:
        return b.full(neutral, x.dtype, shape), b.full(0, I64, shape), 0
    return select(b, x, axis, 0), b.full(0, I64, shape), 1


def logsumexp(b: Builder, x: Tensor, axes: Axes) -> Tensor:
    """log(sum(exp(x))) along axes, shifted by the largest element if that is finite."""
    wide = F32 if x.dtype.is_integer else x.dtype.computed
    x = b.cast(x, wide)
    real = b.map(lambda v: v.re(), x, dtype=wide.part) if wide.is_complex else x
    top = max_(b, real, axes)
    top = b.map(lambda v: v.isfinite().where(v, 0.0), top)
    shifted = b.map(lambda v, m: (v - m.to(wide)).exp(), x, keep_dims(b, x, top, axes))
    return b.map(lambda total, m: total.log() + m.to(wide), sum_(b, shifted, axes), top)


def _magnitudes(b: Builder, x: Tensor) -> Tensor:
    wide = x.dtype.part.computed if not x.dtype.is_integer else F32
    return b.map(lambda v: v.to(wide).abs() if not v.dtype.is_complex else v.abs(), x, dtype=wide)


def norm_of_order(b: Builder, x: Tensor, order: Tensor, axes: Axes) -> Tensor:
    """
    (sum(|x|^p))^(1/p) along axes for an order of rank 0; the nonzero count for p = 0. Aborts the
    program if the order is infinite.
    """
    size = _magnitudes(b, x)

    def checked(s: Body) -> Scalar:
        p = s.extract(order, [])
        s.check(p.abs() < math.inf, "the order of a norm that is computed is finite")
        return p.to(size.dtype)

    order = b.from_function(checked, (), size.dtype)
    powers = b.map(lambda v, p: (p == 0).where((v != 0).to(v.dtype), v.pow(p)), size, order)
    total = sum_(b, powers, axes)
    return b.map(lambda v, p: (p == 0).where(v, v.pow(1 / p)), total, order)


def norm(b: Builder, x: Tensor, order: float, axes: Axes) -> Tensor:
    """(sum(|x|^p))^(1/p) along axes; max or min |x| for p = +-inf, nonzero count for p = 0."""
    if order == 2 and x.dtype.is_float:
        squares = b.map(lambda v: v * v, b.cast(x, x.dtype.computed))
        return b.map(lambda v: v.sqrt(), sum_(b, squares, axes))
    size = _magnitudes(b, x)
    wide = size.dtype
    if order == math.inf:
        return fold(b, size, axes, 0.0, wide, Scalar.maximum)
    if order == -math.inf:
        return min_(b, size, axes)
    if order == 0:
        return sum_(b, b.map(lambda v: (v != 0).to(wide), size), axes)
    if order == 1:
        return sum_(b, size, axes)
    if order == 2:
        return b.map(lambda v: v.sqrt(), sum_(b, b.map(lambda v: v * v, size), axes))
    total = sum_(b, b.map(lambda v: v.pow(order), size), axes)
    return b.map(lambda v: v.pow(1 / order), total)


def distances(b: Builder, x: Tensor, y: Tensor, order: float) -> Tensor:
    """out[..., i, j] = norm(x[..., i, :] - y[..., j, :]) of order `order`; batch dims broadcast."""
    batch = b.broadcast_shape(x.shape[:-2], y.shape[:-2])
    lead, wide = len(batch), x.dtype.computed
    shape = [*batch, x.shape[-2], y.shape[-2]]
    loops = lead + 3
    maps = [
        projection(loops, (*_stretched(t, batch), row, lead + 2))
        for t, row in ((x, lead), (y, lead + 1))
    ]
    maps.append(projection(loops, tuple(range(lead + 2))))
    step, finish = _norm_steps(order)
    start = math.inf if order == -math.inf else 0

    def body(s: Body, u: Scalar, v: Scalar, acc: Scalar) -> Scalar:
        apart = u.to(wide) - v.to(wide)
        return step(acc, apart if order == 2 else apart.abs())

    reduced = [i == lead + 2 for i in range(loops)]
    (total,) = b.structured([x, y], [b.full(start, wide, shape)], maps, reduced, body)
    return total if finish is None else b.map(finish, total)


def _stretched(t: Tensor, batch: Sequence[Size]) -> list[int | None]:
    """The loops of an operand's batch dims; None for a dim of size 1 that broadcasts."""
    skipped = len(batch) - (t.rank - 2)
    return [
        None if isinstance(n, int) and n == 1 and batch[i + skipped] != 1 else i + skipped
        for i, n in enumerate(t.shape[:-2])
    ]


def _norm_steps(order: float) -> tuple[Any, Any]:
    """The accumulation step of a norm and its final function (None if there is none)."""
    if order == math.inf:
        return Scalar.maximum, None
    if order == -math.inf:
        return Scalar.minimum, None
    if order == 0:
        return (lambda acc, d: acc + (d != 0).to(d.dtype)), None
    if order == 1:
        return (lambda acc, d: acc + d), None
    if order == 2:
        return (lambda acc, d: acc + d * d), lambda v: v.sqrt()
    return (lambda acc, d: acc + d.pow(order)), lambda v: v.pow(1 / order)


def softmax(b: Builder, x: Tensor, axis: int) -> Tensor:
    """exp(x - max(x)) / sum(exp(x - max(x))) along an axis; f16 and bf16 give f32."""
    x = b.cast(x, x.dtype.computed)
    op = SoftmaxOp(x.value, b.empty(x.dtype, x.shape).value, axis)
    b.insert(op)
    return Tensor(op.res[0], x.dtype, x.shape)


def log_softmax(b: Builder, x: Tensor, axis: int) -> Tensor:
    """x - max(x) - log(sum(exp(x - max(x)))) along an axis; f16 and bf16 give f32."""
    wide = x.dtype.computed
    x = b.cast(x, wide)
    top = keep_dims(b, x, max_(b, x, [axis]), [axis])
    shifted = b.map(lambda v, m: v - m, x, top)
    total = sum_(b, b.map(lambda v: v.exp(), shifted), [axis])
    logs = keep_dims(b, x, b.map(lambda v: v.log(), total), [axis])
    return b.map(lambda v, t: v - t, shifted, logs)


__all__ = [
    "F64", "all_", "any_", "arg_best", "count", "fold", "keep_dims", "log_softmax", "logsumexp",
    "max_", "mean", "min_", "norm", "prod", "softmax", "sum_", "var_mean",
]  # fmt: skip
