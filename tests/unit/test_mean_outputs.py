"""Mean outputs of heads over reference texts, against sums that plain loops take over the traces of these texts."""

import numpy as np
import pytest

from attnviz.effects.mean_outputs import MeanOutputs, mean_outputs
from attnviz.records import Tokens

SHORT, LONG = "the cat sat", "the cat sat on a mat when it"
TEXTS = [SHORT, "", "a door opened", LONG, "it was the cat"]


def rows_of(model, texts, kind, layer, head):
    """The output of a head for every token: its position, its id where it is special, and the output."""
    for text in texts:
        if not text:
            continue
        trace = model.trace(text, text if model.network.config.is_encoder_decoder else None)
        tokens = trace.query_tokens(kind)
        for at, output in enumerate(trace.output(layer, head, kind)):
            yield at, int(tokens.ids[at]) if tokens.is_special[at] else None, output.astype(np.float64)


def expected(model, texts, kind, layer, head, tokens, n_apart):
    """By position at first, later positions pooled, special tokens by their id."""
    rows = list(rows_of(model, texts, kind, layer, head))
    means = []
    for at, (number, is_special) in enumerate(zip(tokens.ids, tokens.is_special, strict=True)):
        if is_special:
            chosen = [output for _, special, output in rows if special == number]
        elif at < n_apart:
            chosen = [output for place, special, output in rows if special is None and place == at]
        else:
            chosen = [output for place, special, output in rows if special is None and place >= n_apart]
        means.append(np.mean(chosen, axis=0))
    return np.array(means)


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2", "bart"])
def test_each_position_and_each_special_token_has_its_mean(name, tiny_model):
    model = tiny_model(name)
    means = mean_outputs(model, TEXTS)
    trace = model.trace(LONG, LONG if name == "bart" else None)
    for kind in trace.kinds:
        tokens, texts = trace.query_tokens(kind), [text for text in TEXTS if text]
        lengths = [
            len(model.trace(text, text if name == "bart" else None).query_tokens(kind)) for text in texts
        ]
        # of four texts all are asked for: the positions of ordinary tokens that the shortest has
        n_special_at_end = int(tokens.is_special[-1])
        n_apart = min(lengths) - n_special_at_end - 1
        assert (means.n_text, means.n_apart(kind)) == (4, n_apart)
        for layer, head in ((0, 0), (trace.n_layers(kind) - 1, 1)):
            wanted = expected(model, texts, kind, layer, head, tokens, n_apart)
            np.testing.assert_allclose(means.of(kind, layer, head, tokens), wanted, atol=1e-5)
        assert np.abs(np.diff(wanted[:n_apart], axis=0)).max() > 0.01


def test_parts_of_the_texts_join_to_all_of_them(tiny_model):
    model = tiny_model("bert")
    told = []
    whole = mean_outputs(model, TEXTS, progress=told.append)
    parts = mean_outputs(model, TEXTS[:3]).joined(mean_outputs(model, TEXTS[3:]))
    tokens = model.tokenize(LONG)
    assert (parts.n_text, parts.n_apart("encoder")) == (whole.n_text, whole.n_apart("encoder"))
    np.testing.assert_allclose(
        parts.of("encoder", 1, 1, tokens), whole.of("encoder", 1, 1, tokens), atol=1e-6
    )
    assert told == sorted(told) and told[-1] == 1


def test_a_position_needs_so_many_texts_for_a_mean_of_its_own(tiny_model):
    model = tiny_model("llama")
    n_short, n_long = len(model.tokenize(SHORT)), len(model.tokenize(LONG))
    fewer = mean_outputs(model, [SHORT] * 3 + [LONG] * 15)
    enough = mean_outputs(model, [SHORT] * 3 + [LONG] * 16)
    assert (fewer.n_apart("decoder"), enough.n_apart("decoder")) == (n_short - 1, n_long - 1)


def test_the_mean_over_one_text_is_its_output(tiny_model):
    """This is resampling from that text."""
    model = tiny_model("gpt2")
    trace = model.trace(LONG)
    mean = mean_outputs(model, [LONG]).of("decoder", 1, 1, trace.tokens)
    np.testing.assert_allclose(mean, trace.output(1, 1), atol=1e-5)


def tokens_of(ids, special):
    """Tokens with these ids, of which some are special."""
    return Tokens(
        text="".join(map(str, ids)),
        ids=np.array(ids, dtype=np.int64),
        labels=tuple(map(str, ids)),
        is_special=np.array([number in special for number in ids]),
        segment=np.zeros(len(ids), dtype=np.int64),
        word=np.arange(len(ids)),
    )


def test_special_tokens_of_any_id_have_means_of_their_own():
    """On paper: sums 10, 20 and 30 at positions, and those of the ids 0, 1 and 2 of special tokens."""
    sums, counts = (
        {0: 10.0, 1: 20.0, 2: 30.0, -1: 4.0, -2: 14.0, -3: 18.0},
        {0: 2, 1: 2, 2: 2, -1: 1, -2: 2, -3: 3},
    )
    means = MeanOutputs(
        sums={"encoder": {place: (np.full((1, 1), number),) for place, number in sums.items()}},
        counts={"encoder": counts},
        n_text=2,
    )
    for ids, expected in (
        ((7, 8, 0), [5.0, 10.0, 4.0]),
        ((1, 8, 9), [7.0, 10.0, 15.0]),
        ((0, 0, 1), [4.0, 4.0, 7.0]),
        ((2, 1, 9), [6.0, 7.0, 15.0]),
    ):
        rows = means.of("encoder", 0, 0, tokens_of(ids, {0, 1, 2}))
        assert rows[:, 0].tolist() == expected, ids


@pytest.mark.parametrize("name", ["bert", "bart"])
def test_a_text_that_is_too_long_is_read_to_the_limit(name, tiny_model):
    """As a trace of the cut text; a decoder reads as much of it."""
    model, text = tiny_model(name), "the cat sat on a mat when it " * 8
    limit = model.max_tokens
    means = mean_outputs(model, [text])
    target = text if name == "bart" else None
    trace = model.trace(text, target, cut=True)
    for kind in trace.kinds:
        tokens = trace.query_tokens(kind)
        assert len(tokens) == limit
        assert sum(means.counts[kind].values()) == limit
        rows = trace.output(1, 1, kind)
        np.testing.assert_allclose(
            means.of(kind, 1, 1, tokens)[~tokens.is_special], rows[~tokens.is_special], atol=1e-5
        )


def test_late_positions_share_a_place(tiny_model, monkeypatch):
    """So many as can have a mean of their own; the last of them is of all that follow."""
    monkeypatch.setattr("attnviz.effects.mean_outputs.MOST_POSITIONS", 4)
    model = tiny_model("gpt2")
    trace = model.trace(LONG)
    means = mean_outputs(model, [LONG])
    assert means.counts["decoder"] == {0: 1, 1: 1, 2: 1, 3: len(trace.tokens) - 3}
    rows = trace.output(1, 0)
    expected = np.concatenate([rows[:3], np.tile(rows[3:].mean(axis=0), (len(rows) - 3, 1))])
    np.testing.assert_allclose(means.of("decoder", 1, 0, trace.tokens), expected, atol=1e-5)
