"""Convolutions of images of any size, against eager: every access is proved, with no guard."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import irees  # noqa: E402

SIZES = ((7, 9), (16, 24), (29, 37), (33, 56), (40, 71))
CONVOLUTIONS = {
    "depthwise": lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8),
    "depthwise 7x7": lambda: nn.Conv2d(8, 8, 7, padding=3, groups=8),
    "depthwise dilated": lambda: nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8),
    "depthwise stride": lambda: nn.Conv2d(8, 8, 3, 2, 1, groups=8),
    "one feature": lambda: nn.Conv2d(8, 1, 3, padding=1),
    "transposed 2x2": lambda: nn.ConvTranspose2d(8, 16, 2, 2),
    "transposed 3x3": lambda: nn.ConvTranspose2d(8, 16, 3, 2, 1, output_padding=1),
    "transposed 4x4": lambda: nn.ConvTranspose2d(8, 16, 4, 2, 1),
    "transposed 5x5": lambda: nn.ConvTranspose2d(8, 4, 5, 3, 2, output_padding=2),
    "transposed dilated": lambda: nn.ConvTranspose2d(8, 4, 3, 1, 1, dilation=2),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    torch.manual_seed(0)
    module = CONVOLUTIONS[name]().eval()
    image = torch.randn(2, 8, 20, 22)
    dims = {2: Dim("height", min=5, max=99), 3: Dim("width", min=5, max=99)}
    program = irees.compile(module, (image,), dynamic_shapes=(dims,))
    assert not any(kernel["accesses"].get("guarded") for kernel in program.manifest["kernels"])
    for height, width in SIZES:
        image = torch.randn(2, 8, height, width)
        torch.testing.assert_close(program(image), module(image), rtol=1e-4, atol=1e-4)


POOLINGS = {
    "max": lambda: nn.MaxPool2d(3, 2, 1),
    "max of whole windows": lambda: nn.MaxPool2d(2),
    "max beyond the end": lambda: nn.MaxPool2d(3, 2, ceil_mode=True),
    "mean": lambda: nn.AvgPool2d(3, 2, 1),
    "mean beyond the end": lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True),
    "norm": lambda: nn.LPPool2d(2, 3, 2),
    "adaptive mean": lambda: nn.AdaptiveAvgPool2d(5),
    "adaptive max": lambda: nn.AdaptiveMaxPool2d((3, 4)),
}


@pytest.mark.parametrize("name", POOLINGS)
def test_poolings(name):
    module = POOLINGS[name]()
    image = torch.randn(2, 8, 20, 22)
    dims = {2: Dim.AUTO, 3: Dim.AUTO}
    program = irees.compile(module, (image,), dynamic_shapes=(dims,))
    assert not any(kernel["accesses"].get("guarded") for kernel in program.manifest["kernels"])
    for height, width in SIZES:
        image = torch.randn(2, 8, height, width)
        torch.testing.assert_close(program(image), module(image))


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.LPPool2d(2, 2), nn.AvgPool2d(3, 2)])
def test_windows_that_fit_are_not_padded(pool):
    dims = {2: Dim.AUTO, 3: Dim.AUTO}
    program = irees.compile(pool, (torch.randn(2, 8, 20, 22),), dynamic_shapes=(dims,))
    assert len(program.manifest["kernels"]) == 1


def resize(scale):
    return lambda x: nn.functional.interpolate(
        x, scale_factor=scale, mode="bilinear", antialias=True
    )


MOVES = {
    "smaller": resize(0.3),
    "larger": resize(1.5),
    "flip": lambda x: x.flip(-1),
    "flip rows": lambda x: x.flip(-2),
    "roll": lambda x: x.roll(2, 2),
    "mirror": lambda x: nn.functional.pad(x, (3, 2, 4, 1), mode="reflect"),
}


@pytest.mark.parametrize("name", MOVES)
def test_images_that_are_moved(name):
    shapes = ({2: Dim.AUTO, 3: Dim.AUTO},)
    program = irees.compile(MOVES[name], (torch.randn(2, 8, 20, 22),), dynamic_shapes=shapes)
    assert not any(kernel["accesses"].get("guarded") for kernel in program.manifest["kernels"])
    for height, width in SIZES:
        image = torch.randn(2, 8, height, width)
        torch.testing.assert_close(program(image), MOVES[name](image), rtol=1e-4, atol=1e-4)
