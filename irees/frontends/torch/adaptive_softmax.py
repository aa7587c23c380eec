"""
`nn.AdaptiveLogSoftmaxWithLoss`, as operators that `torch.export` can trace.

PyTorch's module gathers the rows of each cluster, whose counts depend on the targets. While a
program is exported, it computes the log-probabilities of all classes, as its `log_prob` does:

    output[i] = log_prob(x)[i, target[i]],  loss = -mean(output),  predict(x) = argmax(log_prob(x))
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.modules.adaptive import _ASMoutput

_PLAIN = nn.AdaptiveLogSoftmaxWithLoss.forward


def _forward(layer: Any, x: Any, target: Any) -> Any:
    """The log-probability of each target, and the loss; a target that is no class is a trap."""
    if target.dim() > 1 or x.dim() != target.dim() + 1 or x.shape[:-1] != target.shape:
        return _PLAIN(layer, x, target)  # it says what is wrong
    torch._assert_async(
        ((target >= 0) & (target < layer.n_classes)).all(),
        f"Target values should be in [0, {layer.n_classes - 1}]",
    )
    rows = x if target.dim() else x.unsqueeze(0)
    chosen = layer.log_prob(rows).gather(1, target.reshape(-1, 1)).squeeze(1)
    return _ASMoutput(chosen.reshape(target.shape), (-chosen).mean())


def _predict(layer: Any, x: Any) -> Any:
    """The class with the highest probability for each row."""
    return layer.log_prob(x).argmax(1)


@contextmanager
def adaptive_softmax_traced() -> Generator[None]:
    """While active, adaptive softmaxes compute the probabilities of all classes."""
    kind = nn.AdaptiveLogSoftmaxWithLoss
    with patch.object(kind, "forward", _forward), patch.object(kind, "predict", _predict):
        yield
