"""
Tolerance classes for comparing results.

E, exact: equal bits; a NaN equals a NaN of any sign and payload. For everything with one right
answer: integers, selects, copies, and float sums without rounding.
U, units in the last place: functions like exp, whose last bits depend on the target.
R, reassociated: sums in another order; the bound grows with the root of the number of terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """A tolerance class and its parameters."""

    name: str = "E"
    ulps: float = 0
    terms: int = 1
    """For R: number of summed terms."""

    def __or__(self, other: Tolerance) -> Tolerance:
        """Returns the tolerance of a value computed from values of both classes."""
        order = "EUR"
        return Tolerance(
            max(self.name, other.name, key=order.index),
            self.ulps + other.ulps,
            max(self.terms, other.terms),
        )


EXACT = Tolerance()


def ulps(count: float) -> Tolerance:
    """Returns a tolerance of this many units in the last place."""
    return Tolerance("U", count)


def reassociated(terms: int) -> Tolerance:
    """Returns the tolerance of a sum of this many terms in any order."""
    return Tolerance("R", 4 * sqrt(max(terms, 1)), terms)


def mismatch(actual: Any, expected: Any, tolerance: Tolerance = EXACT) -> str | None:
    """Describes the first mismatch in one line; None if there is none."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if actual.dtype != expected.dtype:
        return f"type {actual.dtype} instead of {expected.dtype}"
    wrong = _wrong(actual, expected, tolerance)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{actual[at]!r} instead of {expected[at]!r} at {list(at)}, "
        f"and {int(wrong.sum()) - 1} more of {wrong.size} ({tolerance.name})"
    )


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def _wrong(actual: np.ndarray, expected: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    if actual.dtype.kind == "b":  # compares bytes: a true must be stored as 1
        return _bits(actual) != _bits(expected)
    if actual.dtype.kind in "iu":
        return actual != expected
    with np.errstate(all="ignore"):
        both_nan = (actual != actual) & (expected != expected)
    different = ~both_nan & (_bits(actual) != _bits(expected))
    if tolerance.name == "E" or not different.any():
        return different
    with np.errstate(all="ignore"):
        unit = float(ml_dtypes.finfo(actual.dtype).eps)
        tiny = float(ml_dtypes.finfo(actual.dtype).smallest_normal)
        wide = np.complex128 if actual.dtype.kind == "c" else np.float64
        x, y = actual.astype(wide), expected.astype(wide)
        scale = np.abs(y)
        if tolerance.name == "R" and scale.size:
            finite = np.where(np.isfinite(y), scale, 0.0)
            scale = np.maximum(scale, finite.max())
        near = np.abs(x - y) <= tolerance.ulps * unit * np.maximum(scale, tiny)
    return different & ~near & ~(x == y)
