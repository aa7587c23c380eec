"""Ways to train with `torch.compile(backend="irees")`: each follows eager, nothing runs in PyTorch."""

from __future__ import annotations

import copy
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

STEPS = 4


class Checkpointed(nn.Module):
    """A layer whose activations are computed again in the backward pass, and one after it."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(checkpoint(self.body, x, use_reentrant=False))


def plain():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def adam(**options):
    return lambda parameters: torch.optim.Adam(parameters, 1e-2, **options)


def train(run, model, optimizer, batches=1, clip=None, cast=None):
    """The losses of a few steps, each of a sum of gradients of several batches."""
    x, y = torch.linspace(-1, 1, 48).reshape(6, 8), torch.linspace(0, 1, 24).reshape(6, 4)
    losses = []
    for step in range(STEPS):
        for batch in range(batches):
            with nullcontext() if cast is None else torch.autocast("cpu", cast):
                loss = functional.mse_loss(run(x + 0.1 * step + 0.3 * batch).float(), y)
            (loss / batches).backward()
            losses.append(loss.item())
        if clip is not None:
            losses.append(nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
        optimizer.zero_grad()
    return losses


WAYS = {
    "foreach": (plain, adam(foreach=True), {}, 1e-4),
    "fused": (plain, adam(fused=True), {}, 1e-4),
    "accumulated gradients": (plain, adam(), {"batches": 3}, 1e-4),
    "clipped gradients": (plain, adam(), {"clip": 0.1}, 1e-4),
    "checkpoint": (Checkpointed, adam(), {}, 1e-4),
    # bf16 has 8 bits: gradients of both are 0.5 % off those of f32, in other directions.
    "autocast": (plain, lambda p: torch.optim.SGD(p, 1e-2), {"cast": torch.bfloat16}, 1e-2),
}
"""Name => model, optimizer, how it is trained, and by how much losses may differ."""


@pytest.mark.parametrize("name", WAYS)
def test_training_follows_eager(name):
    torch._dynamo.reset()
    torch.manual_seed(0)
    make, optimizer, how, tolerance = WAYS[name]
    model = make()
    twin = copy.deepcopy(model)
    run = torch.compile(model, backend="irees", options={"fallback": False}, fullgraph=True)
    mine = train(run, model, optimizer(model.parameters()), **how)
    theirs = train(twin, twin, optimizer(twin.parameters()), **how)
    assert mine == pytest.approx(theirs, rel=tolerance)
    for a, b in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


STEPPED = {
    "adam": lambda p: torch.optim.Adam(p, 1e-2, foreach=True, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-2, momentum=0.9, centered=True, foreach=True),
    "rprop": lambda p: torch.optim.Rprop(p, foreach=True),
}


@pytest.mark.parametrize("name", STEPPED)
def test_steps_of_optimizers_are_compiled_with_lists_of_tensors(name):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2))
    twin = copy.deepcopy(model)
    losses: list[list[float]] = []
    for each in (model, twin):
        optimizer = STEPPED[name](each.parameters())
        step = optimizer.step
        if each is model:
            step = torch.compile(step, backend="irees", options={"fallback": False})
        losses.append([])
        for i in range(3):
            loss = each(torch.linspace(-1, i + 1, 24).reshape(4, 6)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_weights_of_given_norm_are_trained():
    torch._dynamo.reset()
    model = torch.nn.utils.parametrizations.weight_norm(nn.Linear(6, 4))
    twin = copy.deepcopy(model)
    x = torch.linspace(-1, 1, 24).reshape(4, 6)
    run = torch.compile(model, backend="irees", options={"fallback": False})
    for each in (run, twin):
        each(x).square().sum().backward()
    for a, b in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(a.grad, b.grad)


def test_square_images_of_any_size():
    """Sizes that are equal in the example are one size: bytes are polynomials of degree 3."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, 2))
    twin = copy.deepcopy(model)
    torch._dynamo.reset()
    run = torch.compile(model, backend="irees", dynamic=True, options={"fallback": False})
    for size in (8, 5, 13):
        x = torch.randn(2, 3, size, size, requires_grad=True)
        found, wanted = run(x), twin(x)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        found.sum().backward()
        wanted.sum().backward()
    for mine, theirs in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4)


INDICES, OFFSETS = torch.tensor([1, 0, 3, 3, 4, 9]), torch.tensor([0, 2, 2, 5])


def bag(mode, **options):
    return lambda t, w: functional.embedding_bag(INDICES, t, OFFSETS, mode=mode, **options)


def distances(p):
    return lambda x, y: torch.cdist(x, x.detach()[:5], p=p) + torch.cdist(x, x.detach()[5:], p=p)


GRADIENTS = {
    "scattered": lambda x, y: x.masked_scatter(x > 0, x.flip(0).exp()) * 2,
    "distances": distances(2.0), "distances of order 1": distances(1.0),
    "distances of order 3": distances(3.0), "largest distances": distances(float("inf")),
    "sums of bags": bag("sum"), "means of bags": bag("mean", padding_idx=3),
    "maxima of bags": bag("max"), "maxima with padding": bag("max", padding_idx=3),
    "weighted bags": lambda t, w: functional.embedding_bag(
        INDICES, t, OFFSETS, mode="sum", per_sample_weights=w, padding_idx=3
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_that_pytorch_has_as_kernels(name):
    function = GRADIENTS[name]
    run = torch.compile(function, backend="irees", options={"fallback": False})
    found = []
    given = torch.randn(10, 4), torch.randn(6)
    for each in (function, run):
        tensors = [t.clone().requires_grad_() for t in given]
        result = each(*tensors)
        (result * torch.linspace(0.5, 1.5, result.numel()).view(result.shape)).sum().backward()
        found.append((result.detach(), *(t.grad for t in tensors)))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


def test_quantizers_with_ranges_that_are_tensors():
    def quantized(x, scale, zero):
        return torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255)

    given = torch.randn(3, 4), torch.tensor([0.01]), torch.tensor([100], dtype=torch.int32)
    run = torch.compile(quantized, backend="irees", options={"fallback": False})
    x, y = (given[0].clone().requires_grad_() for _ in range(2))
    expected, found = quantized(x, *given[1:]), run(y, *given[1:])
    torch.testing.assert_close(found, expected)
    for result in (expected, found):
        result.square().sum().backward()
    torch.testing.assert_close(y.grad, x.grad)
