"""
Decompositions of the operators of `nn.TransformerEncoderLayer` and `nn.MultiheadAttention`.

In eval mode without gradients these modules call one operator for a whole layer. PyTorch has
kernels for it and no decomposition.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch.nn import functional

aten = torch.ops.aten

_OF_KEYS = 1
"""The mask type [batch, keys]; 0 is [queries, keys] and 2 is [batch, heads, queries, keys]."""


def _heads(x: Any, count: int) -> Any:
    """[batch, length, count * size] => [batch, count, length, size]"""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def _projected(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> Any:
    """Queries, keys and values; one product if all are computed from the same tensor."""
    if query is key and key is value:
        return functional.linear(query, weight, bias).chunk(3, -1)
    parts = zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True)
    return tuple(functional.linear(x, w, b) for x, w, b in parts)


def _probabilities(query: Any, key: Any, mask: Any, mask_type: int | None) -> Any:
    """softmax(query key^T / sqrt(size)) over the keys whose mask is false"""
    scores = (query / math.sqrt(query.shape[-1])) @ key.mT
    if mask is not None:
        mask = mask.to(torch.bool)
        if mask_type == _OF_KEYS:
            mask = mask[:, None, None, :]
        scores = scores.masked_fill(mask, -math.inf)
    return scores.softmax(-1)


class _Attention(NamedTuple):
    """The arguments of `aten._native_multi_head_attention`."""

    query: Any
    key: Any
    value: Any
    embed_dim: int
    num_head: int
    qkv_weight: Any
    qkv_bias: Any
    proj_weight: Any
    proj_bias: Any
    mask: Any = None
    need_weights: bool = True
    average_attn_weights: bool = True
    mask_type: int | None = None


def native_multi_head_attention(*args: Any, **named: Any) -> tuple[Any, Any]:
    """The projected attention, and its probabilities or None."""
    of = _Attention(*args, **named)
    projected = _projected(of.query, of.key, of.value, of.qkv_weight, of.qkv_bias)
    q, k, v = (_heads(x, of.num_head) for x in projected)
    weights = None
    if of.mask is None and not of.need_weights:
        found = functional.scaled_dot_product_attention(q, k, v)
    else:
        weights = _probabilities(q, k, of.mask, of.mask_type)
        found = weights @ v
    found = functional.linear(found.transpose(1, 2).flatten(2), of.proj_weight, of.proj_bias)
    if not of.need_weights:
        return found, None
    return found, weights.mean(1) if of.average_attn_weights else weights


class _Layer(NamedTuple):
    """The arguments of `aten._transformer_encoder_layer_fwd`."""

    src: Any
    embed_dim: int
    num_heads: int
    qkv_weight: Any
    qkv_bias: Any
    proj_weight: Any
    proj_bias: Any
    use_gelu: bool
    norm_first: bool
    eps: float
    norm_weight_1: Any
    norm_bias_1: Any
    norm_weight_2: Any
    norm_bias_2: Any
    ffn_weight_1: Any
    ffn_bias_1: Any
    ffn_weight_2: Any
    ffn_bias_2: Any
    mask: Any = None
    mask_type: int | None = None

    def norm(self, x: Any, weight: Any, bias: Any) -> Any:
        """Normalizes each element of a sequence."""
        return functional.layer_norm(x, (self.embed_dim,), weight, bias, self.eps)

    def attention(self, x: Any) -> Any:
        """Self-attention."""
        weights = self.qkv_weight, self.qkv_bias, self.proj_weight, self.proj_bias
        sizes = self.embed_dim, self.num_heads
        rest = {"need_weights": False, "mask_type": self.mask_type}
        return native_multi_head_attention(x, x, x, *sizes, *weights, self.mask, **rest)[0]

    def linear_layers(self, x: Any) -> Any:
        """Two linear layers with an activation between them."""
        x = functional.linear(x, self.ffn_weight_1, self.ffn_bias_1)
        x = functional.gelu(x) if self.use_gelu else functional.relu(x)
        return functional.linear(x, self.ffn_weight_2, self.ffn_bias_2)


def transformer_encoder_layer(*args: Any, **named: Any) -> Any:
    """Attention and two linear layers, each added to its input and normalized."""
    layer = _Layer(*args, **named)
    first = layer.norm_weight_1, layer.norm_bias_1
    second = layer.norm_weight_2, layer.norm_bias_2
    if layer.norm_first:
        x = layer.src + layer.attention(layer.norm(layer.src, *first))
        return x + layer.linear_layers(layer.norm(x, *second))
    x = layer.norm(layer.src + layer.attention(layer.src), *first)
    return layer.norm(x + layer.linear_layers(x), *second)


DECOMPOSITIONS: dict[Any, Any] = {
    aten._native_multi_head_attention.default: native_multi_head_attention,
    aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
}
