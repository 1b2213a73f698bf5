"""Tiny models of families that attnviz refuses, each with the reason that it gives."""

from collections.abc import Callable
from typing import Any

import transformers as tf

from tests.tiny import (
    BERT,
    D_HEAD,
    D_INNER,
    D_MODEL,
    DECODER_LAYERS,
    ENCODER_LAYERS,
    EXPERTS,
    GROUPED,
    GROUPED_WHOLE,
    HEADS,
    LIMIT,
    SEQ2SEQ,
    SEQ2SEQ_LAYERS,
    SHARED,
    T5,
    TURNED,
    Family,
)
from tests.tiny_tokenizers import VOCABULARY

_OWN_CODE = "code of its own, which attnviz does not know"
_GPT = SHARED | {"n_embd": 20, "n_layer": ENCODER_LAYERS, "n_head": HEADS, "n_positions": LIMIT}
_BARE = {"vocab_size": VOCABULARY, "n_layer": ENCODER_LAYERS, "n_head": HEADS}
_NO_LIMIT = {key: value for key, value in SEQ2SEQ.items() if key != "max_position_embeddings"}
_FSMT = {key: value for key, value in SEQ2SEQ.items() if key != "vocab_size"} | {
    "src_vocab_size": VOCABULARY,
    "tgt_vocab_size": VOCABULARY,
}


def _refused(
    name: str, config: Callable[[], tf.PreTrainedConfig], reason: str = _OWN_CODE, **named: Any
) -> Family:
    return Family(name, config, **{"tokenizer": "bert without segments"} | named, reason=reason)


_HYBRID = r"without attention weights \(1 of 3, such as layer 0\): linear attention or a recurrence"

