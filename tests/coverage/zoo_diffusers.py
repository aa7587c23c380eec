"""Denoisers and autoencoders of diffusers at a small size, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

MODELS: dict[str, tuple[str, dict[str, Any], Callable[[], dict[str, Any]]]] = {}
"""Name => class of diffusers, its arguments, a function that makes the keywords of a call."""


def image(channels: int = 3, size: int = 16) -> torch.Tensor:
    """A random image."""
    return torch.randn(1, channels, size, size)


def video(channels: int = 3, frames: int = 5, size: int = 16) -> torch.Tensor:
    """A random video."""
    return torch.randn(1, channels, frames, size, size)


def text(width: int, length: int = 6) -> torch.Tensor:
    """A random embedded text."""
    return torch.randn(1, length, width)


def timestep(kind: torch.dtype = torch.long) -> torch.Tensor:
    """One timestep."""
    return torch.tensor([7], dtype=kind)


def model(name: str, cls: str, call: Callable[[], dict[str, Any]], **config: Any) -> None:
    """Adds an architecture."""
    MODELS[name] = (cls, config, call)


_BLOCKS: dict[str, Any] = {
    "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4,
}  # fmt: skip
_DOWN: dict[str, Any] = {
    **_BLOCKS, "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "cross_attention_dim": 16, "attention_head_dim": 4,
}  # fmt: skip
_COND: dict[str, Any] = {
    **_DOWN, "sample_size": 16, "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
}  # fmt: skip
_DIT: dict[str, Any] = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2}


def _conditioned() -> dict[str, Any]:
    return {"sample": image(4), "timestep": timestep(), "encoder_hidden_states": text(16)}


def _hidden(channels: int = 4, width: int = 16) -> Callable[[], dict[str, Any]]:
    return lambda: {
        "hidden_states": image(channels), "timestep": timestep(),
        "encoder_hidden_states": text(width),
    }  # fmt: skip


model("unet2d", "UNet2DModel", lambda: {"sample": image(), "timestep": timestep()},
      **_BLOCKS, sample_size=16, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
      up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=4)  # fmt: skip
model("unet2d_condition", "UNet2DConditionModel", _conditioned, **_COND)
model("unet2d_condition_sdxl", "UNet2DConditionModel",
      lambda: {**_conditioned(), "added_cond_kwargs": {
          "text_embeds": torch.randn(1, 8), "time_ids": torch.randn(1, 6)}},
      **{**_COND, "attention_head_dim": (2, 4)}, addition_embed_type="text_time",
      addition_time_embed_dim=8, transformer_layers_per_block=(1, 2), use_linear_projection=True,
      projection_class_embeddings_input_dim=56)  # fmt: skip
model("unet3d_condition", "UNet3DConditionModel",
      lambda: {**_conditioned(), "sample": video(4, 3)}, **{**_BLOCKS, "block_out_channels": (8, 16)},
      sample_size=16, cross_attention_dim=16, attention_head_dim=4,
      down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
      up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"))  # fmt: skip
model("unet_spatio_temporal", "UNetSpatioTemporalConditionModel",
      lambda: {"sample": torch.randn(1, 2, 8, 16, 16), "timestep": timestep(),
               "encoder_hidden_states": text(16, 1), "added_time_ids": torch.randn(1, 3)},
      sample_size=16, block_out_channels=(32, 64), layers_per_block=1, num_frames=2,
      cross_attention_dim=16, num_attention_heads=(2, 4), addition_time_embed_dim=8,
      projection_class_embeddings_input_dim=24,
      down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
      up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"))  # fmt: skip
model("unet1d", "UNet1DModel",
      lambda: {"sample": torch.randn(1, 14, 16), "timestep": timestep()},
      block_out_channels=(8, 8, 16, 16), in_channels=14, out_channels=14, norm_num_groups=4,
      time_embedding_type="positional", use_timestep_embedding=True, out_block_type="OutConv1DBlock",
      flip_sin_to_cos=False, freq_shift=1.0, mid_block_type="MidResTemporalBlock1D", act_fn="mish",
      down_block_types=("DownResnetBlock1D",) * 4, up_block_types=("UpResnetBlock1D",) * 3,
      layers_per_block=1, downsample_each_block=False, extra_in_channels=0)  # fmt: skip
model("controlnet", "ControlNetModel",
      lambda: {**_conditioned(), "controlnet_cond": image(3, 32)},
      **_DOWN, conditioning_embedding_out_channels=(8, 16))  # fmt: skip
model("autoencoder_kl", "AutoencoderKL", lambda: {"sample": image()}, **_BLOCKS,
      down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
      latent_channels=4)  # fmt: skip
model("autoencoder_asymmetric", "AsymmetricAutoencoderKL", lambda: {"sample": image()},
      down_block_types=("DownEncoderBlock2D",), up_block_types=("UpDecoderBlock2D",),
      down_block_out_channels=(8,), up_block_out_channels=(8,), norm_num_groups=4)  # fmt: skip
model("autoencoder_tiny", "AutoencoderTiny", lambda: {"sample": image()},
      encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8), num_encoder_blocks=(1, 1),
      num_decoder_blocks=(1, 1))  # fmt: skip
model("autoencoder_dc", "AutoencoderDC", lambda: {"sample": image(3, 32)}, latent_channels=4,
      attention_head_dim=2, encoder_block_types=("ResBlock", "EfficientViTBlock"),
      decoder_block_types=("ResBlock", "EfficientViTBlock"), encoder_block_out_channels=(8, 8),
      decoder_block_out_channels=(8, 8), encoder_qkv_multiscales=((), (5,)),
      decoder_qkv_multiscales=((), (5,)), encoder_layers_per_block=(1, 1),
      decoder_layers_per_block=(1, 1))  # fmt: skip
model("vq_model", "VQModel", lambda: {"sample": image()}, **_BLOCKS, num_vq_embeddings=16,
      down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
      latent_channels=3)  # fmt: skip
model("autoencoder_temporal", "AutoencoderKLTemporalDecoder",
      lambda: {"sample": torch.randn(2, 3, 16, 16), "num_frames": 2}, block_out_channels=(32, 32),
      layers_per_block=1, down_block_types=("DownEncoderBlock2D",) * 2)  # fmt: skip
model("autoencoder_wan", "AutoencoderKLWan", lambda: {"sample": video()}, base_dim=8, z_dim=4,
      dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True])  # fmt: skip
model("autoencoder_ltx", "AutoencoderKLLTXVideo", lambda: {"sample": video(3, 9, 32)},
      latent_channels=8, block_out_channels=(8, 8, 8, 8), decoder_block_out_channels=(8, 8, 8, 8),
      layers_per_block=(1,) * 5, decoder_layers_per_block=(1,) * 5, patch_size=1,
      decoder_inject_noise=(False,) * 5)  # fmt: skip
model("autoencoder_oobleck", "AutoencoderOobleck", lambda: {"sample": torch.randn(1, 2, 64)},
      encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_channels=8,
      decoder_input_channels=4, channel_multiples=[1, 2])  # fmt: skip
model("dit", "DiTTransformer2DModel",
      lambda: {"hidden_states": image(4, 8), "timestep": timestep(), "class_labels": timestep()},
      **_DIT, in_channels=4, out_channels=8, sample_size=8, norm_num_groups=4,
      num_embeds_ada_norm=8)  # fmt: skip
model("transformer2d", "Transformer2DModel",
      lambda: {"hidden_states": image(8), "encoder_hidden_states": text(16)}, **_DIT, in_channels=8,
      norm_num_groups=4, cross_attention_dim=16)  # fmt: skip
model("transformer_temporal", "TransformerTemporalModel",
      lambda: {"hidden_states": torch.randn(3, 8, 4, 4), "num_frames": 3},
      **_DIT, in_channels=8, norm_num_groups=4)  # fmt: skip
model("pixart", "PixArtTransformer2DModel",
      lambda: {**_hidden()(), "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}},
      **_DIT, in_channels=4, sample_size=16, cross_attention_dim=16, caption_channels=16,
      norm_num_groups=4, use_additional_conditions=False)  # fmt: skip
model("sd3", "SD3Transformer2DModel",
      lambda: {**_hidden()(), "pooled_projections": torch.randn(1, 24)}, **_DIT, sample_size=16,
      in_channels=4, out_channels=4, joint_attention_dim=16, caption_projection_dim=16,
      pooled_projection_dim=24, pos_embed_max_size=16)  # fmt: skip
model("flux", "FluxTransformer2DModel",
      lambda: {"hidden_states": torch.randn(1, 16, 8), "encoder_hidden_states": text(16),
               "pooled_projections": torch.randn(1, 12), "timestep": timestep(torch.float32),
               "img_ids": torch.randint(0, 4, (16, 3)).float(), "txt_ids": torch.zeros(6, 3)},
      patch_size=1, in_channels=8, num_layers=1, num_single_layers=1, attention_head_dim=16,
      num_attention_heads=2, joint_attention_dim=16, pooled_projection_dim=12,
      axes_dims_rope=[4, 4, 8])  # fmt: skip
model("auraflow", "AuraFlowTransformer2DModel", _hidden(), sample_size=16, in_channels=4,
      num_mmdit_layers=1, num_single_dit_layers=1, attention_head_dim=8, num_attention_heads=2,
      joint_attention_dim=16, caption_projection_dim=16, out_channels=4,
      pos_embed_max_size=64)  # fmt: skip
model("sana", "SanaTransformer2DModel", _hidden(), in_channels=4, out_channels=4, num_layers=1,
      num_attention_heads=2, attention_head_dim=8, num_cross_attention_heads=2,
      cross_attention_head_dim=8, cross_attention_dim=16, caption_channels=16,
      sample_size=16)  # fmt: skip
model("cogvideox", "CogVideoXTransformer3DModel",
      lambda: {"hidden_states": torch.randn(1, 2, 4, 8, 8), "timestep": timestep(),
               "encoder_hidden_states": text(16, 6)}, **_DIT, in_channels=4, out_channels=4,
      time_embed_dim=8, text_embed_dim=16, sample_width=8, sample_height=8, sample_frames=5,
      max_text_seq_length=6)  # fmt: skip
model("wan", "WanTransformer3DModel",
      lambda: {**_hidden()(), "hidden_states": video(4, 2)}, patch_size=(1, 2, 2), in_channels=4,
      num_attention_heads=2, attention_head_dim=12, out_channels=4, text_dim=16, freq_dim=16,
      ffn_dim=32, num_layers=2, rope_max_seq_len=32)  # fmt: skip
model("mochi", "MochiTransformer3DModel",
      lambda: {**_hidden()(), "hidden_states": video(4, 2),
               "encoder_attention_mask": torch.ones(1, 6, dtype=torch.bool)},
      patch_size=2, num_attention_heads=2, attention_head_dim=8, num_layers=2,
      pooled_projection_dim=16, in_channels=4, text_embed_dim=16, time_embed_dim=4,
      activation_fn="swiglu", max_sequence_length=16)  # fmt: skip
model("ltx_video", "LTXVideoTransformer3DModel",
      lambda: {"hidden_states": torch.randn(1, 32, 4), "encoder_hidden_states": text(16),
               "timestep": timestep(), "encoder_attention_mask": torch.ones(1, 6),
               "num_frames": 2, "height": 4, "width": 4},
      in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=8,
      cross_attention_dim=16, num_layers=1, caption_channels=16)  # fmt: skip
model("latte", "LatteTransformer3DModel",
      lambda: {**_hidden()(), "hidden_states": video(4, 2, 8)}, **{**_DIT, "num_layers": 1},
      sample_size=8, patch_size=2, in_channels=4, out_channels=8, cross_attention_dim=16,
      caption_channels=16, attention_bias=True, video_length=2)  # fmt: skip
model("stable_audio_dit", "StableAudioDiTModel",
      lambda: {"hidden_states": torch.randn(1, 4, 8), "timestep": timestep(torch.float32),
               "encoder_hidden_states": text(16), "global_hidden_states": torch.randn(1, 1, 16)},
      sample_size=8, in_channels=4, num_layers=2, attention_head_dim=8, num_key_value_attention_heads=2,
      num_attention_heads=2, out_channels=4, cross_attention_dim=16, time_proj_dim=8,
      global_states_input_dim=16, cross_attention_input_dim=16)  # fmt: skip
model("uvit", "UVit2DModel",
      lambda: {"input_ids": torch.randint(0, 20, (1, 8, 8)), "encoder_hidden_states": text(16),
               "pooled_text_emb": torch.randn(1, 16), "micro_conds": torch.randn(1, 5)},
      hidden_size=24, cond_embed_dim=16, encoder_hidden_size=16, vocab_size=24, codebook_size=20,
      in_channels=8, block_out_channels=8, num_hidden_layers=1, num_attention_heads=2,
      micro_cond_encode_dim=4, micro_cond_embed_dim=20, num_res_blocks=1,
      block_num_heads=2, intermediate_size=48)  # fmt: skip


def names() -> list[str]:
    """The architectures, as `diffusers/unet2d`."""
    return [f"diffusers/{name}" for name in MODELS]


def build(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    """A model in evaluation mode with the arguments of one call."""
    import diffusers

    cls, config, call = MODELS[name.partition("/")[2]]
    torch.manual_seed(0)
    made = getattr(diffusers, cls)(**config).eval()
    return made, (), call()
