"""
Matches convolutions, which slide a filter over an image, whatever op they are written as.

    C[.., n, y, x] += W[n, c, i, j] * A[.., c, y + i, x + j]

A product of a constant filter without a window counts as one, a 1x1 convolution.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir.affine import AffineDimExpr, AffineMap

from irees.analysis.contractions import multiply_add


def window_loops(op: linalg.GenericOp) -> set[int]:
    """Returns the loops in indices that are not a plain loop, such as strided windows."""
    exprs = [e for m in op.indexing_maps for e in m.data.results]
    return {d for e in exprs if not isinstance(e, AffineDimExpr) for d in e.used_dims()}


def loops_of(indexing: AffineMap) -> list[int]:
    """Returns the loop of each dim that a plain loop indexes, -1 for other dims."""
    return [e.position if isinstance(e, AffineDimExpr) else -1 for e in indexing.results]


@dataclass(frozen=True)
class Convolution:
    """Operands and loops of a convolution."""

    filter: int
    image: int
    columns: int
    """Loop over the output channels."""
    depth: int | None
    """Loop that sums over the image channels; None for a depthwise convolution."""
    slides: bool
    """Whether there are window loops, or at least two dims after the output channels."""


def convolution(op: linalg.GenericOp) -> Convolution | str | None:
    """Matches a convolution. Returns a reason if it cannot be blocked, None for any other op."""
    parts = multiply_add(op)
    if parts is None or parts.lhs == parts.rhs or len(op.inputs) != 2:
        return None
    if not op.indexing_maps.data[-1].data.is_projected_permutation():
        return None
    windows, reason = window_loops(op), None
    for weights, image in ((parts.rhs, parts.lhs), (parts.lhs, parts.rhs)):
        found = _convolution(op, weights, image, windows)
        if isinstance(found, Convolution):
            return found
        reason = reason or found
    return reason if windows else None


@dataclass(frozen=True)
class LoopRoles:
    """The loops of a sum of products of a filter and an image, by role."""

    columns: list[int]
    """Output loops that index only the filter: the output channels."""
    shared: list[int]
    """Output loops that index both operands: the channels of a depthwise convolution."""
    spatial: list[int]
    """Output loops that index only the image."""
    depth: list[int]
    """Reduction loops outside the window: the image channels."""

    @staticmethod
    def of(op: linalg.GenericOp, weights: int, image: int, windows: set[int]) -> LoopRoles | None:
        """Returns the roles; None if a reduction loop does not index both operands."""
        own, reached = (
            op.indexing_maps.data[operand].data.used_dims() for operand in (weights, image)
        )
        reduced = [
            d for d, k in enumerate(op.iterator_types) if k.data is not IteratorType.PARALLEL
        ]
        if not own & reached >= set(reduced):
            return None
        out = loops_of(op.indexing_maps.data[-1].data)
        return LoopRoles(
            columns=[d for d in out if d in own - reached],
            shared=[d for d in out if d in own & reached],
            spatial=[d for d in out if d in reached - own],
            depth=[d for d in reduced if d not in windows],
        )

    @property
    def channel(self) -> int | None:
        """The loop over output channels; None for a grouped convolution."""
        if len(self.columns) + len(self.shared) != 1:
            return None
        if len(self.depth) > 1 or (self.shared and self.depth):
            return None
        return (self.columns or self.shared)[0]


def _convolution(
    op: linalg.GenericOp, weights: int, image: int, windows: set[int]
) -> Convolution | str | None:
    """Matches a convolution of an operand `image` with an operand `weights`."""
    if not _is_filter(op, weights, windows):
        return None
    roles = LoopRoles.of(op, weights, image, windows)
    if roles is None or not roles.spatial:
        return None
    channel = roles.channel
    if channel is None:
        return "it is a grouped convolution"
    if channel in windows or (roles.shared and not windows):
        return None
    seen = loops_of(op.indexing_maps.data[image].data)
    plain = {channel: len(roles.shared)} | dict.fromkeys(roles.depth, 1)
    if any(seen.count(loop) != times for loop, times in plain.items()):
        return None
    out = loops_of(op.indexing_maps.data[-1].data)
    slides = bool(windows) or len(out) - out.index(channel) > 2
    return Convolution(weights, image, channel, next(iter(roles.depth), None), slides)


def _is_filter(op: linalg.GenericOp, operand: int, windows: set[int]) -> bool:
    """Whether distinct plain loops index an operand, which is a constant if no window moves."""
    own = loops_of(op.indexing_maps.data[operand].data)
    if -1 in own or len(set(own)) != len(own):
        return False
    # Only a constant filter distinguishes a 1x1 convolution from a matrix product.
    return bool(windows) or isinstance(op.operands[operand].owner, arith.ConstantOp)
