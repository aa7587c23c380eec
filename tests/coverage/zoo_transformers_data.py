"""What is particular to architectures of transformers: sizes, classes, arguments, names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CONFIG: dict[str, dict[str, Any]] = {}
"""Architecture => fields of its configuration."""

MODEL_CLASS: dict[str, str] = {}
"""Architecture => class of transformers, where it is not the first of `FAMILIES`."""

INPUTS: dict[str, Callable[[Any], dict[str, Any]]] = {}
"""Architecture => the keywords of one call, from its configuration."""

NAMES: tuple[str, ...] = tuple(
    """
    afmoe aimv2 albert altclip apertus arcee aria_text audioflamingo3 bart beit bert
    bert-generation big_bird bigbird_pegasus biogpt bit bitnet blenderbot blenderbot-small
    blip bloom camembert canine chinese_clip clip clip_text_model clip_vision_model clipseg
    cohere cohere2 cohere2_moe convbert convnext convnextv2 cpmant ctrl cvt data2vec-audio
    data2vec-text data2vec-vision deberta deberta-v2 deepseek_v3 deepseek_v32 diffllama dinov2
    dinov2_with_registers dinov3_convnext dinov3_vit distilbert dpr electra ernie ernie4_5
    ernie4_5_moe eurobert exaone4 falcon falcon_mamba fastspeech2_conformer flaubert flex_olmo
    fnet focalnet fsmt funnel gemma gemma2 gemma3_text git glm glm4 glm4_moe glmasr glpn gpt2
    gpt_bigcode gpt_neox gpt_neox_japanese gpt_oss granite granite_speech granitemoe groupvit
    helium hgnet_v2 hiera higgs_audio_v2 hubert ibert idefics3_vision ijepa imagegpt
    internvl_vision jetmoe jina_embeddings_v3 kosmos-2.5 lasr_encoder layoutlm led lfm2 llama
    llama4_text longformer longt5 luke m2m_100 mamba marian markuplm mbart megatron-bert
    metaclip_2 mgp-str minimax minimax_m2 ministral3 mistral mixtral mlcd mllama mobilebert
    mobilenet_v1 mobilenet_v2 mobilevit modernbert modernbert-decoder moonshine moshi mpnet
    mpt mra mt5 nanochat nemotron_h nllb-moe nomic_bert nystromformer olmo olmo2 olmo3
    olmo_hybrid olmoe openai-gpt opt owlv2 owlvit parakeet_ctc parakeet_encoder parakeet_rnnt
    parakeet_tdt pegasus pegasus_x persimmon phi phi3 phi4_multimodal phimoe pixio pixtral
    plbart poolformer prophetnet pvt pvt_v2 qwen2 qwen2_audio qwen2_moe qwen3 qwen3_moe
    qwen3_vl_text radio regnet rembert resnet rf_detr roberta roberta-prelayernorm roc_bert
    roformer rwkv sam3_vit_model sam_vision_model seamless_m4t seed_oss segformer sew sew-d
    siglip siglip_vision_model smollm3 smolvlm_vision speech_to_text speecht5 splinter
    squeezebert stablelm starcoder2 swiftformer switch_transformers t5 t5gemma tapas textnet
    timesformer tipsv2 udop umt5 unispeech unispeech-sat videomae videoprism vilt
    vision-text-dual-encoder visual_bert vit vit_mae vit_msn vitdet vits vivit voxtral
    wav2vec2 wavlm whisper xglm xlm xlm-roberta xlm-roberta-xl xlnet yolos yoso
    """.split()
)
"""The architectures."""
