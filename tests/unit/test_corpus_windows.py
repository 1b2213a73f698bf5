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
    found = windows(" ".join(sentences), n_words, most)
    assert " ".join(found).split() == " ".join(sentences).split()
    assert all(n_words(result) <= most for result in found)
    ends = {" ".join(sentences[:number]) for number in range(len(sentences) + 1)}
    assert all(" ".join(found[:number]) in ends for number in range(len(found) + 1))


@given(SENTENCES, st.integers(6, 14))
def test_a_window_has_as_many_sentences_as_fit(sentences, most):
    found = windows(" ".join(sentences), n_words, most)
    for one, following in pairwise(found):
        first = following[: following.index(".") + 1]
        assert n_words(one) + n_words(first) > most


@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=40), st.integers(2, 8))
def test_a_sentence_that_does_not_fit_is_divided_between_words(words, most):
    found = windows(" ".join(words), n_words, most)
    assert " ".join(found).split() == words
    assert all(n_words(result) <= most for result in found)


@given(st.text("ab", min_size=1, max_size=60), st.integers(2, 8))
def test_a_word_that_does_not_fit_is_divided_too(word, most):
    found = windows(word, len, most)
    assert "".join(found) == word
    assert all(len(result) <= most for result in found)
