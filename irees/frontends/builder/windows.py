"""Convolutions and poolings of any rank over the trailing dims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from xdsl.ir.affine import AffineExpr, AffineMap

from irees.targets.common import COMMON

from .core import Builder, Size, Tensor, projection, same
from .dtypes import BOOL, I64, INDEX, DType
from .scalars import Body, Scalar
from .shapes import (
    broadcast_to,
    flip,
    pad,
    reshape,
    slice_axis,
    stack,
    transpose,
    unsqueeze,
    update_slice,
)

WINOGRAD_TAPS = [3, 3]
"""Such a convolution has a form with fewer products (`irees-convert-conv2d-to-winograd`)."""


@dataclass(frozen=True)
class Windows:
    """
    Window geometry per spatial dim: kernel size, stride, dilation, and padding before (`low`) and
    after (`high`). Only `convolution` with given result dims takes kernels of dynamic size.
    """

    kernel: tuple[Size, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    whole: bool = False
    """Whether a convolution of a transposed convolution's result by these windows reads all of it:
    the result has (size of x - 1) * stride + extent - low - high elements."""
    beyond: bool = False
    """Whether the last window of a pooling may end beyond the padding (`ceil_mode`)."""
    finish: Callable[[Tensor], Tensor] = lambda y: y
    """An elementwise function of what `transposed_convolution` returns, such as its bias."""

    @property
    def rank(self) -> int:
        """The number of spatial dims."""
        return len(self.kernel)

    def extent(self, i: int) -> int:
        """The number of elements that a window spans, including dilation."""
        kernel = self.kernel[i]
        assert isinstance(kernel, int)
        return self.dilation[i] * (kernel - 1) + 1

    def outputs(self, b: Builder, sizes: Sequence[Size]) -> list[Size]:
        """The number of windows along each spatial dim."""
        found: list[Size] = []
        for i, size in enumerate(sizes):
            free = b.add(size, self.low[i] + self.high[i] - self.extent(i))
            found.append(b.add(b.floordiv(free, self.stride[i]), 1))
        return found


def _window_exprs(
    windows: Windows, loops: int, outs: Sequence[int], inner: Sequence[int]
) -> list[AffineExpr]:
    d = [AffineExpr.dimension(i) for i in range(loops)]
    return [
        d[o] * windows.stride[i] + d[k] * windows.dilation[i]
        for i, (o, k) in enumerate(zip(outs, inner))
    ]


def _map(loops: int, results: Sequence[Any]) -> AffineMap:
    exprs = [AffineExpr.dimension(r) if isinstance(r, int) else r for r in results]
    return AffineMap(loops, 0, tuple(exprs))


def convolution(
    b: Builder,
    x: Tensor,
    weight: Tensor,
    windows: Windows,
    groups: Size = 1,
    out: Sequence[Size] | None = None,
) -> Tensor:
    """
    out[n, f, o...] = sum over c, k... of x[n, c, o * stride + k * dilation...] * w[f, c, k...]

    The channels of x are dim 1; `groups` splits the channels of both operands. `out` are the
    spatial dims of the result, if known. f16 and bf16 accumulate in f32.
    """
    wide = x.dtype.computed
    n = windows.rank
    outs = list(out or windows.outputs(b, x.shape[2:]))
    channels, features = x.shape[1], weight.shape[0]
    depthwise = same(groups, channels) and same(features, channels)
    if not same(groups, 1) and not depthwise:
        # Before padding: the kernel of a group pads its image.
        x = reshape(b, x, [x.shape[0], groups, weight.shape[1], *x.shape[2:]])
    none = [0] * (x.rank - n)
    x = pad(b, x, [*none, *windows.low], [*none, *windows.high])
    if same(groups, 1):
        return _convolve(b, x, weight, windows, wide, outs)
    if depthwise:
        return _depthwise(b, x, weight, windows, wide, outs)
    each = b.floordiv(features, groups)
    weight = reshape(b, weight, [groups, each, *weight.shape[1:]])
    # n, g, f, o..., c, k...
    loops = 4 + 2 * n
    spatial, inner = list(range(3, 3 + n)), list(range(4 + n, 4 + 2 * n))
    maps = [
        _map(loops, [0, 1, 3 + n, *_window_exprs(windows, loops, spatial, inner)]),
        _map(loops, [1, 2, 3 + n, *inner]),
        _map(loops, [0, 1, 2, *spatial]),
    ]
    init = b.full(0, wide, [x.shape[0], groups, each, *outs])
    reduced = [i >= 3 + n for i in range(loops)]
    result = _sum_of_products(b, x, weight, init, maps, reduced)
    return reshape(b, result, [x.shape[0], features, *outs])


def _sum_of_products(
    b: Builder, x: Tensor, weight: Tensor, init: Tensor, maps: Any, reduced: Any
) -> Tensor:
    """init + sum over the reduced loops of x * weight, in the type of `init`"""
    wide = init.dtype
    return b.structured(
        [x, weight], [init], maps, reduced, lambda s, u, v, acc: acc + u.to(wide) * v.to(wide)
    )[0]


def _convolve(
    b: Builder, x: Tensor, weight: Tensor, windows: Windows, wide: DType, outs: list[Size]
) -> Tensor:
    n = windows.rank
    loops = 3 + 2 * n  # n, f, o..., c, k...
    spatial, inner = list(range(2, 2 + n)), list(range(3 + n, 3 + 2 * n))
    maps = [
        _map(loops, [0, 2 + n, *_window_exprs(windows, loops, spatial, inner)]),
        _map(loops, [1, 2 + n, *inner]),
        _map(loops, [0, 1, *spatial]),
    ]
    init = b.full(0, wide, [x.shape[0], weight.shape[0], *outs])
    reduced = [i >= 2 + n for i in range(loops)]
    return _sum_of_products(b, x, weight, init, maps, reduced)


def _depthwise(
    b: Builder, x: Tensor, weight: Tensor, windows: Windows, wide: DType, outs: list[Size]
) -> Tensor:
    n = windows.rank
    weight = reshape(b, weight, [weight.shape[0], *weight.shape[2:]])
    loops = 2 + 2 * n  # n, c, o..., k...
    spatial, inner = list(range(2, 2 + n)), list(range(2 + n, 2 + 2 * n))
    maps = [
        _map(loops, [0, 1, *_window_exprs(windows, loops, spatial, inner)]),
        _map(loops, [1, *inner]),
        _map(loops, [0, 1, *spatial]),
    ]
    init = b.full(0, wide, [x.shape[0], x.shape[1], *outs])
    return _sum_of_products(b, x, weight, init, maps, [i >= 2 + n for i in range(loops)])


def transposed_convolution(
    b: Builder, x: Tensor, weight: Tensor, windows: Windows, groups: Size, out: Sequence[Size]
) -> Tensor:
    """
    The adjoint of `convolution` with respect to x: out[n, f, i * stride + k * dilation - low...]
    sums x[n, c, i...] * w[c, f, k...].

    `out` are the spatial dims of the result; `high` is used if the windows are `whole`. Without
    dilation it is computed by phases, else as a convolution of the flipped weight with x, after
    inserting stride - 1 zeros between the elements of x. The loops of the convolutions apply
    `windows.finish` before phases are interleaved.
    """
    n = windows.rank
    if all(d == 1 for d in windows.dilation) and any(s > 1 for s in windows.stride):
        if _are_apart(weight, windows):
            return _by_phase(b, x, weight, windows, groups, out)
        return windows.finish(_by_phases(b, x, weight, windows, groups, out))
    spread = _spread(b, x, windows, out)
    weight = _adjoint(b, flip(b, weight, list(range(2, 2 + n))), groups)
    none = (0,) * n
    dense = Windows(windows.kernel, (1,) * n, windows.dilation, none, none)
    return windows.finish(convolution(b, spread, weight, dense, groups, out))


def _adjoint(b: Builder, weight: Tensor, groups: Size) -> Tensor:
    """w[g * c, f, k...] as the weight [g * f, c, k...] of a convolution."""
    features, each = weight.shape[1], b.floordiv(weight.shape[0], groups)
    weight = reshape(b, weight, [groups, each, features, *weight.shape[2:]])
    weight = transpose(b, weight, [0, 2, 1, *range(3, weight.rank)])
    return reshape(b, weight, [b.mul(groups, features), each, *weight.shape[3:]])


@dataclass(frozen=True)
class _Phase:
    """
    The outputs i * stride + o of one dim, for an o: they sum w[j * stride + number] * x[i + place -
    j] over `taps` taps j.
    """

    number: int
    taps: int
    place: int

    @property
    def begin(self) -> int:
        """The first element of x that the first output reads."""
        return self.place - self.taps + 1


def _phases_of(windows: Windows, axis: int) -> list[_Phase]:
    """The phases of one dim, in the order of the outputs."""
    kernel, stride, low = windows.kernel[axis], windows.stride[axis], windows.low[axis]
    assert isinstance(kernel, int)
    numbers = [(o + low) % stride for o in range(stride)]
    return [
        _Phase(number, max(0, -((number - kernel) // stride)), (o + low) // stride)
        for o, number in enumerate(numbers)
    ]


def _most_taps(windows: Windows) -> list[int]:
    """The most taps that a phase has, along each dim."""
    return [-(-kernel // stride) for kernel, stride in zip(windows.kernel, windows.stride)]


def _are_apart(weight: Tensor, windows: Windows) -> bool:
    """
    Whether each phase is a convolution of its own: if they read different windows of x, and their
    features fill vectors.
    """
    width = weight.shape[1]
    if isinstance(width, int) and width < COMMON.phase_features:
        return False
    read = [{(p.taps, p.place) for p in _phases_of(windows, i)} for i in range(windows.rank)]
    return _most_taps(windows) != WINOGRAD_TAPS and any(len(each) > 1 for each in read)


def _by_phase(
    b: Builder, x: Tensor, weight: Tensor, windows: Windows, groups: Size, out: Sequence[Size]
) -> Tensor:
    """
    A transposed convolution without inserted zeros. The outputs i * stride + o for each o read only
    every stride-th tap of w: they are a convolution of x with these taps.

        out[n, f, i * stride + o]
            = sum over c, j of x[n, c, i + place - j] * w[c, f, j * stride + p]
        where p = (o + low) mod stride, place = (o + low) div stride
    """
    n = windows.rank
    phases = [_phases_of(windows, i) for i in range(n)]
    counts = [_count(b, x.shape[i + 2], windows, i, out[i]) for i in range(n)]
    begins = [min(phase.begin for phase in each) for each in phases]
    ends = [max(phase.place for phase in each) for each in phases]
    sizes = [b.add(c, e - s) for c, s, e in zip(counts, begins, ends)]
    x = _between(b, x, dict(enumerate(zip(begins, sizes), start=2)))
    parts: list[Tensor] = []
    for chosen in product(*phases):
        read, taps = x, weight
        for i, phase in enumerate(chosen):
            size = b.add(counts[i], phase.taps - 1)
            read = slice_axis(b, read, 2 + i, phase.begin - begins[i], size)
            taps = slice_axis(b, taps, 2 + i, phase.number, phase.taps, windows.stride[i])
        if all(phase.taps for phase in chosen):
            y = _dense(b, read, flip(b, taps, list(range(2, 2 + n))), groups, counts)
        else:
            features = b.mul(groups, weight.shape[1])
            y = b.full(0, x.dtype.computed, [x.shape[0], features, *counts])
        parts.append(windows.finish(y))
    y = stack(b, parts, 0)
    y = reshape(b, y, [*windows.stride, *parts[0].shape])
    y = transpose(b, y, [n, n + 1, *(d for i in range(n) for d in (n + 2 + i, i))])
    return _joined(b, y, counts, windows, [0] * n, out)


def _count(b: Builder, size: Size, windows: Windows, axis: int, out: Size) -> Size:
    """The number of outputs of a phase along a dim: those of the result, rounded up."""
    stride = windows.stride[axis]
    if windows.whole:
        # Relative to the size of x, so that it is known where the image ends.
        more = windows.extent(axis) - stride - windows.low[axis] - windows.high[axis]
        return b.add(size, -(-more // stride))
    return b.floordiv(b.add(out, stride - 1), stride)


def _dense(b: Builder, x: Tensor, weight: Tensor, groups: Size, counts: Sequence[Size]) -> Tensor:
    """The convolution of x with a weight [g * c, f, k...], without stride and padding."""
    kernel = weight.shape[2:]
    none, ones = (0,) * len(kernel), (1,) * len(kernel)
    dense = Windows(kernel, ones, ones, none, none)
    return convolution(b, x, _adjoint(b, weight, groups), dense, groups, counts)


def _by_phases(
    b: Builder, x: Tensor, weight: Tensor, windows: Windows, groups: Size, out: Sequence[Size]
) -> Tensor:
    """
    A transposed convolution whose phases are the features of one convolution: all read the same
    windows of x, those that the outputs at i * stride to (i + 1) * stride - 1 read before `low`
    elements are dropped. Phases with fewer taps have zeros for the others.

        out[n, f, i * stride + phase - low]
            = sum over c, j of x[n, c, i - j] * w[c, f, j * stride + phase]
    """
    n, taps = windows.rank, _most_taps(windows)
    first = [low // stride for low, stride in zip(windows.low, windows.stride)]
    counts = [b.sub(_places(b, x.shape[i + 2], windows, i, out[i]), first[i]) for i in range(n)]
    begins = [f - (t - 1) for f, t in zip(first, taps)]
    sizes = [b.add(c, t - 1) for c, t in zip(counts, taps)]
    x = _between(b, x, dict(enumerate(zip(begins, sizes), start=2)))
    y = _dense(b, x, _phases_as_features(b, weight, windows), groups, counts)
    y = reshape(b, y, [y.shape[0], b.mul(groups, weight.shape[1]), *windows.stride, *counts])
    return _interleaved(b, y, counts, windows, out)


def _places(b: Builder, size: Size, windows: Windows, axis: int, out: Size) -> Size:
    """The number of i in i * stride + phase - low for which a phase is in the result."""
    stride = windows.stride[axis]
    if windows.whole:
        # Relative to the size of x, so that it is known where the image ends.
        beyond = (windows.extent(axis) - 1 - windows.high[axis]) // stride
        return b.add(size, beyond)
    return b.add(b.floordiv(b.add(out, windows.low[axis] - 1), stride), 1)


def _joined(
    b: Builder, y: Tensor, counts: Sequence[Size], windows: Windows, starts: Sequence[int],
    out: Sequence[Size],
) -> Tensor:  # fmt: skip
    """y[n, f, (i, phase)...] as out[n, f, i * stride + phase - start...]"""
    y = reshape(b, y, [*y.shape[:2], *(b.mul(c, s) for c, s in zip(counts, windows.stride))])
    for i, start in enumerate(starts):
        y = slice_axis(b, y, i + 2, start, out[i])
    return y


def _interleaved(
    b: Builder, y: Tensor, counts: Sequence[Size], windows: Windows, out: Sequence[Size]
) -> Tensor:
    """y[n, f, phase..., i...] as out[n, f, i * stride + phase - low...]"""
    n = windows.rank
    y = transpose(b, y, [0, 1, *(d for i in range(n) for d in (2 + n + i, 2 + i))])
    starts = [low % stride for low, stride in zip(windows.low, windows.stride)]
    return _joined(b, y, counts, windows, starts, out)


def _phases_as_features(b: Builder, weight: Tensor, windows: Windows) -> Tensor:
    """w[c, f, j * stride + phase...] as w'[c, f * phase..., taps - 1 - j...], zero outside of w."""
    n, stride = windows.rank, windows.stride
    taps = _most_taps(windows)
    missing = [t * s - k for t, s, k in zip(taps, stride, windows.kernel)]
    weight = pad(b, weight, [0] * (2 + n), [0, 0, *missing])
    split = [size for pair in zip(taps, stride) for size in pair]
    weight = reshape(b, weight, [*weight.shape[:2], *split])
    weight = flip(b, weight, [2 + 2 * i for i in range(n)])
    phases, steps = [3 + 2 * i for i in range(n)], [2 + 2 * i for i in range(n)]
    weight = transpose(b, weight, [0, 1, *phases, *steps])
    return reshape(b, weight, [weight.shape[0], b.mul(weight.shape[1], prod(stride)), *taps])


