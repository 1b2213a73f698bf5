"""How tests of what is said and drawn draw their examples."""

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st

MARKS = [
    pytest.mark.slow,
    # Where types are checked, beartype draws which items of a tuple it looks at, while records are made here too.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]


def draw_few(n_example: int = 30) -> None:
    """The tests that are defined from here on draw so many examples, the same ones every time, and make none simpler."""
    settings.register_profile(
        "few",
        deadline=None,
        derandomize=True,
        max_examples=n_example,
        phases=(Phase.explicit, Phase.generate),
    )
    settings.load_profile("few")


WORDS = (("cat",), ("door", "##s"), (",",), ("##ing",), ("it",), ("open", "##ed"), (".",))


def pieces_of_words(least: int, most: int) -> st.SearchStrategy[list[str]]:
    """Labels of so many words, some of several pieces: what is the same for tokens and words shows no fault of words."""
    return st.lists(st.sampled_from(WORDS), min_size=least, max_size=most).map(
        lambda words: [piece for word in words for piece in word]
    )
