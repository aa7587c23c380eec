"""Sequence models in plain PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

MODELS: dict[str, Callable[[], tuple[Any, ...]]] = {}
"""Name => a function that makes a model and the arguments of one call."""


def zoo(name: str) -> Callable[[Any], Any]:
    """Adds a function that makes a model and its arguments."""

    def register(function: Any) -> Any:
        MODELS[name] = function
        return function

    return register


def words(*shape: int, vocabulary: int = 50) -> torch.Tensor:
    """Random tokens."""
    return torch.randint(0, vocabulary, shape)


class Tagger(nn.Module):
    """Bidirectional recurrent tagger."""

    def __init__(self, cell: type[nn.Module]):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.rnn = cell(16, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.embed(x))[0]).log_softmax(-1)


@zoo("lstm_tagger")
def lstm_tagger() -> tuple[Any, ...]:
    return Tagger(nn.LSTM), words(2, 9)


@zoo("gru_tagger")
def gru_tagger() -> tuple[Any, ...]:
    return Tagger(nn.GRU), words(2, 9)


@zoo("rnn_tagger")
def rnn_tagger() -> tuple[Any, ...]:
    return Tagger(nn.RNN), words(2, 9)


class Seq2Seq(nn.Module):
    """GRU encoder, and a decoder with attention that feeds back its best token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.encoder = nn.GRU(16, 16, batch_first=True)
        self.cell = nn.GRUCell(32, 16)
        self.head = nn.Linear(16, 50)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        memory, state = self.encoder(self.embed(x))
        state, token, scores = state[0], x[:, 0], []
        for _ in range(4):
            weights = torch.einsum("bld,bd->bl", memory, state).softmax(-1)
            context = torch.einsum("bl,bld->bd", weights, memory)
            state = self.cell(torch.cat([self.embed(token), context], -1), state)
            scores.append(self.head(state))
            token = scores[-1].argmax(-1)
        return torch.stack(scores, 1), token


@zoo("seq2seq_attention")
def seq2seq() -> tuple[Any, ...]:
    return Seq2Seq(), words(2, 7)


@zoo("transformer")
def transformer() -> tuple[Any, ...]:
    model = nn.Transformer(16, 2, 2, 2, 32, batch_first=True)
    return model, torch.randn(2, 6, 16), torch.randn(2, 5, 16)


@zoo("transformer_encoder_masked")
def encoder_masked() -> tuple[Any, ...]:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x: torch.Tensor, pad: torch.Tensor) -> torch.Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.encoder(x, mask=mask, is_causal=True, src_key_padding_mask=pad)

    pad = torch.zeros(2, 6)
    pad[1, 4:] = -torch.inf
    return Masked(), torch.randn(2, 6, 16), pad


