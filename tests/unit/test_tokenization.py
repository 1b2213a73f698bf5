"""Text to tokens: what a model reads, and one clear sentence for what it cannot."""

from inspect import unwrap

import numpy as np
import pytest

from attnviz.errors import AttnvizError, EmptyTextError, InvalidTextError, TextTooLongError
from attnviz.model.tokenization import CHARACTER_LIMIT, after_start, remarks, tokenize, with_masks
from attnviz.records import Tokens
from tests import hand_made, small_records, tiny_tokenizers
from tests.findings import assert_none

BERT = tiny_tokenizers.tokenizer("bert")
BYTES = tiny_tokenizers.tokenizer("bytes")


def read(text: str, text_pair: str | None = None, *, tokenizer=BERT, max_tokens=None, cut=False) -> Tokens:
    return tokenize(tokenizer, text, text_pair, max_tokens=max_tokens, cut=cut)


class TestSingleText:
    def test_tokens(self):
        tokens = read("The door opened, playing.")
        assert tokens.labels == ("[CLS]", "the", "door", "opened", ",", "play", "##ing", ".", "[SEP]")
        assert tokens.ids.tolist() == BERT.convert_tokens_to_ids(list(tokens.labels))
        assert tokens.is_special.tolist() == [True, *[False] * 7, True]
        assert tokens.segment.tolist() == [0] * 9
        assert tokens.word.tolist() == [-1, 0, 1, 2, 3, 4, 4, 5, -1]
        assert tokens.n_cut == (0,)
        assert remarks(tokens) == ()

    def test_two_equal_tokens_are_two_entries(self):
        assert read("the cat the").labels[1:-1] == ("the", "cat", "the")

    def test_without_special_tokens(self):
        tokens = read("a b", tokenizer=BYTES)
        assert not tokens.is_special.any()
        assert tokens.unknown == ()


class TestPairs:
    def test_bert_s_template(self):
        tokens = read("the cat", "it sat on it")
        assert tokens.labels == ("[CLS]", "the", "cat", "[SEP]", "it", "sat", "on", "it", "[SEP]")
        assert tokens.segment.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]
        assert tokens.is_special.tolist() == [True, False, False, True, False, False, False, False, True]
        assert tokens.word.tolist() == [-1, 0, 1, -1, 0, 1, 2, 3, -1]
        assert (tokens.text, tokens.text_pair, tokens.n_cut) == ("the cat", "it sat on it", (0, 0))

    def test_a_family_without_segment_ids_is_treated_alike(self):
        tokens = read("the cat", "it sat", tokenizer=tiny_tokenizers.tokenizer("roberta"))
        assert tokens.labels == ("<s>", "the", "cat", "</s>", "</s>", "it", "sat", "</s>")
        assert tokens.segment.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t  \r\n", "\N{NO-BREAK SPACE}", "\N{IDEOGRAPHIC SPACE}"], ids=ascii
)
class TestEmpty:
    def test_text(self, text):
        with pytest.raises(EmptyTextError, match=r"^The text is empty\. Type a sentence\.$"):
            read(text)

    def test_second_text(self, text):
        with pytest.raises(EmptyTextError, match=r"^The second text is empty\. Type a sentence\.$"):
            read("the cat", text)


