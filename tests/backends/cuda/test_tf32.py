"""Products of f32 by tf32: only where they are allowed, and as far off as tf32 is, not further."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import irees

sys.path.insert(0, str(Path(__file__).parent))
import kernels

TARGET = "cuda-emulated:sm_80"
random = np.random.default_rng(0)


def products(a: np.ndarray, b: np.ndarray, order: str = "m, k; k, n", **options) -> np.ndarray:
    """a * b, of operands that lie in an order; the text has tf32 where it should."""
    (m, k), n = a.shape, b.shape[1]
    text = kernels.widening_matmul(m, n, k, "f32", order)
    program = irees.compile(text, opt_level=1, **{"target": TARGET, "allow_tf32": True} | options)
    allowed = options.get("allow_tf32", True) and options.get("target", TARGET) == TARGET
    assert ("= irees_mma_f32(" in "".join(program.sources.values())) is allowed
    left, right = order.split("; ")
    return program(
        a if left == "m, k" else a.T.copy(),
        b if right == "k, n" else b.T.copy(),
    )


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def whole(*shape: int) -> np.ndarray:
    return random.integers(1, 8, shape).astype(np.float32)


SIZES = [(37, 41, 19), (130, 70, 64), (64, 64, 200)]


@pytest.mark.parametrize("order", ["m, k; k, n", "m, k; n, k", "k, m; k, n"])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_the_error_is_that_of_tf32(m, n, k, order):
    """
    Rounding is off by 2^-11 of each operand, so by 2^-10 + 2^-22 of each product; their sums are
    off by what sums of f32 are off.
    """
    a, b = normal(m, k), normal(k, n)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    magnitudes = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    rounding, sums = 2.0**-10 + 2.0**-22, 4 * np.sqrt(k) * 2.0**-24
    found = products(a, b, order)
    assert (np.abs(found - exact) <= (rounding + sums) * magnitudes).all()
    # What f32 keeps is not kept.
    assert (np.abs(found - exact) > sums * magnitudes).any()
    without = products(a, b, order, allow_tf32=False)
    assert (np.abs(without - exact) <= sums * magnitudes).all()


@pytest.mark.parametrize("order", ["m, k; k, n", "k, m; n, k"])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_what_tf32_holds_is_exact(m, n, k, order):
    a, b = whole(m, k), whole(k, n)
    np.testing.assert_array_equal(products(a, b, order), a @ b)


def test_operands_are_rounded_and_not_cut_off():
    """To the nearest, and halfway away from zero (`cvt.rna.tf32.f32`)."""
    ulp = 2.0**-10
    values = [1 + ulp / 2, -1 - ulp / 2, 1 + ulp / 2 - 2.0**-23, 1 + 1.5 * ulp, 3e38, np.inf]
    step = 2.0 ** (127 - 10)
    rounded = [1 + ulp, -1 - ulp, 1, 1 + 2 * ulp, np.round(3e38 / step) * step, np.inf]
    # Times 1, plus 0 times 1: of one product nothing would be a contraction.
    a = np.array([values, [0] * 6], np.float32)
    ones = np.ones((2, 16), np.float32)
    expected = np.repeat(np.array(rounded, np.float32)[:, None], 16, 1)
    np.testing.assert_array_equal(products(a.T, ones), expected)
    np.testing.assert_array_equal(products(ones.T, a), expected.T)


def test_a_gpu_without_tf32_keeps_f32():
    a, b = normal(40, 40), normal(40, 40)
    np.testing.assert_array_equal(
        products(a, b, target="cuda-emulated:sm_75"),
        products(a, b, target="cuda-emulated:sm_75", allow_tf32=False),
    )
