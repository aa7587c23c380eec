"""
Architectures of transformers at a small size, with random weights.

A configuration is the class' default with each size replaced by a small one of the same name, then
by what `zoo_transformers_data` says of the architecture. Arguments follow from the signature of
`forward`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from zoo_transformers_data import CONFIG, EXTRA, MODEL_CLASS, NAMES

TOKENS = 8
"""Length of a text."""

_WIDTHS = (
    "hidden_size d_model n_embd embed_dim dim encoder_hidden_dim decoder_hidden_dim n_embed "
    "emb_dim embedding_size text_embed_dim projection_dim encoder_embed_dim decoder_embed_dim "
    "mm_hidden_size decoder_hidden_size word_embed_proj_dim model_dim hidden_dim dim_model "
    "entity_emb_size output_hidden_size d_embed"
).split()
_INNER = (
    "intermediate_size ffn_dim d_ff encoder_ffn_dim decoder_ffn_dim n_inner ffn_hidden_size "
    "dim_feedforward mlp_dim feed_forward_size moe_intermediate_size d_inner dim_ff "
    "shared_expert_intermediate_size expert_ffn_hidden_size encoder_intermediate_size "
    "intermediate_dim feed_forward_proj_dim decoder_intermediate_size"
).split()
_LAYERS = (
    "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers layers depth "
    "num_decoder_layers num_encoder_layers encoder_num_layers decoder_num_layers "
    "decoder_num_hidden_layers encoder_num_hidden_layers num_block_layers"
).split()
_HEADS = (
    "num_attention_heads n_head n_heads num_heads encoder_attention_heads heads "
    "decoder_attention_heads num_key_value_heads encoder_num_heads decoder_num_attention_heads "
    "encoder_num_attention_heads decoder_num_heads encoder_n_heads num_kv_heads"
).split()
SIZES: dict[str, int] = {
    **dict.fromkeys(_WIDTHS, 32),
    **dict.fromkeys(_INNER, 64),
    **dict.fromkeys(_LAYERS, 2),
    **dict.fromkeys(_HEADS, 4),
    "vocab_size": 160, "head_dim": 8, "d_kv": 8, "kv_lora_rank": 16, "q_lora_rank": 16,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "image_size": 32,
    "patch_size": 8, "num_experts": 4, "n_routed_experts": 4, "num_local_experts": 4,
    "num_experts_per_tok": 2, "n_shared_experts": 1, "max_position_embeddings": 64,
    "n_positions": 64, "num_queries": 6, "num_labels": 3, "n_group": 1, "topk_group": 1,
    "num_mel_bins": 16, "first_k_dense_replace": 1, "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4, "max_source_positions": 32, "max_target_positions": 32,
    "mamba_d_state": 8, "mamba_n_heads": 4, "mamba_d_head": 16, "state_size": 8,
    "decoder_layers": 2, "encoder_layers": 2, "sliding_window": 4, "attention_window": 4,
}  # fmt: skip
TOKEN_IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id",
             "cls_token_id", "sep_token_id", "mask_token_id", "unk_token_id")  # fmt: skip
FAMILIES = (
    "CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "IMAGE_CLASSIFICATION", "CTC",
    "SPEECH_SEQ_2_SEQ", "OBJECT_DETECTION", "SEMANTIC_SEGMENTATION", "UNIVERSAL_SEGMENTATION",
    "DEPTH_ESTIMATION", "VIDEO_CLASSIFICATION", "AUDIO_CLASSIFICATION", "IMAGE_TO_IMAGE",
    "ZERO_SHOT_OBJECT_DETECTION", "TIME_SERIES_PREDICTION",
)  # fmt: skip


def names() -> list[str]:
    """The architectures, as `transformers/bert`."""
    return [f"transformers/{name}" for name in NAMES]


def build(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    """A model in evaluation mode with the arguments of one call."""
    kind = name.partition("/")[2]
    config = small_config(kind)
    torch.manual_seed(0)
    model = model_class(kind, config)(config).eval()
    for weight in model.parameters():
        if weight.dim() == 2 and not weight.any():  # a router of zeros chooses among equals
            torch.nn.init.normal_(weight, std=0.2)
    return model, (), arguments(kind, model, config)


# --- configurations ---


def config_class(kind: str) -> Any:
    """The class of an architecture's configuration."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING[kind]


def small_config(kind: str) -> Any:
    """The default configuration at a small size."""
    cls = config_class(kind)
    changes = merged(shrunk(cls()), CONFIG.get(kind, {}))
    return cls(**changes)