UNSUPPORTED_FAMILIES = {
    family.name: family
    for family in (
        _refused(
            "deberta whose heads talk",
            lambda: tf.DebertaConfig(**BERT, talking_head=True),
            "mixes the scores and the weights of all heads",
        ),
        _refused(
            "deberta-v2 with a convolution",
            lambda: tf.DebertaV2Config(**BERT, conv_kernel_size=3),
            "convolves the embeddings into what layer 0 leaves",
        ),
        _refused(
            "xlnet",
            lambda: tf.XLNetConfig(**_BARE, d_model=D_MODEL, d_inner=D_INNER),
            "terms for relative positions",
        ),
        _refused(
            "funnel",
            lambda: tf.FunnelConfig(
                architectures=["FunnelModel"],  # without it transformers does not choose
                vocab_size=VOCABULARY,
                block_sizes=[2, 1],
                block_repeats=[1, 1],
                d_model=D_MODEL,
                n_head=HEADS,
                d_head=D_HEAD,
                d_inner=D_INNER,
            ),
            "layers pool queries",
        ),
        _refused(
            "longformer",
            lambda: tf.LongformerConfig(**BERT | {"pad_token_id": 1}, attention_window=4),
            "sliding window",
        ),
        _refused(
            "led",
            lambda: tf.LEDConfig(
                **_NO_LIMIT,
                max_encoder_position_embeddings=LIMIT,
                max_decoder_position_embeddings=LIMIT,
                attention_window=4,
            ),
            "sliding window",
            tokenizer="t5",
        ),
        _refused("rembert", lambda: tf.RemBertConfig(**BERT, input_embedding_size=7)),
        _refused("megatron-bert", lambda: tf.MegatronBertConfig(**BERT)),
        _refused("ibert", lambda: tf.IBertConfig(**BERT | {"pad_token_id": 1})),
        _refused("roformer", lambda: tf.RoFormerConfig(**TURNED)),
        _refused(
            "luke",
            lambda: tf.LukeConfig(**BERT | {"pad_token_id": 1}, entity_vocab_size=11, entity_emb_size=7),
        ),
        _refused(
            "squeezebert",
            lambda: tf.SqueezeBertConfig(
                **TURNED,
                embedding_size=20,
                **{f"{name}_groups": 1 for name in ("post_attention", "intermediate", "output")},
                **{f"{role}_groups": 2 for role in "qkv"},
            ),
        ),
        _refused(
            "convbert",
            lambda: tf.ConvBertConfig(**TURNED | {"num_attention_heads": 4}, embedding_size=7, head_ratio=2),
            "mixes attention with convolutions",
        ),
        _refused(
            "nystromformer",
            lambda: tf.NystromformerConfig(**BERT, num_landmarks=8, segment_means_seq_len=8),
            "landmarks",
        ),
        _refused("yoso", lambda: tf.YosoConfig(**BERT), "hashing"),
        _refused("mra", lambda: tf.MraConfig(**BERT), "several resolutions"),
        _refused("fnet", lambda: tf.FNetConfig(**BERT), "without attention"),
        *(
            _refused(
                name,
                lambda made=made: made(
                    vocab_size=VOCABULARY,
                    emb_dim=D_MODEL,
                    n_layers=ENCODER_LAYERS,
                    n_heads=HEADS,
                    max_position_embeddings=LIMIT,
                    pad_index=0,
                ),
            )
            for name, made in (("xlm", tf.XLMConfig), ("flaubert", tf.FlaubertConfig))
        ),
        _refused("openai-gpt", lambda: tf.OpenAIGPTConfig(**_GPT)),
        _refused("gptj", lambda: tf.GPTJConfig(**_GPT, rotary_dim=6)),
        _refused("codegen", lambda: tf.CodeGenConfig(**_GPT | {"n_head": 4}, n_ctx=LIMIT, rotary_dim=4)),
        _refused(
            "gpt_neo",
            lambda: tf.GPTNeoConfig(
                **SHARED,
                hidden_size=D_MODEL,
                num_layers=ENCODER_LAYERS,
                num_heads=HEADS,
                attention_types=[[["global", "local", "global"], 1]],
                window_size=4,
                max_position_embeddings=LIMIT,
                intermediate_size=D_INNER,
            ),
        ),
        _refused(
            "gpt_neox_japanese", lambda: tf.GPTNeoXJapaneseConfig(**TURNED, intermediate_multiple_size=2)
        ),
        _refused("bloom", lambda: tf.BloomConfig(**_BARE, hidden_size=D_MODEL), "ALiBi"),
        _refused(
            "mpt",
            lambda: tf.MptConfig(
                vocab_size=VOCABULARY,
                d_model=D_MODEL,
                n_layers=ENCODER_LAYERS,
                n_heads=HEADS,
                max_seq_len=LIMIT,
            ),
            "ALiBi",
        ),
        _refused(
            "falcon",
            lambda: tf.FalconConfig(
                **SHARED, hidden_size=20, num_hidden_layers=ENCODER_LAYERS, num_attention_heads=HEADS
            ),
        ),
        _refused(
            "xglm",
            lambda: tf.XGLMConfig(
                **SHARED,
                d_model=D_MODEL,
                num_layers=ENCODER_LAYERS,
                attention_heads=HEADS,
                ffn_dim=D_INNER,
                max_position_embeddings=LIMIT,
            ),
        ),
        _refused(
            "reformer",
            lambda: tf.ReformerConfig(
                vocab_size=VOCABULARY,
                axial_pos_embds=False,
                max_position_embeddings=LIMIT,
                hidden_size=D_MODEL,
                num_attention_heads=HEADS,
                attention_head_size=D_HEAD,
                feed_forward_size=D_INNER,
                attn_layers=["local"] * ENCODER_LAYERS,
                local_attn_chunk_length=4,
            ),
            "buckets of like tokens",
        ),
        _refused(
            "diffllama",
            lambda: tf.DiffLlamaConfig(**GROUPED_WHOLE),
            "difference of two softmaxes",
        ),
        _refused(
            "gpt_oss",
            lambda: tf.GptOssConfig(
                **GROUPED | {"intermediate_size": 8}, num_local_experts=3, num_experts_per_tok=2
            ),
            "a learned sink",
        ),
        _refused(
            "doge",
            lambda: tf.DogeConfig(**GROUPED),
            "does not say that its attention is a decoder's",
            n_layers={"decoder": ENCODER_LAYERS},
        ),
        _refused(
            "qwen3_next",
            lambda: tf.Qwen3NextConfig(
                **GROUPED,
                **EXPERTS,
                shared_expert_intermediate_size=8,
                layer_types=["linear_attention", "full_attention", "full_attention"],
                linear_num_value_heads=4,
                linear_num_key_heads=2,
                linear_key_head_dim=4,
                linear_value_head_dim=4,
            ),
            _HYBRID,
        ),
        _refused(
            "minimax",
            lambda: tf.MiniMaxConfig(
                **GROUPED | {"intermediate_size": 8},
                num_local_experts=3,
                layer_types=["linear_attention", "full_attention", "full_attention"],
            ),
            _HYBRID,
        ),
        _refused(
            "lfm2",
            lambda: tf.Lfm2Config(**GROUPED_WHOLE, layer_types=["conv", "full_attention", "full_attention"]),
            r"\(1 of 3, such as layer 0\): convolutions",
        ),
        _refused(
            "recurrent_gemma",
            lambda: tf.RecurrentGemmaConfig(**GROUPED, lru_width=12),
            r"\(2 of 3, such as layer 0\): linear attention or a recurrence",
        ),
        *(
            _refused(
                name,
                lambda made=made, more=more: made(
                    vocab_size=VOCABULARY,
                    hidden_size=D_MODEL,
                    num_hidden_layers=ENCODER_LAYERS,
                    state_size=4,
                    **more,
                ),
                "a state space model without attention",
            )
            for name, made, more in (
                ("mamba", tf.MambaConfig, {}),
                ("falcon_mamba", tf.FalconMambaConfig, {}),
                ("mamba2", tf.Mamba2Config, {"num_heads": 4, "head_dim": 5, "n_groups": 1}),
            )
        ),
        _refused(
            "rwkv",
            lambda: tf.RwkvConfig(
                vocab_size=VOCABULARY,
                hidden_size=D_MODEL,
                num_hidden_layers=ENCODER_LAYERS,
                attention_hidden_size=D_MODEL,
            ),
            "a recurrent network without attention",
        ),
        *(
            _refused(name, config, reason, tokenizer="t5", n_layers=SEQ2SEQ_LAYERS)
            for name, config, reason in (
                (
                    "bigbird_pegasus",
                    lambda: tf.BigBirdPegasusConfig(**SEQ2SEQ, attention_type="original_full"),
                    "in blocks, some of them random",
                ),
                ("fsmt", lambda: tf.FSMTConfig(**_FSMT), _OWN_CODE),
                ("longt5", lambda: tf.LongT5Config(**T5, local_radius=3), "encoder attends in local blocks"),
                ("mvp", lambda: tf.MvpConfig(**SEQ2SEQ), _OWN_CODE),
                (
                    "nllb-moe",
                    lambda: tf.NllbMoeConfig(
                        **SEQ2SEQ, num_experts=3, encoder_sparse_step=0, decoder_sparse_step=0
                    ),
                    "does not tell its decoder's attention from the one across",
                ),
                (
                    "pegasus_x",
                    lambda: tf.PegasusXConfig(**SEQ2SEQ, num_global_tokens=3, block_size=4),
                    "encoder attends in blocks",
                ),
                (
                    "prophetnet",
                    lambda: tf.ProphetNetConfig(
                        **SHARED,
                        hidden_size=D_MODEL,
                        num_encoder_layers=ENCODER_LAYERS,
                        num_decoder_layers=DECODER_LAYERS,
                        num_encoder_attention_heads=HEADS,
                        num_decoder_attention_heads=5,
                        encoder_ffn_dim=D_INNER,
                        decoder_ffn_dim=13,
                        max_position_embeddings=LIMIT,
                        decoder_start_token_id=3,
                    ),
                    "second stream",
                ),
            )
        ),
    )
}
"""Families that are refused, with the reason that is given."""
