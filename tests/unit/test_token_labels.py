"""What tokens are called, written down by hand: text, never bytes as letters."""

from typing import ClassVar

import pytest

from attnviz.model.token_labels import _joined, labels_in_text, labels_of
from attnviz.model.tokenization import remarks, tokenize
from attnviz.records import Axis
from tests.tiny_tokenizers import tokenizer

UNICORN = "\N{UNICORN FACE}"


def read(text: str, name: str):
    return tokenize(tokenizer(name), text, max_tokens=None)


def labels(text: str, name: str) -> list[str]:
    tokens = read(text, name)
    return [label for label, is_added in zip(tokens.labels, tokens.is_added, strict=True) if not is_added]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("byte pairs", "the the", ["the", "␣the"]),
        ("byte pairs", "th\n\n\tx", ["th", "↵↵", "⇥", "x"]),
        ("byte pairs", "a  b", ["a", "␣", "␣", "b"]),
        ("byte pairs", "é", ["é 1/2", "é 2/2"]),
        ("byte pairs", UNICORN, [f"{UNICORN} {part}/3" for part in (1, 2, 3)]),
        ("byte pairs", "x Ма", ["x", "␣М 1/2", "М 2/2", "а 1/2", "а 2/2"]),
        ("byte pairs", "<|endoftext|>", ["<|endoftext|>"]),
        ("bytes", "\x10", ["U+0010"]),
        ("bytes", "\ufffd", ["\ufffd 1/3", "\ufffd 2/3", "\ufffd 3/3"]),
        ("sentencepiece", "the cat", ["␣the", "␣cat"]),
        ("sentencepiece", "zed", ["␣", "z", "e", "d"]),
        ("unigram", "the doored", ["␣the", "␣", "door", "ed"]),
        ("bert", "playing [UNK]", ["play", "##ing", "[UNK]"]),
    ],
)
def test_labels_are_the_text_with_its_spaces(name, text, expected):
    assert labels(text, name) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("byte pairs", f"x {UNICORN}", ["x", f"␣{UNICORN}"]),
        ("byte pairs", "the Москва", ["the", "␣Москва"]),
        (
            "bytes",
            "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}",
            ["\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}"],
        ),
        ("sentencepiece", "the zebra", ["␣the", "␣zebra"]),
        ("bert", "playing", ["playing"]),
    ],
    ids=ascii,
)
def test_the_tokens_of_a_word_are_decoded_together(name, text, expected):
    tokens = read(text, name)
    words = Axis.of(tokens, "words")
    assert [
        label for label, added in zip(words.labels, words.is_special, strict=True) if not added
    ] == expected


def test_a_phrase_has_its_words_apart():
    tokens = read("the cat playing", "bert")
    assert tokens.label(1, 5) == "the cat playing"
    tokens = read("the the Ма", "byte pairs")
    assert tokens.label(0, len(tokens)) == "the␣the␣Ма"


def test_a_part_of_a_character_alone_is_shown_as_its_bytes():
    """As predictions are, which have no neighbours."""
    made = tokenizer("byte pairs")
    ids = made(f" М{UNICORN}")["input_ids"]
    assert labels_of(made, ids) == ("␣<0xD0>", "<0x9C>", "<0xF0><0x9F>", "<0xA6>", "<0x84>")
    assert labels_in_text(made, ids[1:3])[0] == ("<0x9C>", "<0xF0><0x9F>")


def test_bytes_that_the_vocabulary_writes_as_codes_are_joined():
    """As Llama 2's tokenizer, for characters that its vocabulary lacks."""

    class Codes:
        is_fast = True
        backend_tokenizer = tokenizer("sentencepiece").backend_tokenizer
        tokens: ClassVar = ["▁a", "<0xC3>", "<0xA9>", "<0x0A>", None]

        def convert_ids_to_tokens(self, ids):
            return [self.tokens[index] for index in ids]

    assert labels_in_text(Codes(), range(5)) == (
        ("␣a", "é 1/2", "é 2/2", "↵", "id 4"),
        (" a", "", "é", "\n", ""),
    )


def test_an_added_token_is_written_as_it_is():
    """Its letters are no bytes, though the rest of the vocabulary is spelled in bytes."""
    made = tokenizer("byte pairs")
    made.add_tokens(["café"])
    assert labels_of(made, made("café")["input_ids"]) == ("café",)


def test_an_entry_with_a_letter_that_is_no_byte_is_written_as_it_is():
    class Bytes:
        is_fast = False
        byte_decoder: ClassVar = {"a": 0x61, "Ġ": 0x20}
        added_tokens_decoder: ClassVar = {}
        tokens: ClassVar = ["Ġa", "a\u5b57"]

        def convert_ids_to_tokens(self, ids):
            return [self.tokens[index] for index in ids]

    assert labels_of(Bytes(), [0, 1]) == ("␣a", "a\u5b57")


def test_a_token_that_ends_a_word_has_the_space_behind_it():
    class Ends:
        is_fast = False
        tokens: ClassVar = ["do", "or</w>"]

        def convert_ids_to_tokens(self, ids):
            return [self.tokens[index] for index in ids]

    assert labels_in_text(Ends(), [0, 1]) == (("do", "or␣"), ("do", "or "))


def test_shared_characters_are_explained_where_there_are_any():
    assert any("“é 1/2”" in remark for remark in remarks(read("é", "bytes")))
    assert remarks(read("a 1/2 b", "bytes")) == ()


@pytest.mark.parametrize(
    ("spelled", "labels", "pieces"),
    [
        ([b"a\xc3", b"\xa9b\xc3", b"\xa9"], ("aé 1/2", "é 2/2 bé 1/2", "é 2/2"), ("a", "éb", "é")),
        # a token that ends one character and begins the next, of which one has three tokens
        (
            [b"\xc3", b"\xa9\xf0", b"\x9f\xa6", b"\x84"],
            ("é 1/2", "é 2/2 🦄 1/3", "🦄 2/3", "🦄 3/3"),
            ("", "é", "", "🦄"),
        ),
        ([b" \xff", b"x"], ("␣<0xFF>", "x"), (" <0xFF>", "x")),
    ],
)
def test_a_token_may_end_one_character_and_begin_another(spelled, labels, pieces):
    assert _joined(spelled) == (labels, pieces)