def merged(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Two nested dicts; the right one wins."""
    out = dict(left)
    for key, value in right.items():
        nested = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merged(out[key], value) if nested else value
    return out


def shrunk(config: Any) -> dict[str, Any]:
    """The fields of a configuration that become smaller, those of inner configurations too."""
    out: dict[str, Any] = {}
    heads_differ = getattr(config, "num_key_value_heads", None)
    for key, value in vars(config).items():
        if hasattr(value, "to_dict"):
            # Only what a caller would write: derived fields are derived again.
            out[key] = {**_identity(value), **shrunk(value)}
        elif isinstance(value, bool) or not isinstance(value, int):
            continue
        elif key in SIZES:
            out[key] = min(value, SIZES[key])
        elif key in TOKEN_IDS:
            out[key] = min(value, 1 + TOKEN_IDS.index(key))
    if heads_differ is not None and heads_differ != getattr(config, "num_attention_heads", None):
        out["num_key_value_heads"] = min(heads_differ, 2)
    return out


def _identity(config: Any) -> dict[str, Any]:
    return {"model_type": config.model_type} if getattr(config, "model_type", "") else {}


def model_class(kind: str, config: Any) -> Any:
    """The class with a head that fits best, else the bare model."""
    import transformers
    from transformers.models.auto import modeling_auto as auto

    if kind in MODEL_CLASS:
        return getattr(transformers, MODEL_CLASS[kind])
    for family in FAMILIES:
        found = getattr(auto, f"MODEL_FOR_{family}_MAPPING_NAMES").get(kind)
        if found and hasattr(transformers, found):
            return getattr(transformers, found)
    found = auto.MODEL_MAPPING_NAMES[kind]
    return getattr(transformers, found if isinstance(found, str) else found[0])


# --- arguments ---


def _vocabulary(config: Any) -> int:
    for owner in (config, *(getattr(config, n, None) for n in ("text_config", "decoder"))):
        size = getattr(owner, "vocab_size", None)
        if isinstance(size, int) and size > 8:
            return size
    return 32


def _ids(config: Any, length: int = TOKENS) -> torch.Tensor:
    low = 10 if _vocabulary(config) > 20 else 3
    return torch.randint(low, _vocabulary(config), (1, length))


def _field(config: Any, *wanted: str, default: Any = None) -> Any:
    owners = [config] + [
        getattr(config, n) for n in ("vision_config", "audio_config", "backbone_config", "encoder")
        if getattr(config, n, None) is not None
    ]  # fmt: skip
    for name in wanted:
        for owner in owners:
            value = getattr(owner, name, None)
            if value is not None:
                return value
    return default


def _image(config: Any) -> torch.Tensor:
    size = _field(config, "image_size", default=64)
    height, width = size if isinstance(size, list | tuple) else (size, size)
    channels = _field(config, "num_channels", "in_channels", "in_chans", default=3)
    frames = _field(config, "num_frames")
    shape = (1, frames, channels, height, width) if frames else (1, channels, height, width)
    return torch.randn(shape)


def _waveform(config: Any) -> torch.Tensor:
    return torch.randn(1, 2000)


def _features(config: Any) -> torch.Tensor:
    bins = _field(config, "num_mel_bins", "input_feat_per_channel", "feature_size", default=16)
    return torch.randn(1, 32, bins)


def _bbox(config: Any) -> torch.Tensor:
    corner = torch.randint(0, 20, (1, TOKENS, 2))
    return torch.cat([corner, corner + torch.randint(1, 20, (1, TOKENS, 2))], -1)


def _mask(config: Any) -> torch.Tensor:
    return torch.ones(1, TOKENS, dtype=torch.long)


MAKERS: dict[str, Callable[[Any], torch.Tensor]] = {
    "input_ids": _ids,
    "attention_mask": _mask,
    "decoder_input_ids": lambda c: _ids(c, 5),
    "pixel_values": _image,
    "pixel_values_videos": _image,
    "input_values": _waveform,
    "input_features": _features,
    "bbox": _bbox,
}


def arguments(kind: str, model: Any, config: Any) -> dict[str, Any]:
    """The keywords of one call."""
    torch.manual_seed(0)
    names = inspect.signature(model.forward).parameters
    main = getattr(model, "main_input_name", "input_ids")
    wanted = [main] if main in names else []
    for name in ("input_ids", "pixel_values", "bbox"):
        if name in names and name not in wanted:
            wanted.append(name)
    if "input_ids" in wanted and "attention_mask" in names:
        wanted.append("attention_mask")
    if "decoder_input_ids" in names and getattr(config, "is_encoder_decoder", False):
        wanted.append("decoder_input_ids")
    extra = EXTRA[kind](config) if kind in EXTRA else {}
    return {
        n: MAKERS[n](config) for n in dict.fromkeys(wanted) if n in MAKERS and n not in extra
    } | extra
