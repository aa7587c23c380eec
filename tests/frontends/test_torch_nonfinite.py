"""A NaN and an infinity reach the results that PyTorch computes from them, and no others."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

from torch.export import Dim  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import irees  # noqa: E402


def image(height: int, width: int) -> Any:
    x = torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(0))
    x[0, 0, height // 5, width // 7] = math.nan
    return x


RESIZED = {
    "linear": lambda x: F.interpolate(x, (5, 3), mode="bilinear"),
    "cubic": lambda x: F.interpolate(x, (15, 13), mode="bicubic"),
    "nearest": lambda x: F.interpolate(x, (15, 13)),
    "area": lambda x: F.interpolate(x, (5, 3), mode="area"),
    "smooth linear": lambda x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True),
    "smooth cubic": lambda x: F.interpolate(x, (7, 9), mode="bicubic", antialias=True),
    "smooth wide": lambda x: F.interpolate(x, (1, 20), mode="bilinear", antialias=True),
    "pooled": lambda x: F.adaptive_avg_pool2d(x, (5, 3)),
}


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("how", RESIZED)
def test_resized_images(how, target):
    resize, x = RESIZED[how], image(9, 14)
    if "smooth" not in how:  # a weight of 0 or 1e-9 at the edge of a filter makes it NaN or inf
        x[1, 2, 4, 7] = math.inf
    found = irees.compile(resize, (x,), target=target)(x)
    torch.testing.assert_close(found, resize(x), equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("how", RESIZED)
def test_gradients_of_resized_images(how):
    x = image(9, 14).nan_to_num(0, 0).requires_grad_()
    wanted = RESIZED[how](x)
    upstream = torch.ones_like(wanted)
    upstream[0, 1, -1, 1] = math.nan
    torch._dynamo.reset()
    found = torch.compile(RESIZED[how], backend="irees")(x)
    pair = [torch.autograd.grad(y, x, upstream)[0] for y in (found, wanted)]
    torch.testing.assert_close(*pair, equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_any_size(mode):
    def resize(x):
        return F.interpolate(x, (7, 5), mode=mode, antialias=True)

    shapes = ({2: Dim("height"), 3: Dim("width")},)
    program = irees.compile(resize, (image(16, 20),), dynamic_shapes=shapes)
    for size in ((2, 3), (16, 21), (7, 5), (14, 5), (90, 33)):
        x = image(*size)
        torch.testing.assert_close(program(x), resize(x), equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("power", [1, 2])
def test_margin_losses_leave_nan_out(power, reduction):
    x = torch.linspace(-1, 1, 20).reshape(4, 5)
    x[1, 2], x[2, 3] = math.nan, math.nan
    target = torch.tensor([1, 0, 3, 2])
    sets = torch.tensor([[1, 0, -1, 0, 0], [3, 2, -1, 0, 1], [0, 1, 2, 3, 4], [-1, 0, 0, 0, 0]])
    weight = torch.linspace(0.5, 2, 5)

    def losses(x, target, sets, weight):
        one = F.multi_margin_loss(x, target, power, 0.7, weight, reduction=reduction)
        return one, F.multilabel_margin_loss(x, sets, reduction=reduction)

    given = (x, target, sets, weight)
    found = irees.compile(losses, given, target="reference")(*given)
    torch.testing.assert_close(found, losses(*given), equal_nan=True)


def test_gradients_of_margin_losses():
    x = torch.linspace(-1, 1, 20).reshape(4, 5)
    x[1, 2] = math.nan
    x.requires_grad_()
    target = torch.tensor([1, 0, 3, 2])
    torch._dynamo.reset()
    losses = [F.multi_margin_loss, torch.compile(F.multi_margin_loss, backend="irees")]
    wanted, found = (torch.autograd.grad(loss(x, target), x)[0] for loss in losses)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("target", ["cpu", "reference", "cuda-emulated"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dynamic", [False, True])
def test_extremes_with_their_indices(dim, dynamic, target):
    """Rows of equal, infinite and NaN elements; the first of several winners counts."""
    odd = [math.nan, math.inf, -math.inf, 0.0, 1.0]
    x = torch.tensor([[a, b] + [-math.inf] * 36 + [c, a, b] for a in odd for b in odd for c in odd])
    x = x if dim == 1 else x.T.contiguous()

    def extremes(x):
        return (*x.max(dim), *x.min(dim), x.argmax(dim), x.argmin(dim))

    sizes = ({dim: Dim("n", min=2)},) if dynamic else None
    program = irees.compile(extremes, (x,), dynamic_shapes=sizes, target=target)
    for found, wanted in zip(program(x), extremes(x), strict=True):
        assert torch.equal(found.nan_to_num(7.0), wanted.nan_to_num(7.0))


@pytest.mark.parametrize("weight", [1.0, math.inf, math.nan])
@pytest.mark.parametrize("cell", [torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell])
def test_cells_without_a_state(cell, weight):
    """The state is zeros, whose products with an infinite weight are NaN."""
    torch.manual_seed(0)
    module = cell(5, 7)
    with torch.no_grad():
        module.weight_hh[3, 2] = weight
    x = torch.randn(4, 5)
    program = irees.compile(module, (x,))
    torch.testing.assert_close(program(x), module(x), equal_nan=True)
