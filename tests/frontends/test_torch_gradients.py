"""Gradients that PyTorch has only as kernels, without an operator of PyTorch, against eager's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

F = torch.nn.functional


def values(*shape, low=0.0, high=1.0, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * (high - low) + low


def checked(function, *arguments, backend="irees"):
    """Compares a weighted sum of the results, and its gradients, with eager's."""

    def loss(*given):
        result = function(*given)
        weights = torch.arange(1, result.numel() + 1, dtype=result.dtype)
        return (result * weights.reshape(result.shape)).sum()

    def run(program):
        leaves = [x.clone().requires_grad_() for x in arguments]
        value = program(*leaves)
        value.backward()
        return [value.detach(), *(x.grad for x in leaves)]

    torch._dynamo.reset()
    mine = run(torch.compile(loss, backend=backend, options={"fallback": False}))
    torch.testing.assert_close(mine, run(loss), rtol=1e-4, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
def test_grid_sample(mode, padding, corners):
    x, grid = values(2, 3, 5, 4), values(2, 3, 6, 2, low=-1.6, high=1.6, seed=1)
    checked(lambda x, g: F.grid_sample(x, g, mode, padding, corners), x, grid)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_of_volumes(mode, padding):
    x, grid = values(1, 2, 3, 4, 2), values(1, 2, 3, 4, 3, low=-1.4, high=1.4, seed=1)
    checked(lambda x, g: F.grid_sample(x, g, mode, padding, False), x, grid)


LABELS = torch.tensor([[1, 2, 2], [3, 3, 1], [2, 0, 0]])
CTC = {
    "padded": (LABELS, torch.tensor([7, 6, 5]), torch.tensor([3, 3, 1]), {}),
    "numbers": (LABELS, (7, 6, 5), (3, 2, 1), {"reduction": "sum"}),
    "concatenated": (torch.tensor([1, 2, 2, 3, 3, 2]), (7, 7, 2), (3, 2, 1), {"reduction": "none"}),
    "another_blank": (LABELS % 3, torch.tensor([7, 7, 7]), torch.tensor([3, 2, 0]), {"blank": 3}),
    "impossible": (LABELS, torch.tensor([7, 2, 5]), torch.tensor([3, 3, 1]), {}),
    "impossible_as_zero": (LABELS, torch.tensor([7, 2, 5]), torch.tensor([3, 3, 1]), {"zero_infinity": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", CTC)
def test_ctc_loss(name):
    targets, times, lengths, options = CTC[name]
    x = values(7, 3, 4, high=3.0)
    checked(lambda x: F.ctc_loss(x.log_softmax(-1), targets, times, lengths, **options), x)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_pdist(p):
    x = torch.cat([values(4, 3), values(4, 3)[:1]])
    checked(lambda x: F.pdist(x, p), x)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_segment_reduce(reduce):
    x = torch.tensor([3.0, 3.0, 1.0, 2.0, 5.0, 5.0])
    lengths = torch.tensor([2, 1, 3])
    checked(lambda x: torch.segment_reduce(x, reduce, lengths=lengths), x)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_scaled_by_frequency(mode):
    indices, offsets = torch.tensor([4, 2, 1, 2, 2, 0]), torch.tensor([0, 2, 5])
    checked(
        lambda w: F.embedding_bag(indices, w, offsets, mode=mode, scale_grad_by_freq=True),
        values(6, 3),
    )


SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.3, 0.15]), torch.tensor([0, 3, 1, 2])
QUANTIZED = {
    "channels": lambda x: torch.fake_quantize_per_channel_affine(
        x, SCALES, ZEROS.int(), 1, 0, 7
    ),
    "learnable": lambda x: torch._fake_quantize_learnable_per_tensor_affine(
        x, x[0, :1].abs() * 0 + SCALES[:1], ZEROS[1:2] + 0.3, 0, 7, 0.5
    ),
    "learnable_channels": lambda x: torch._fake_quantize_learnable_per_channel_affine(
        x, SCALES, ZEROS + 0.3, 1, 0, 7, 0.5
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTIZED)
def test_fake_quantization(name):
    checked(QUANTIZED[name], values(3, 4, low=-1.0, high=2.0))


@pytest.mark.parametrize("channels", [False, True])
def test_learnable_scales_and_zero_points(channels):
    kernel = torch._fake_quantize_learnable_per_tensor_affine
    if channels:
        kernel = torch._fake_quantize_learnable_per_channel_affine
    axis, size = ([1], 4) if channels else ([], 1)

    def function(x, scale, zero):
        return kernel(x, scale, zero, *axis, 0, 7, 0.5)

    checked(function, values(3, 4, low=-1.0, high=2.0), SCALES[:size], ZEROS[:size] + 0.3)
