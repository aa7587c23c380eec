"""
Training through `torch.compile(model, backend="irees")`: 20 steps of Adam on fixed batches, as one
graph without an operator of PyTorch.

Eager runs in f64 and in f32. The losses, the first gradients, the weights and the buffers of irees
may be at most `FACTOR` times as far from those in f64 as the ones of eager f32 are. The gradients
are compared on their own because Adam's step does not depend on their scale.
"""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch", reason="needs torch: `make test-models` installs it")
transformers = pytest.importorskip(
    "transformers", reason="needs transformers: `make test-models` installs it"
)

nn, functional = torch.nn, torch.nn.functional
STEPS = 20
FACTOR = 4.0
ROUNDINGS = 4 * torch.finfo(torch.float32).eps
"""Distance that is allowed beyond that, relative to a tensor's norm: eager may round luckily."""


class Convolutional(nn.Module):
    """Convolutions with batch norm, a residual, pooling and a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8))
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(8, 5)

    def forward(self, x, y):
        x = self.stem(x)
        x = self.pool(functional.relu(x + self.body(x)))
        return functional.cross_entropy(self.head(x.mean((2, 3))), y)


class Recurrent(nn.Module):
    """Two layers of LSTM over embedded tokens, the last state classified."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 12)
        self.lstm = nn.LSTM(12, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, tokens, y):
        _, (state, _) = self.lstm(self.embed(tokens))
        return functional.cross_entropy(self.head(state[-1]), y)


class Residual(nn.Module):
    """A residual block that is told the time, with group norm."""

    def __init__(self, inputs, outputs, times):
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(4, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, 1, 1)
        )
        self.time = nn.Linear(times, outputs)
        self.second = nn.Sequential(
            nn.GroupNorm(4, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, 1, 1)
        )
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        return self.skip(x) + self.second(self.first(x) + self.time(t)[:, :, None, None])


class Attention(nn.Module):
    """Self-attention over the points of an image."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.attend = (
            nn.GroupNorm(4, width),
            nn.MultiheadAttention(width, 2, batch_first=True),
        )

    def forward(self, x):
        points = self.norm(x).flatten(2).transpose(1, 2)
        found, _ = self.attend(points, points, points, need_weights=False)
        return x + found.transpose(1, 2).reshape(x.shape)


class UNet(nn.Module):
    """A diffusion model: predicts the noise of an image at a time, skips from down to up."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU())
        self.stem = nn.Conv2d(3, 8, 3, 1, 1)
        self.down, self.shrink = Residual(8, 8, 16), nn.Conv2d(8, 16, 3, 2, 1)
        self.middle, self.attend = Residual(16, 16, 16), Attention(16)
        self.grow, self.up = nn.ConvTranspose2d(16, 8, 2, 2), Residual(16, 8, 16)
        self.head = nn.Conv2d(8, 3, 3, 1, 1)

    def forward(self, x, noise, t):
        rates = torch.exp(-torch.arange(8, dtype=x.dtype) / 2)
        angles = t[:, None] * rates
        t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        kept = self.down(self.stem(x), t)
        y = self.attend(self.middle(self.shrink(kept), t))
        y = self.up(torch.cat([self.grow(y), kept], 1), t)
        return functional.mse_loss(self.head(y), noise)


class Language(nn.Module):
    """A causal language model with its loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        # Otherwise the first call warns that it was not set, which is no part of a graph.
        model.loss_type = "ForCausalLM"

    def forward(self, tokens):
        return self.model(input_ids=tokens, labels=tokens, use_cache=False).loss


def language(model):
    model, batches = Language(model), [(torch.randint(0, 64, (2, 12)),) for _ in range(2)]
    with torch.no_grad():
        model(*batches[0])  # The first call adds hooks to the model, which Dynamo cannot capture.
    return model, batches


def transformer():
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=32, n_embd=16, n_layer=2, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return language(transformers.GPT2LMHeadModel(config))


def experts():
    config = transformers.MixtralConfig(
        vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, num_local_experts=4, num_experts_per_tok=2,
        max_position_embeddings=32, output_router_logits=True,
    )  # fmt: skip
    return language(transformers.MixtralForCausalLM(config))


def convolutional():
    batches = [(torch.randn(8, 3, 16, 16), torch.randint(0, 5, (8,))) for _ in range(2)]
    return Convolutional(), batches


def recurrent():
    batches = [(torch.randint(0, 32, (4, 9)), torch.randint(0, 5, (4,))) for _ in range(2)]
    return Recurrent(), batches


def diffusion():
    batches = [(torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8), torch.rand(2)) for _ in range(2)]
    return UNet(), batches


MODELS = {f.__name__: f for f in (transformer, experts, convolutional, recurrent, diffusion)}


def trained(model, batches, function=None):
    """The losses of all steps, the first gradients, the last weights and buffers, in f64."""
    function = model if function is None else function
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses, gradients = [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = function(*batches[step % len(batches)])
        loss.backward()
        losses.append(loss.detach().double())
        if step == 0:
            gradients = {f"{n}.grad": p.grad.double() for n, p in model.named_parameters()}
        optimizer.step()
    found = {name: t.double() for name, t in model.state_dict().items()}
    return {"losses": torch.stack(losses), **gradients, **found}


def widened_model(model):
    """A copy in f64, which grouped products do not take: its experts run one by one."""
    wide = copy.deepcopy(model).double()
    if isinstance(wide, Language):
        wide.model.config._experts_implementation = "eager"
    return wide


def widened(batches):
    return [tuple(t.double() if t.is_floating_point() else t for t in batch) for batch in batches]


@pytest.mark.parametrize("name", MODELS)
def test_training_follows_eager(name):
    torch.manual_seed(0)
    model, batches = MODELS[name]()
    exact, rounded = widened_model(model), copy.deepcopy(model)
    compiled = torch.compile(model, backend="irees", options={"fallback": False}, fullgraph=True)
    # Without this, Dynamo leaves an LSTM to eager, and nothing is compiled.
    with torch._dynamo.config.patch(allow_rnn=True):
        found = trained(model, batches, compiled)
    wanted, eager = trained(exact, widened(batches)), trained(rounded, batches)
    assert found["losses"][-1] < found["losses"][0]
    for key, value in wanted.items():
        mine, theirs = (torch.linalg.vector_norm(run[key] - value) for run in (found, eager))
        assert mine <= FACTOR * theirs + ROUNDINGS * torch.linalg.vector_norm(value), key
