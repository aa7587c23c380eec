"""Image models in plain PyTorch."""

from __future__ import annotations

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


def double(inner: int, outer: int) -> nn.Sequential:
    """Two convolutions with batch norms."""
    return nn.Sequential(
        nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU(inplace=True),
        nn.Conv2d(outer, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU(inplace=True),
    )  # fmt: skip


class UNet(nn.Module):
    """Ronneberger's U-Net with two levels."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = double(3, 8), double(8, 16), double(16, 32)
        self.up1, self.d1 = nn.ConvTranspose2d(32, 16, 2, 2), double(32, 16)
        self.up2, self.d2 = nn.ConvTranspose2d(16, 8, 2, 2), double(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        b = self.d1(torch.cat([self.up1(c), b], 1))
        return self.head(self.d2(torch.cat([self.up2(b), a], 1)))


@zoo("unet")
def unet() -> tuple[Any, ...]:
    return UNet(), torch.randn(1, 3, 16, 16)


@zoo("dcgan_generator")
def dcgan() -> tuple[Any, ...]:
    model = nn.Sequential(
        nn.Unflatten(1, (16, 1, 1)), nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    return model, torch.randn(2, 16)


@zoo("gan_discriminator")
def discriminator() -> tuple[Any, ...]:
    spectral = nn.utils.parametrizations.spectral_norm
    model = nn.Sequential(
        spectral(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2),
        spectral(nn.Conv2d(8, 16, 4, 2, 1)), nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(16 * 16, 1),
    )  # fmt: skip
    return model, torch.randn(2, 3, 16, 16)


class Vae(nn.Module):
    """A variational autoencoder; its noise is an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))
        self.decode = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> dict[str, torch.Tensor]:
        mean, variance = self.encode(x).chunk(2, 1)
        image = self.decode(mean + noise * (variance / 2).exp()).view_as(x)
        divergence = -0.5 * (1 + variance - mean.square() - variance.exp()).sum(1)
        return {"image": image, "loss": F.binary_cross_entropy(image, x) + divergence.mean()}


@zoo("vae")
def vae() -> tuple[Any, ...]:
    return Vae(), torch.rand(2, 1, 8, 8), torch.randn(2, 8)


