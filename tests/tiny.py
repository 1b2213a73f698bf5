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

from attnviz.model.model import Model
from attnviz.model.trace import Trace
from tests.tiny_tokenizers import VOCABULARY, tokenizer

ENCODER_LAYERS, DECODER_LAYERS = 3, 4
HEADS, D_HEAD = 2, 5
D_MODEL, D_INNER = HEADS * D_HEAD, 17
LIMIT = 37  # positions
TEXT, SECOND_TEXT = "I was watching the door", "it opened ."
WEIGHT_STD = 0.4
STEEP_STD = 0.2
"""For families with a d_model of 60, whose scores would reach 170 and be rounded by 1e-5."""


@dataclass(frozen=True, eq=False)
class Family:
    """How to build the tiny model of one family, and what to expect of it."""

    name: str
    config: Callable[[], tf.PreTrainedConfig]
    tokenizer: str = "bert"
    """Which of `TOKENIZERS` is saved beside it."""
    n_layers: dict[str, int] = field(default_factory=lambda: {"encoder": ENCODER_LAYERS})
    """Layers of each kind of attention, written down here and not read from the config."""
    n_heads: dict[str, int | tuple[int, ...]] = field(default_factory=lambda: {"encoder": HEADS})
    """Heads of each layer, or of every layer where they have as many."""
    weight_std: float = WEIGHT_STD
    reason: str = ""
    """Of a family that is refused, a pattern of the reason that is given."""

    def heads_of(self, kind: str) -> tuple[int, ...]:
        """Number of heads of each layer."""
        given = self.n_heads[kind]
        return given if isinstance(given, tuple) else (given,) * self.n_layers[kind]

    @property
    def is_encoder_decoder(self) -> bool:
        return "cross" in self.n_layers


