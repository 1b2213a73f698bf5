"""Which tokens make a word, written down by hand."""

import numpy as np
import pytest

from attnviz.model.token_spans import Reading
from attnviz.model.tokenization import tokenize
from attnviz.model.words import _is_apart, has_words, words_of
from attnviz.records import Axis
from tests import tiny_tokenizers
from tests.small_records import tokens


def read(text, text_pair=None, *, tokenizer):
    return tokenize(tokenizer, text, text_pair, max_tokens=None)


class TestWords:
    @staticmethod
    def words(text: str, name: str, text_pair: str | None = None) -> list[str]:
        """The words, with a bar between their tokens; a token of no known word stands alone in brackets."""
        tokens = read(text, text_pair, tokenizer=tiny_tokenizers.tokenizer(name))
        by_word: dict[tuple[int, int, int], list[str]] = {}
        for position in np.flatnonzero(~tokens.is_special):
            word = int(tokens.word[position])
            label = tokens.labels[position]
            place = (int(tokens.segment[position]), word, -1 if word >= 0 else int(position))
            by_word.setdefault(place, []).append(label if word >= 0 else f"[{label}]")
        return ["|".join(result) for result in by_word.values()]

    def test_without_a_split_beforehand_they_end_at_spaces(self):
        """Llama 2's tokenizer says that the whole text is one word."""
        tokenizer = tiny_tokenizers.tokenizer("sentencepiece")
        encoding = tokenizer("the cat sat on the zebra.")
        assert set(encoding.word_ids()) == {None, 0}
        assert self.words("the cat sat on the zebra.", "sentencepiece") == [
            *("␣the", "␣cat", "␣sat", "␣on", "␣the"),
            "␣|z|e|b|r|a|.",
        ]

    @pytest.mark.parametrize("space", ["\n", "\t", "  ", "\N{NO-BREAK SPACE}"], ids=ascii)
    def test_any_whitespace_ends_a_word(self, space):
        words = self.words(f"the{space}cat", "sentencepiece")
        assert words[0] == "␣the"
        assert words[-1].replace("|", "").replace("<unk>", "").endswith("cat")

    def test_of_a_pair_each_text_has_its_own(self):
        tokens = read("the cat", "on the mat", tokenizer=tiny_tokenizers.tokenizer("sentencepiece"))
        assert tokens.word[~tokens.is_special].tolist() == [0, 1, 0, 1, 2]
        assert tokens.segment[~tokens.is_special].tolist() == [0, 0, 1, 1, 1]

    @pytest.mark.parametrize(
        ("name", "text", "expected"),
        [
            ("bert", "playing, the door", ["play|##ing", ",", "the", "door"]),
            ("bytes", "ab  c's", ["a|b", "␣", "␣|c", "'|s"]),
            ("unigram", "the door doored", ["␣the", "␣|door", "␣|door|ed"]),
        ],
    )
    def test_a_tokenizer_that_splits_is_believed(self, name, text, expected):
        assert self.words(text, name) == expected

    @pytest.mark.parametrize(
        ("text", "rows"),
        [
            ("\u4e2d\u6587", ["\u4e2d", "\u6587"]),
            ("\u306e\u306e", ["\u306e", "\u306e"]),
            ("\u0e01\u0e33", ["\u0e01", "\u0e33"]),  # a vowel that Unicode calls a letter
            ("\u0e01\u0e34", ["\u0e01\u0e34"]),  # a vowel above its consonant
            ("\u1780\u17d2\u1798", ["\u1780\u17d2", "\u1798"]),
            ("\u1019\u103c\u1014\u103a", ["\u1019\u103c", "\u1014\u103a"]),
            ("\U00020bb7\u91ce", ["\U00020bb7", "\u91ce"]),
            ("a\u4e2d", ["a", "\u4e2d"]),
            ("a \u4e2d", ["a", "\u2423", "\u4e2d"]),
            ("\u0928\u093f", ["\u0928\u093f"]),
            ("\U0001f469\u200d\U0001f680", ["\U0001f469\u200d\U0001f680"]),
            ("e\u0301", ["e\u0301"]),
        ],
        ids=ascii,
    )
    def test_a_character_of_several_tokens_is_one_row(self, text, rows):
        """In scripts without spaces, too; a tokenizer of bytes writes each character as one token for each of its bytes."""
        tokens = read(text, tokenizer=tiny_tokenizers.tokenizer("bytes"))
        assert len(tokens) > len(rows)
        assert list(Axis.of(tokens, "words").labels) == rows

    @pytest.mark.parametrize("name", ["sentencepiece", "unigram"])
    @pytest.mark.parametrize("text", ["\u4e2d\u6587\u5b57", "\u306e\u306e", "\u0e01\u0e01\u0e01"], ids=ascii)
    def test_in_a_script_without_spaces_no_rule_tells_them(self, text, name):
        tokens = read(text, tokenizer=tiny_tokenizers.tokenizer(name))
        assert (tokens.word == -1).all()
        assert not has_words(tokens)

    def test_beside_other_words_only_theirs_are_not_known(self):
        tokens = read("the \u4e2d\u6587 cat", tokenizer=tiny_tokenizers.tokenizer("sentencepiece"))
        assert tokens.word[~tokens.is_special].tolist() == [0, -1, -1, -1, 1]
        assert has_words(tokens)

    def test_word_pieces_split_han_and_so_know_it(self, embedded):
        assert has_words(embedded.tokenize("\u4e2d\u6587"))

    @pytest.mark.parametrize(
        ("text", "left", "right", "apart"),
        [
            ("ab cd", (0, 2), (3, 5), True),
            ("ab cd", (0, 2), (2, 5), True),
            ("ab cd", (0, 3), (3, 5), True),
            ("ab cd", (2, 3), (3, 5), False),
            ("abcd", (0, 2), (2, 4), False),
            ("abc d", (0, 2), (2, 5), False),
        ],
    )
    def test_a_space_may_be_between_two_tokens_or_at_either(self, text, left, right, apart):
        assert _is_apart(text, left, right) is apart

    def test_no_offsets_and_one_word_tell_nothing(self):
        """As a normaliser may leave it: every token from nowhere."""
        nowhere = Reading(ids=[1, 2, 3], text=np.zeros(3, dtype=int), spans=[(0, 0)] * 3, words=[0, 0, 0])
        assert words_of(nowhere, ("the cat",), ("a", "b", "c")).tolist() == [-1, -1, -1]


