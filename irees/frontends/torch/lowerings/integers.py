"""Integer functions that need a loop per element."""

from __future__ import annotations

import torch

from ...builder import Scalar, Tensor, loops
from ..calls import Call, lowers

aten, prims = torch.ops.aten, torch.ops.prims


def _gcd(u: Scalar, v: Scalar) -> Scalar:
    """Euclid's algorithm on absolute values; MIN counts as its own absolute value."""
    first, _ = loops.scalar_while(
        u.body,
        [u.abs(), v.abs()],
        lambda a, c: c != 0,
        # The loop exits at c == 0, but the compiler may speculate the remainder.
        lambda a, c: (c, a.rem((c == 0).where(1, c))),
    )
    return first.abs()


@lowers(aten.gcd.default, prims.gcd.default)
def gcd(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The greatest common divisor"""
    return call.elementwise(_gcd, x, y)


@lowers(aten.lcm.default)
def lcm(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """|x / gcd(x, y) * y|, 0 if both are 0"""

    def body(u: Scalar, v: Scalar) -> Scalar:
        divisor = _gcd(u, v)
        return (u.truncdiv((divisor == 0).where(1, divisor)) * v).abs()

    return call.elementwise(body, x, y)
