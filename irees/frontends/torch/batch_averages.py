"""
Batch norms with cumulative averages (`momentum=None`), as operators that `torch.export` can trace.

PyTorch's module divides by `float(self.num_batches_tracked)`, which reads a tensor. While a program
is exported, the module updates its statistics by tensors instead:

    mean = (batch's mean) / n + mean * (1 - 1 / n)
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm


def _is_averaged(norm: Any) -> bool:
    return (
        norm.momentum is None
        and norm.training
        and norm.track_running_stats
        and norm.num_batches_tracked is not None
    )


def _averaged(norm: Any, x: Any) -> Any:
    """Normalizes by the statistics of the batch, and averages them over all batches."""
    norm._check_input_dim(x)
    norm.num_batches_tracked.add_(1)
    share = 1.0 / norm.num_batches_tracked
    dims = [dim for dim in range(x.dim()) if dim != 1]
    wide = norm.running_mean.dtype
    with torch.no_grad():
        found = torch.var_mean(x.to(wide), dims, correction=1)
        for statistic, new in zip((norm.running_var, norm.running_mean), found, strict=True):
            statistic.copy_(share * new + (1 - share) * statistic)
    return torch.nn.functional.batch_norm(
        x, None, None, norm.weight, norm.bias, True, 0.0, norm.eps
    )


@contextmanager
def averages_traced() -> Generator[None]:
    """While active, batch norms compute cumulative averages without reading a tensor."""
    original: Any = _BatchNorm.forward

    def forward(norm: Any, x: Any) -> Any:
        return _averaged(norm, x) if _is_averaged(norm) else original(norm, x)

    _BatchNorm.forward = forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        _BatchNorm.forward = original  # type: ignore[method-assign]