class NanoGPT(nn.Module):
    """A GPT with its loss and generation of four tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.norm, self.qkv = nn.LayerNorm(16), nn.Linear(16, 48)
        self.up, self.down, self.head = nn.Linear(16, 64), nn.Linear(64, 16), nn.Linear(16, 50)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        q, k, v = self.qkv(self.norm(h)).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        h = h + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return self.head(h + self.down(F.gelu(self.up(h))))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        loss = F.cross_entropy(self.logits(x).flatten(0, 1), y.flatten())
        for _ in range(4):
            x = torch.cat([x, self.logits(x)[:, -1:].argmax(-1)], 1)
        return loss, x


@zoo("nano_gpt")
def nano_gpt() -> tuple[Any, ...]:
    return NanoGPT(), words(2, 6), words(2, 6)


class WaveNet(nn.Module):
    """Dilated causal convolutions with gates and skips."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 12, 1)
        self.gates = nn.ModuleList(nn.Conv1d(12, 24, 2, dilation=2**i) for i in range(4))
        self.mixes = nn.ModuleList(nn.Conv1d(12, 24, 1) for _ in range(4))
        self.head = nn.Conv1d(12, 32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, skips = self.first(x), 0.0
        for gate, mix in zip(self.gates, self.mixes):
            a, b = gate(F.pad(x, (gate.dilation[0], 0))).chunk(2, 1)
            residual, skip = mix(a.tanh() * b.sigmoid()).chunk(2, 1)
            x, skips = x + residual, skips + skip
        return self.head(F.relu(skips))


@zoo("wavenet")
def wavenet() -> tuple[Any, ...]:
    return WaveNet(), torch.randn(2, 1, 40)


class TextCnn(nn.Module):
    """Kim's convolutions over words."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(16, 8, k) for k in (2, 3, 4))
        self.head = nn.Linear(24, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x).transpose(1, 2)
        return self.head(torch.cat([c(x).relu().amax(-1) for c in self.convs], 1))


@zoo("text_cnn")
def text_cnn() -> tuple[Any, ...]:
    return TextCnn(), words(3, 12)


class FastText(nn.Module):
    """A bag of words."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(50, 16, mode="mean"), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.head(self.bag(x, offsets))


@zoo("fasttext")
def fasttext() -> tuple[Any, ...]:
    return FastText(), words(10), torch.tensor([0, 3, 7])


class Ssm(nn.Module):
    """A diagonal state space model as a scan over time."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(-torch.rand(8, 4))
        self.project = nn.Linear(8, 17)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        step, b, c = self.project(x).split([9, 4, 4], -1)
        step = F.softplus(step[..., :8])
        state, out = x.new_zeros(x.shape[0], 8, 4), []
        for t in range(x.shape[1]):
            decay = (step[:, t, :, None] * self.a).exp()
            state = state * decay + (step[:, t] * x[:, t])[..., None] * b[:, t, None]
            out.append((state * c[:, t, None]).sum(-1))
        return torch.stack(out, 1)


@zoo("state_space")
def state_space() -> tuple[Any, ...]:
    return Ssm(), torch.randn(2, 6, 8)


class Retention(nn.Module):
    """Linear attention with decay, by cumulative sums."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.cumsum(torch.einsum("btd,bte->btde", k, v), 1)
        return torch.einsum("btd,btde->bte", q, kv) / (q * k.cumsum(1)).sum(-1, keepdim=True)


@zoo("linear_attention")
def linear_attention() -> tuple[Any, ...]:
    return Retention(), torch.randn(2, 7, 16)


class FourierMixer(nn.Module):
    """Global filters in the frequency domain."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(9, 8, 2) / 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x, dim=1) * torch.view_as_complex(self.weight)
        return x + torch.fft.irfft(spectrum, n=x.shape[1], dim=1)


@zoo("fourier_filter")
def fourier_filter() -> tuple[Any, ...]:
    return FourierMixer(), torch.randn(2, 16, 8)


class Spectrogram(nn.Module):
    """A recogniser of keywords from a waveform: STFT, mel bands, convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bands", torch.rand(33, 12))
        self.conv, self.head = nn.Conv2d(1, 8, 3, padding=1), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(x, 64, 32, window=self.window, return_complex=True)
        mel = (spectrum.abs().square().transpose(1, 2) @ self.bands).clamp(min=1e-6).log()
        return self.head(self.conv(mel[:, None]).relu().mean((2, 3)))


@zoo("keyword_spotting")
def keyword_spotting() -> tuple[Any, ...]:
    return Spectrogram(), torch.randn(2, 400)


class Crf(nn.Module):
    """A linear-chain CRF: the partition function and the best path."""

    def __init__(self) -> None:
        super().__init__()
        self.emit, self.move = nn.Linear(8, 5), nn.Parameter(torch.randn(5, 5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.emit(x)
        alpha, best, back = scores[:, 0], scores[:, 0], []
        for t in range(1, x.shape[1]):
            alpha = (alpha[:, :, None] + self.move).logsumexp(1) + scores[:, t]
            best, argument = (best[:, :, None] + self.move).max(1)
            best = best + scores[:, t]
            back.append(argument)
        path = [best.argmax(-1)]
        for argument in reversed(back):
            path.append(argument.gather(1, path[-1][:, None])[:, 0])
        return alpha.logsumexp(1), torch.stack(path[::-1], 1)


@zoo("crf")
def crf() -> tuple[Any, ...]:
    return Crf(), torch.randn(2, 6, 8)


class RelativeAttention(nn.Module):
    """Attention with relative positions, rotary and ALiBi."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.table = nn.Linear(16, 48), nn.Embedding(15, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        place = torch.arange(length)
        angle = place[:, None] / 100 ** (torch.arange(4) / 4)
        turn = torch.polar(torch.ones_like(angle), angle)
        q, k = (
            torch.view_as_real(torch.view_as_complex(t.unflatten(-1, (4, 2))) * turn).flatten(-2)
            for t in (q, k)
        )
        apart = place[None] - place[:, None]
        bias = self.table((apart + 7).clamp(0, 14)).permute(2, 0, 1) - apart.abs() * 0.1
        scores = q @ k.mT / math.sqrt(8) + bias
        scores = scores.masked_fill(apart > 0, -torch.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@zoo("rotary_attention")
def rotary_attention() -> tuple[Any, ...]:
    return RelativeAttention(), torch.randn(2, 7, 16)