def _between(b: Builder, x: Tensor, spans: Mapping[int, tuple[int, Size]]) -> Tensor:
    """x[begin:begin + size] along each axis of `spans`, zero where x has no elements."""
    before, after = list[Size]([0] * x.rank), list[Size]([0] * x.rank)
    for axis, (begin, size) in spans.items():
        if begin > 0:
            dropped = b.minimum(x.shape[axis], begin)
            x = slice_axis(b, x, axis, dropped, b.sub(x.shape[axis], dropped))
        low = max(0, -begin)
        kept = b.minimum(x.shape[axis], b.maximum(b.sub(size, low), 0))
        x = slice_axis(b, x, axis, 0, kept)
        before[axis], after[axis] = low, b.sub(b.sub(size, low), kept)
    return pad(b, x, before, after)


def _spread(b: Builder, x: Tensor, windows: Windows, out: Sequence[Size]) -> Tensor:
    """Zeros with x[..., i, ...] at (extent - 1 - low) + i * stride, cropped to out + extent - 1."""
    for i in range(windows.rank):
        axis, before = i + 2, windows.extent(i) - 1 - windows.low[i]
        stride, size = windows.stride[i], x.shape[i + 2]
        needed = b.add(out[i], windows.extent(i) - 1)
        if before < 0:
            # The first ceil(-before / stride) elements contribute only to cropped outputs.
            dropped = -(before // stride)
            x = slice_axis(b, x, axis, dropped, b.sub(size, dropped))
            before, size = before + dropped * stride, x.shape[axis]
        # Keeps only the elements that the convolution reads.
        most = b.add(b.floordiv(b.sub(b.sub(needed, before), 1), stride), 1)
        kept = b.minimum(size, most)
        x = slice_axis(b, x, axis, 0, kept)
        shape = [needed if d == axis else s for d, s in enumerate(x.shape)]
        offsets = [before if d == axis else 0 for d in range(x.rank)]
        strides = [stride if d == axis else 1 for d in range(x.rank)]
        x = update_slice(b, b.full(0, x.dtype, shape), x, offsets, strides)
    return x


# --- pooling ---


def _pool_maps(x: Tensor, windows: Windows, results: int) -> tuple[list[AffineMap], list[bool]]:
    """The maps of the input, of the window shape, and of the results; loops are ..., o..., k..."""
    n, lead = windows.rank, x.rank - windows.rank
    loops = lead + 2 * n
    spatial, inner = list(range(lead, lead + n)), list(range(lead + n, loops))
    maps = [
        _map(loops, [*range(lead), *_window_exprs(windows, loops, spatial, inner)]),
        _map(loops, inner),
        *[_map(loops, [*range(lead), *spatial])] * results,
    ]
    return maps, [i >= lead + n for i in range(loops)]


def _padded(b: Builder, x: Tensor, windows: Windows, out: Sequence[Size], value: float) -> Tensor:
    """Pads x so that all windows fit: `high` at the end, more if windows end `beyond` it."""
    lead = x.rank - windows.rank
    if not windows.beyond:
        none = [0] * lead
        return pad(b, x, [*none, *windows.low], [*none, *windows.high], value)
    high: list[Size] = []
    for i, size in enumerate(x.shape[lead:]):
        reach = b.add(b.mul(b.sub(out[i], 1), windows.stride[i]), windows.extent(i))
        missing = b.sub(reach, b.add(size, windows.low[i]))
        high.append(b.maximum(missing, windows.high[i]))
    return pad(b, x, [0] * lead + list(windows.low), [0] * lead + high, value)


@dataclass(frozen=True)
class Reducer:
    """How `pool` combines the elements of a window: its neutral element, op and type."""

    start: float
    combine: Callable[[Scalar, Scalar], Scalar]
    dtype: DType


def pool(b: Builder, x: Tensor, windows: Windows, out: Sequence[Size], reducer: Reducer) -> Tensor:
    """acc = combine(acc, x) over each window of the trailing dims; `start` also pads x."""
    lead, wide = x.rank - windows.rank, reducer.dtype
    padded = _padded(b, x, windows, out, reducer.start)
    shape = b.empty(x.dtype, windows.kernel)
    init = b.full(reducer.start, wide, [*x.shape[:lead], *out])
    maps, reduced = _pool_maps(x, windows, 1)
    return b.structured(
        [padded, shape],
        [init],
        maps,
        reduced,
        lambda s, v, _, acc: reducer.combine(acc, v.to(wide)),
    )[0]


def max_pool(b: Builder, x: Tensor, windows: Windows, out: Sequence[Size]) -> Tensor:
    """
    The largest element of each window; NaN if the window contains one.

    Of padded windows without dilation, one dim after another is pooled. Only the last one is
    padded: in the others, the element at the border is read again, which changes no maximum.
    """
    lead, n = x.rank - windows.rank, windows.rank
    if n > 1 and any(windows.low + windows.high) and all(d == 1 for d in windows.dilation):
        for i in range(n - 1):
            x = _largest_along(b, x, lead + i, windows, i, out[i])
        parts = (windows.kernel, windows.stride, windows.dilation, windows.low, windows.high)
        windows = Windows(*(part[-1:] for part in parts), beyond=windows.beyond)
        out = out[-1:]
    return pool(b, x, windows, out, Reducer(x.dtype.lowest, Scalar.maximum, x.dtype))


def _largest_along(
    b: Builder, x: Tensor, axis: int, windows: Windows, number: int, count: Size
) -> Tensor:
    """The largest elements of the windows of one dim, cut off at the borders of x."""
    stride, low, size = windows.stride[number], windows.low[number], x.shape[axis]

    def body(s: Body, _: Scalar, acc: Scalar) -> Scalar:
        place = s.index(axis) * stride + s.index(x.rank) - low
        place = place.clamp(0, s.as_index(size) - 1)
        return acc.maximum(
            s.extract(x, [place if d == axis else s.index(d) for d in range(x.rank)])
        )

    return _reduced_windows(b, x, axis, (count, windows.kernel[number]), x.dtype.lowest, body)


def _reduced_windows(
    b: Builder, x: Tensor, axis: int, sizes: tuple[Size, Size], start: float, body: Any
) -> Tensor:
    """
    x with one dim replaced by windows, reduced by `body` over the last loop. `sizes` are the number
    of windows and the elements of one.
    """
    count, kernel = sizes
    loops = x.rank + 1
    maps = [projection(loops, (x.rank,)), projection(loops, tuple(range(x.rank)))]
    init = b.full(start, x.dtype, [count if d == axis else n for d, n in enumerate(x.shape)])
    reduced = [i == x.rank for i in range(loops)]
    return b.structured([b.empty(x.dtype, [kernel])], [init], maps, reduced, body)[0]


def max_pool_with_indices(
    b: Builder, x: Tensor, windows: Windows, out: Sequence[Size]
) -> tuple[Tensor, Tensor]:
    """
    The largest element of each window and its row-major index in the spatial dims of x (i64): the
    first among equal elements, the last among NaNs.
    """
    n, lead = windows.rank, x.rank - windows.rank
    padded = _padded(b, x, windows, out, x.dtype.lowest)
    shape = b.empty(x.dtype, windows.kernel)
    maps, reduced = _pool_maps(x, windows, 2)
    dims = [*x.shape[:lead], *out]
    inits = [b.full(x.dtype.lowest, x.dtype, dims), b.full(-1, I64, dims)]

    def body(s: Body, v: Scalar, _: Scalar, best: Scalar, where: Scalar) -> tuple[Scalar, Scalar]:
        place, inside = s.number(0, INDEX), None
        for i in range(n):
            at = s.index(lead + i) * windows.stride[i] + s.index(lead + n + i) * windows.dilation[i]
            at = at - windows.low[i]
            size = s.as_index(x.shape[lead + i])
            fits = (at >= 0) & (at < size)
            inside = fits if inside is None else inside & fits
            place = place * size + at
        better = (v > best) | (where < 0)
        if v.dtype.is_float:
            better = better | v.isnan()
        assert inside is not None
        taken = inside & better
        return taken.where(v, best), taken.where(place.to(I64), where)

    values, indices = b.structured([padded, shape], inits, maps, reduced, body)
    return values, indices


def average_pool(
    b: Builder,
    x: Tensor,
    windows: Windows,
    out: Sequence[Size],
    include_padding: bool,
    divisor: int | None = None,
) -> Tensor:
    """
    The sum of each window divided by its element count, or by `divisor`. The count includes padding
    (`low` and `high`, but nothing beyond them) if `include_padding`.
    """
    total = pool(b, x, windows, out, Reducer(0, lambda acc, v: acc + v, x.dtype.computed))
    sizes = x.shape[x.rank - windows.rank :]
    return by_window_size(b, total, sizes, windows, include_padding, divisor)


def by_window_size(
    b: Builder,
    total: Tensor,
    sizes: Sequence[Size],
    windows: Windows,
    include_padding: bool,
    divisor: int | None = None,
) -> Tensor:
    """Divides each window's total by its element count, or by `divisor`."""
    wide = total.dtype
    n, lead = windows.rank, total.rank - windows.rank

    def divide(s: Body, v: Scalar, *_: Scalar) -> Scalar:
        if divisor is not None:
            return v.truncdiv(divisor) if wide.is_integer else v / divisor
        count = s.number(1, INDEX)
        for i in range(n):
            begin = s.index(lead + i) * windows.stride[i] - windows.low[i]
            size = s.as_index(sizes[i])
            end = (begin + windows.kernel[i]).minimum(size + windows.high[i])
            if not include_padding:
                end, begin = end.minimum(size), begin.maximum(0)
            count = count * (end - begin)
        amount = count.to(wide)
        return v.truncdiv(amount) if wide.is_integer else v / amount

    identity = projection(total.rank, tuple(range(total.rank)))
    init = b.empty(wide, total.shape)
    return b.structured([total], [init], [identity] * 2, [False] * total.rank, divide)[0]


def fold(
    b: Builder, x: Tensor, windows: Windows, sizes: Sequence[Size], wide: DType | None = None
) -> Tensor:
    """
    The adjoint of `unfold`: out[n, c, i...] is the sum of x[n, c, k..., o...] over all k and o with
    o * stride + k * dilation - low = i. A kernel dim of x may have size 1 and is then broadcast.

    The elements at i * stride + phase - low read the taps k = t * stride + phase of the windows
    i - t only, which needs no division and no mask:

        out[n, c, i * stride + phase - low] = sum over t of x[n, c, t * stride + phase, i - t]
    """
    x, windows = _with_dense_taps(b, x, windows)
    broadcast = [x.shape[2 + i] == 1 for i in range(windows.rank)]
    counts, spans = _windows_of_phases(b, x, windows, sizes)
    x, split = _between(b, x, spans), list[Size]()
    for lone, *pair in zip(broadcast, _most_taps(windows), windows.stride):
        split += [1, 1] if lone else pair
    x = reshape(b, x, [*x.shape[:2], *split, *x.shape[2 + windows.rank :]])
    result = _sum_of_taps(b, x, windows, broadcast, (counts, wide or x.dtype.computed))
    return _interleaved(b, result, counts, windows, sizes)


def _sum_of_taps(
    b: Builder, x: Tensor, windows: Windows, broadcast: Sequence[bool],
    result: tuple[Sequence[Size], DType],
) -> Tensor:  # fmt: skip
    """
    out[n, c, phase..., i...] = sum over t of x[n, c, (t, phase)..., i - t...], in the type of
    `result`, which also has the number of i. Where taps are `broadcast`, t and phase are 0 for x.
    """
    n, taps, (counts, wide) = windows.rank, _most_taps(windows), result
    loops = 2 + 3 * n
    phases, places, steps = (list(range(2 + k * n, 2 + k * n + n)) for k in range(3))
    d = [AffineExpr.dimension(i) for i in range(loops)]
    zero, at = AffineExpr.constant(0), list[AffineExpr]()
    for lone, *pair in zip(broadcast, steps, phases):
        at += [zero, zero] if lone else [d[loop] for loop in pair]
    for i, step in enumerate(windows.dilation):
        at.append(d[places[i]] + d[steps[i]] * -step + (taps[i] - 1) * step)
    maps = [
        _map(loops, [0, 1, *at]),
        projection(loops, tuple(steps)),
        projection(loops, tuple(range(2 + 2 * n))),
    ]
    cut = [i for i in range(n) if broadcast[i] and windows.kernel[i] % windows.stride[i]]

    def body(s: Body, value: Scalar, _: Scalar, acc: Scalar) -> Scalar:
        value = value.to(wide)
        for i in cut:
            tap = s.index(steps[i]) * windows.stride[i] + s.index(phases[i])
            value = (tap < windows.kernel[i]).where(value, 0)
        return acc + value

    shape = b.empty(x.dtype, taps)
    init = b.full(0, wide, [*x.shape[:2], *windows.stride, *counts])
    reduced = [i >= 2 + 2 * n for i in range(loops)]
    return b.structured([x, shape], [init], maps, reduced, body)[0]


def _windows_of_phases(
    b: Builder, x: Tensor, windows: Windows, sizes: Sequence[Size]
) -> tuple[list[Size], dict[int, tuple[int, Size]]]:
    """
    Returns the number of elements of each phase, and the begin and size along the axes of the
    columns x[n, c, k..., o...] of what they read.
    """
    counts, spans = list[Size](), dict[int, tuple[int, Size]]()
    for i, (taps, stride) in enumerate(zip(_most_taps(windows), windows.stride)):
        axis, first = 2 + windows.rank + i, windows.low[i] // stride
        reach = (taps - 1) * windows.dilation[i]
        counts.append(b.sub(_places(b, x.shape[axis], windows, i, sizes[i]), first))
        spans[axis] = (first - reach, b.add(counts[i], reach))
        if x.shape[2 + i] != 1:
            # The phases of a kernel that is no multiple of the stride lack a tap.
            spans[2 + i] = (0, taps * stride)
    return counts, spans


def _with_dense_taps(b: Builder, x: Tensor, windows: Windows) -> tuple[Tensor, Windows]:
    """
    Makes x[n, c, k..., o...] columns of windows with a stride or a dilation of 1 along each dim:
    where both are larger, taps of zeros take the place of what a dilation leaves out.
    """
    kernel, dilation = list(windows.kernel), list(windows.dilation)
    for i, (stride, step) in enumerate(zip(windows.stride, windows.dilation)):
        if min(stride, step) == 1:
            continue
        axis, count = 2 + i, windows.kernel[i]
        assert isinstance(count, int)
        kernel[i], dilation[i] = windows.extent(i), 1
        if x.shape[axis] == 1:
            x = broadcast_to(b, x, [*x.shape[:axis], count, *x.shape[axis + 1 :]])
        x = reshape(b, x, [*x.shape[:axis], count, 1, *x.shape[axis + 1 :]])
        x = pad(b, x, [0] * x.rank, [step - 1 if d == axis + 1 else 0 for d in range(x.rank)])
        x = reshape(b, x, [*x.shape[:axis], count * step, *x.shape[axis + 2 :]])
        x = slice_axis(b, x, axis, 0, kernel[i])
    return x, replace(windows, kernel=tuple(kernel), dilation=tuple(dilation))


def weight_gradient(
    b: Builder, x: Tensor, grad: Tensor, windows: Windows, groups: Size, wide: DType | None = None
) -> Tensor:
    """
    The adjoint of `convolution` with respect to the weight: out[f, c, k...] sums x[n, c, o * stride
    + k * dilation...] * grad[n, f, o...].
    """
    n, wide = windows.rank, wide or x.dtype.computed
    x = pad(b, x, [0, 0, *windows.low], [0, 0, *windows.high])
    features, channels = grad.shape[1], b.floordiv(x.shape[1], groups)
    each = b.floordiv(features, groups)
    x = reshape(b, x, [x.shape[0], groups, channels, *x.shape[2:]])
    grad = reshape(b, grad, [grad.shape[0], groups, each, *grad.shape[2:]])
    # g, f, c, k..., n, o...
    loops = 4 + 2 * n
    inner, spatial = list(range(3, 3 + n)), list(range(4 + n, 4 + 2 * n))
    maps = [
        _map(loops, [3 + n, 0, 2, *_window_exprs(windows, loops, spatial, inner)]),
        _map(loops, [3 + n, 0, 1, *spatial]),
        _map(loops, [0, 1, 2, *inner]),
    ]
    init = b.full(0, wide, [groups, each, channels, *windows.kernel])
    reduced = [i >= 3 + n for i in range(loops)]
    result = _sum_of_products(b, x, grad, init, maps, reduced)
    return reshape(b, result, [features, channels, *windows.kernel])


def unfold(b: Builder, x: Tensor, windows: Windows, out: Sequence[Size]) -> Tensor:
    """out[n, c, k..., o...] = x[n, c, o * stride + k * dilation - low...], 0 outside."""
    n = windows.rank
    padded = pad(b, x, [0, 0, *windows.low], [0, 0, *windows.high])
    loops = 2 + 2 * n
    inner, spatial = list(range(2, 2 + n)), list(range(2 + n, loops))
    maps = [
        _map(loops, [0, 1, *_window_exprs(windows, loops, spatial, inner)]),
        projection(loops, tuple(range(loops))),
    ]
    init = b.empty(x.dtype, [*x.shape[:2], *windows.kernel, *out])
    return b.structured([padded], [init], maps, [False] * loops, lambda s, v, _: v)[0]


def as_channels(b: Builder, x: Tensor, spatial: int) -> tuple[Tensor, bool]:
    """Adds a leading batch dim to x if it has none; also returns whether it did."""
    if x.rank == spatial + 1:
        return unsqueeze(b, x, 0), True
    return x, False


def _reach(b: Builder, size: Size, count: Size) -> Size:
    """The most elements of an adaptive window: ceil(n / m) + 1."""
    return b.add(b.floordiv(b.add(size, b.sub(count, 1)), count), 1)


def _adaptive_window(s: Body, loop: int, size: Size, count: Size) -> tuple[Scalar, Scalar]:
    """Window i of m over n elements: from floor(i * n / m) to ceil((i + 1) * n / m)."""
    i, n, m = s.index(loop), s.as_index(size), s.as_index(count)
    return (i * n).truncdiv(m), ((i + 1) * n + m - 1).truncdiv(m)


def adaptive_pool(b: Builder, x: Tensor, out: Sequence[Size], largest: bool) -> Tensor:
    """
    Pools adaptive windows of the trailing dims: the largest elements, or the means in f32 or wider.
    One dim after another is pooled, the outermost first: its windows are whole rows of what is
    inside.
    """
    lead = x.rank - len(out)
    if not largest:
        x = b.cast(x, x.dtype.computed)
    sizes = x.shape[lead:]
    for i, count in enumerate(out):
        x = _adaptive_axis(b, x, lead + i, count, largest)
    if largest:
        return x

    def divide(s: Body, v: Scalar, _: Scalar) -> Scalar:
        elements = s.number(1, INDEX)
        for i, (size, count) in enumerate(zip(sizes, out)):
            begin, end = _adaptive_window(s, lead + i, size, count)
            elements = elements * (end - begin)
        return v / elements.to(v.dtype)

    identity = projection(x.rank, tuple(range(x.rank)))
    init = b.empty(x.dtype, x.shape)
    return b.structured([x], [init], [identity] * 2, [False] * x.rank, divide)[0]


def _adaptive_axis(b: Builder, x: Tensor, axis: int, count: Size, largest: bool) -> Tensor:
    """The largest elements or the sums of adaptive windows of one dim."""
    size = x.shape[axis]

    def body(s: Body, _: Scalar, acc: Scalar) -> Scalar:
        begin, end = _adaptive_window(s, axis, size, count)
        place = begin + s.index(x.rank)
        at = [place.minimum(end - 1) if d == axis else s.index(d) for d in range(x.rank)]
        value = s.extract(x, at)
        # The last element again changes no maximum.
        return acc.maximum(value) if largest else acc + (place < end).where(value, 0.0)

    start = x.dtype.lowest if largest else 0
    return _reduced_windows(b, x, axis, (count, _reach(b, size, count)), start, body)


def adaptive_max_pool_with_indices(
    b: Builder, x: Tensor, out: Sequence[Size]
) -> tuple[Tensor, Tensor]:
    """The largest elements of adaptive windows, and their indices in the spatial dims."""
    n, lead = len(out), x.rank - len(out)
    sizes = x.shape[lead:]
    loops = lead + 2 * n
    maps = [
        projection(loops, tuple(range(lead + n, loops))),
        *[projection(loops, tuple(range(lead + n)))] * 2,
    ]
    dims = [*x.shape[:lead], *out]
    inits = [b.full(x.dtype.lowest, x.dtype, dims), b.full(-1, I64, dims)]

    def body(s: Body, _: Scalar, acc: Scalar, where: Scalar) -> tuple[Scalar, Scalar]:
        at, inside, flat = [], s.number(1, BOOL), s.number(0, INDEX)
        for i, size in enumerate(sizes):
            begin, end = _adaptive_window(s, lead + i, size, out[i])
            here = begin + s.index(lead + n + i)
            # Windows are of different lengths; what is beyond the end is masked.
            inside = inside & (here < end)
            here = here.minimum(s.as_index(size) - 1)
            at.append(here)
            flat = flat * s.as_index(size) + here
        v = s.extract(x, [*(s.index(i) for i in range(lead)), *at])
        better = (v > acc) | (where < 0)
        if v.dtype.is_float:
            better = better | v.isnan()
        taken = inside & better
        return taken.where(v, acc), taken.where(flat.to(I64), where)

    shape = b.empty(x.dtype, [_reach(b, size, m) for size, m in zip(sizes, out)])
    reduced = [i >= lead + n for i in range(loops)]
    values, indices = b.structured([shape], inits, maps, reduced, body)
    return values, indices


def fractional_pool(
    b: Builder, x: Tensor, kernel: Sequence[int], out: Sequence[Size], samples: Tensor
) -> tuple[Tensor, Tensor]:
    """
    Max pooling over windows with fractional spacing; also returns the index of the maximum in the
    spatial dims. With m windows over n elements, window i begins at floor((i + u) * a) - floor(u *
    a) with a = (n - k) / (m - 1), and the last one at n - k; u is samples[n, c, :], by spatial dim.
    """
    n, lead = len(kernel), 2
    sizes, loops = x.shape[lead:], lead + 2 * n
    wide = samples.dtype
    maps = [
        projection(loops, tuple(range(lead + n, loops))),
        *[projection(loops, tuple(range(lead + n)))] * 2,
    ]
    dims = [*x.shape[:lead], *out]
    inits = [b.full(x.dtype.lowest, x.dtype, dims), b.full(-1, I64, dims)]

    def begin(s: Body, i: int) -> Scalar:
        at, count = s.index(lead + i), s.as_index(out[i])
        free = s.as_index(sizes[i]) - kernel[i]
        u = s.extract(samples, [s.index(0), s.index(1), s.number(i, INDEX)])
        step = free.to(wide) / (count - 1).maximum(1).to(wide)
        first = ((at.to(wide) + u) * step).to(INDEX) - (u * step).to(INDEX)
        return (at == count - 1).where(free, first).clamp(0, free)

    def body(s: Body, _: Scalar, best: Scalar, where: Scalar) -> tuple[Scalar, Scalar]:
        at = [begin(s, i) + s.index(lead + n + i) for i in range(n)]
        flat = s.number(0, INDEX)
        for place, size in zip(at, sizes, strict=True):
            flat = flat * s.as_index(size) + place
        v = s.extract(x, [s.index(0), s.index(1), *at])
        better = (v > best) | (where < 0)
        if v.dtype.is_float:
            better = better | v.isnan()
        return better.where(v, best), better.where(flat.to(I64), where)

    shape = b.empty(x.dtype, kernel)
    reduced = [i >= lead + n for i in range(loops)]
    values, indices = b.structured([shape], inits, maps, reduced, body)
    return values, indices