class TestTooManyTokens:
    text = "a cat sat on the mat when the door opened ."  # 11 tokens, and 2 special ones

    def test_exactly_the_limit_is_read(self):
        tokens = read(self.text, max_tokens=13)
        assert (len(tokens), tokens.n_cut) == (13, (0,))

    def test_one_more_is_refused_with_both_numbers(self):
        with pytest.raises(TextTooLongError, match="is 13 tokens long; at most 12 can be read") as caught:
            read(self.text, max_tokens=12)
        assert (caught.value.length, caught.value.limit, caught.value.unit) == (13, 12, "tokens")

    def test_thousands_are_set_apart(self):
        with pytest.raises(TextTooLongError, match="is 2,002 tokens long; at most 1,024 can be read"):
            read("cat " * 2000, max_tokens=1024)

    @pytest.mark.parametrize("limit", [3, 4, 12])
    def test_cut_leaves_out_the_end_and_says_how_much(self, limit):
        tokens = read(self.text, max_tokens=limit, cut=True)
        whole = read(self.text)
        assert tokens.labels == (*whole.labels[: limit - 1], "[SEP]")
        assert tokens.n_cut == (13 - limit,)
        assert tokens.text == self.text
        left_out = "1 token at its end is" if limit == 12 else f"{13 - limit} tokens at its end are"
        assert f"The text is cut: {left_out} not read." in remarks(tokens)

    def test_cut_of_a_text_that_fits_cuts_nothing(self):
        tokens = read(self.text, max_tokens=13, cut=True)
        assert (len(tokens), tokens.n_cut) == (13, (0,))

    def test_of_a_pair_the_longer_text_is_cut(self):
        tokens = read(self.text, "it sat", max_tokens=10, cut=True)  # 7 of 11 + 2, beside 3 special ones
        assert tokens.labels[6:] == ("[SEP]", "it", "sat", "[SEP]")
        assert tokens.segment.tolist() == [0] * 7 + [1] * 3
        assert tokens.n_cut == (6, 0)

    def test_of_a_pair_each_text_says_what_it_lost(self):
        tokens = read(self.text, self.text, max_tokens=13, cut=True)
        assert len(tokens) == 13
        assert tokens.n_cut == (6, 6)

    def test_a_cut_does_not_stay_on_the_tokenizer(self):
        read(self.text, max_tokens=5, cut=True)
        assert len(read(self.text)) == 13
        with pytest.raises(TextTooLongError, match="13 tokens"):
            read(self.text, max_tokens=12)

    def test_a_model_reads_as_many_as_it_promises(self, embedded):
        assert embedded.max_tokens == 512
        with pytest.raises(TextTooLongError, match="513 tokens long; at most 512 can be read"):
            embedded.trace("door " * 511)
        cut = embedded.trace("door " * 511, cut=True)
        assert (len(cut.tokens), cut.tokens.n_cut) == (512, (1,))


