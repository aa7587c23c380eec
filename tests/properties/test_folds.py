"""Sums of overlapping windows by phases give what PyTorch gives, for any geometry."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
F = torch.nn.functional

import irees  # noqa: E402


@st.composite
def geometries(draw):
    """Kernel, dilation, stride, padding and size of one dim, with at least one window."""
    kernel, dilation = draw(st.integers(1, 5)), draw(st.sampled_from([1, 1, 2, 3]))
    stride, padding = draw(st.integers(1, 5)), draw(st.integers(0, 4))
    least = max(1, dilation * (kernel - 1) + 1 - 2 * padding)
    return kernel, dilation, stride, padding, draw(st.integers(least, least + 9))


@settings(max_examples=40, deadline=None)
@given(geometries(), geometries())
def test_folds(rows, columns):
    kernel, dilation, stride, padding, size = map(list, zip(rows, columns))
    windows = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for k, d, s, p, n in zip(kernel, dilation, stride, padding, size)
    ]
    torch.manual_seed(0)
    x = torch.randn(2, 3 * kernel[0] * kernel[1], windows[0] * windows[1])

    def run(x):
        return F.fold(x, size, kernel, dilation, padding, stride)

    made = irees.compile(run, (x,), target="reference")
    torch.testing.assert_close(torch.as_tensor(made(x)), run(x))


@settings(max_examples=20, deadline=None)
@given(geometries(), geometries(), st.booleans(), st.booleans())
def test_gradients_of_averages(rows, columns, ceil, whole):
    kernel, _, stride, padding, size = map(list, zip(rows, columns))
    padding = [min(p, k // 2) for p, k in zip(padding, kernel)]
    assume(all(n + 2 * p >= k for n, p, k in zip(size, padding, kernel)))
    torch.manual_seed(0)
    x = torch.randn(1, 2, *size)
    grad = torch.randn_like(F.avg_pool2d(x, kernel, stride, padding, ceil, whole))

    def run(grad, x):
        backward = torch.ops.aten.avg_pool2d_backward
        return backward(grad, x, kernel, stride, padding, ceil, whole, None)

    made = irees.compile(run, (grad, x), target="reference")
    torch.testing.assert_close(torch.as_tensor(made(grad, x)), run(grad, x))


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_elements_are_found_without_divisions(stride):
    """Windows are added by their places alone: no element asks which windows hold it."""
    x = torch.randn(1, 27, (8 // stride + 1) ** 2)
    run = lambda x: F.fold(x, (9, 9), 3, 1, 1, stride)  # noqa: E731
    text = str(irees.compile(run, (x,), to="input"))
    assert "tensor.extract " not in text
    assert "arith.div" not in text
