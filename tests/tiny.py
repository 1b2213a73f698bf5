"""Tiny models with random weights, one of each family, and the tokenizers they need. Nothing is downloaded.

Sizes differ on every axis, so that two axes swapped cannot pass for each other: 3 encoder layers, 4
decoder layers, 2 heads (Llama 6 over 2, a BART decoder 5), d_head 5 or 10, and texts of yet other
lengths. Weights are large enough for the attention to be far from uniform, which a test makes sure of.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import transformers as tf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

ENCODER_LAYERS, DECODER_LAYERS = 3, 4
HEADS, D_HEAD = 2, 5
D_MODEL, D_INNER = HEADS * D_HEAD, 17
LIMIT = 37  # positions
VOCABULARY = 300  # enough for 256 bytes and the special tokens
WEIGHT_STD = 0.4

WORDS = "a the door it i was watching when opened cat sat on mat play ##ing ##ed ##s . ' , ?"


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
_SEQ2SEQ_LAYERS = {"encoder": ENCODER_LAYERS, "decoder": DECODER_LAYERS, "cross": DECODER_LAYERS}

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
        Family(
            "llama",
            lambda: tf.LlamaConfig(
                **_BERT | {"hidden_size": 12, "num_attention_heads": 6}, num_key_value_heads=2, head_dim=10
            ),
            **_DECODER | {"n_heads": {"decoder": 6}},
        ),
        Family("gpt-neox", lambda: tf.GPTNeoXConfig(**_BERT | {"hidden_size": 20}), **_DECODER),
        Family(
            "bart",
            lambda: tf.BartConfig(**_SEQ2SEQ),
            "roberta",
            n_layers=_SEQ2SEQ_LAYERS,
            n_heads={"encoder": HEADS, "decoder": 5, "cross": 5},
        ),
        Family(
            "marian",
            lambda: tf.MarianConfig(**_SEQ2SEQ),
            "t5",
            n_layers=_SEQ2SEQ_LAYERS,
            n_heads={"encoder": HEADS, "decoder": 5, "cross": 5},
        ),
        Family(
            "t5",
            lambda: tf.T5Config(
                **_SHARED,
                d_model=11,
                d_kv=D_HEAD,
                d_ff=D_INNER,
                num_layers=ENCODER_LAYERS,
                num_decoder_layers=DECODER_LAYERS,
                num_heads=HEADS,
                relative_attention_num_buckets=8,
                relative_attention_max_distance=20,
                decoder_start_token_id=0,
            ),
            "t5",
            n_layers=_SEQ2SEQ_LAYERS,
            n_heads={"encoder": HEADS, "decoder": HEADS, "cross": HEADS},
        ),
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
    "modernbert": tf.ModernBertForMaskedLM,
    "gpt2": tf.GPT2LMHeadModel,
    "llama": tf.LlamaForCausalLM,
}
"""What transformers builds each family with a language head as."""

UNSUPPORTED_FAMILIES = {
    family.name: family
    for family in (
        Family("mpnet", lambda: tf.MPNetConfig(**_BERT | {"pad_token_id": 1}), "bert without segments"),
        Family(
            "deberta-v2",
            lambda: tf.DebertaV2Config(**_BERT, relative_attention=True, pos_att_type=["p2c", "c2p"]),
        ),
    )
}


def build(family: Family, *, seed: int = 0) -> tf.PreTrainedModel:
    """The family's model with weights drawn from the seed."""
    torch.manual_seed(seed)  # families differ in what they draw when they are made; all is drawn anew below
    network = tf.AutoModel.from_config(family.config()).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=WEIGHT_STD, generator=generator)
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
                parameter.normal_(std=WEIGHT_STD)
            else:  # biases are 0 and norms 1 where nothing was trained
                parameter.add_(torch.randn(len(parameter)), alpha=0.1)
    whole.save_pretrained(folder)
    tokenizer(family.tokenizer).save_pretrained(folder)
    return folder


def tokenizer(name: str) -> tf.PreTrainedTokenizerFast:
    """A fast tokenizer: word pieces with the special tokens of BERT, RoBERTa or T5, or one token a byte."""
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


TOKENIZERS: dict[str, Callable[[], tf.PreTrainedTokenizerFast]] = {
    "bert": lambda: _bert(["input_ids", "token_type_ids", "attention_mask"]),
    "bert without segments": lambda: _bert(["input_ids", "attention_mask"]),
    "roberta": _roberta,
    "t5": _t5,
    "bytes": _bytes,
}
