"""Tiny models with random weights, one of each family, and the tokenizers they need. Nothing is downloaded.

Sizes differ on every axis, so that two axes swapped cannot pass for each other: 3 encoder layers, 4
decoder layers, 2 heads (Llama 6 over 2, a BART decoder 5), d_head 5 or 10, and texts of yet other
lengths. Weights are large enough for the attention to be far from uniform, which a test makes sure of.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers as tf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

ENCODER_LAYERS, DECODER_LAYERS = 3, 4
HEADS, D_HEAD = 2, 5
D_MODEL, D_INNER = HEADS * D_HEAD, 17
LIMIT = 37  # positions
VOCABULARY = 300  # enough for 256 bytes and the special tokens
WEIGHT_STD = 0.4
STEEP_STD = 0.2
"""For families with a d_model of 60, whose scores would reach 170 and be rounded by 1e-5."""

WORDS = "a the door it i was watching when opened cat sat on mat play ##ing ##ed ##s . ' , ?"

SPACELESS = "\u4e2d\u6587\u5b57\u306e\u0e01"
"""Characters of scripts that put no spaces between words: Han, kana, Thai."""


@dataclass(frozen=True, eq=False)
class Family:
    """How to build the tiny model of one family, and what to expect of it."""

    name: str
    config: Callable[[], tf.PreTrainedConfig]
    tokenizer: str = "bert"
    """Which of `TOKENIZERS` is saved beside it."""
    n_layers: dict[str, int] = field(default_factory=lambda: {"encoder": ENCODER_LAYERS})
    """Layers of each kind of attention, written down here and not read from the config."""
    n_heads: dict[str, int] = field(default_factory=lambda: {"encoder": HEADS})
    weight_std: float = WEIGHT_STD
    reason: str = ""
    """Of a family that is refused, a pattern of the reason that is given."""

    @property
    def is_encoder_decoder(self) -> bool:
        return "cross" in self.n_layers


_SHARED = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
_BERT = _SHARED | {
    "hidden_size": D_MODEL,
    "num_hidden_layers": ENCODER_LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": D_INNER,
    "max_position_embeddings": LIMIT,
}
_TURNED = _BERT | {"hidden_size": 20}
"""Rotary positions need an even d_head."""
_GROUPED = _BERT | {"hidden_size": 12, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10}
_GROUPED_WHOLE = _GROUPED | {"hidden_size": 60}
"""For families whose d_head is d_model over heads."""
_EXPERTS = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
"""torch's grouped product wants sizes that 4 divides."""
_SEQ2SEQ = _SHARED | {
    "d_model": D_MODEL,
    "encoder_layers": ENCODER_LAYERS,
    "decoder_layers": DECODER_LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": 5,
    "encoder_ffn_dim": D_INNER,
    "decoder_ffn_dim": 13,
    "max_position_embeddings": LIMIT,
    "decoder_start_token_id": 3,
    "forced_eos_token_id": None,
}
_DECODER = {"n_layers": {"decoder": ENCODER_LAYERS}, "n_heads": {"decoder": HEADS}, "tokenizer": "bytes"}
_SIX_HEADS = _DECODER | {"n_heads": {"decoder": 6}}
_SEQ2SEQ_LAYERS = {"encoder": ENCODER_LAYERS, "decoder": DECODER_LAYERS, "cross": DECODER_LAYERS}
_BART_LIKE = {
    "n_layers": _SEQ2SEQ_LAYERS,
    "n_heads": {"encoder": HEADS, "decoder": 5, "cross": 5},
}
_T5 = _SHARED | {
    "d_model": 11,
    "d_kv": D_HEAD,
    "d_ff": D_INNER,
    "num_layers": ENCODER_LAYERS,
    "num_decoder_layers": DECODER_LAYERS,
    "num_heads": HEADS,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "decoder_start_token_id": 0,
}
_T5_LIKE = {
    "n_layers": _SEQ2SEQ_LAYERS,
    "n_heads": {"encoder": HEADS, "decoder": HEADS, "cross": HEADS},
}

