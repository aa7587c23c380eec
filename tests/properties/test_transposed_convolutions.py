"""Transposed convolutions by phases give what PyTorch gives, for any kernel, stride and padding."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import irees  # noqa: E402


@st.composite
def geometries(draw):
    """Kernel, stride, padding, output padding and size of one dim, with at least one output."""
    kernel, stride = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    size, extra = draw(st.integers(1, 5)), draw(st.integers(0, stride - 1))
    most = ((size - 1) * stride + kernel + extra - 1) // 2
    return kernel, stride, draw(st.integers(0, max(0, min(most, 2 * kernel)))), extra, size


@settings(max_examples=40, deadline=None)
@given(
    st.lists(geometries(), min_size=1, max_size=2),
    st.sampled_from([1, 2]),
    st.sampled_from([3, 16]),
    st.booleans(),
)
def test_phases(dims, groups, features, dynamic):
    kernel, stride, padding, extra, sizes = map(list, zip(*dims))
    torch.manual_seed(0)
    x, weight = torch.randn(1, 2 * groups, *sizes), torch.randn(2 * groups, features, *kernel)
    apply = [torch.conv_transpose1d, torch.conv_transpose2d][len(dims) - 1]

    def run(x, weight):
        return apply(x, weight, None, stride, padding, extra, groups)

    shapes = ({2: torch.export.Dim.AUTO}, None) if dynamic and sizes[0] > 1 else None
    made = irees.compile(run, (x, weight), dynamic_shapes=shapes, target="reference")
    torch.testing.assert_close(torch.as_tensor(made(x, weight)), run(x, weight))


def test_no_zeros_are_inserted():
    """Neither x nor the result has room for the zeros between the elements of x."""
    x, weight = torch.randn(1, 4, 8, 8), torch.randn(4, 3, 4, 4)
    run = lambda x, w: torch.conv_transpose2d(x, w, None, 2, 1)  # noqa: E731
    text = str(irees.compile(run, (x, weight), to="input"))
    assert "tensor.insert_slice" not in text
    # Two taps of each of two dims, of four phases of three features.
    assert "tensor<12x4x2x2xf32>" in text


def test_phases_with_fewer_taps_are_convolutions_of_their_own():
    """Of the four phases of a kernel of three, strided by two, one has four taps, two have two."""
    x, weight = torch.randn(1, 4, 8, 8), torch.randn(4, 16, 3, 3)
    run = lambda x, w: torch.conv_transpose2d(x, w, None, 2, 1, 1)  # noqa: E731
    text = str(irees.compile(run, (x, weight), to="input"))
    assert [f"tensor<16x4x{taps}xf32>" in text for taps in ("2x2", "2x1", "1x2", "1x1")] == [
        True
    ] * 4
    assert "tensor<64x4x2x2xf32>" not in text
