"""What is particular to architectures of transformers: sizes, classes, arguments, names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

CONFIG: dict[str, dict[str, Any]] = {
    "swin": {"depths": [1, 1], "num_heads": [2, 4], "embed_dim": 16, "window_size": 4,
             "patch_size": 4},
    "swinv2": {"depths": [1, 1], "num_heads": [2, 4], "embed_dim": 16, "window_size": 4,
               "patch_size": 4},
    "donut-swin": {"depths": [1, 1], "num_heads": [2, 4], "embed_dim": 16, "window_size": 4,
                   "patch_size": 4},
    "swin2sr": {"depths": [1, 1], "num_heads": [2, 2], "embed_dim": 16, "window_size": 4,
                "patch_size": 1},
    "esm": {"mask_token_id": 5, "pad_token_id": 1, "vocab_size": 33},
    "patchtst": {"num_input_channels": 2, "context_length": 16, "patch_length": 4,
                 "patch_stride": 4, "prediction_length": 4},
    "patchtsmixer": {"num_input_channels": 2, "context_length": 16, "patch_length": 4,
                     "patch_stride": 4, "prediction_length": 4},
    "detr": {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
             "backbone_config": {"model_type": "resnet", "embedding_size": 8, "depths": [1, 1],
                                 "hidden_sizes": [8, 16], "layer_type": "basic",
                                 "out_features": ["stage2"]}},
    "llava": {"image_token_index": 150, "vision_feature_layer": -1},
    "paligemma": {"image_token_id": 150},
    "whisper": {"max_source_positions": 16},
    "xlstm": {"hidden_size": 64, "num_heads": 4, "head_dim": 16, "qk_dim_factor": 1.0},
    "vits": {"upsample_initial_channel": 16, "upsample_rates": [4, 4], "flow_size": 16,
             "upsample_kernel_sizes": [8, 8], "resblock_kernel_sizes": [3],
             "resblock_dilation_sizes": [[1, 3]], "prior_encoder_num_flows": 2,
             "posterior_encoder_num_wavenet_layers": 2, "duration_predictor_num_flows": 2,
             "prior_encoder_num_wavenet_layers": 2, "depth_separable_num_layers": 1},
    "nemotron": {"num_key_value_heads": 2},
    "xmod": {"default_language": "en_XX"},
    "wav2vec2-conformer": {"vocab_size": 32},
    "wav2vec2-bert": {"vocab_size": 32, "feature_projection_input_dim": 16},
    "reformer": {"is_decoder": True, "axial_pos_shape": [4, 16], "axial_pos_embds_dim": [16, 16],
                 "attn_layers": ["local", "lsh"], "local_attn_chunk_length": 4,
                 "lsh_attn_chunk_length": 4, "num_buckets": 2},
    "decision_transformer": {"state_dim": 5, "act_dim": 3},
    "time_series_transformer": {"prediction_length": 4, "context_length": 6,
                                "lags_sequence": [1, 2], "num_time_features": 2},
    "recurrent_gemma": {"num_hidden_layers": 3},
    "qwen3_next": {"layer_types": ["linear_attention", "full_attention"]},
    "bamba": {"attn_layer_indices": [1]},
}  # fmt: skip
"""Architecture => fields of its configuration."""

MODEL_CLASS: dict[str, str] = {
    "clip": "CLIPModel", "siglip": "SiglipModel", "bart": "BartForConditionalGeneration",
    "whisper": "WhisperForConditionalGeneration",
    "time_series_transformer": "TimeSeriesTransformerModel",
}  # fmt: skip
"""Architecture => class of transformers, where it is not the first of `FAMILIES`."""


def _with_image(config: Any) -> dict[str, Any]:
    """A text that holds as many image tokens as the image has patches."""
    token = getattr(config, "image_token_id", None) or config.image_token_index
    tokens = [3] + [token] * 16 + [4, 5, 6]
    return {
        "input_ids": torch.tensor([tokens]), "pixel_values": torch.randn(1, 3, 32, 32),
        "attention_mask": torch.ones(1, len(tokens), dtype=torch.long),
    }  # fmt: skip


def _series(config: Any) -> dict[str, Any]:
    """Past values of an encoder of time series."""
    return {"past_values": torch.randn(1, config.context_length, config.num_input_channels)}


EXTRA: dict[str, Callable[[Any], dict[str, Any]]] = {
    "llava": _with_image,
    "paligemma": lambda config: {
        **_with_image(config), "token_type_ids": torch.tensor([[0] * 17 + [1] * 3]),
    },
    "patchtst": _series,
    "patchtsmixer": _series,
    "time_series_transformer": lambda config: {
        "past_values": torch.randn(1, 8), "past_time_features": torch.randn(1, 8, 2),
        "past_observed_mask": torch.ones(1, 8), "future_values": torch.randn(1, 4),
        "future_time_features": torch.randn(1, 4, 2),
        "static_categorical_features": None, "static_real_features": None,
    },
    "decision_transformer": lambda config: {
        "states": torch.randn(1, 4, 5), "actions": torch.randn(1, 4, 3),
        "rewards": torch.randn(1, 4, 1), "returns_to_go": torch.randn(1, 4, 1),
        "timesteps": torch.arange(4)[None], "attention_mask": torch.ones(1, 4),
    },
    "whisper": lambda config: {
        "input_features": torch.randn(1, config.num_mel_bins, 32),
        "decoder_input_ids": torch.randint(10, 100, (1, 4)),
    },
    # Without a padded token eager leaves out the causal mask that tracing keeps, and is not causal.
    "aimv2": lambda config: {"attention_mask": torch.tensor([[1] * 7 + [0]])},
}  # fmt: skip
"""Architecture => keywords of one call beside those of the signature, from its configuration."""

NAMES: tuple[str, ...] = tuple(
    """
    afmoe aimv2 albert altclip apertus arcee aria_text audioflamingo3 bamba bart beit bert
    bert-generation big_bird bigbird_pegasus biogpt bit bitnet blenderbot blenderbot-small
    blip bloom camembert canine chinese_clip clip clip_text_model clip_vision_model clipseg
    cohere cohere2 cohere2_moe convbert convnext convnextv2 cpmant ctrl cvt data2vec-audio
    data2vec-text data2vec-vision deberta deberta-v2 decision_transformer deepseek_v3
    deepseek_v32 detr diffllama dinov2 dinov2_with_registers dinov3_convnext dinov3_vit
    distilbert donut-swin dpr electra ernie ernie4_5 ernie4_5_moe esm eurobert exaone4 falcon
    falcon_mamba fastspeech2_conformer flaubert flex_olmo fnet focalnet fsmt funnel gemma
    gemma2 gemma3_text git glm glm4 glm4_moe glmasr glpn gpt2 gpt_bigcode gpt_neox
    gpt_neox_japanese gpt_oss granite granite_speech granitemoe groupvit helium hgnet_v2 hiera
    higgs_audio_v2 hubert ibert idefics3_vision ijepa imagegpt internvl_vision jetmoe
    jina_embeddings_v3 kosmos-2.5 lasr_encoder layoutlm led lfm2 llama llama4_text llava
    longformer longt5 luke m2m_100 mamba marian markuplm mbart megatron-bert metaclip_2
    mgp-str minimax minimax_m2 ministral3 mistral mixtral mlcd mllama mobilebert mobilenet_v1
    mobilenet_v2 mobilevit modernbert modernbert-decoder moonshine moshi mpnet mpt mra mt5
    nanochat nemotron nemotron_h nllb-moe nomic_bert nystromformer olmo olmo2 olmo3
    olmo_hybrid olmoe openai-gpt opt owlv2 owlvit paligemma parakeet_ctc parakeet_encoder
    parakeet_rnnt parakeet_tdt patchtsmixer patchtst pegasus pegasus_x persimmon phi phi3
    phi4_multimodal phimoe pixio pixtral plbart poolformer prophetnet pvt pvt_v2 qwen2
    qwen2_audio qwen2_moe qwen3 qwen3_moe qwen3_next qwen3_vl_text radio recurrent_gemma
    reformer regnet rembert resnet rf_detr roberta roberta-prelayernorm roc_bert roformer rwkv
    sam3_vit_model sam_vision_model seamless_m4t seed_oss segformer sew sew-d siglip
    siglip_vision_model smollm3 smolvlm_vision speech_to_text speecht5 splinter squeezebert
    stablelm starcoder2 swiftformer swin swin2sr swinv2 switch_transformers t5 t5gemma tapas
    textnet time_series_transformer timesformer tipsv2 udop umt5 unispeech unispeech-sat
    videomae videoprism vilt vision-text-dual-encoder visual_bert vit vit_mae vit_msn vitdet
    vits vivit voxtral wav2vec2 wav2vec2-bert wav2vec2-conformer wavlm whisper xglm xlm
    xlm-roberta xlm-roberta-xl xlnet xlstm xmod yolos yoso
    """.split()
)
"""The architectures."""