class VqVae(nn.Module):
    """A vector quantiser between convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 8, 4, 2, 1), nn.ConvTranspose2d(8, 3, 4, 2, 1)
        self.codes = nn.Embedding(12, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        z = self.down(x).permute(0, 2, 3, 1)
        index = torch.cdist(z.reshape(-1, 8), self.codes.weight).argmin(-1)
        code = self.codes(index).view_as(z)
        loss = F.mse_loss(code.detach(), z) + F.mse_loss(code, z.detach())
        code = z + (code - z).detach()
        return self.up(code.permute(0, 3, 1, 2)), loss, index


@zoo("vq_vae")
def vq_vae() -> tuple[Any, ...]:
    return VqVae(), torch.randn(2, 3, 8, 8)


class Mixer(nn.Module):
    """MLP-Mixer."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(4))
        self.tokens = nn.ModuleList(self.mlp(16) for _ in range(2))
        self.channels = nn.ModuleList(self.mlp(16) for _ in range(2))
        self.head = nn.Linear(16, 10)

    @staticmethod
    def mlp(width: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patch(x).flatten(2).mT
        for i in range(2):
            x = x + self.tokens[i](self.norms[2 * i](x).mT).mT
            x = x + self.channels[i](self.norms[2 * i + 1](x))
        return self.head(x.mean(1))


@zoo("mlp_mixer")
def mlp_mixer() -> tuple[Any, ...]:
    return Mixer(), torch.randn(2, 3, 16, 16)


class Capsules(nn.Module):
    """Capsules with three rounds of routing by agreement."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 5, 2)
        self.weight = nn.Parameter(torch.randn(1, 36, 5, 8, 4) * 0.1)

    @staticmethod
    def squash(v: torch.Tensor) -> torch.Tensor:
        norm = v.norm(dim=-1, keepdim=True)
        return norm / (1 + norm.square()) * v

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u = self.squash(self.conv(x).reshape(x.shape[0], 36, 4))
        votes = torch.einsum("bnd,nkod->bnko", u, self.weight[0])
        logits = votes.new_zeros(votes.shape[:3])
        for _ in range(3):
            v = self.squash((logits.softmax(2)[..., None] * votes).sum(1))
            logits = logits + (votes * v[:, None]).sum(-1)
        return v.norm(dim=-1)


@zoo("capsules")
def capsules() -> tuple[Any, ...]:
    return Capsules(), torch.randn(2, 1, 9, 9)


class SpatialTransformer(nn.Module):
    """Localisation, affine grid, sampling."""

    def __init__(self) -> None:
        super().__init__()
        self.locate = nn.Sequential(nn.Flatten(), nn.Linear(64, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        theta = self.locate(x).view(-1, 2, 3)
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False))


@zoo("spatial_transformer")
def spatial_transformer() -> tuple[Any, ...]:
    return SpatialTransformer(), torch.randn(2, 1, 8, 8)


class SuperResolution(nn.Module):
    """ESPCN: convolutions and a pixel shuffle beside a bicubic skip."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 5, padding=2), nn.Conv2d(16, 12, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        return skip + F.pixel_shuffle(self.b(self.a(x).tanh()), 2)


@zoo("super_resolution")
def super_resolution() -> tuple[Any, ...]:
    return SuperResolution(), torch.rand(1, 3, 8, 8)


class Fpn(nn.Module):
    """A feature pyramid with heads and decoded boxes, the best by score."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv2d(c, 16, 3, 2, 1) for c in (3, 16, 16))
        self.sides = nn.ModuleList(nn.Conv2d(16, 8, 1) for _ in range(3))
        self.head = nn.Conv2d(8, 5, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        levels, boxes = [], []
        for stage in self.stages:
            x = stage(x).relu()
            levels.append(x)
        above = None
        for side, level in zip(reversed(self.sides), reversed(levels)):
            here = side(level)
            if above is not None:
                here = here + F.interpolate(above, size=here.shape[-2:], mode="nearest")
            above = here
            boxes.append(self.head(here).flatten(2).mT)
        found = torch.cat(boxes, 1)
        score, index = found[..., 4].sigmoid().topk(5, 1)
        return score, found[..., :4].exp().gather(1, index[..., None].expand(-1, -1, 4))


@zoo("fpn_detector")
def fpn_detector() -> tuple[Any, ...]:
    return Fpn(), torch.randn(1, 3, 32, 32)


class StyleBlock(nn.Module):
    """A modulated convolution of StyleGAN by a grouped convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.style = nn.Parameter(torch.randn(8, 4, 3, 3)), nn.Linear(6, 4)

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        weight = self.weight[None] * (self.style(w) + 1)[:, None, :, None, None]
        weight = weight * (weight.square().sum((2, 3, 4), keepdim=True) + 1e-8).rsqrt()
        x = x.reshape(1, batch * 4, *x.shape[2:])
        out = F.conv2d(x, weight.flatten(0, 1), padding=1, groups=batch)
        return F.leaky_relu(out.view(batch, 8, *out.shape[2:]), 0.2)


@zoo("stylegan_block")
def stylegan_block() -> tuple[Any, ...]:
    return StyleBlock(), torch.randn(2, 4, 8, 8), torch.randn(2, 6)


class ConvLstm(nn.Module):
    """A convolutional LSTM over frames."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv2d(3 + 6, 24, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = c = x.new_zeros(x.shape[0], 6, *x.shape[-2:])
        for frame in x.unbind(1):
            i, f, o, g = self.gates(torch.cat([frame, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h, c


@zoo("conv_lstm")
def conv_lstm() -> tuple[Any, ...]:
    return ConvLstm(), torch.randn(1, 3, 3, 8, 8)


@zoo("conv3d_video")
def conv3d_video() -> tuple[Any, ...]:
    model = nn.Sequential(
        nn.Conv3d(3, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2),
        nn.Conv3d(8, 16, 3, groups=2), nn.GroupNorm(4, 16), nn.SiLU(),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip
    return model, torch.randn(1, 3, 8, 12, 12)


class Ddpm(nn.Module):
    """One reverse step of diffusion with embedded time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("betas", torch.linspace(1e-4, 0.02, 100))
        self.time, self.a = nn.Linear(8, 12), nn.Conv2d(3, 12, 3, padding=1)
        self.norm, self.b = nn.GroupNorm(3, 12), nn.Conv2d(12, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, t: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        angle = t[:, None] * torch.exp(-torch.arange(4) * 1.5)
        time = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        guess = self.b(F.silu(self.norm(self.a(x) + time[..., None, None])))
        alpha, bars = 1 - self.betas, (1 - self.betas).cumprod(0)
        a, bar, beta = (v[t].view(-1, 1, 1, 1) for v in (alpha, bars, self.betas))
        mean = (x - beta / (1 - bar).sqrt() * guess) / a.sqrt()
        return torch.where(t.view(-1, 1, 1, 1) > 0, mean + beta.sqrt() * noise, mean)


@zoo("ddpm_step")
def ddpm_step() -> tuple[Any, ...]:
    return Ddpm(), torch.randn(2, 3, 8, 8), torch.tensor([0, 40]), torch.randn(2, 3, 8, 8)
