"""
Matches convolutions that have a Winograd form, and estimates the speed-up. Part of
`irees-convert-conv2d-to-winograd`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineDimExpr

from irees.analysis.affine_steps import linear_form
from irees.analysis.contractions import is_contraction, multiply_add
from irees.targets.cpu import CPU
from irees.transforms.utils.constants import is_large_splat
from irees.transforms.utils.structured import is_zero_fill, maps, static_ranges
from irees.transforms.utils.tensors import is_static

TAPS = 3
"""Filter size along an axis: the r of F(m, r)."""


@dataclass(frozen=True)
class Axis:
    """A spatial axis: loops `point` (output pixel) + `tap` (filter) index image dim `dim`."""

    dim: int
    point: int
    tap: int


@dataclass(frozen=True)
class Convolution:
    """A convolution with a Winograd form F(`outputs`, 3)."""

    op: linalg.GenericOp
    image: int
    filter: int
    height: Axis
    width: Axis
    ranges: list[int]
    outputs: int = 4

    @property
    def window(self) -> int:
        """Input pixels of a tile along an axis."""
        return self.outputs + TAPS - 1

    @property
    def tiles(self) -> tuple[int, int]:
        """Number of tiles along the height and the width."""
        along = [-(-self.ranges[a.point] // self.outputs) for a in (self.height, self.width)]
        return along[0], along[1]


def _is_filter(owner: Operation | Block) -> bool:
    return isinstance(owner, arith.ConstantOp) and not is_large_splat(owner)


def convolution_of(op: linalg.GenericOp) -> Convolution | None:
    """Matches a static f32 3 x 3 convolution with a constant filter; None for any other op."""
    position = _filter_of(op)
    if position is None or len(op.inputs) != 2:
        return None
    image, ranges = 1 - position, static_ranges(op)
    if any(r <= 0 for r in ranges) or not is_static(op.operands[image]):
        return None
    indexing = maps(op)
    plain = [e for number in (position, 2) for e in indexing[number].results]
    if not all(isinstance(e, AffineDimExpr) for e in plain):
        return None
    axes = _axes_of(op, image, position, ranges)
    used = [d for e in indexing[image].results for d in e.used_dims()]
    if axes is None or len(axes) != 2 or len(used) != len(set(used)):
        return None
    return Convolution(op, image, position, axes[0], axes[1], ranges)


def _filter_of(op: linalg.GenericOp) -> int | None:
    """The number of the constant operand of a product of f32 that starts from zero, or None."""
    parts = multiply_add(op)
    if parts is None or not is_contraction(op) or parts.widen_lhs or parts.widen_rhs:
        return None
    if not op.res or op.res[0].type.element_type != f32:
        return None
    init = op.outputs[0].owner
    if not isinstance(init, linalg.GenericOp) or not is_zero_fill(init):
        return None
    return next((p for p in (parts.rhs, parts.lhs) if _is_filter(op.operands[p].owner)), None)


def _axes_of(
    op: linalg.GenericOp, image: int, position: int, ranges: Sequence[int]
) -> list[Axis] | None:
    """The axes of the image that a window of 3 moves along by single steps; None for others."""
    indexing = maps(op)
    taps, written = indexing[position].used_dims(), indexing[2].used_dims()
    axes: list[Axis] = []
    for dim, expr in enumerate(indexing[image].results):
        if isinstance(expr, AffineDimExpr):
            continue
        form = linear_form(expr)
        if form is None or form[1] or sorted(form[0].values()) != [1, 1]:
            return None
        tap = next((d for d in form[0] if d in taps and d not in written), None)
        point = next((d for d in form[0] if d in written and d not in taps), None)
        if tap is None or point is None or ranges[tap] != TAPS:
            return None
        axes.append(Axis(dim, point, tap))
    return axes


def gain(conv: Convolution, lanes: int) -> float:
    """Returns the estimated speed-up: cycles of the direct form / cycles of the Winograd form."""
    indexing = maps(conv.op)
    taps = {conv.height.tap, conv.width.tap}
    points = {conv.height.point, conv.width.point}
    inner = prod(conv.ranges[d] for d in indexing[conv.filter].used_dims() - taps)
    batch = prod(
        conv.ranges[d]
        for d in range(len(conv.ranges))
        if d not in points | taps | indexing[conv.filter].used_dims()
    )
    pixels = prod(conv.ranges[d] for d in points)
    read = prod(conv.ranges[d] for d in indexing[conv.image].used_dims() - points - taps)
    written = prod(conv.ranges[d] for d in indexing[2].used_dims() - points)
    tiles = prod(conv.tiles)
    products = batch * tiles * conv.window**2 * inner / lanes
    # Lanes are channels: transforms of pixels along the lanes gather elements one at a time.
    sides = ((indexing[conv.image], read), (indexing[2], written))
    vectors = sum(n / (1 if m.results[-1].used_dims() & points else lanes) for m, n in sides)
    moved = CPU.winograd_transform * conv.window**2 * tiles * vectors
    filters = conv.window**2 * inner * 4 / CPU.filter_bandwidth
    return batch * pixels * TAPS**2 * inner / lanes / (max(products, filters) + moved)