TEXT_FAMILIES = {
    family.name: family
    for family in (
        Family("bert", lambda: tf.BertConfig(**_BERT)),
        Family(
            "roberta", lambda: tf.RobertaConfig(**_BERT | {"pad_token_id": 1}, type_vocab_size=1), "roberta"
        ),
        Family(
            "xlm-roberta",
            lambda: tf.XLMRobertaConfig(**_BERT | {"pad_token_id": 1}, type_vocab_size=1),
            "roberta",
        ),
        Family(
            "distilbert",
            lambda: tf.DistilBertConfig(
                **_SHARED,
                dim=D_MODEL,
                n_layers=ENCODER_LAYERS,
                n_heads=HEADS,
                hidden_dim=D_INNER,
                max_position_embeddings=LIMIT,
            ),
            "bert without segments",
        ),
        Family("albert", lambda: tf.AlbertConfig(**_BERT, embedding_size=7)),
        Family("electra", lambda: tf.ElectraConfig(**_BERT, embedding_size=7)),
        Family(
            "modernbert",
            # rotary positions need an even d_head; layers 1 and 2 see 2 tokens to each side
            lambda: tf.ModernBertConfig(
                **_BERT | {"hidden_size": 20},
                local_attention=4,
                global_attn_every_n_layers=3,
                cls_token_id=2,
                sep_token_id=3,
            ),
            "bert without segments",
        ),
        Family(
            "gpt2",
            lambda: tf.GPT2Config(
                **_SHARED, n_embd=D_MODEL, n_layer=ENCODER_LAYERS, n_head=HEADS, n_positions=LIMIT
            ),
            **_DECODER,
        ),
        Family("llama", lambda: tf.LlamaConfig(**_GROUPED), **_SIX_HEADS),
        Family("gpt-neox", lambda: tf.GPTNeoXConfig(**_TURNED), **_DECODER),
        Family("bart", lambda: tf.BartConfig(**_SEQ2SEQ), "roberta", **_BART_LIKE),
        Family("marian", lambda: tf.MarianConfig(**_SEQ2SEQ), "t5", **_BART_LIKE),
        Family("t5", lambda: tf.T5Config(**_T5), "t5", **_T5_LIKE),
        # encoders
        Family(
            "camembert",
            lambda: tf.CamembertConfig(**_BERT | {"pad_token_id": 1}, type_vocab_size=1),
            "roberta",
        ),
        Family("ernie", lambda: tf.ErnieConfig(**_BERT)),
        Family(
            "esm",
            lambda: tf.EsmConfig(
                **_TURNED | {"pad_token_id": 1}, mask_token_id=4, position_embedding_type="rotary"
            ),
            "roberta",
        ),
        Family("eurobert", lambda: tf.EuroBertConfig(**_TURNED, mask_token_id=4), "bert without segments"),
        Family("gte", lambda: tf.GteConfig(**_TURNED)),
        Family(
            "jina-embeddings-v3",
            lambda: tf.JinaEmbeddingsV3Config(**_TURNED | {"pad_token_id": 1}),
            "roberta",
        ),
        Family("nomic-bert", lambda: tf.NomicBertConfig(**_TURNED)),
        # decoders
        Family("biogpt", lambda: tf.BioGptConfig(**_BERT), **_DECODER),
        Family("bitnet", lambda: tf.BitNetConfig(**_GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("cohere", lambda: tf.CohereConfig(**_GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family(
            "deepseek-v3",  # d_head 13, of which 6 are turned by positions, and d_value 5
            lambda: tf.DeepseekV3Config(
                **_TURNED,
                num_key_value_heads=HEADS,
                q_lora_rank=11,
                kv_lora_rank=7,
                qk_rope_head_dim=6,
                qk_nope_head_dim=7,
                v_head_dim=5,
                first_k_dense_replace=ENCODER_LAYERS,
            ),
            **_DECODER,
        ),
        Family("gemma", lambda: tf.GemmaConfig(**_GROUPED), **_SIX_HEADS),
        Family(
            "gemma3",  # layers 0 and 1 see 4 tokens
            lambda: tf.Gemma3TextConfig(
                **_GROUPED,
                query_pre_attn_scalar=7,
                sliding_window=4,
                layer_types=["sliding_attention", "sliding_attention", "full_attention"],
            ),
            **_SIX_HEADS,
        ),
        Family("glm4", lambda: tf.Glm4Config(**_GROUPED), **_SIX_HEADS),
        Family(
            "gpt-bigcode",  # all heads share one key and value
            lambda: tf.GPTBigCodeConfig(
                **_SHARED, n_embd=D_MODEL, n_layer=ENCODER_LAYERS, n_head=HEADS, n_positions=LIMIT
            ),
            **_DECODER,
        ),
        Family("granite", lambda: tf.GraniteConfig(**_GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("mistral", lambda: tf.MistralConfig(**_GROUPED, sliding_window=4), **_SIX_HEADS),
        Family(
            "mixtral",
            lambda: tf.MixtralConfig(
                **_GROUPED | {"intermediate_size": 8}, num_local_experts=3, num_experts_per_tok=2
            ),
            **_SIX_HEADS,
        ),
        Family("nemotron", lambda: tf.NemotronConfig(**_GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("olmo", lambda: tf.OlmoConfig(**_TURNED), **_DECODER),
        Family("olmo2", lambda: tf.Olmo2Config(**_TURNED), **_DECODER),
        Family(
            "opt",
            lambda: tf.OPTConfig(
                **_SHARED,
                hidden_size=D_MODEL,
                word_embed_proj_dim=7,
                num_hidden_layers=ENCODER_LAYERS,
                num_attention_heads=HEADS,
                ffn_dim=D_INNER,
                max_position_embeddings=LIMIT,
            ),
            **_DECODER,
        ),
        Family("phi", lambda: tf.PhiConfig(**_TURNED, partial_rotary_factor=0.4), **_DECODER),
        Family("phi3", lambda: tf.Phi3Config(**_GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("qwen2", lambda: tf.Qwen2Config(**_GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("qwen3", lambda: tf.Qwen3Config(**_GROUPED), **_SIX_HEADS),
        Family("qwen3-moe", lambda: tf.Qwen3MoeConfig(**_GROUPED, **_EXPERTS), **_SIX_HEADS),
        Family("smollm3", lambda: tf.SmolLM3Config(**_GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("stablelm", lambda: tf.StableLmConfig(**_GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family(
            "starcoder2",
            lambda: tf.Starcoder2Config(**_GROUPED_WHOLE, sliding_window=4),
            **_SIX_HEADS,
            weight_std=STEEP_STD,
        ),
        # encoder and decoder
        Family("blenderbot", lambda: tf.BlenderbotConfig(**_SEQ2SEQ), "t5", **_BART_LIKE),
        Family("m2m-100", lambda: tf.M2M100Config(**_SEQ2SEQ), "t5", **_BART_LIKE),
        Family("mbart", lambda: tf.MBartConfig(**_SEQ2SEQ), "roberta", **_BART_LIKE),
        Family("mt5", lambda: tf.MT5Config(**_T5), "t5", **_T5_LIKE),
        Family("pegasus", lambda: tf.PegasusConfig(**_SEQ2SEQ), "t5", **_BART_LIKE),
        Family("umt5", lambda: tf.UMT5Config(**_T5), "t5", **_T5_LIKE),
    )
}

VISION_FAMILY = Family(
    "vit",
    lambda: tf.ViTConfig(
        hidden_size=D_MODEL,
        num_hidden_layers=ENCODER_LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=D_INNER,
        image_size=12,
        patch_size=3,
        num_channels=3,
    ),
)

WITH_HEAD: dict[str, type[tf.PreTrainedModel]] = {
    "bert": tf.BertForMaskedLM,
    "distilbert": tf.DistilBertForMaskedLM,
    "roberta": tf.RobertaForMaskedLM,
    "albert": tf.AlbertForMaskedLM,
    "electra": tf.ElectraForMaskedLM,
    "modernbert": tf.ModernBertForMaskedLM,
    "camembert": tf.CamembertForMaskedLM,
    "esm": tf.EsmForMaskedLM,
    "eurobert": tf.EuroBertForMaskedLM,
    "nomic-bert": tf.NomicBertForMaskedLM,
    "gpt2": tf.GPT2LMHeadModel,
    "llama": tf.LlamaForCausalLM,
    "gpt-neox": tf.GPTNeoXForCausalLM,
    "biogpt": tf.BioGptForCausalLM,
    "cohere": tf.CohereForCausalLM,
    "deepseek-v3": tf.DeepseekV3ForCausalLM,
    "gemma": tf.GemmaForCausalLM,
    "gemma3": tf.Gemma3ForCausalLM,
    "granite": tf.GraniteForCausalLM,
    "mistral": tf.MistralForCausalLM,
    "mixtral": tf.MixtralForCausalLM,
    "olmo2": tf.Olmo2ForCausalLM,
    "opt": tf.OPTForCausalLM,
    "phi": tf.PhiForCausalLM,
    "qwen2": tf.Qwen2ForCausalLM,
    "qwen3": tf.Qwen3ForCausalLM,
}
"""What transformers builds each family with a language head as."""

_OWN_CODE = "code that transformers does not let attnviz replace"
_GPT = _SHARED | {"n_embd": 20, "n_layer": ENCODER_LAYERS, "n_head": HEADS, "n_positions": LIMIT}
_BARE = {"vocab_size": VOCABULARY, "n_layer": ENCODER_LAYERS, "n_head": HEADS}
_NO_LIMIT = {key: value for key, value in _SEQ2SEQ.items() if key != "max_position_embeddings"}
_FSMT = {key: value for key, value in _SEQ2SEQ.items() if key != "vocab_size"} | {
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
            "mpnet", lambda: tf.MPNetConfig(**_BERT | {"pad_token_id": 1}), "bias for relative positions"
        ),
        _refused("deberta", lambda: tf.DebertaConfig(**_BERT), "terms for relative positions"),
        _refused(
            "deberta-v2",
            lambda: tf.DebertaV2Config(**_BERT, relative_attention=True, pos_att_type=["p2c", "c2p"]),
            "terms for relative positions",
            tokenizer="bert",
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
            lambda: tf.LongformerConfig(**_BERT | {"pad_token_id": 1}, attention_window=4),
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
        _refused("big_bird", lambda: tf.BigBirdConfig(**_BERT), "in blocks, some of them random"),
        _refused("rembert", lambda: tf.RemBertConfig(**_BERT, input_embedding_size=7)),
        _refused("megatron-bert", lambda: tf.MegatronBertConfig(**_BERT)),
        _refused("ibert", lambda: tf.IBertConfig(**_BERT | {"pad_token_id": 1})),
        _refused("roformer", lambda: tf.RoFormerConfig(**_TURNED)),
        _refused(
            "luke",
            lambda: tf.LukeConfig(**_BERT | {"pad_token_id": 1}, entity_vocab_size=11, entity_emb_size=7),
        ),
        _refused(
            "squeezebert",
            lambda: tf.SqueezeBertConfig(
                **_TURNED,
                embedding_size=20,
                **{f"{one}_groups": 1 for one in ("post_attention", "intermediate", "output")},
                **{f"{one}_groups": 2 for one in "qkv"},
            ),
        ),
        _refused(
            "convbert",
            lambda: tf.ConvBertConfig(**_TURNED | {"num_attention_heads": 4}, embedding_size=7, head_ratio=2),
            "mixes attention with convolutions",
        ),
        _refused(
            "nystromformer",
            lambda: tf.NystromformerConfig(**_BERT, num_landmarks=8, segment_means_seq_len=8),
            "landmarks",
        ),
        _refused("yoso", lambda: tf.YosoConfig(**_BERT), "hashing"),
        _refused("mra", lambda: tf.MraConfig(**_BERT), "several resolutions"),
        _refused("fnet", lambda: tf.FNetConfig(**_BERT), "without attention"),
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
                **_SHARED,
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
            "gpt_neox_japanese", lambda: tf.GPTNeoXJapaneseConfig(**_TURNED, intermediate_multiple_size=2)
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
                **_SHARED, hidden_size=20, num_hidden_layers=ENCODER_LAYERS, num_attention_heads=HEADS
            ),
        ),
        _refused(
            "xglm",
            lambda: tf.XGLMConfig(
                **_SHARED,
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
            lambda: tf.DiffLlamaConfig(**_GROUPED_WHOLE),
            "difference of two softmaxes",
        ),
        _refused(
            "gemma2", lambda: tf.Gemma2Config(**_GROUPED, sliding_window=4), r"caps its scores by c · tanh"
        ),
        _refused("vaultgemma", lambda: tf.VaultGemmaConfig(**_GROUPED, sliding_window=4), "caps its scores"),
        _refused(
            "gpt_oss",
            lambda: tf.GptOssConfig(
                **_GROUPED | {"intermediate_size": 8}, num_local_experts=3, num_experts_per_tok=2
            ),
            "a learned sink",
        ),
        _refused(
            "doge",
            lambda: tf.DogeConfig(**_GROUPED),
            "does not say that its attention is a decoder's",
            n_layers={"decoder": ENCODER_LAYERS},
        ),
        _refused(
            "qwen3_next",
            lambda: tf.Qwen3NextConfig(
                **_GROUPED,
                **_EXPERTS,
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
                **_GROUPED | {"intermediate_size": 8},
                num_local_experts=3,
                layer_types=["linear_attention", "full_attention", "full_attention"],
            ),
            _HYBRID,
        ),
        _refused(
            "lfm2",
            lambda: tf.Lfm2Config(**_GROUPED_WHOLE, layer_types=["conv", "full_attention", "full_attention"]),
            r"\(1 of 3, such as layer 0\): convolutions",
        ),
        _refused(
            "recurrent_gemma",
            lambda: tf.RecurrentGemmaConfig(**_GROUPED, lru_width=12),
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
            _refused(name, config, reason, tokenizer="t5", n_layers=_SEQ2SEQ_LAYERS)
            for name, config, reason in (
                (
                    "bigbird_pegasus",
                    lambda: tf.BigBirdPegasusConfig(**_SEQ2SEQ, attention_type="original_full"),
                    "in blocks, some of them random",
                ),
                ("fsmt", lambda: tf.FSMTConfig(**_FSMT), _OWN_CODE),
                ("longt5", lambda: tf.LongT5Config(**_T5, local_radius=3), "encoder attends in local blocks"),
                ("mvp", lambda: tf.MvpConfig(**_SEQ2SEQ), _OWN_CODE),
                (
                    "nllb-moe",
                    lambda: tf.NllbMoeConfig(
                        **_SEQ2SEQ, num_experts=3, encoder_sparse_step=0, decoder_sparse_step=0
                    ),
                    "does not tell its decoder's attention from the one across",
                ),
                (
                    "pegasus_x",
                    lambda: tf.PegasusXConfig(**_SEQ2SEQ, num_global_tokens=3, block_size=4),
                    "encoder attends in blocks",
                ),
                (
                    "prophetnet",
                    lambda: tf.ProphetNetConfig(
                        **_SHARED,
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


def build(family: Family, *, seed: int = 0) -> tf.PreTrainedModel:
    """The family's model with weights drawn from the seed."""
    torch.manual_seed(seed)  # families differ in what they draw when they are made; all is drawn anew below
    network = tf.AutoModel.from_config(family.config()).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=family.weight_std, generator=generator)
    return network


def save(family: Family, folder: Path, *, seed: int = 0) -> Path:
    """Writes model and tokenizer as a checkpoint folder, which `attnviz.load_model` reads."""
    build(family, seed=seed).save_pretrained(folder)
    tokenizer(family.tokenizer).save_pretrained(folder)
    return folder


def save_with_head(name: str, folder: Path) -> Path:
    """A checkpoint with a language head; all of it is drawn, the head's biases too."""
    family = TEXT_FAMILIES[name]
    torch.manual_seed(1)
    whole = WITH_HEAD[name](family.config())
    with torch.no_grad():
        for parameter in whole.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=family.weight_std)
            else:  # biases are 0 and norms 1 where nothing was trained
                parameter.add_(torch.randn(len(parameter)), alpha=0.1)
    whole.save_pretrained(folder)
    tokenizer(family.tokenizer).save_pretrained(folder)
    return folder


def tokenizer(name: str) -> tf.PreTrainedTokenizerFast:
    """A fast tokenizer, as `TOKENIZERS` names them: word pieces, one token a byte, or SentencePiece's."""
    return TOKENIZERS[name]()


def _word_pieces(
    specials: dict[str, str], single: str, pair: str, model_input_names: list[str]
) -> tf.PreTrainedTokenizerFast:
    first = list(specials.values())
    unknown = specials["unk_token"]
    rest = sorted(
        {*WORDS.split(), *"abcdefghijklmnopqrstuvwxyz", *(f"##{one}" for one in "abcdefghijklmnopqrstuvwxyz")}
    )
    vocabulary = {piece: number for number, piece in enumerate([*first, *rest])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(one, vocabulary[one]) for one in first]
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=model_input_names, **specials
    )


def _bert(model_input_names: list[str]) -> tf.PreTrainedTokenizerFast:
    return _word_pieces(
        {
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        },
        "[CLS] $A [SEP]",
        "[CLS] $A [SEP] $B:1 [SEP]:1",
        model_input_names,
    )


def _roberta() -> tf.PreTrainedTokenizerFast:
    return _word_pieces(
        {
            "bos_token": "<s>",
            "pad_token": "<pad>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "mask_token": "<mask>",
        },
        "<s> $A </s>",
        "<s> $A </s> </s> $B </s>",
        ["input_ids", "attention_mask"],
    )


def _t5() -> tf.PreTrainedTokenizerFast:
    return _word_pieces(
        {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"},
        "$A </s>",
        "$A </s> $B </s>",
        ["input_ids", "attention_mask"],
    )


def _bytes() -> tf.PreTrainedTokenizerFast:
    """One token a byte, spelled as GPT-2 spells it, and no special token round the text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({one: number for number, one in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=["input_ids", "attention_mask"]
    )


def _sentencepiece() -> tf.PreTrainedTokenizerFast:
    """As Llama 2's: a space is part of the token behind it, and nothing splits a text beforehand."""
    alphabet = ["\u2581", *"abcdefghijklmnopqrstuvwxyz.,?'", *SPACELESS]
    merges, pieces = [], []
    for word in [one for one in WORDS.split() if one.isalpha()]:
        start = "\u2581"
        for character in word:
            merges.append((start, character))
            start += character
            pieces.append(start)
    vocabulary = dict.fromkeys(["<unk>", "<s>", "</s>", *alphabet, *pieces])
    backend = Tokenizer(
        models.BPE(
            {one: number for number, one in enumerate(vocabulary)},
            list(dict.fromkeys(merges)),
            unk_token="<unk>",
        )
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    backend.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Fuse()])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=["input_ids", "attention_mask"],
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
    )


def _unigram() -> tf.PreTrainedTokenizerFast:
    """As T5's own: SentencePiece's unigrams, after a split at spaces."""
    pieces = [("<unk>", 0.0), ("\u2581the", -1.0), ("\u2581", -2.0), ("door", -1.0), ("ed", -1.0)]
    pieces += [(one, -8.0) for one in (*"abcdefghijklmnopqrstuvwxyz.,", *SPACELESS)]
    backend = Tokenizer(models.Unigram(pieces, unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=["input_ids", "attention_mask"], unk_token="<unk>"
    )


TOKENIZERS: dict[str, Callable[[], tf.PreTrainedTokenizerFast]] = {
    "bert": lambda: _bert(["input_ids", "token_type_ids", "attention_mask"]),
    "bert without segments": lambda: _bert(["input_ids", "attention_mask"]),
    "roberta": _roberta,
    "t5": _t5,
    "bytes": _bytes,
    "sentencepiece": _sentencepiece,
    "unigram": _unigram,
}