SHARED = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
BERT = SHARED | {
    "hidden_size": D_MODEL,
    "num_hidden_layers": ENCODER_LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": D_INNER,
    "max_position_embeddings": LIMIT,
}
TURNED = BERT | {"hidden_size": 20}
"""Rotary positions need an even d_head."""
GROUPED = BERT | {"hidden_size": 12, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10}
GROUPED_WHOLE = GROUPED | {"hidden_size": 60}
"""For families whose d_head is d_model over heads."""
EXPERTS = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
"""torch's grouped product wants sizes that 4 divides."""
SEQ2SEQ = SHARED | {
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
SEQ2SEQ_LAYERS = {"encoder": ENCODER_LAYERS, "decoder": DECODER_LAYERS, "cross": DECODER_LAYERS}
_BART_LIKE = {
    "n_layers": SEQ2SEQ_LAYERS,
    "n_heads": {"encoder": HEADS, "decoder": 5, "cross": 5},
}
T5 = SHARED | {
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
    "n_layers": SEQ2SEQ_LAYERS,
    "n_heads": {"encoder": HEADS, "decoder": HEADS, "cross": HEADS},
}

TEXT_FAMILIES = {
    family.name: family
    for family in (
        Family("bert", lambda: tf.BertConfig(**BERT)),
        Family(
            "roberta", lambda: tf.RobertaConfig(**BERT | {"pad_token_id": 1}, type_vocab_size=1), "roberta"
        ),
        Family(
            "xlm-roberta",
            lambda: tf.XLMRobertaConfig(**BERT | {"pad_token_id": 1}, type_vocab_size=1),
            "roberta",
        ),
        Family(
            "distilbert",
            lambda: tf.DistilBertConfig(
                **SHARED,
                dim=D_MODEL,
                n_layers=ENCODER_LAYERS,
                n_heads=HEADS,
                hidden_dim=D_INNER,
                max_position_embeddings=LIMIT,
            ),
            "bert without segments",
        ),
        Family("albert", lambda: tf.AlbertConfig(**BERT, embedding_size=7)),
        Family("electra", lambda: tf.ElectraConfig(**BERT, embedding_size=7)),
        Family(
            "modernbert",
            # rotary positions need an even d_head; layers 1 and 2 see 2 tokens to each side
            lambda: tf.ModernBertConfig(
                **BERT | {"hidden_size": 20},
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
                **SHARED, n_embd=D_MODEL, n_layer=ENCODER_LAYERS, n_head=HEADS, n_positions=LIMIT
            ),
            **_DECODER,
        ),
        Family("llama", lambda: tf.LlamaConfig(**GROUPED), **_SIX_HEADS),
        Family("gpt-neox", lambda: tf.GPTNeoXConfig(**TURNED), **_DECODER),
        Family("bart", lambda: tf.BartConfig(**SEQ2SEQ), "roberta", **_BART_LIKE),
        Family("marian", lambda: tf.MarianConfig(**SEQ2SEQ), "t5", **_BART_LIKE),
        Family("t5", lambda: tf.T5Config(**T5), "t5", **_T5_LIKE),
        # encoders
        Family(
            "camembert",
            lambda: tf.CamembertConfig(**BERT | {"pad_token_id": 1}, type_vocab_size=1),
            "roberta",
        ),
        Family("ernie", lambda: tf.ErnieConfig(**BERT)),
        Family(
            "esm",
            lambda: tf.EsmConfig(
                **TURNED | {"pad_token_id": 1}, mask_token_id=4, position_embedding_type="rotary"
            ),
            "roberta",
        ),
        Family("eurobert", lambda: tf.EuroBertConfig(**TURNED, mask_token_id=4), "bert without segments"),
        Family("gte", lambda: tf.GteConfig(**TURNED)),
        Family(
            "jina-embeddings-v3",
            lambda: tf.JinaEmbeddingsV3Config(**TURNED | {"pad_token_id": 1}),
            "roberta",
        ),
        Family("nomic-bert", lambda: tf.NomicBertConfig(**TURNED)),
        # encoders whose own classes compute their attention
        Family(
            "mpnet",
            lambda: tf.MPNetConfig(**BERT | {"pad_token_id": 1}),
            "roberta",
        ),
        Family(
            "big_bird",  # reads (5 + 2) x 3 tokens before it attends in blocks
            lambda: tf.BigBirdConfig(**BERT, block_size=3, num_random_blocks=1),
        ),
        Family(
            "deberta",
            lambda: tf.DebertaConfig(
                **BERT, relative_attention=True, pos_att_type=["c2p", "p2c"], position_biased_input=False
            ),
            "bert without segments",
        ),
        Family(
            "deberta-v2",  # distances of up to 2 have a vector of their own, farther ones share some
            lambda: tf.DebertaV2Config(
                **BERT,
                relative_attention=True,
                pos_att_type=["p2c", "c2p"],
                position_buckets=4,
                position_biased_input=False,
                norm_rel_ebd="layer_norm",
                share_att_key=True,
            ),
            "bert without segments",
        ),
        # decoders
        Family("biogpt", lambda: tf.BioGptConfig(**BERT), **_DECODER),
        Family("bitnet", lambda: tf.BitNetConfig(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("cohere", lambda: tf.CohereConfig(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family(
            "deepseek-v3",  # d_head 13, of which 6 are turned by positions, and d_value 5
            lambda: tf.DeepseekV3Config(
                **TURNED,
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
        Family("gemma", lambda: tf.GemmaConfig(**GROUPED), **_SIX_HEADS),
        Family(
            "gemma3",  # layers 0 and 1 see 4 tokens
            lambda: tf.Gemma3TextConfig(
                **GROUPED,
                query_pre_attn_scalar=7,
                sliding_window=4,
                layer_types=["sliding_attention", "sliding_attention", "full_attention"],
            ),
            **_SIX_HEADS,
        ),
        Family(
            "gemma2",  # scores are capped at 3, and layers 0 and 2 see 4 tokens
            lambda: tf.Gemma2Config(
                **GROUPED,
                query_pre_attn_scalar=7,
                sliding_window=4,
                attn_logit_softcapping=3.0,
                final_logit_softcapping=2.0,
            ),
            **_SIX_HEADS,
        ),
        Family(
            "vaultgemma",
            lambda: tf.VaultGemmaConfig(
                **GROUPED, query_pre_attn_scalar=7, sliding_window=4, attn_logit_softcapping=3.0
            ),
            **_SIX_HEADS,
        ),
        Family("glm4", lambda: tf.Glm4Config(**GROUPED), **_SIX_HEADS),
        Family(
            "gpt-bigcode",  # all heads share one key and value
            lambda: tf.GPTBigCodeConfig(
                **SHARED, n_embd=D_MODEL, n_layer=ENCODER_LAYERS, n_head=HEADS, n_positions=LIMIT
            ),
            **_DECODER,
        ),
        Family("granite", lambda: tf.GraniteConfig(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("helium", lambda: tf.HeliumConfig(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family(
            "laguna",  # layers of 4, 6 and 2 heads; layer 1 sees 4 tokens
            lambda: tf.LagunaConfig(
                **GROUPED | {"head_dim": 8},
                num_attention_heads_per_layer=[4, 6, 2],
                layer_types=["full_attention", "sliding_attention", "full_attention"],
                sliding_window=4,
                mlp_layer_types=["dense"] * ENCODER_LAYERS,
            ),
            **_DECODER | {"n_heads": {"decoder": (4, 6, 2)}},
        ),
        Family("mistral", lambda: tf.MistralConfig(**GROUPED, sliding_window=4), **_SIX_HEADS),
        Family(
            "mixtral",
            lambda: tf.MixtralConfig(
                **GROUPED | {"intermediate_size": 8}, num_local_experts=3, num_experts_per_tok=2
            ),
            **_SIX_HEADS,
        ),
        Family("nemotron", lambda: tf.NemotronConfig(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("olmo", lambda: tf.OlmoConfig(**TURNED), **_DECODER),
        Family("olmo2", lambda: tf.Olmo2Config(**TURNED), **_DECODER),
        Family(
            "opt",
            lambda: tf.OPTConfig(
                **SHARED,
                hidden_size=D_MODEL,
                word_embed_proj_dim=7,
                num_hidden_layers=ENCODER_LAYERS,
                num_attention_heads=HEADS,
                ffn_dim=D_INNER,
                max_position_embeddings=LIMIT,
            ),
            **_DECODER,
        ),
        Family("phi", lambda: tf.PhiConfig(**TURNED, partial_rotary_factor=0.4), **_DECODER),
        Family("phi3", lambda: tf.Phi3Config(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("qwen2", lambda: tf.Qwen2Config(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("qwen3", lambda: tf.Qwen3Config(**GROUPED), **_SIX_HEADS),
        Family("qwen3-moe", lambda: tf.Qwen3MoeConfig(**GROUPED, **EXPERTS), **_SIX_HEADS),
        Family("smollm3", lambda: tf.SmolLM3Config(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family("stablelm", lambda: tf.StableLmConfig(**GROUPED_WHOLE), **_SIX_HEADS, weight_std=STEEP_STD),
        Family(
            "starcoder2",
            lambda: tf.Starcoder2Config(**GROUPED_WHOLE, sliding_window=4),
            **_SIX_HEADS,
            weight_std=STEEP_STD,
        ),
        # encoder and decoder
        Family("blenderbot", lambda: tf.BlenderbotConfig(**SEQ2SEQ), "t5", **_BART_LIKE),
        Family("m2m-100", lambda: tf.M2M100Config(**SEQ2SEQ), "t5", **_BART_LIKE),
        Family("mbart", lambda: tf.MBartConfig(**SEQ2SEQ), "roberta", **_BART_LIKE),
        Family("mt5", lambda: tf.MT5Config(**T5), "t5", **_T5_LIKE),
        Family("pegasus", lambda: tf.PegasusConfig(**SEQ2SEQ), "t5", **_BART_LIKE),
        Family(
            "t5gemma",
            lambda: tf.T5GemmaConfig(
                **{
                    side: tf.T5GemmaModuleConfig(
                        **GROUPED | {"num_hidden_layers": n_layer},
                        query_pre_attn_scalar=7,
                        sliding_window=4,
                        attn_logit_softcapping=3.0,
                        cross_attention_hidden_size=12,
                        is_decoder=side == "decoder",
                    )
                    for side, n_layer in (("encoder", ENCODER_LAYERS), ("decoder", DECODER_LAYERS))
                },
                vocab_size=VOCABULARY,
            ),
            "t5",
            n_layers=SEQ2SEQ_LAYERS,
            n_heads=dict.fromkeys(SEQ2SEQ_LAYERS, 6),
        ),
        Family("umt5", lambda: tf.UMT5Config(**T5), "t5", **_T5_LIKE),
    )
}

_IMAGES = {
    "hidden_size": 20,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "intermediate_size": D_INNER,
    "image_size": 12,
    "patch_size": 3,
}


def _with_images(name: str, config: Callable[..., tf.PreTrainedConfig], **text: Any) -> Family:
    """A family that reads images too: its text model is described in ``text_config``."""
    return Family(name, lambda: config(text_config=GROUPED_WHOLE | text), **_SIX_HEADS, weight_std=STEEP_STD)


TEXT_PARTS = {
    family.name: family
    for family in (
        _with_images(
            "gemma3 that reads images",
            lambda text_config: tf.Gemma3Config(
                text_config=text_config,
                vision_config=_IMAGES | {"model_type": "siglip_vision_model"},
                mm_tokens_per_image=4,
            ),
            query_pre_attn_scalar=7,
            sliding_window=4,
            layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        ),
        _with_images(
            "llama4",
            lambda text_config: tf.Llama4Config(
                text_config=text_config,
                vision_config=_IMAGES
                | {"vision_output_dim": 20, "projector_input_dim": 20, "projector_output_dim": 20},
            ),
            intermediate_size_mlp=D_INNER,
            num_local_experts=3,
            attention_chunk_size=4,
        ),
        _with_images(
            "llava",
            lambda text_config: tf.LlavaConfig(
                text_config=text_config | {"model_type": "llama"},
                vision_config=_IMAGES | {"model_type": "clip_vision_model"},
            ),
        ),
        _with_images(
            "mistral3",
            lambda text_config: tf.Mistral3Config(
                text_config=text_config | {"model_type": "mistral"},
                vision_config=_IMAGES | {"model_type": "pixtral"},
                image_token_index=280,
            ),
        ),
        _with_images(
            "qwen2_vl",
            lambda text_config: tf.Qwen2VLConfig(
                text_config=text_config
                | {
                    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 2, 1]}
                },
                vision_config={
                    "depth": 1,
                    "embed_dim": 20,
                    "hidden_size": 60,
                    "num_heads": HEADS,
                    "patch_size": 3,
                },
            ),
        ),
    )
}
"""Families whose text model is a part of a model that reads images, by the names in docs/families.md."""

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
    "mpnet": tf.MPNetForMaskedLM,
    "big_bird": tf.BigBirdForMaskedLM,
    "deberta": tf.DebertaForMaskedLM,
    "deberta-v2": tf.DebertaV2ForMaskedLM,
    "gpt2": tf.GPT2LMHeadModel,
    "llama": tf.LlamaForCausalLM,
    "gpt-neox": tf.GPTNeoXForCausalLM,
    "biogpt": tf.BioGptForCausalLM,
    "cohere": tf.CohereForCausalLM,
    "deepseek-v3": tf.DeepseekV3ForCausalLM,
    "gemma": tf.GemmaForCausalLM,
    "gemma2": tf.Gemma2ForCausalLM,
    "gemma3": tf.Gemma3ForCausalLM,
    "granite": tf.GraniteForCausalLM,
    "laguna": tf.LagunaForCausalLM,
    "mistral": tf.MistralForCausalLM,
    "mixtral": tf.MixtralForCausalLM,
    "olmo2": tf.Olmo2ForCausalLM,
    "opt": tf.OPTForCausalLM,
    "phi": tf.PhiForCausalLM,
    "qwen2": tf.Qwen2ForCausalLM,
    "qwen3": tf.Qwen3ForCausalLM,
}
"""What transformers builds each family with a language head as."""


WITH_CLASSIFIER: dict[str, type[tf.PreTrainedModel]] = {
    "bert": tf.BertForSequenceClassification,
    "roberta": tf.RobertaForSequenceClassification,
    "xlm-roberta": tf.XLMRobertaForSequenceClassification,
    "distilbert": tf.DistilBertForSequenceClassification,
    "albert": tf.AlbertForSequenceClassification,
    "electra": tf.ElectraForSequenceClassification,
    "modernbert": tf.ModernBertForSequenceClassification,
    "gpt2": tf.GPT2ForSequenceClassification,
    "llama": tf.LlamaForSequenceClassification,
}
"""What transformers builds each family with a classifier of texts as."""

CLASSES = ("GOOD", "BAD", "MEH")


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


def trace_of(model: Model, family: Family, **changed: Any) -> Trace:
    """Of the text that these models are tried with, and of the second one where there is a decoder for it."""
    return model.trace(TEXT, SECOND_TEXT if family.is_encoder_decoder else None, **changed)


def save_with_head(name: str, folder: Path, **settings: Any) -> Path:
    """A checkpoint with a language head; all of it is drawn, the head's biases too.

    Args:
        settings: of its configuration, beside the family's.
    """
    config = TEXT_FAMILIES[name].config()
    for setting, value in settings.items():
        setattr(config, setting, value)
    return _save_drawn(WITH_HEAD[name](config), name, folder)


def save_with_classifier(name: str, folder: Path, **settings: Any) -> Path:
    """A checkpoint with a classifier of texts, of `CLASSES` unless the settings of its configuration say others."""
    config = TEXT_FAMILIES[name].config()
    config.id2label = dict(enumerate(CLASSES))
    for setting, value in settings.items():
        setattr(config, setting, value)
    return _save_drawn(WITH_CLASSIFIER[name](config), name, folder)


def _save_drawn(whole: tf.PreTrainedModel, name: str, folder: Path) -> Path:
    family = TEXT_FAMILIES[name]
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in whole.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=family.weight_std)
            else:  # biases are 0 and norms 1 where nothing was trained
                parameter.add_(torch.randn(len(parameter)), alpha=0.1)
    whole.save_pretrained(folder)
    tokenizer(family.tokenizer).save_pretrained(folder)
    return folder
