"""Tiny translation models, whose tokenizers mark a text with its language."""

from pathlib import Path

import transformers as tf

from tests import tiny

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def mbart50() -> tf.PreTrainedTokenizerBase:
    pieces = [(name, 0.0) for name in ("<unk>", "<s>", "</s>")]
    pieces += [("\u2581", -2.0), *((letter, -3.0) for letter in LETTERS)]
    return tf.MBart50Tokenizer(vocab=pieces, src_lang="en_XX", tgt_lang="fr_XX")


def mbart() -> tf.PreTrainedTokenizerBase:
    made = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]
    made += [("\u2581", -2.0), *((letter, -3.0) for letter in LETTERS)]
    return tf.MBartTokenizer(vocab=made, src_lang="en_XX", tgt_lang="ro_RO")


def nllb() -> tf.PreTrainedTokenizerBase:
    made = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", *LETTERS]
    vocabulary = {one: number for number, one in enumerate(made)}
    return tf.NllbTokenizer(vocab=vocabulary, merges=[], src_lang="eng_Latn", tgt_lang="fra_Latn")


FAMILIES = {
    "mbart50": ("mbart", mbart50, "de_DE", "ro_RO"),
    "mbart": ("mbart", mbart, "de_DE", "fr_XX"),
    "nllb": ("m2m-100", nllb, "deu_Latn", "ron_Latn"),
}
"""The family, its tokenizer, and languages that are not the tokenizer's own."""


def save(name: str, folder: Path) -> Path:
    """A checkpoint of one of `FAMILIES`, with its tokenizer."""
    family, make, *_ = FAMILIES[name]
    network = tiny.build(tiny.TEXT_FAMILIES[family])
    network.config.pad_token_id, network.config.decoder_start_token_id = 1, 2
    network.save_pretrained(folder)
    make().save_pretrained(folder)
    return folder
