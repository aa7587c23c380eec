"""
Small programs of the kinds that people run, for `breadth.py`: plain PyTorch with random weights.

A program is a function that returns a module and its inputs. None of them is tuned by name: a pass
that makes one faster is shown on others of its class, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from programs import module_of
from torch import Tensor, nn
from torch.nn import functional as F

Made = tuple[Any, list[Tensor]]
Maker = Callable[[], Made]


def of(function: Callable[..., Any], *inputs: Tensor, **buffers: Tensor) -> Made:
    """A function of buffers and inputs as a program."""
    return module_of(function, **buffers), list(inputs)


def normal(*shape: int) -> Tensor:
    """Normal f32 numbers."""
    return torch.randn(*shape)


def uniform(*shape: int) -> Tensor:
    """f32 numbers of [0, 1)."""
    return torch.rand(*shape)


def integers(high: int, *shape: int) -> Tensor:
    """i64 numbers of [0, high)."""
    return torch.randint(0, high, shape)


def image(channels: int, size: int, batch: int = 1) -> Tensor:
    """A batch of square images."""
    return normal(batch, channels, size, size)


def attend(*shapes: tuple[int, ...], mask: Tensor | None = None, **options: Any) -> Made:
    """Scaled dot product attention of a query, keys and values."""
    q, k = (normal(*shape) for shape in (shapes[0], shapes[-1]))

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, **options)

    if mask is None:
        return of(run, q, k, normal(*k.shape))
    masked = lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=m)  # noqa: E731
    return of(masked, q, k, normal(*k.shape), mask=mask)


CONVOLUTIONS: dict[str, Maker] = {
    "conv_transpose2d_k4s2": lambda: (nn.ConvTranspose2d(128, 64, 4, 2, 1), [image(128, 32)]),
    "conv_transpose2d_k3s2": lambda: (
        nn.ConvTranspose2d(64, 32, 3, 2, 1, output_padding=1), [image(64, 56)]
    ),
    "conv_transpose2d_k2s2": lambda: (nn.ConvTranspose2d(128, 64, 2, 2), [image(128, 48)]),
    "conv_transpose2d_k5s3": lambda: (nn.ConvTranspose2d(17, 31, 5, 3), [image(17, 29)]),
    "conv_transpose1d_k16s8": lambda: (nn.ConvTranspose1d(256, 128, 16, 8, 4), [normal(1, 256, 64)]),
    "conv_transpose3d_k4s2": lambda: (
        nn.ConvTranspose3d(32, 16, 4, 2, 1), [normal(1, 32, 8, 16, 16)]
    ),
    "conv_transpose2d_grouped": lambda: (
        nn.ConvTranspose2d(64, 64, 4, 2, 1, groups=64, bias=False), [image(64, 48)]
    ),
    "conv2d_grouped": lambda: (nn.Conv2d(256, 256, 3, padding=1, groups=32), [image(256, 28)]),
    "conv2d_dilated": lambda: (nn.Conv2d(64, 64, 3, padding=4, dilation=4), [image(64, 56)]),
    "conv2d_depthwise_s2": lambda: (
        nn.Conv2d(96, 96, 3, stride=2, padding=1, groups=96), [image(96, 112)]
    ),
    "conv2d_depthwise_7x7": lambda: (nn.Conv2d(96, 96, 7, padding=3, groups=96), [image(96, 56)]),
    "conv2d_depthwise_dilated": lambda: (
        nn.Conv2d(64, 64, 3, padding=2, dilation=2, groups=64), [image(64, 56)]
    ),
    "conv2d_asymmetric_pad": lambda: (
        nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(32, 64, 3, stride=2)), [image(32, 112)]
    ),
    "conv2d_reflect_pad": lambda: (
        nn.Conv2d(32, 32, 7, padding=3, padding_mode="reflect"), [image(32, 64)]
    ),
    "conv2d_circular_pad": lambda: (
        nn.Conv2d(32, 32, 3, padding=1, padding_mode="circular"), [image(32, 64)]
    ),
    "conv2d_nhwc": lambda: of(
        lambda w, x: F.conv2d(x.permute(0, 3, 1, 2), w, padding=1).permute(0, 2, 3, 1),
        normal(1, 56, 56, 64), w=normal(64, 64, 3, 3),
    ),
    "conv2d_stem_7x7": lambda: (nn.Conv2d(3, 64, 7, 2, 3), [image(3, 224)]),
    "conv2d_patchify": lambda: (nn.Conv2d(3, 384, 16, 16), [image(3, 224)]),
    "conv2d_one_channel": lambda: (nn.Conv2d(1, 32, 3, padding=1), [image(1, 128)]),
    "conv2d_to_one_channel": lambda: (nn.Conv2d(64, 1, 3, padding=1), [image(64, 96)]),
    "conv2d_primes": lambda: (nn.Conv2d(17, 31, 3, padding=1), [image(17, 47)]),
    "conv2d_1x1_s2": lambda: (nn.Conv2d(256, 512, 1, stride=2), [image(256, 28)]),
    "conv2d_7x1_1x7": lambda: (
        nn.Sequential(nn.Conv2d(64, 64, (7, 1), padding=(3, 0)),
                      nn.Conv2d(64, 64, (1, 7), padding=(0, 3))), [image(64, 35)],
    ),
    "conv1d_k3_speech": lambda: (nn.Conv1d(80, 384, 3, padding=1), [normal(1, 80, 1000)]),
    "conv1d_k7_dilated": lambda: (
        nn.Conv1d(128, 128, 7, padding=9, dilation=3), [normal(1, 128, 1024)]
    ),
    "conv1d_depthwise_causal": lambda: of(
        lambda w, x: F.silu(F.conv1d(F.pad(x, (3, 0)), w, groups=512)),
        normal(2, 512, 512), w=normal(512, 1, 4),
    ),
    "conv1d_wave": lambda: (nn.Conv1d(1, 512, 10, stride=5, bias=False), [normal(1, 1, 16000)]),
    "conv3d_k3": lambda: (nn.Conv3d(16, 32, 3, padding=1), [normal(1, 16, 8, 32, 32)]),
    "conv3d_k133": lambda: (
        nn.Conv3d(32, 32, (1, 3, 3), padding=(0, 1, 1)), [normal(1, 32, 8, 28, 28)]
    ),
    "conv2d_argument_weight": lambda: of(
        lambda x, w: F.conv2d(x, w, padding=1), image(32, 56), normal(32, 32, 3, 3)
    ),
    "unfold_fold": lambda: of(
        lambda x: F.fold(F.unfold(x, 3, padding=1) * 2.0, (48, 48), 3, padding=1), image(16, 48)
    ),
}  # fmt: skip

RESAMPLING: dict[str, Maker] = {
    "nearest_x2": lambda: of(lambda x: F.interpolate(x, scale_factor=2.0), image(64, 64)),
    "nearest_odd": lambda: of(lambda x: F.interpolate(x, size=(71, 83)), image(64, 47)),
    "nearest_exact": lambda: of(
        lambda x: F.interpolate(x, size=(100, 100), mode="nearest-exact"), image(32, 64)
    ),
    "nearest_conv": lambda: (
        nn.Sequential(nn.Upsample(scale_factor=2.0), nn.Conv2d(64, 32, 3, padding=1)),
        [image(64, 48)],
    ),
    "bilinear_x2": lambda: of(
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), image(64, 64)
    ),
    "bilinear_corners_odd": lambda: of(
        lambda x: F.interpolate(x, size=(97, 131), mode="bilinear", align_corners=True),
        image(21, 33),
    ),
    "bilinear_small_batch": lambda: of(
        lambda x: F.interpolate(x, size=(224, 224), mode="bilinear"), image(3, 128, 4)
    ),
    "bicubic_x2": lambda: of(
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic"), image(16, 64)
    ),
    "area_down": lambda: of(lambda x: F.interpolate(x, size=(48, 48), mode="area"), image(32, 100)),
    "antialias_down": lambda: of(
        lambda x: F.interpolate(x, size=(96, 96), mode="bilinear", antialias=True), image(3, 256)
    ),
    "linear_1d": lambda: of(
        lambda x: F.interpolate(x, scale_factor=4.0, mode="linear"), normal(1, 128, 500)
    ),
    "trilinear": lambda: of(
        lambda x: F.interpolate(x, scale_factor=2.0, mode="trilinear"), normal(1, 16, 8, 16, 16)
    ),
    "grid_sample": lambda: of(
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        image(32, 64), uniform(1, 64, 64, 2) * 2 - 1,
    ),
    "affine_grid_sample": lambda: of(
        lambda x, t: F.grid_sample(
            x, F.affine_grid(t, [1, 16, 64, 64], align_corners=False), align_corners=False
        ),
        image(16, 64), torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.9, 0.1]]]),
    ),
    "pixel_shuffle": lambda: of(lambda x: F.pixel_shuffle(x, 2), image(128, 64)),
    "pixel_unshuffle": lambda: of(lambda x: F.pixel_unshuffle(x, 2), image(32, 128)),
}  # fmt: skip

POOLING: dict[str, Maker] = {
    "max_pool_3s2": lambda: (nn.MaxPool2d(3, 2, 1), [image(64, 112)]),
    "max_pool_indices": lambda: (nn.MaxPool2d(2, 2, return_indices=True), [image(64, 64)]),
    "avg_pool_3s1": lambda: (nn.AvgPool2d(3, 1, 1), [image(64, 56)]),
    "avg_pool_1d": lambda: (nn.AvgPool1d(4, 4), [normal(8, 64, 1000)]),
    "adaptive_avg_7": lambda: (nn.AdaptiveAvgPool2d(7), [image(128, 30)]),
    "adaptive_max_5": lambda: (nn.AdaptiveMaxPool2d(5), [image(128, 32)]),
    "lp_pool": lambda: (nn.LPPool2d(2, 3, 2), [image(32, 64)]),
    "max_pool_3d": lambda: (nn.MaxPool3d(2), [normal(1, 32, 16, 32, 32)]),
    "global_avg": lambda: of(lambda x: x.mean((2, 3)), image(512, 14, 4)),
    "spatial_pyramid": lambda: of(
        lambda x: torch.cat([x, *(F.max_pool2d(x, k, 1, k // 2) for k in (5, 9, 13))], 1),
        image(64, 20),
    ),
}  # fmt: skip


def scan(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """A linear recurrence step by step: h = a h + b x."""
    state, out = torch.zeros_like(a[:, 0]), []
    for t in range(a.shape[1]):
        state = a[:, t] * state + b[:, t] * x[:, t]
        out.append(state)
    return torch.stack(out, 1)


def chunked_scan(log_decay: Tensor, b: Tensor, c: Tensor, x: Tensor) -> Tensor:
    """One block of Mamba 2: a decayed causal product, then the state."""
    total = log_decay.cumsum(-1)
    mask = torch.ones(total.shape[-1], total.shape[-1], dtype=torch.bool).tril()
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(~mask, -torch.inf).exp()
    return torch.einsum("hls,hsp->hlp", torch.einsum("hln,hsn->hls", c, b) * decay, x)


RECURRENT: dict[str, Maker] = {
    "lstm": lambda: (nn.LSTM(128, 128, batch_first=True), [normal(1, 64, 128)]),
    "lstm_batch": lambda: (nn.LSTM(64, 256), [normal(32, 16, 64)]),
    "lstm_bidirectional": lambda: (nn.LSTM(80, 96, bidirectional=True), [normal(50, 4, 80)]),
    "lstm_projection": lambda: (nn.LSTM(96, 192, proj_size=64), [normal(40, 4, 96)]),
    "lstm_two_layers": lambda: (nn.LSTM(64, 128, num_layers=2), [normal(32, 8, 64)]),
    "gru": lambda: (nn.GRU(128, 128, batch_first=True), [normal(1, 64, 128)]),
    "gru_bidirectional": lambda: (nn.GRU(40, 64, bidirectional=True), [normal(60, 8, 40)]),
    "rnn_tanh": lambda: (nn.RNN(64, 128), [normal(64, 8, 64)]),
    "lstm_cell": lambda: (nn.LSTMCell(256, 256), [normal(16, 256)]),
    "scan_steps": lambda: of(scan, *(uniform(4, 24, 256) for _ in range(3))),
    "scan_chunk": lambda: of(
        chunked_scan, -uniform(16, 64), normal(16, 64, 32), normal(16, 64, 32), normal(16, 64, 64)
    ),
    "exponential_average": lambda: of(
        lambda x: (x * 1.01 ** torch.arange(256.0)).cumsum(-1) * 0.99 ** torch.arange(256.0),
        normal(64, 256),
    ),
}  # fmt: skip


def disentangled(q: Tensor, k: Tensor, v: Tensor, r: Tensor) -> Tensor:
    """DeBERTa: scores and a bias that is gathered by the distance of the tokens."""
    tokens = q.shape[-2]
    place = torch.arange(tokens)
    distance = (place[:, None] - place[None, :] + tokens).clamp(0, 2 * tokens - 1)
    index = distance.expand(*q.shape[:-2], tokens, tokens)
    to_place = torch.gather(q @ r.transpose(-1, -2), -1, index)
    from_place = torch.gather(k @ r.transpose(-1, -2), -1, index).transpose(-1, -2)
    scores = (q @ k.transpose(-1, -2) + to_place + from_place) / (3 * q.shape[-1]) ** 0.5
    return scores.softmax(-1) @ v


def t5_bias(table: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """T5: no scale, and a learned bias for buckets of the distance."""
    place = torch.arange(q.shape[-2])
    bucket = (place[None, :] - place[:, None]).abs().clamp(max=31)
    return ((q @ k.transpose(-1, -2)) + table[bucket].permute(2, 0, 1)).softmax(-1) @ v


def banded(size: int, width: int) -> Tensor:
    """Which keys are at most so far before a query."""
    place = torch.arange(size)
    distance = place[:, None] - place[None, :]
    return (distance >= 0) & (distance < width)


ATTENTION: dict[str, Maker] = {
    "attention_causal": lambda: attend((1, 12, 128, 64), is_causal=True),
    "attention_masked": lambda: attend(
        (1, 8, 256, 64), mask=torch.where(uniform(256, 256) > 0.3, 0.0, -1e9)
    ),
    "attention_t5_bias": lambda: of(
        t5_bias, *(normal(8, 128, 64) for _ in range(3)), table=normal(32, 8)
    ),
    "attention_disentangled": lambda: of(
        disentangled, *(normal(6, 128, 64) for _ in range(3)), normal(6, 256, 64)
    ),
    "attention_cross": lambda: attend((1, 8, 1024, 40), (1, 8, 77, 40)),
    "attention_grouped_query": lambda: attend(
        (1, 16, 128, 64), (1, 4, 128, 64), is_causal=True, enable_gqa=True
    ),
    "attention_window": lambda: attend((1, 8, 512, 64), mask=banded(512, 64)),
    "attention_long_keys": lambda: attend((1, 4, 1024, 40)),
    "attention_long_keys_d16": lambda: attend((1, 8, 1024, 16)),
    "attention_long_keys_d128": lambda: attend((1, 2, 1024, 128)),
    "attention_decode": lambda: attend((1, 16, 1, 64), (1, 16, 2048, 64)),
    "attention_swin": lambda: of(
        lambda b, q, k, v: ((q @ k.transpose(-1, -2)) * 0.18 + b).softmax(-1) @ v,
        *(normal(64, 3, 49, 32) for _ in range(3)), b=normal(3, 49, 49),
    ),
    "attention_linear": lambda: of(
        lambda q, k, v: (F.elu(q) + 1) @ ((F.elu(k) + 1).transpose(-1, -2) @ v),
        *(normal(8, 512, 32) for _ in range(3)),
    ),
    "attention_module": lambda: of_attention_module(),
}  # fmt: skip


def of_attention_module() -> Made:
    """nn.MultiheadAttention of one input with itself."""
    attention = nn.MultiheadAttention(256, 8, batch_first=True)

    class SelfAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = attention

        def forward(self, x: Tensor) -> Tensor:
            return self.attention(x, x, x, need_weights=False)[0]

    return SelfAttention(), [normal(2, 100, 256)]


NORMS: dict[str, Maker] = {
    "layer_norm": lambda: (nn.LayerNorm(768), [normal(128, 768)]),
    "layer_norm_channels": lambda: of(
        lambda w, b, x: F.layer_norm(x.permute(0, 2, 3, 1), (96,), w, b).permute(0, 3, 1, 2),
        image(96, 56), w=normal(96), b=normal(96),
    ),
    "group_norm": lambda: (nn.GroupNorm(32, 128), [image(128, 32)]),
    "instance_norm": lambda: (nn.InstanceNorm2d(64), [image(64, 64)]),
    "batch_norm_statistics": lambda: of(
        lambda x: F.batch_norm(x, None, None, training=True), image(64, 28, 4)
    ),
    "rms_norm": lambda: (nn.RMSNorm(1024), [normal(64, 1024)]),
    "normalize_dim1": lambda: of(lambda x: F.normalize(x, dim=1), normal(4, 256, 400)),
    "softmax_last": lambda: of(lambda x: x.softmax(-1), normal(512, 1000)),
    "softmax_dim1": lambda: of(lambda x: x.softmax(1), image(21, 128)),
    "softmax_dim0": lambda: of(lambda x: x.softmax(0), normal(128, 1000)),
    "log_softmax_loss": lambda: of(
        lambda x, y: F.cross_entropy(x, y), normal(128, 1000), integers(1000, 128)
    ),
    "standardize": lambda: of(lambda x: (x - x.mean(0)) / x.std(0), normal(1000, 128)),
}  # fmt: skip

REDUCTIONS: dict[str, Maker] = {
    "sum_dim0": lambda: of(lambda x: x.sum(0), normal(1000, 1000)),
    "mean_channels": lambda: of(lambda x: x.mean((0, 2, 3)), image(64, 56, 4)),
    "amax_middle": lambda: of(lambda x: x.amax(1), normal(32, 100, 256)),
    "argmax_last": lambda: of(lambda x: x.argmax(-1), normal(512, 1000)),
    "argmax_dim1": lambda: of(lambda x: x.argmax(1), image(21, 128)),
    "max_with_indices": lambda: of(lambda x: x.max(-1), normal(512, 400)),
    "logsumexp": lambda: of(lambda x: x.logsumexp(-1), normal(512, 1000)),
    "norm_rows": lambda: of(lambda x: x.norm(dim=-1), normal(1000, 1000)),
    "var_dim0": lambda: of(lambda x: x.var(0), normal(1000, 500)),
    "any_rows": lambda: of(lambda x: (x > 3).any(-1), normal(1000, 1000)),
    "count_true": lambda: of(lambda x: (x > 0).sum(-1), normal(1000, 1000)),
    "distances": lambda: of(torch.cdist, normal(200, 64), normal(300, 64)),
    "cosine_matrix": lambda: of(
        lambda x: F.normalize(x, dim=-1) @ F.normalize(x, dim=-1).T, normal(256, 128)
    ),
}  # fmt: skip

INDEXING: dict[str, Maker] = {
    "embedding": lambda: (nn.Embedding(10000, 256), [integers(10000, 4, 256)]),
    "embedding_bag": lambda: (nn.EmbeddingBag(10000, 64), [integers(10000, 256, 20)]),
    "embedding_narrow": lambda: (nn.Embedding(1000, 8), [integers(1000, 64, 100)]),
    "gather_columns": lambda: of(
        lambda x, i: x.gather(1, i), normal(256, 1000), integers(1000, 256, 500)
    ),
    "index_select_dim1": lambda: of(
        lambda x, i: x.index_select(1, i), normal(256, 1000), integers(1000, 300)
    ),
    "index_rows_columns": lambda: of(
        lambda x, i, j: x[i, j], normal(500, 500), integers(500, 40000), integers(500, 40000)
    ),
    "graph_convolution": lambda: of(
        lambda x, s, d: torch.zeros(1000, 64).index_add(0, d, x[s]),
        normal(1000, 64), integers(1000, 8000), integers(1000, 8000),
    ),
    "scatter_add": lambda: of(
        lambda x, i: torch.zeros(64, 200).scatter_add(1, i, x),
        normal(64, 1000), integers(200, 64, 1000),
    ),
    "scatter_max": lambda: of(
        lambda x, i: torch.full((500, 32), -1e9).scatter_reduce(
            0, i[:, None].expand(-1, 32), x, "amax"
        ),
        normal(4000, 32), integers(500, 4000),
    ),
    "one_hot_matmul": lambda: of(
        lambda w, i: F.one_hot(i, 100).float() @ w, integers(100, 512), w=normal(100, 64)
    ),
    "neighbour_max": lambda: of(
        lambda x, i: x[i].amax(1), normal(1024, 64), integers(1024, 1024, 16)
    ),
    "table_lookup": lambda: of(
        lambda t, x: t[(x * 255).to(torch.int64)], uniform(3, 224, 224), t=normal(256)
    ),
    "cache_update": lambda: of(
        lambda c, x, i: c.index_copy(2, i, x),
        normal(1, 8, 512, 64), normal(1, 8, 1, 64), torch.tensor([100]),
    ),
}  # fmt: skip


def suppress(boxes: Tensor, scores: Tensor) -> Tensor:
    """Non-maximum suppression in one matrix: the score of the worst overlap with a better box."""
    order = scores.argsort(descending=True)
    box = boxes[order]
    low = torch.maximum(box[:, None, :2], box[None, :, :2])
    high = torch.minimum(box[:, None, 2:], box[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    area = (box[:, 2:] - box[:, :2]).clamp(min=0).prod(-1)
    overlap = both / (area[:, None] + area[None, :] - both + 1e-6)
    return scores[order] * (overlap.triu(1).amax(0) < 0.5)


ORDERING: dict[str, Maker] = {
    "sort_rows": lambda: of(lambda x: x.sort(-1), normal(128, 1000)),
    "argsort_dim0": lambda: of(lambda x: x.argsort(0), normal(256, 64)),
    "topk_few": lambda: of(lambda x: x.topk(5), normal(64, 1000)),
    "topk_many": lambda: of(lambda x: x.topk(100), normal(8, 10000)),
    "median_rows": lambda: of(lambda x: x.median(-1)[0], normal(128, 501)),
    "searchsorted": lambda: of(
        lambda e, x: torch.searchsorted(e, x), normal(20000), e=normal(128).sort()[0]
    ),
    "bucketize": lambda: of(
        lambda e, x: torch.bucketize(x, e), normal(20000), e=torch.linspace(-2, 2, 33)
    ),
    "suppression": lambda: of(
        suppress, torch.cat([uniform(200, 2), uniform(200, 2) + 0.5], 1), uniform(200)
    ),
    "cumsum_last": lambda: of(lambda x: x.cumsum(-1), normal(256, 1000)),
    "cumsum_dim0": lambda: of(lambda x: x.cumsum(0), normal(500, 512)),
    "cumprod": lambda: of(lambda x: x.cumprod(-1), uniform(64, 500) + 0.5),
    "cummax": lambda: of(lambda x: x.cummax(-1), normal(128, 500)),
    "logcumsumexp": lambda: of(lambda x: x.logcumsumexp(-1), normal(64, 500)),
    "integral_image": lambda: of(lambda x: x.cumsum(-1).cumsum(-2), image(3, 200)),
}  # fmt: skip


def spectral_layer(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """A layer of a Fourier neural operator: channels are mixed per mode of low frequency."""
    modes = torch.fft.rfft(x)[..., : w.shape[2]]
    mixed = torch.einsum("bix,iox->box", modes, torch.view_as_complex(w))
    return torch.fft.irfft(mixed, n=x.shape[-1])


SPECTRA: dict[str, Maker] = {
    "rfft_1024": lambda: of(lambda x: torch.view_as_real(torch.fft.rfft(x)), normal(64, 1024)),
    "fft2_64": lambda: of(
        lambda x: torch.fft.ifft2(torch.fft.fft2(x) * 0.5).real, normal(8, 64, 64)
    ),
    "fft_prime": lambda: of(lambda x: torch.fft.rfft(x).abs(), normal(32, 401)),
    "spectrogram": lambda: of(
        lambda w, x: torch.stft(x, 400, 160, window=w, return_complex=True).abs().square(),
        normal(1, 16000), w=torch.hann_window(400),
    ),
    "fft_convolution": lambda: of(
        lambda x, k: torch.fft.irfft(torch.fft.rfft(x, 1024) * torch.fft.rfft(k, 1024), 1024),
        normal(32, 512), normal(32, 512),
    ),
    "spectral_layer": lambda: of(spectral_layer, normal(8, 32, 256), w=normal(32, 32, 16, 2)),
    "rotary_complex": lambda: of(
        lambda f, x: torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(f)),
        normal(1, 256, 8, 32, 2), f=normal(256, 1, 32, 2),
    ),
    "complex_matmul": lambda: of(
        lambda a, b: torch.view_as_real(torch.view_as_complex(a) @ torch.view_as_complex(b)),
        normal(128, 96, 2), normal(96, 160, 2),
    ),
    "complex_mean": lambda: of(
        lambda x: torch.view_as_real(torch.view_as_complex(x).mean(0)), normal(256, 300, 2)
    ),
}  # fmt: skip

ELEMENTS: dict[str, Maker] = {
    "gelu": lambda: of(F.gelu, normal(128, 3072)),
    "silu_gate": lambda: of(lambda x: F.silu(x[..., :512]) * x[..., 512:], normal(256, 1024)),
    "rotary": lambda: of(
        lambda c, s, x: x * c + torch.cat([-x[..., 32:], x[..., :32]], -1) * s,
        normal(1, 16, 256, 64), c=normal(256, 64), s=normal(256, 64),
    ),
    "prime_add": lambda: of(lambda x, y: (x + y).relu(), normal(99991), normal(99991)),
    "add_transposed": lambda: of(lambda x, y: x + y.T, normal(1000, 1000), normal(1000, 1000)),
    "image_normalize": lambda: of(
        lambda m, x: (x.permute(0, 3, 1, 2).float() / 255 - m) / 0.226,
        torch.randint(0, 256, (1, 224, 224, 3), dtype=torch.uint8), m=uniform(3, 1, 1),
    ),
    "quantize": lambda: of(
        lambda x: (x * 32).round().clamp(-128, 127).to(torch.int8), normal(256, 1024)
    ),
    "dequantize": lambda: of(
        lambda x: (x.float() - 3) * 0.05,
        torch.randint(-128, 128, (256, 1024), dtype=torch.int8),
    ),
    "integer_hash": lambda: of(
        lambda x: ((x * 2654435761) ^ (x >> 13)) % 1000, integers(1 << 30, 100000)
    ),
    "bits": lambda: of(
        lambda x: ((x[:, None] >> torch.arange(8, dtype=torch.uint8)) & 1).float(),
        torch.randint(0, 256, (20000,), dtype=torch.uint8),
    ),
    "masks": lambda: of(
        lambda x, y: torch.where((x > 0) & ~(y > 0.5) | (x < -1), x, y),
        normal(512, 512), normal(512, 512),
    ),
    "concat_channels": lambda: of(
        lambda x, y: torch.cat([x, y.relu()], 1), image(64, 56), image(32, 56)
    ),
    "roll_windows": lambda: of(
        lambda x: x.roll((-3, -3), (1, 2)).view(1, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5)
        .reshape(64, 49, 96),
        normal(1, 56, 56, 96),
    ),
    "flip": lambda: of(lambda x: x.flip(-1), image(32, 112)),
    "permute_heads": lambda: of(
        lambda x: x.view(4, 128, 12, 64).transpose(1, 2).contiguous(), normal(4, 128, 768)
    ),
    "positions": lambda: of(
        lambda t: torch.cat([(t[:, None] * 0.9 ** torch.arange(64.0)).sin(),
                             (t[:, None] * 0.9 ** torch.arange(64.0)).cos()], -1),
        uniform(256) * 100,
    ),
}  # fmt: skip

PRODUCTS: dict[str, Maker] = {
    "linear_batch1": lambda: (nn.Linear(1024, 1000), [normal(1, 1024)]),
    "linear_17": lambda: (nn.Linear(1000, 31), [normal(17, 1000)]),
    "matmul_primes": lambda: of(torch.matmul, normal(127, 131), normal(131, 137)),
    "bmm_tiny": lambda: of(torch.matmul, normal(500, 4, 4), normal(500, 4, 4)),
    "outer_bilinear": lambda: (nn.Bilinear(32, 32, 16), [normal(64, 32), normal(64, 32)]),
    "mlp_784": lambda: (
        nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), [normal(17, 784)]
    ),
    "low_rank": lambda: of(
        lambda w, a, b, x: x @ w + (x @ a) @ b, normal(64, 512),
        w=normal(512, 512), a=normal(512, 8), b=normal(8, 512),
    ),
    "interactions": lambda: of(
        lambda x: (x @ x.transpose(1, 2))[:, *torch.tril_indices(27, 27, -1)], normal(128, 27, 16)
    ),
    "vector_matrix": lambda: of(lambda w, x: x @ w.T, normal(1, 2048), w=normal(2048, 2048)),
}  # fmt: skip

STATIC: dict[str, Maker] = {
    **CONVOLUTIONS, **RESAMPLING, **POOLING, **RECURRENT, **ATTENTION, **NORMS, **REDUCTIONS,
    **INDEXING, **ORDERING, **SPECTRA, **ELEMENTS, **PRODUCTS,
}  # fmt: skip
"""Programs by name, by kind."""

DYNAMIC: dict[str, tuple[tuple[int, int], ...]] = {
    "conv_transpose2d_k4s2": ((0, 2), (0, 3)),
    "conv2d_dilated": ((0, 2), (0, 3)),
    "conv2d_depthwise_s2": ((0, 0),),
    "nearest_x2": ((0, 2), (0, 3)),
    "bilinear_x2": ((0, 2), (0, 3)),
    "max_pool_3s2": ((0, 2), (0, 3)),
    "attention_causal": ((0, 2), (1, 2), (2, 2)),
    "layer_norm": ((0, 0),),
    "softmax_last": ((0, 0), (0, 1)),
    "embedding": ((0, 1),),
    "graph_convolution": ((1, 0), (2, 0)),
    "sort_rows": ((0, 0),),
    "cumsum_last": ((0, 1),),
    "gelu": ((0, 0),),
    "mlp_784": ((0, 0),),
}
"""Programs that run with dynamic sizes, too: inputs and their dims."""
