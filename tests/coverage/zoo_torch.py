"""Architectures written in plain PyTorch: sequences, images, graphs, tables, points, flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import zoo_torch_images as images
import zoo_torch_sequences as sequences
import zoo_torch_structures as structures

MODELS: dict[str, Callable[[], tuple[Any, ...]]] = {
    **sequences.MODELS, **images.MODELS, **structures.MODELS,
}  # fmt: skip


def names() -> list[str]:
    """The architectures, as `torch/unet`."""
    return [f"torch/{name}" for name in MODELS]


def build(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    """A model in evaluation mode with the arguments of one call."""
    torch.manual_seed(0)
    model, *args = MODELS[name.partition("/")[2]]()
    return model.eval(), tuple(args), {}
