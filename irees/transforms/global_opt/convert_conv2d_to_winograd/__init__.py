"""
Computes 3 x 3 convolutions by Winograd's algorithm, which needs a quarter of the multiplications.

F(4, 3) computes 4 outputs of a filter of size 3 from 6 inputs with 6 products instead of 12; in two
dimensions with 36 products instead of 144. F(2, 3) needs 16 instead of 36. B, G and A are the
constant matrices of the variant, d is a tile of 6 x 6 pixels (or 4 x 4), g is a filter:

    y = A^T ((G g G^T) * (B^T d B)) A

The sum over channels moves inside the output transform, so each of the 36 positions in a tile is a
matrix product. The convolution becomes a batch of 36 contractions between an input transform and an
output transform, each of which handles one axis at a time. The pass transforms the constant filter
at compile time. With F(4, 3):

    %r = linalg.generic {maps = [(c, h, w, k, y, x) -> (k, h + y, w + x),
                                 (c, h, w, k, y, x) -> (c, k, y, x),
                                 (c, h, w, k, y, x) -> (c, h, w)]} ins(%image, %filter)
  =>
    %u[j, k, H, w]    = sum of B^T[j, b] * %image[k, H, w * 4 + b]
    %v[i, j, k, h, w] = sum of B^T[i, a] * %u[j, k, h * 4 + a, w]
    %m[i, j, c, h, w] = sum of %v[i, j, k, h, w] * %g[i, j, c, k]
    %n[i, c, h, w, q] = sum of A^T[q, j] * %m[i, j, c, h, w]
    %y[c, h, p, w, q] = sum of A^T[p, i] * %n[i, c, h, w, q],  collapsed and cut to c, H, W

The pass accepts any order of dims, and blocked channels (`irees-propagate-blocked-layouts`). It
pads an image with zeros to whole tiles; if a zero pad precedes, it enlarges that pad. Every
F(4, 3) tile costs 36 products per pair of channels, even if most of its outputs are cut off, so
small images gain less. Convolutions with many channels gain less because the transformed filter is
four times as large (1.8 times for F(2, 3)). `gain` estimates the cycles of all variants.

The pass skips strides, dilations, filters that are not constant or not 3 x 3 in two dims, dynamic
shapes, elements other than f32, and outputs that do not start from zero. Rounding differs: the
error is a few times that of the direct sum (the points of `toom_cook.py` keep it low), and an
infinity in the image makes its whole tile NaN. So the pass does not run with `fp=strict`.
Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016); MLIR:
`WinogradConv2DNhwcFhwc`; IREE: `iree-linalg-ext-convert-conv2d-to-winograd`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees_target import is_strict, target_of
from irees.dialects.storage import inserted
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.global_opt.convert_conv2d_to_winograd.toom_cook import matrices
from irees.transforms.global_opt.convert_conv2d_to_winograd.winograd_form import (
    TAPS,
    Convolution,
    convolution_of,
    gain,
)
from irees.transforms.utils.constants import constant_of, derived_constant
from irees.transforms.utils.shapes import reassociation_attr
from irees.transforms.utils.structured import is_zero_fill, maps
from irees.transforms.utils.tensors import TensorBuilder, is_static

NAME = "irees-convert-conv2d-to-winograd"


SLICE = 4096
"""Filter columns (pairs of channels) to transform at a time."""


def zeros(sizes: Sequence[int], b: TensorBuilder) -> SSAValue:
    """A tensor of +0."""
    identity = AffineMap.identity(len(sizes))
    return b.compute([], [b.empty(f32, sizes)], [identity], lambda s, _: [s.number(0.0, f32)])[0]


def product(
    lhs: SSAValue, rhs: SSAValue, indexing: Sequence[Sequence[AffineExpr]], loops: int,
    sizes: Sequence[int], b: TensorBuilder,
) -> SSAValue:  # fmt: skip
    """out[map 2] = sum of lhs[map 0] * rhs[map 1]"""
    (result,) = b.compute(
        [lhs, rhs],
        [zeros(sizes, b)],
        [AffineMap(loops, 0, tuple(m)) for m in indexing],
        lambda s, v: [s.op(arith.AddfOp, v[2], s.op(arith.MulfOp, v[0], v[1]))],
    )
    return result


def matrix(kind: str, outputs: int, b: TensorBuilder) -> SSAValue:
    """B^T or A^T as a constant."""
    rows = getattr(matrices(outputs, TAPS), kind).astype(np.float32)
    key = f"winograd_{kind}_{outputs}_{TAPS}"
    return b.insert(constant_of(rows, TensorType(f32, rows.shape), key)).results[0]


def shape(value: SSAValue) -> list[int]:
    """The static shape of a tensor."""
    assert isinstance(value.type, TensorType)
    return list(value.type.get_shape())


def padded(source: SSAValue, whole: list[int], b: TensorBuilder) -> SSAValue:
    """Returns the source, zero-padded at the high ends to `whole`; merges with an existing pad."""
    if shape(source) == whole:
        return source
    offsets, origin = [0] * len(whole), source
    op = source.owner
    part = inserted(op)
    if part is not None and isinstance(op, Operation) and source.has_one_use():
        known = [n for n in part.offsets if isinstance(n, int)]
        plain = len(known) == len(part.offsets) and all(step == 1 for step in part.strides)
        around, small = part.source.owner, op.operands[0]
        same_rank = len(shape(small)) == len(whole) and is_static(small)
        if plain and same_rank and isinstance(around, linalg.GenericOp) and is_zero_fill(around):
            offsets, origin = known, small
    background = zeros(whole, b)
    return b.insert_slice(origin, background, offsets, shape(origin))


def transform_filter(conv: Convolution, b: TensorBuilder) -> SSAValue:
    """g[i, j, rest] = G W G^T"""
    constant = conv.op.operands[conv.filter].owner
    assert isinstance(constant, arith.ConstantOp)
    assert isinstance(constant.result.type, TensorType)
    exprs = maps(conv.op)[conv.filter].results
    axes = [
        next(i for i, e in enumerate(exprs) if e == AffineExpr.dimension(a.tap))
        for a in (conv.height, conv.width)
    ]
    g = matrices(conv.outputs, TAPS).filter

    def make(sources: Sequence[np.ndarray], out: np.ndarray) -> None:
        window = np.moveaxis(sources[0], axes, (0, 1))
        taps = window.reshape(TAPS, TAPS, prod(window.shape[2:]))
        array = out.reshape(len(g), len(g), taps.shape[2])
        # Slices that fit in cache: all columns in f64 would take eight times the filter's memory.
        for first in range(0, taps.shape[2], SLICE):
            here = slice(first, first + SLICE)
            half = _applied(g, taps[..., here].astype(np.float64))
            array[..., here] = _applied(g, half.swapaxes(0, 1)).swapaxes(0, 1)

    shape = constant.result.type.get_shape()
    rest = [size for axis, size in enumerate(shape) if axis not in axes]
    kind = TensorType(f32, [len(g), len(g), *rest])
    name = f"F({conv.outputs}, {TAPS}) of the filter over {axes}"
    return b.insert(derived_constant([constant], make, kind, "winograd", name)).results[0]


def _applied(g: np.ndarray, taps: np.ndarray) -> np.ndarray:
    """
    out[i, j, n] = sum of g[i, a] * taps[a, j, n]

    Without BLAS, whose threads cost more than they gain for products of three terms.
    """
    return sum(g[:, a, None, None] * taps[a] for a in range(TAPS))  # type: ignore[return-value]


def convert(conv: Convolution) -> SSAValue:
    """convolution(image, filter)  =>  A^T ((G filter G^T) * (B^T image B)) A"""
    op, b = conv.op, TensorBuilder(conv.op)
    height, width = conv.height, conv.width
    tiles = dict(zip((height.point, width.point), conv.tiles, strict=True))
    image = op.operands[conv.image]
    whole, seen = shape(image), shape(image)
    for axis in (height, width):
        # Pixels that no window reaches must not enter a tile: they would change its rounding.
        seen[axis.dim] = conv.ranges[axis.point] + TAPS - 1
        whole[axis.dim] = tiles[axis.point] * conv.outputs + TAPS - 1
    if seen != shape(image):
        image = b.extract_slice(image, [0] * len(seen), seen)
    image = padded(image, whole, b)
    v = _into_tiles(conv, image, tiles, matrix("input", conv.outputs, b), b)
    m = _products(conv, v, transform_filter(conv, b), tiles, b)
    return _out_of_tiles(conv, m, tiles, matrix("output", conv.outputs, b), b)


def _into_tiles(
    conv: Convolution, image: SSAValue, tiles: dict[int, int], bt: SSAValue, b: TensorBuilder
) -> SSAValue:
    """v[i, j, .., h, w] = sum of B^T[i, a] * B^T[j, b] * image[.., h * m + a, w * m + b]"""
    rank = len(shape(image))
    dim = AffineExpr.dimension
    # Along the width: loops j, the dims of the image, b.
    sizes = shape(image)
    sizes[conv.width.dim] = tiles[conv.width.point]
    at = [dim(1 + d) for d in range(rank)]
    source = list(at)
    source[conv.width.dim] = at[conv.width.dim] * conv.outputs + dim(rank + 1)
    u = product(
        bt, image, [[dim(0), dim(rank + 1)], source, [dim(0), *at]], rank + 2,
        [conv.window, *sizes], b,
    )  # fmt: skip
    # Along the height: loops i, j, the dims of the image, a.
    sizes[conv.height.dim] = tiles[conv.height.point]
    at = [dim(2 + d) for d in range(rank)]
    source = list(at)
    source[conv.height.dim] = at[conv.height.dim] * conv.outputs + dim(rank + 2)
    return product(
        bt, u, [[dim(0), dim(rank + 2)], [dim(1), *source], [dim(0), dim(1), *at]], rank + 3,
        [conv.window, conv.window, *sizes], b,
    )  # fmt: skip


def _products(
    conv: Convolution, v: SSAValue, g: SSAValue, tiles: dict[int, int], b: TensorBuilder
) -> SSAValue:
    """m[i, j, out] = sum of v[i, j, image] * g[i, j, filter], over the loops without taps"""
    indexing = maps(conv.op)
    taps = (conv.height.tap, conv.width.tap)
    kept = [d for d in range(len(conv.ranges)) if d not in taps]
    place: dict[int, AffineExpr] = {d: AffineExpr.dimension(2 + n) for n, d in enumerate(kept)}
    both: list[AffineExpr] = [AffineExpr.dimension(0), AffineExpr.dimension(1)]

    def renamed(number: int) -> list[AffineExpr]:
        found: list[AffineExpr] = []
        for expr in indexing[number].results:
            left = [d for d in sorted(expr.used_dims()) if d not in taps]
            found += [place[d] for d in left]
        return [*both, *found]

    sizes = [
        tiles.get(e.position, conv.ranges[e.position])
        for e in indexing[2].results
        if isinstance(e, AffineDimExpr)
    ]
    return product(
        v, g, [renamed(conv.image), renamed(conv.filter), renamed(2)], 2 + len(kept),
        [conv.window, conv.window, *sizes], b,
    )  # fmt: skip


def _out_of_tiles(
    conv: Convolution, m: SSAValue, tiles: dict[int, int], at: SSAValue, b: TensorBuilder
) -> SSAValue:
    """y[.., h, p, .., w, q, ..] = sum of A^T[p, i] * A^T[q, j] * m[i, j, ..], collapsed and cut"""
    exprs = maps(conv.op)[2].results
    loops = [e.position for e in exprs if isinstance(e, AffineDimExpr)]
    counts = [tiles.get(d, conv.ranges[d]) for d in loops]
    rank, dim = len(loops), AffineExpr.dimension

    def split(values: list, axes: Sequence[int], inner: Sequence) -> list:
        """Each axis followed by what counts the outputs of its tile."""
        found = []
        for d, value in zip(loops, values, strict=True):
            found += [value, inner[axes.index(d)]] if d in axes else [value]
        return found

    # Along the width: loops i, the dims of the output, q, j.
    w, h = conv.width.point, conv.height.point
    dims = [dim(1 + d) for d in range(rank)]
    q, j = dim(rank + 1), dim(rank + 2)
    n = product(
        at, m, [[q, j], [dim(0), j, *dims], [dim(0), *split(dims, [w], [q])]], rank + 3,
        [conv.window, *split(counts, [w], [conv.outputs])], b,
    )  # fmt: skip
    # Along the height: loops of the output, p, q, i.
    dims = [dim(d) for d in range(rank)]
    p, q, i = dim(rank), dim(rank + 1), dim(rank + 2)
    y = product(
        at, n, [[p, i], [i, *split(dims, [w], [q])], split(dims, [h, w], [p, q])], rank + 3,
        split(counts, [h, w], [conv.outputs, conv.outputs]), b,
    )  # fmt: skip
    groups, position = [], 0
    for d in loops:
        size = 2 if d in (h, w) else 1
        groups.append(list(range(position, position + size)))
        position += size
    whole = [c * conv.outputs if d in (h, w) else c for d, c in zip(loops, counts, strict=True)]
    flat = b.insert(
        tensor.CollapseShapeOp.build(
            operands=[y],
            properties={"reassociation": reassociation_attr(groups)},
            result_types=[TensorType(f32, whole)],
        )
    ).results[0]
    wanted = [conv.ranges[d] for d in loops]
    return flat if wanted == whole else b.extract_slice(flat, [0] * rank, wanted)


@dataclass(frozen=True)
class ConvertConv2dToWinogradPass(ModulePass):
    """Converts 3 x 3 convolutions to Winograd form where this takes fewer cycles."""

    name = "irees-convert-conv2d-to-winograd"

    least_gain: float = CPU.winograd_gain
    outputs: tuple[int, ...] = (4, 2)
    """The m of each F(m, 3) that may be chosen."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ctx.get_optional_op(ModuleOp.name)
        target = target_of(op)
        if target.gpu is not None or is_strict(op):
            return
        lanes = target.vector_bytes // 4
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            conv = convolution_of(inner)
            if conv is None:
                continue
            forms = [replace(conv, outputs=m) for m in self.outputs]
            found, best = max(((gain(f, lanes), f) for f in forms), key=lambda pair: pair[0])
            cycles = f"F({best.outputs}, {TAPS}) takes {1 / found:.2f} of the direct form's cycles"
            if found < self.least_gain:
                remark("missed", NAME, inner, cycles)
                continue
            if not may_rewrite(NAME, inner, "convert of linalg.generic"):
                continue
            remark("passed", NAME, inner, cycles)
            Rewriter.replace_op(inner, [], [convert(best)])
