"""
Writes small modules of PyTorch as MLIR text for the corpus.

    python -m tests.fuzzing.torch_modules --count 100 --out tests/fuzzing/torch_modules

Module number N is made from the seed N alone: one to five operators over a tensor of rank 2 to 4,
with static or dynamic dims, exported by `torch.export`. It takes an installed PyTorch; the fuzzer
reads the files.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from irees.errors import IreesError
from irees.frontends.mlir import print_module
from irees.frontends.torch import import_torch

Step = Callable[[torch.Tensor], torch.Tensor]

MAX_LENGTH = 6000

STEPS: tuple[Callable[[random.Random], Step], ...] = (
    lambda r: torch.relu, lambda r: torch.sigmoid, lambda r: F.gelu, lambda r: F.silu,
    lambda r: torch.tanh, lambda r: torch.exp, lambda r: lambda x: torch.softmax(x, -1),
    lambda r: lambda x: x.sum(-1, keepdim=True) + x, lambda r: lambda x: x.transpose(-1, -2),
    lambda r: lambda x: torch.cumsum(x, -1), lambda r: lambda x: x @ x.transpose(-1, -2),
    lambda r: lambda x: torch.sort(x, -1)[0], lambda r: lambda x: torch.topk(x, 2, -1)[0],
    lambda r: lambda x: x.argmax(-1, keepdim=True).to(x.dtype) + x,
    lambda r: lambda x: F.pad(x, (r.randint(0, 2), 1), value=1.0), lambda r: lambda x: x[..., 1:],
    lambda r: lambda x: torch.cat([x, x], -1), lambda r: lambda x: x.flatten(-2),
    lambda r: lambda x: torch.where(x > 0, x, -x), lambda r: lambda x: x.half().float(),
    lambda r: lambda x: F.layer_norm(x, x.shape[-1:]), lambda r: lambda x: x.mean(0),
    lambda r: lambda x: x.amax(-2), lambda r: lambda x: torch.flip(x, [-1]),
    lambda r: lambda x: x.unsqueeze(1) * 2, lambda r: lambda x: (x * 8).to(torch.int32).float(),
    lambda r: lambda x: torch.gather(x, -1, (x > 0).long()), lambda r: lambda x: x.roll(1, -1),
    lambda r: lambda x: F.max_pool1d(x, 2) if x.dim() in (2, 3) else F.max_pool2d(x, 2),
    lambda r: lambda x: F.conv1d(x, x[:2, :, :2]) if x.dim() == 3 else x + 1,
    lambda r: lambda x: F.conv2d(x, x[:2, :, :2, :2], padding=1) if x.dim() == 4 else x - 1,
    lambda r: lambda x: F.scaled_dot_product_attention(x, x, x) if x.dim() > 2 else x * x,
    lambda r: lambda x: torch.tril(x), lambda r: lambda x: x.var(-1, keepdim=True) - x,
    lambda r: lambda x: x.index_select(-1, torch.tensor([1, 0])), lambda r: lambda x: x // 2,
    lambda r: lambda x: torch.bitwise_and((x * 4).long(), 3).float(), lambda r: torch.erf,
    lambda r: lambda x: torch.scatter_add(x, -1, (x > 0).long(), x), lambda r: torch.round,
)  # fmt: skip
"""Makers of one step each, from a random generator."""


class Chain(torch.nn.Module):
    """Steps, one after the other."""

    def __init__(self, steps: list[Step]):
        super().__init__()
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            x = step(x)
        return x


def module_text(seed: int) -> str | None:
    """The text of module number `seed`; None if its steps do not fit together."""
    rng = random.Random(seed)
    shape = [rng.choice((2, 3, 4, 5, 8)) for _ in range(rng.randint(2, 4))]
    chain = Chain([rng.choice(STEPS)(rng) for _ in range(rng.randint(1, 5))])
    dims: Any = None
    if rng.random() < 0.5:
        axis = rng.randrange(len(shape))
        dims = ({axis: torch.export.Dim.AUTO},)
    try:
        module = import_torch(chain.eval(), (torch.rand(shape),), dims)
        return print_module(module, elide_resources=False)
    except (IreesError, RuntimeError, IndexError, ValueError):
        return None


def main() -> None:
    """Writes `--count` files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    seed, left = options.first, options.count
    while left:
        text = module_text(seed)
        if text is not None and len(text) <= MAX_LENGTH:
            (options.out / f"module_{seed:05}.mlir").write_text(text)
            left -= 1
        seed += 1


if __name__ == "__main__":
    main()
