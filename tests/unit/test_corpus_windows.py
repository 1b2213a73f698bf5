"""Windows of a long text: nothing is lost, none is too long, and no sentence that fits is divided."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from attnviz.corpus.windows import windows


def n_words(text):
    return len(text.split())


SENTENCES = st.lists(
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6).map(
        lambda words: " ".join(words) + "."
    ),
    max_size=12,
)


@given(SENTENCES, st.integers(6, 14))
def test_sentences_stay_whole(sentences, most):
    parts = windows(" ".join(sentences), n_words, most)
    assert " ".join(parts).split() == " ".join(sentences).split()
    assert all(n_words(result) <= most for result in parts)
    ends = {" ".join(sentences[:number]) for number in range(len(sentences) + 1)}
    assert all(" ".join(parts[:number]) in ends for number in range(len(parts) + 1))


@given(SENTENCES, st.integers(6, 14))
def test_a_window_has_as_many_sentences_as_fit(sentences, most):
    parts = windows(" ".join(sentences), n_words, most)
    for part, following in pairwise(parts):
        first = following[: following.index(".") + 1]
        assert n_words(part) + n_words(first) > most


@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=40), st.integers(2, 8))
def test_a_sentence_that_does_not_fit_is_divided_between_words(words, most):
    parts = windows(" ".join(words), n_words, most)
    assert " ".join(parts).split() == words
    assert all(n_words(result) <= most for result in parts)


@given(st.text("ab", min_size=1, max_size=60), st.integers(1, 8))
def test_a_word_that_does_not_fit_is_divided_too(word, most):
    parts = windows(word, len, most)
    assert "".join(parts) == word
    assert all(len(result) <= most for result in parts)


def test_a_character_is_never_divided():
    """Of more tokens than a window holds, as an emoji of a byte-level tokenizer can be."""
    assert windows("ab", lambda text: 4 * len(text), 3) == ["a", "b"]