class TestMarks:
    """No word begins with a combining mark or joiner: GPT-2's tokenizer splits at each of them."""

    @staticmethod
    def words(text: str, name: str = "bytes") -> list[str]:
        tokens = read(text, tokenizer=tiny_tokenizers.tokenizer(name))
        assert (tokens.word >= 0).all()
        return [
            "".join(np.array(tokens.pieces)[tokens.word == number]) for number in range(tokens.word.max() + 1)
        ]

    def test_hindi(self):
        assert self.words("हिन्दी भाषा में लिखना") == ["हिन्दी", " भाषा", " में", " लिखना"]

    def test_the_full_stop_behind_a_mark_is_a_word_of_its_own(self):
        assert self.words("लिखना। में!") == ["लिखना", "।", " में", "!"]

    def test_decomposed_accents(self):
        assert self.words("re\u0301sume\u0301 au cafe\u0301.") == [
            "re\u0301sume\u0301",
            " au",
            " cafe\u0301",
            ".",
        ]

    def test_joiners(self):
        assert self.words("می\u200cخواهم برم") == ["می\u200cخواهم", " برم"]

    def test_an_enclosing_mark(self):
        assert self.words("a\u20ddb c") == ["a\u20ddb", " c"]

    def test_a_mark_behind_a_digit_or_a_sign_joins_no_letter_to_it(self):
        assert self.words("1\u0301a") == ["1\u0301", "a"]
        assert self.words("don\u0301't") == ["don\u0301", "'", "t"]

    def test_a_mark_behind_a_space_begins_what_follows_the_space(self):
        assert self.words("a \u0301 b") == ["a", " \u0301", " b"]

    def test_letters_that_the_tokenizer_keeps_together_stay_so(self):
        """One word of the tokenizer, as Llama 2's whole text, ends at spaces only."""
        text = "e\u0301t."
        read = Reading(
            ids=[0, 1, 2, 3],
            text=np.zeros(4, dtype=int),
            spans=[(0, 1), (1, 2), (2, 3), (3, 4)],
            words=[0, 0, 0, 0],
        )
        assert words_of(read, (text,), tuple("abcd")).tolist() == [0, 0, 0, 0]

    def test_marks_that_are_tokens_of_their_own_belong_to_the_letter_before_them(self):
        """Four tokens, each a word to the tokenizer: e, an acute, a circumflex, and an a."""
        text = "e\N{COMBINING ACUTE ACCENT}\N{COMBINING CIRCUMFLEX ACCENT}a"
        assert self.of_single_characters(text) == [0, 0, 0, 0]

    def test_marks_at_the_beginning_of_a_text_belong_to_no_letter(self):
        text = "\N{COMBINING ACUTE ACCENT}a\N{COMBINING ACUTE ACCENT}"
        assert self.of_single_characters(text) == [0, 1, 1]

    @staticmethod
    def of_single_characters(text: str) -> list[int]:
        n = len(text)
        read = Reading(
            ids=list(range(n)),
            text=np.zeros(n, dtype=int),
            spans=[(at, at + 1) for at in range(n)],
            words=list(range(n)),
        )
        return words_of(read, (text,), ("",) * len(read.ids)).tolist()


def test_the_words_of_any_of_several_texts_are_known():
    unknown, known = (tokens(3, word=np.array(words)) for words in ([-1, -1, -1], [-1, 0, -1]))
    assert has_words(known, unknown) and has_words(unknown, known) and has_words(known, None)
    assert not has_words(unknown, None)
