"""Mean outputs of heads over reference texts, against sums that plain loops take over the traces of these texts."""

import numpy as np
import pytest

from attnviz.effects.mean_outputs import FEWEST_TEXTS, mean_outputs

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
    fewer = mean_outputs(model, [SHORT] * 3 + [LONG] * (FEWEST_TEXTS - 1))
    enough = mean_outputs(model, [SHORT] * 3 + [LONG] * FEWEST_TEXTS)
    assert (fewer.n_apart("decoder"), enough.n_apart("decoder")) == (n_short - 1, n_long - 1)


def test_the_mean_over_one_text_is_its_output(tiny_model):
    """This is resampling from that text."""
    model = tiny_model("gpt2")
    trace = model.trace(LONG)
    mean = mean_outputs(model, [LONG]).of("decoder", 1, 1, trace.tokens)
    np.testing.assert_allclose(mean, trace.output(1, 1), atol=1e-5)
