"""Rows that are permuted in several texts: the mean of `shuffled_row` text by text, and statistics on paper."""

import statistics
from collections import Counter

import numpy as np
import pytest

import attnviz
from attnviz.effects.row_shuffle import shuffled_row
from attnviz.effects.rows_over_texts import MeanShuffledHeads, mean_shuffled_heads
from attnviz.records import Head

TEXTS = ["the cat sat on a mat", "it opened .", "the door", "a cat sat when it opened the door ."]


def of_changes(changes):
    numbers = np.array(changes, dtype=np.float32)
    places = np.arange(len(numbers))
    return MeanShuffledHeads(
        kind="encoder", outcome="", n_shuffles=3, changes=numbers, queries=places, seeds=places
    )


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_the_mean_is_that_of_single_rows(name, headed, tiny_model):
    """One predicts the next token, the other has no language head."""
    model = headed(name)[0] if name == "llama" else tiny_model(name)
    told = []
    over = mean_shuffled_heads(model, ["", *TEXTS], seed=4, progress=told.append)
    assert over.changes.shape[0] == len(TEXTS) and over.n_shuffles == 3
    for layer, head in ((0, 1), (1, 0)):
        changes = []
        for text, query, seed in zip(TEXTS, over.queries.tolist(), over.seeds.tolist(), strict=True):
            row = shuffled_row(model, model.trace(text), layer, head, query, n_shuffles=3, seed=seed)
            assert row.outcome.startswith(over.outcome.removesuffix(" at the query")) and not row.is_even
            changes.append(sorted(row.changes.tolist())[1])
        assert over.heads[layer, head] == pytest.approx(statistics.mean(changes), rel=1e-2, abs=1e-6)
        assert over.spread[layer, head] == pytest.approx(statistics.stdev(changes), rel=1e-2, abs=1e-6)
        assert over.n_texts[layer, head] == len(TEXTS)
    assert told == sorted(told) and told[-1] == 1
    assert len({*over.seeds.tolist()}) == len(TEXTS)


def test_mean_spread_and_number_of_texts_on_paper():
    """The second head's row is even in one text, the third's in two, the fourth's in all."""
    nan = float("nan")
    over = of_changes([[[1.0, 2.0, nan, nan]], [[3.0, nan, nan, nan]], [[8.0, 5.0, 7.0, nan]]])
    np.testing.assert_allclose(over.heads, [[4.0, 3.5, 7.0, nan]])
    np.testing.assert_allclose(over.spread, [[13**0.5, 4.5**0.5, nan, nan]], rtol=1e-6)
    assert over.n_texts.tolist() == [[3, 2, 1, 0]]
    assert over.ranked() == [Head(0, 2), Head(0, 0), Head(0, 1)]
    assert over.frame()["texts"].tolist() == [3, 2, 1]


def test_parts_of_the_texts_join_to_all_of_them(tiny_model):
    model = tiny_model("bert")
    whole = mean_shuffled_heads(model, TEXTS)
    parts = mean_shuffled_heads(model, TEXTS[:1]).joined(mean_shuffled_heads(model, TEXTS[1:]))
    np.testing.assert_array_equal(parts.queries, whole.queries)
    np.testing.assert_array_equal(parts.seeds, whole.seeds)
    np.testing.assert_allclose(parts.changes, whole.changes, rtol=1e-3, atol=1e-6)
    other = mean_shuffled_heads(model, TEXTS, seed=1)
    assert not np.allclose(other.heads, whole.heads, rtol=1e-3)


def test_a_query_is_any_own_token_that_sees_two_other_keys(headed, tiny_model):
    """Of the causal model not the first two; of the other no special token."""
    for model, n_before, n_after in ((headed("gpt2")[0], 2, 0), (tiny_model("bert"), 1, 1)):
        n_token = len(model.tokenize("the cat"))
        drawn = Counter(
            int(mean_shuffled_heads(model, ["the cat"], n_shuffles=1, seed=s).queries[0]) for s in range(40)
        )
        assert set(drawn) == set(range(n_before, n_token - n_after))


def test_a_long_text_is_cut(tiny_model, monkeypatch):
    monkeypatch.setattr("attnviz.effects.rows_over_texts.LONGEST", 6)
    model = tiny_model("bert")
    drawn = {int(mean_shuffled_heads(model, TEXTS[:1], n_shuffles=1, seed=s).queries[0]) for s in range(20)}
    assert drawn == {1, 2, 3, 4}  # of six tokens, without those at the ends


def test_an_encoder_decoder_model_reads_each_text_as_both(tiny_model):
    bart = tiny_model("bart")
    over = mean_shuffled_heads(bart, TEXTS[:1], kind="cross")
    trace = bart.trace(TEXTS[0], TEXTS[0])
    row = shuffled_row(
        bart, trace, 1, 1, int(over.queries[0]), kind="cross", n_shuffles=3, seed=int(over.seeds[0])
    )
    assert over.heads[1, 1] == pytest.approx(row.change, rel=1e-2, abs=1e-6)
    with pytest.raises(attnviz.SelectionError, match="of an encoder-decoder model"):
        mean_shuffled_heads(bart, TEXTS[:1], kind="encoder")


def test_texts_without_such_a_token_are_left_out(headed, tiny_model):
    model, _ = headed("gpt2")
    assert len(mean_shuffled_heads(model, ["a", "the cat"], n_shuffles=1).queries) == 1
    assert len(mean_shuffled_heads(tiny_model("bert"), ["\u200b", " ", "", "a"], n_shuffles=1).queries) == 1
    for texts in (["a"], [" ", ""], []):
        with pytest.raises(attnviz.SelectionError, match="no token of them sees two other keys"):
            mean_shuffled_heads(model, texts)
