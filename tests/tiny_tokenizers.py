"""Tokenizers of tiny models: each of the kind that its family uses, with a vocabulary of a few words."""

from collections.abc import Callable

import transformers as tf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

VOCABULARY = 300  # enough for 256 bytes and the special tokens

WORDS = "a the door it i was watching when opened cat sat on mat play ##ing ##ed ##s . ' , ?"

SPACELESS = "\u4e2d\u6587\u5b57\u306e\u0e01"
"""Characters of scripts that put no spaces between words: Han, kana, Thai."""


def tokenizer(name: str) -> tf.PreTrainedTokenizerFast:
    """A fast tokenizer, as `TOKENIZERS` names them: word pieces, one token a byte, or SentencePiece's."""
    return TOKENIZERS[name]()


def _word_pieces(
    specials: dict[str, str], single: str, pair: str, model_input_names: list[str]
) -> tf.PreTrainedTokenizerFast:
    first = list(specials.values())
    unknown = specials["unk_token"]
    rest = sorted(
        {
            *WORDS.split(),
            *"abcdefghijklmnopqrstuvwxyz",
            *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),
        }
    )
    vocabulary = {piece: number for number, piece in enumerate([*first, *rest])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(special, vocabulary[special]) for special in first]
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


def _byte_pairs() -> tf.PreTrainedTokenizerFast:
    """As GPT-2's: pairs of bytes are merged, also within characters, and its unknown token is its end token."""
    merges = [
        ("t", "h"),
        ("th", "e"),
        ("\u0120", "the"),
        ("\u0120", "\u00d0"),
        ("\u00f0", "\u0141"),
        ("\u010a", "\u010a"),
    ]
    end = "<|endoftext|>"
    vocabulary = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges), end]
    backend = Tokenizer(models.BPE({one: number for number, one in enumerate(vocabulary)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=["input_ids", "attention_mask"],
        unk_token=end,
        bos_token=end,
        eos_token=end,
    )


def _sentencepiece() -> tf.PreTrainedTokenizerFast:
    """As Llama 2's: a space is part of the token behind it, and nothing splits a text beforehand."""
    alphabet = ["\u2581", *"abcdefghijklmnopqrstuvwxyz.,?'", *SPACELESS]
    merges, pieces = [], []
    for word in [part for part in WORDS.split() if part.isalpha()]:
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
    pieces += [(letter, -8.0) for letter in (*"abcdefghijklmnopqrstuvwxyz.,", *SPACELESS)]
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
    "byte pairs": _byte_pairs,
    "sentencepiece": _sentencepiece,
    "unigram": _unigram,
}