class TestCutBeforeRefused:
    """A text of more characters than a tokenizer is given, which is to be cut anyway."""

    def test_tokens_are_those_of_the_whole_text(self):
        text = f"{TestTooManyTokens.text} " * (CHARACTER_LIMIT // 40)
        tokens = read(text, max_tokens=50, cut=True)
        assert tokens.ids.tolist() == read(" ".join(text.split()[:48])).ids.tolist()

    def test_what_was_not_split_into_tokens_is_counted_in_characters(self):
        text = "cat " * CHARACTER_LIMIT  # of the first 25,000, 8 are read beside two special tokens
        tokens = read(text, max_tokens=10, cut=True)
        assert text.startswith(tokens.text)
        assert (tokens.n_cut, tokens.n_unread) == ((24_992,), (300_001,))
        [note] = remarks(tokens)
        assert note == "The text is cut: 24,992 tokens and 300,001 characters at its end are not read."

    def test_a_word_is_kept_whole(self):
        text = "cat door " * 20_000
        assert read(text, max_tokens=None, cut=True).labels[-2] in ("cat", "door")
        assert read("a" * 2 * CHARACTER_LIMIT, max_tokens=10, cut=True).n_unread == (CHARACTER_LIMIT,)

    def test_only_the_long_one_of_a_pair_has_characters_unread(self):
        tokens = read("cat " * CHARACTER_LIMIT, "it sat", max_tokens=10, cut=True)
        assert (tokens.n_unread[0] > 0, tokens.n_unread[1], tokens.text_pair) == (True, 0, "it sat")

    def test_without_a_cut_it_is_refused(self):
        with pytest.raises(TextTooLongError, match="400,000 characters long"):
            read("cat " * CHARACTER_LIMIT, max_tokens=10)


class TestAMegabyte:
    @staticmethod
    def untouchable(*_args, **_kwargs):
        raise AssertionError("the tokenizer saw the text")

    @pytest.mark.parametrize(
        "text", ["a" * 2**20, " " * 2**20, "\ud800" * 2**20], ids=["a", "blank", "surrogates"]
    )
    def test_is_refused_before_the_tokenizer_sees_it(self, text):
        with pytest.raises(TextTooLongError, match=r"1,048,576 characters long.* at most 100,000") as caught:
            unwrap(tokenize)(self.untouchable, text, max_tokens=512, cut=False)
        assert (caught.value.length, caught.value.limit, caught.value.unit) == (2**20, 100_000, "characters")

    def test_as_a_second_text_too(self):
        with pytest.raises(TextTooLongError, match=r"^The second text is 1,048,576 characters long"):
            unwrap(tokenize)(self.untouchable, "a", "a" * 2**20, max_tokens=512)

    def test_the_longest_text_is_still_counted_in_tokens(self):
        with pytest.raises(TextTooLongError, match="100,002 tokens long"):
            read("." * CHARACTER_LIMIT, max_tokens=512)


class TestUnknown:
    def test_of_a_pair_they_may_be_in_either_text(self):
        tokens = read("the \N{GRINNING FACE}", "door \N{PILE OF POO} \N{PILE OF POO}")
        assert tokens.labels == ("[CLS]", "the", "[UNK]", "[SEP]", "door", "[UNK]", "[UNK]", "[SEP]")
        assert tokens.unknown == (2, 5, 6)
        assert remarks(tokens)[0].startswith("3 tokens are [UNK]: the model's vocabulary has no entry")

    def test_a_mask_in_place_of_one_is_none(self):
        tokens = read("the \N{GRINNING FACE} door \N{GRINNING FACE}")
        masked = with_masks(tokens, {2, 3}, BERT, "bert")
        assert masked.unknown == (4,)
        assert masked.masked == {2: "[UNK]", 3: "door"}
        assert masked.labels == ("[CLS]", "the", "[MASK]", "[MASK]", "[UNK]", "[SEP]")


class TestCharactersThatAreNotText:
    def test_three_are_all_named(self):
        [sentence] = remarks(read("the\x01\x03\x02 door"))
        assert sentence.startswith("Control characters (U+0001, U+0002, U+0003) are in the text")

    def test_only_control_characters_are_named(self, embedded):
        with pytest.raises(EmptyTextError, match=r"no token, only control characters \(U\+0000, U\+0007\)"):
            embedded.tokenize("\a\x00\a")

    def test_many_are_named_in_part(self, embedded):
        with pytest.raises(EmptyTextError, match=r"U\+0000, U\+0001, U\+0002 and so on"):
            embedded.tokenize("".join(map(chr, range(9))))

    def test_within_a_text_they_are_remarked_on(self, embedded):
        tokens = embedded.tokenize("the\x00 door\x07")
        assert tokens.labels[1:-1] == ("the", "door")
        assert any("Control characters (U+0000, U+0007)" in remark for remark in remarks(tokens))

    def test_a_tokenizer_that_reads_them_shows_their_codes(self):
        tokens = read("a\x10b", tokenizer=BYTES)
        assert tokens.labels == ("a", "U+0010", "b")
        assert any("(U+0010) are in the text; they are read" in remark for remark in remarks(tokens))

    def test_line_breaks_and_tabs_are_not(self):
        assert remarks(read("the\tdoor\r\nopened")) == ()

    @pytest.mark.parametrize("text", ["\u200b", "\u202e", "\ufeff"], ids=ascii)
    def test_only_invisible_characters(self, text, embedded):
        with pytest.raises(EmptyTextError, match="only characters that this model's tokenizer drops"):
            embedded.tokenize(text)

    def test_as_a_second_text(self, embedded):
        with pytest.raises(EmptyTextError, match=r"^The second text holds no token"):
            embedded.tokenize("the door", "\x00")

    @pytest.mark.parametrize(
        ("text", "place", "code"),
        [("\ud83d", 1, "D83D"), ("the \udc80 door", 5, "DC80")],
        ids=["alone", "within"],
    )
    def test_a_lone_surrogate_is_refused_with_its_place(self, text, place, code):
        with pytest.raises(InvalidTextError, match=rf"^Character {place} of the text is U\+{code}"):
            read(text)
        with pytest.raises(InvalidTextError, match=rf"^Character {place} of the second text is U\+{code}"):
            read("a", text)


class TestOtherScripts:
    def test_right_to_left_text_comes_in_the_order_of_reading(self, embedded):
        tokens = embedded.tokenize("\u05e9\u05dc\u05d5\u05dd")
        assert [label.removeprefix("##") for label in tokens.labels[1:-1]] == [
            "\u05e9",
            "\u05dc",
            "\u05d5",
            "\u05dd",
        ]
        assert any("Right-to-left" in remark for remark in remarks(tokens))

    def test_chinese_is_one_token_a_character(self, embedded):
        tokens = embedded.tokenize("中文 door")
        assert tokens.labels[1:-1] == ("中", "文", "door")
        assert tokens.word.tolist() == [-1, 0, 1, 2, -1]

    def test_an_emoji_that_the_vocabulary_lacks_is_unknown(self, embedded):
        tokens = embedded.tokenize("door \N{GRINNING FACE}")
        assert tokens.labels[1:-1] == ("door", "[UNK]")
        assert tokens.is_unknown.tolist() == [False, False, True, False]
        assert any("One token is [UNK]" in remark for remark in remarks(tokens))

    def test_a_text_of_only_unknown_tokens_is_read_and_said_so(self, embedded):
        tokens = embedded.tokenize("\N{GRINNING FACE} \N{PILE OF POO}")
        assert tokens.is_unknown.tolist() == [False, True, True, False]
        assert any(remark.startswith("Every token of this text is [UNK]") for remark in remarks(tokens))
        weights = embedded.trace("\N{GRINNING FACE} \N{PILE OF POO}").weights(0, 0)
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)  # float32


