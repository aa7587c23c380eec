"""Convolutions by channels, by groups and of few channels give what PyTorch gives, on any target."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import irees  # noqa: E402

TARGETS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu"]


@st.composite
def convolutions(draw):
    """The arguments of a convolution with at least one output."""
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    groups = draw(st.sampled_from([1, 1, 2, 8, 16, 24]))
    each, features = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2, 5, 8, 12, 16]))
    kernel = [draw(st.sampled_from([1, 2, 3, 5])) for _ in range(rank)]
    stride, dilation = (draw(st.sampled_from([1, 1, 2, 3])) for _ in range(2))
    padding = draw(st.integers(0, 2))
    extents = [dilation * (k - 1) + 1 - 2 * padding for k in kernel]
    sizes = [max(1, e) + draw(st.sampled_from([0, 1, 5, 6, 13, 20])) for e in extents]
    batch = draw(st.sampled_from([1, 1, 2]))
    return (batch, groups, each, features, kernel, sizes), (stride, padding, dilation)


@settings(max_examples=40, deadline=None)
@given(convolutions(), st.booleans(), st.sampled_from(TARGETS))
def test_convolutions(sizes, biased, target):
    check(sizes, biased, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [[3, 3], [5, 5], [1, 3], [3, 1]])
def test_blocks_of_features_and_rows(kernel, target):
    """Groups of 8 channels, whose rows of 28 and 21 pixels are vectors that overlap."""
    padding = tuple(k // 2 for k in kernel)
    check(((1, 4, 8, 8, kernel, [14, 28]), (1, padding, 1)), True, target)
    check(((1, 4, 8, 8, kernel, [12, 21]), (1, padding, 1)), True, target)


def check(sizes, biased, target):
    """A convolution and what follows it give what PyTorch gives."""
    (batch, groups, each, features, kernel, image), geometry = sizes
    torch.manual_seed(0)
    made = [torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d][len(kernel) - 1]
    layer = made(groups * each, groups * features, kernel, *geometry, groups, bias=biased)
    layer = torch.nn.Sequential(layer, torch.nn.ReLU()).eval().requires_grad_(False)
    x = torch.randn(batch, groups * each, *image)
    program = irees.compile(torch.export.export(layer, (x,)), target=target)
    torch.testing.assert_close(torch.as_tensor(program(x.numpy())), layer(x), atol=1e-5, rtol=1e-4)
