"""Attention over a window of keys, one pass and no tensor of scores. This file has names only."""

from irees.plugins import Plugin

PLUGIN = Plugin(
    name="acme-attention",
    version="1.0",
    dialects={"local": "acme_attention.attention:Local"},
    interfaces={"local.attention": "acme_attention.attention:Attention"},
    strategies={"cpu": ("acme_attention.strategy:Rows",)},
)
