"""Another model of the same sentence keeps the selected query and key on their tokens, wherever it has these."""

import pytest

from tests import small_records
from tests.app.screen import DOOR, assert_no_exception, finding, open_page
from ui.choice.state import Named

BOTH = ["all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"]


@pytest.mark.parametrize(("model", "other"), [BOTH, BOTH[::-1]])
def test_of_the_other_bundled_model(model, other):
    query, key = (7, 5) if model.startswith("all") else (6, 4)
    at = open_page(model=model, text=DOOR, layer=3, head=1, query=query, key=key)
    at.selectbox(key="field_model").set_value(other).run()
    assert_no_exception(at)
    there = (7, 5) if other.startswith("all") else (6, 4)
    link = {name: int(at.query_params[name][0]) for name in ("query", "key")}
    assert (link["query"], link["key"]) == there
    assert "it" in finding(at)


def test_a_repeated_word_stays_the_same_one():
    tokens = small_records.tokens(5, labels=("[CLS]", "the", "cat", "the", "[SEP]"))
    spaced = small_records.tokens(4, labels=("the", "␣cat", "␣the", "␣dog"))
    assert [Named(tokens, at).find(spaced) for at in range(5)] == [None, 0, 1, 2, None]
    assert Named(tokens, 3).find(small_records.tokens(2, labels=("the", "dog"))) == 0
