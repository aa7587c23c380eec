"""Transformer layers in eval mode, which PyTorch computes by one operator each."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

from torch import nn  # noqa: E402

import irees  # noqa: E402

CAUSAL = torch.ones(5, 5, dtype=torch.bool).triu(1)
PADDING = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]], dtype=torch.bool)
MASKS = {
    "none": {},
    "of queries": {"src_mask": CAUSAL},
    "of keys": {"src_key_padding_mask": PADDING},
    "both": {"src_mask": CAUSAL, "src_key_padding_mask": PADDING},
}


def both_ways(model, args, kwargs):
    """What `irees.compile` and `torch.compile` give; no operator runs in PyTorch."""
    torch._dynamo.reset()
    options = {"fallback": False}
    compiled = torch.compile(model, backend="irees", options=options, fullgraph=True)
    program = irees.compile(model, args, kwargs=kwargs, target="reference")
    return program(*args, **kwargs), compiled(*args, **kwargs)


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer(norm_first, masks):
    torch.manual_seed(0)
    activation = "gelu" if norm_first else "relu"
    model = nn.TransformerEncoderLayer(
        8, 2, 16, activation=activation, batch_first=True, norm_first=norm_first
    ).eval()
    args = (torch.randn(2, 5, 8),)
    with torch.no_grad():
        wanted = model(*args, **MASKS[masks])
        for found in both_ways(model, args, MASKS[masks]):
            torch.testing.assert_close(found, wanted)


def test_an_encoder_with_a_causal_mask():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    args = (torch.randn(2, 5, 8),)
    with torch.no_grad():
        wanted = model(*args, mask=CAUSAL)
        for found in both_ways(model, args, {"mask": CAUSAL}):
            torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("needed", [{}, {"need_weights": False}, {"average_attn_weights": False}])
@pytest.mark.parametrize("mask", [{}, {"attn_mask": CAUSAL}, {"key_padding_mask": PADDING}])
def test_self_attention(mask, needed):
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        wanted = model(x, x, x, **mask, **needed)
        for found in both_ways(model, (x, x, x), {**mask, **needed}):
            for mine, theirs in zip(found, wanted, strict=True):
                torch.testing.assert_close(mine, theirs)
