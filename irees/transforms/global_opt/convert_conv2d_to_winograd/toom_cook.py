"""
Builds the matrices of F(m, r) from interpolation points. Part of
`irees-convert-conv2d-to-winograd`.

The convolution of a filter and a tile is a product of two polynomials. It is evaluated at
m + r - 2 points and at infinity, then interpolated. The points determine the rounding error in f32:
pairs of points p, -p and q, -q with p * q near 1 keep all powers near 1. MLIR's points for F(4, 3),
0, +-1 and +-2, have twice the error. All matrices are exact in f32 except the filter's, which is
applied in f64.

Barabasz, Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd
Convolution for Deep Neural Networks" (2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np

POINTS = {
    2: ("0", "1", "-1"),
    4: ("0", "5/8", "-5/8", "3/2", "-3/2"),
}
"""The m of F(m, 3) => its finite points."""


class Matrices(NamedTuple):
    """The matrices of y = A^T ((G g) * (B^T d)), in f64; along one axis."""

    input: np.ndarray
    """B^T, (m + r - 1) x (m + r - 1)."""
    filter: np.ndarray
    """G, (m + r - 1) x r."""
    output: np.ndarray
    """A^T, m x (m + r - 1)."""


def _product_of_roots(roots: Sequence[Fraction], length: int) -> list[Fraction]:
    """The coefficients of the product of (x - p), lowest first, filled with zeros."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [high - root * low for high, low in zip(shifted, [*found, Fraction(0)])]
    return found + [Fraction(0)] * (length - len(found))


@cache
def matrices(m: int, r: int) -> Matrices:
    """The matrices of F(m, r) for the points in `POINTS`."""
    points = [Fraction(p) for p in POINTS[m]]
    window = m + r - 1
    others = [[q for q in points if q != p] for p in points]
    inputs = [_product_of_roots(rest, window) for rest in others]
    filters = [
        [p**i / prod(p - q for q in rest) for i in range(r)]
        for p, rest in zip(points, others, strict=True)
    ]
    outputs = [[p**i for p in points] + [Fraction(i == m - 1)] for i in range(m)]
    inputs.append(_product_of_roots(points, window))
    filters.append([Fraction(i == r - 1) for i in range(r)])
    return Matrices(*(np.array(each, dtype=np.float64) for each in (inputs, filters, outputs)))
