"""Tiny tokenizers of the class that a family publishes its checkpoints with, which write the files that such a checkpoint has.

`tests.tiny_tokenizers` are of transformers' general class, whose vocabularies are written down by hand.
"""

import json
from pathlib import Path

import transformers as tf
from tokenizers import pre_tokenizers
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

from tests.tiny import Family
from tests.tiny_tokenizers import VOCABULARY, tokenizer

PACKAGES = {"marian": "sentencepiece", "biogpt": "sacremoses"}
"""Families whose tokenizer is read with a package that attnviz does not bring, so that no file of theirs can be made here."""

PUBLISHED_WITH = {"m2m-100": "NllbTokenizer"}
"""Of several classes the one that attnviz's packages read: NLLB's, M2M-100's own being read with sentencepiece."""

LETTERS = "abcdefghijklmnopqrstuvwxyzI."
ESM = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO", ".", "-", "<null_1>", "<mask>"]
"""ESM's vocabulary: Rives et al. 2021, doi:10.1073/pnas.2016239118."""


def save_own(family: Family, folder: Path) -> None:
    """Writes a tokenizer's files as the family's own class writes them; those of the general class where it has no own.

    The ids of special tokens in the folder's config.json become the tokenizer's, as in a published checkpoint.
    """
    name = PUBLISHED_WITH.get(family.name) or TOKENIZER_MAPPING_NAMES.get(family.config().model_type)
    kind = None if name is None else tokenizer_class_from_name(name)
    if kind is None or kind in (tf.PreTrainedTokenizerFast, tf.TokenizersBackend):
        tokenizer(family.tokenizer).save_pretrained(folder)
    elif kind is tf.EsmTokenizer:
        letters = folder / "vocab.txt"
        letters.write_text("\n".join(ESM), encoding="utf-8")
        kind(str(letters)).save_pretrained(folder)
    else:
        _made(kind).save_pretrained(folder)
    written, own = folder / "config.json", tf.AutoTokenizer.from_pretrained(folder)
    config = json.loads(written.read_text(encoding="utf-8"))
    for role in ("pad", "bos", "eos", "mask"):
        name, number = f"{role}_token_id", getattr(own, f"{role}_token_id")
        if config.get(name) is not None and number is not None:
            config[name] = number
    written.write_text(json.dumps(config), encoding="utf-8")


def _made(kind: type[tf.PreTrainedTokenizerBase]) -> tf.PreTrainedTokenizerBase:
    """Of the class's own special tokens, and one token a letter, byte or piece of one letter."""
    first = [(name, 0.0) for name in ("<pad>", "</s>", "<unk>", "<mask_2>")]
    empty = kind(vocab=first) if kind is tf.PegasusTokenizer else kind()  # whose own default it cannot read
    entries = sorted(empty.get_vocab(), key=empty.get_vocab().__getitem__)
    model = type(empty.backend_tokenizer.model).__name__
    if model == "WordPiece":
        entries += [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    elif model == "Unigram" or "ByteLevel(" not in repr(empty.backend_tokenizer.pre_tokenizer):
        entries += ["\u2581", *LETTERS]
    else:
        entries += sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = list(dict.fromkeys(entries))
    assert len(entries) <= VOCABULARY, f"{kind.__name__}: {len(entries)} entries"
    if model == "Unigram":
        return kind(vocab=[(entry, -3.0 if entry in LETTERS else 0.0) for entry in entries])
    merges = {"merges": []} if model == "BPE" else {}
    return kind(vocab={one: number for number, one in enumerate(entries)}, **merges)
