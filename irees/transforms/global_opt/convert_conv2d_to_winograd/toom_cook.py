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

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyfromroots

POINTS = {
    2: (0.0, 1.0, -1.0),
    4: (0.0, 5 / 8, -5 / 8, 3 / 2, -3 / 2),
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


@cache
def matrices(m: int, r: int) -> Matrices:
    """The matrices of F(m, r) for the points in `POINTS`."""
    points, window = np.array(POINTS[m]), m + r - 1
    others = [np.delete(points, k) for k in range(len(points))]
    inputs, filters, outputs = (
        np.zeros((window, window)),
        np.zeros((window, r)),
        np.zeros((m, window)),
    )
    for k, (point, rest) in enumerate(zip(points, others, strict=True)):
        inputs[k, :-1] = polyfromroots(rest)
        filters[k] = point ** np.arange(r) / np.prod(point - rest)
        outputs[:, k] = point ** np.arange(m)
    # The point at infinity.
    inputs[-1], filters[-1, -1], outputs[-1, -1] = polyfromroots(points), 1.0, 1.0
    return Matrices(inputs, filters, outputs)
