"""Tokenizers written in Python give only ids: each token's place in the text is found by its spelling."""

import numpy as np
import pytest
import transformers as tf

from attnviz.model.token_spans import align, read_texts
from attnviz.model.tokenization import tokenize


def stand_for(pieces: list[str], text: str) -> list[str | None]:
    return [None if span is None else text[slice(*span)] for span in align(pieces, text)]


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        ([" the", " do", "or"], "The  door", ["The", "do", "or"]),
        (["ﬁ", "ne"], "fine", ["fi", "ne"]),  # NFKC of SentencePiece, the other way
        (["fi", "ne"], "ﬁne", ["ﬁ", "ne"]),
        (["é"], "e\u0301", ["e\u0301"]),
        (["it", "&apos;", "s"], "it's", ["it", "'", "s"]),
        (["the", "<unk>", "cat"], "the \N{GRINNING FACE} cat", ["the", "\N{GRINNING FACE}", "cat"]),
        (["<unk>", "<unk>"], "中文", ["中文", "中文"]),
        (["<unk>", "a"], "<unk>a", ["<unk>", "a"]),
        (["the", "gone", "cat"], "the cat", ["the", None, "cat"]),
        (["a", " ", "b"], "a b", ["a", "", "b"]),
        (["", "é"], "é", ["", "é"]),
        (["b"], "ab", ["ab"]),
    ],
    ids=ascii,
)
def test_each_piece_is_found_in_the_text(pieces, text, expected):
    assert stand_for(pieces, text) == expected


ALPHABET = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO", ".", "-", "<null_1>", "<mask>"]
"""ESM's: Rives et al. 2021, doi:10.1073/pnas.2016239118."""


@pytest.fixture(scope="module")
def esm(tmp_path_factory) -> tf.EsmTokenizer:
    place = tmp_path_factory.mktemp("esm") / "vocab.txt"
    place.write_text("\n".join(ALPHABET), encoding="utf-8")
    return tf.EsmTokenizer(str(place))


def test_special_tokens_stand_for_no_characters(esm):
    read = read_texts(esm, ("MK", "T"))
    assert read.text.tolist() == [-1, 0, 0, -1, 1, -1]
    assert read.spans == [(0, 0), (0, 1), (1, 2), (0, 0), (0, 1), (0, 0)]
    assert [word is None for word in read.words] == [True, False, False, True, False, True]


def test_a_text_is_read_whole_whatever_a_tokenizer_takes_for_its_longest():
    from tests.tiny_tokenizers import tokenizer

    made = tokenizer("bert")
    made.model_max_length = 4
    assert len(tokenize(made, "the cat sat when it opened", max_tokens=None)) == 8


def test_a_protein_is_read_letter_by_letter(esm):
    assert not esm.is_fast
    tokens = tokenize(esm, "MKT AX", max_tokens=None)
    assert tokens.labels == ("<cls>", "M", "K", "T", "A", "X", "<eos>")
    assert tokens.ids.tolist() == esm("MKT AX")["input_ids"]
    assert tokens.is_special.tolist() == [True, *[False] * 5, True]
    assert tokens.word.tolist() == [-1, 0, 0, 0, 1, 1, -1]
    assert tokens.unknown == ()


def test_what_a_protein_cannot_have_is_unknown(esm):
    tokens = tokenize(esm, "MK1T", max_tokens=None)
    assert tokens.labels[1:-1] == ("M", "K", "<unk>", "T")
    assert tokens.unknown == (3,)
    assert tokenize(esm, "M<unk>T", max_tokens=None).unknown == ()


def test_of_a_pair_each_token_is_known_to_be_of_its_text(esm):
    tokens = tokenize(esm, "MK", "TAX", max_tokens=None)
    assert tokens.labels == ("<cls>", "M", "K", "<eos>", "T", "A", "X", "<eos>")
    assert tokens.ids.tolist() == esm("MK", "TAX")["input_ids"]
    assert tokens.segment.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert tokens.word.tolist() == [-1, 0, 0, -1, 0, 0, 0, -1]


def test_the_longer_text_of_a_pair_is_cut(esm):
    tokens = tokenize(esm, "MKTAXM", "TA", max_tokens=8, cut=True)
    assert tokens.ids.tolist() == esm("MKTAXM", "TA", truncation="longest_first", max_length=8)["input_ids"]
    assert tokens.labels == ("<cls>", "M", "K", "T", "<eos>", "T", "A", "<eos>")
    assert tokens.n_cut == (3, 0)
    assert tokens.segment.tolist() == [0] * 5 + [1] * 3


def test_a_fast_tokenizer_says_it_all_itself():
    from tests.tiny_tokenizers import tokenizer

    made = tokenizer("bert")
    read = read_texts(made, ("the cat", "sat"))
    assert read.text.tolist() == [-1, 0, 0, -1, 1, -1]
    assert read.spans[1:3] == [(0, 3), (4, 7)]
    np.testing.assert_array_equal(read.ids, made("the cat", "sat")["input_ids"])