HOSTILE = [
    "<script>alert(1)</script>",
    "<b>bold</b>",
    "<a href='x'>y</a>",
    "$x^2$",
    "%{x}",
    "**bold** _it_ `code` [y](z)",
    "&lt; &amp;",
    "{0} {x!r} %s",
    "\\n \\u0041",
]


@pytest.mark.parametrize("text", HOSTILE)
class TestHostileText:
    """Labels are the characters themselves; whoever shows them has to keep them so."""

    def test_word_pieces(self, text, embedded):
        labels = [label.removeprefix("##") for label in embedded.tokenize(text).labels[1:-1]]
        assert "".join(labels) == text.lower().replace(" ", "")

    def test_bytes(self, text):
        labels = read(text, tokenizer=BYTES).labels
        assert "".join(labels).replace("\N{OPEN BOX}", " ") == text


class TestSpecialTokensThatAreTyped:
    def test_a_typed_mask_is_the_mask_token_and_part_of_the_text(self, embedded):
        tokens = embedded.tokenize("the door when [MASK] opened.")
        assert tokens.labels[4] == "[MASK]"
        assert tokens.ids[4] == embedded.tokenizer.mask_token_id
        assert tokens.is_special.tolist() == [True, *[False] * 6, True]

    def test_a_typed_separator_does_not_start_a_second_text(self, embedded):
        tokens = embedded.tokenize("the [SEP] door")
        assert tokens.labels == ("[CLS]", "the", "[SEP]", "door", "[SEP]")
        assert tokens.is_special.tolist() == [True, False, True, False, True]
        assert tokens.is_added.tolist() == [True, False, False, False, True]
        assert tokens.segment.tolist() == [0] * 5

    def test_a_typed_unknown_token_is_known(self):
        """The tokenizer reads "[UNK]" as its entry of that name; the emoji has none."""
        tokens = read("the [UNK] \N{GRINNING FACE} cat")
        assert tokens.labels == ("[CLS]", "the", "[UNK]", "[UNK]", "cat", "[SEP]")
        assert tokens.unknown == (3,)
        assert any(remark.startswith("One token is [UNK]") for remark in remarks(tokens))

    def test_a_typed_separator_is_a_token_of_the_text_that_is_known(self):
        sentences = remarks(read("[SEP] \N{GRINNING FACE}"))
        assert any(sentence.startswith("One token is [UNK]") for sentence in sentences), sentences

    def test_an_end_token_that_is_also_the_unknown_one_is_known(self):
        """As GPT-2's, whose vocabulary has an entry for every byte."""
        tokenizer = tiny_tokenizers.tokenizer("byte pairs")
        assert tokenizer.unk_token_id == tokenizer.eos_token_id
        tokens = read("the<|endoftext|>the", tokenizer=tokenizer)
        assert tokens.labels == ("the", "<|endoftext|>", "the")
        assert tokens.unknown == ()
        assert remarks(tokens) == ()

    def test_after_a_decoder_s_start_what_is_known_of_a_token_is_of_the_same_token(self):
        tokens = after_start(hand_made.tokens(["[CLS]"]), read("the [SEP] \N{GRINNING FACE} cat"))
        assert tokens.labels == ("[CLS]", "[CLS]", "the", "[SEP]", "[UNK]", "cat")
        assert (tokens.in_text, tokens.unknown) == ((3,), (4,))
        assert tokens.is_added.tolist() == [True, True, False, False, False, False]

    def test_a_text_of_only_a_mask_is_a_text(self, embedded):
        assert embedded.tokenize("[MASK]").labels == ("[CLS]", "[MASK]", "[SEP]")


def test_a_refused_text_is_a_value_error_too():
    assert_none(
        f"{error.__name__} is no {base.__name__}"
        for error in (EmptyTextError, InvalidTextError, TextTooLongError)
        for base in (ValueError, AttnvizError)
        if not issubclass(error, base)
    )


def test_tokens_that_are_cut_from_either_text_are_counted():
    [note] = remarks(small_records.tokens(5, text_pair="pair", n_cut=(2, 3)))
    assert "5 tokens" in note
