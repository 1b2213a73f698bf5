"""The page "Effects": numbers are those of runs of the bundled model with heads off, worked out anew here."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from attnviz.maps.collection import bundled
from attnviz.model.interventions import MaskedKeys, ReplacedOutput, ScaledOutput
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    figure,
    headline,
    notices,
    numbers,
    open_page,
    shown,
    until_drawn,
)
from tests.tiers import first_gates
from ui.shell import waiting

PAGE = "pages/effects.py"
OTHER = DOOR.replace("door", "window")
TOLERANCE = (
    2e-6  # float32; a cosine of means over 11 tokens, rows of a batch summed in another order than one alone
)


def cosine(first, second):
    first, second = (np.asarray(states, dtype=np.float64).mean(axis=0) for states in (first, second))
    return first @ second / np.linalg.norm(first) / np.linalg.norm(second)


@pytest.fixture(scope="module")
def similarity(embedded):
    """The similarity with the other sentence while some interventions are made."""
    other = embedded.trace(OTHER).last_hidden_state
    return lambda *changed: cosine(embedded.trace(DOOR, interventions=changed).last_hidden_state, other)


@pytest.fixture(scope="module")
def effects(similarity):
    base = similarity()
    return np.array(
        [
            [similarity(ScaledOutput(factor=0.0, layer=layer, head=head)) - base for head in range(12)]
            for layer in range(6)
        ]
    )


def labels(at):
    return np.array([[cell["label"] for cell in row] for row in component(at, "effects_grid")["cells"]])


@pytest.mark.nightly
def test_every_head_and_its_effect(effects, similarity):
    at = until_drawn(open_page(PAGE))
    assert_no_exception(at)
    written = np.array([[float(label.replace("−", "-")) for label in row] for row in labels(at)])
    np.testing.assert_allclose(written, effects, atol=0.00051)
    legend = component(at, "effects_grid")["legend"]
    assert legend["low"].removeprefix("−") == legend["high"]  # one tone below 0 and one above
    layer, head = np.unravel_index(np.abs(effects).argmax(), effects.shape)
    in_headline = facts(headline(at))
    assert (in_headline.heads, in_headline.quoted) == (((layer, head), (3, 1)), (OTHER,))
    without = [similarity() + effect for effect in (0, effects[layer, head], effects[3, 1])]
    assert in_headline.numbers[:3] == tuple(f"{number:.3f}" for number in without)
    rows = component(at, "effects_ranking")["rows"]
    assert (rows[0]["text"], rows[0]["length"]) == (
        f"Layer {layer}, head {head}",
        np.sign(effects[layer, head]),
    )
    off = similarity(ScaledOutput(factor=0.0, layer=2)) - similarity()
    assert float(component(at, "effects_layers")["rows"][2]["amount"].replace("−", "-")) == pytest.approx(
        off, rel=0.01
    )


@pytest.mark.nightly
def test_the_cells_of_the_selected_head(similarity, door_trace):
    at = until_drawn(open_page(PAGE, layer=3, head=1))
    points = figure(at, "effects_cells")["data"][0]
    assert len(points["customdata"]) == 121
    for cell in (0, 57, 120):
        query, key = points["customdata"][cell]
        allowed = np.ones((11, 11), dtype=bool)
        allowed[query, key] = False
        effect = similarity(MaskedKeys(allowed=allowed, layer=3, head=1)) - similarity()
        assert numbers(points["y"])[cell] == pytest.approx(abs(effect), abs=TOLERANCE)
        assert numbers(points["x"])[cell] == pytest.approx(door_trace.weights(3, 1)[query, key], abs=1e-6)
    correlation = spearmanr(numbers(points["x"]), numbers(points["y"])).statistic
    assert f"{correlation:+.2f}".replace("-", "−") in facts(captions(at)).numbers


@pytest.mark.nightly
def test_heads_off_together(similarity):
    at = until_drawn(open_page(PAGE, layer=3, head=1, heads="2.5,4.0"))
    greedy = figure(at, "effects_greedy")["data"][0]
    assert len(numbers(greedy["x"])) == 4
    off = [ScaledOutput(factor=0.0, layer=layer, head=head) for layer, head in ((3, 1), (2, 5), (4, 0))]
    assert numbers(greedy["y"])[0] == pytest.approx(similarity(), abs=TOLERANCE)
    assert numbers(greedy["y"])[-1] == pytest.approx(similarity(*off), abs=TOLERANCE)
    removal = figure(at, "effects_removal")["data"]
    every = similarity(ScaledOutput(factor=0.0))
    for line in removal:
        assert len(numbers(line["x"])) == 73 and numbers(line["y"])[-1] == pytest.approx(every, abs=TOLERANCE)


def mean_by_position(embedded, texts, tokens):
    """The mean output of layer 1, head 2 at each position of some tokens, by numpy: special tokens are averaged by id, and
    positions that fewer than 16 texts reach are averaged together with the last one before them."""
    rows = []
    for text in texts:
        trace = embedded.trace(text)
        rows += [
            (int(number) if special else None, at, output)
            for at, (number, special, output) in enumerate(
                zip(trace.tokens.ids, trace.tokens.is_special, trace.output(1, 2), strict=True)
            )
        ]
    reached = [
        at
        for at in range(64)
        if sum(special is None and at == where for special, where, _ in rows) >= min(16, len(texts))
    ]
    last = max(reached)
    means = []
    for at, (number, special) in enumerate(zip(tokens.ids, tokens.is_special, strict=True)):
        if special:
            chosen = [output for special_id, _, output in rows if special_id == number]
        else:
            chosen = [
                output
                for special_id, where, output in rows
                if special_id is None and min(where, last) == min(at, last)
            ]
        means.append(np.mean(np.array(chosen, dtype=np.float64), axis=0))
    return np.array(means, dtype=np.float32)


@pytest.mark.nightly
@pytest.mark.parametrize("own", ["", "A mat.\n\nThe cat sat on the mat when it opened.\nIt was late."])
def test_the_mean_in_place_of_zeros(embedded, door_trace, own):
    """Against the means that numpy takes position by position over the bundled sentences, or the reader's own."""
    at = until_drawn(open_page(PAGE, ablation="mean", references=own, outcome=f"similarity:{OTHER}"))
    assert_no_exception(at)
    texts = [line for line in (own or bundled()).splitlines() if line.strip()]
    mean = mean_by_position(embedded, texts, door_trace.tokens)
    other = embedded.trace(OTHER).last_hidden_state
    changed = embedded.trace(DOOR, interventions=[ReplacedOutput(output=mean, layer=1, head=2)])
    effect = cosine(changed.last_hidden_state, other) - cosine(door_trace.last_hidden_state, other)
    assert float(labels(at)[1, 2].replace("−", "-")) == pytest.approx(effect, abs=0.00051)
    both = figure(at, "effects_ablations")["data"][0]
    assert numbers(both["y"])[14] == pytest.approx(effect, abs=1e-5)
    words = f"{len(texts)} {'own' if own else 'bundled'} sentences"
    assert words in captions(at)


def test_what_takes_long_waits_until_it_is_asked_for(monkeypatch, embedded):
    """Heads are switched off one by one without a click; everything else waits for its button."""
    monkeypatch.setattr(waiting, "QUICK", 0)
    text, own = "Nobody has measured this sentence yet.", "Nobody has taken a mean over this one."
    at = until_drawn(open_page(PAGE, text=text, outcome="length:3", layer=3, head=1, references=own))
    assert "–" not in labels(at)
    asked = {
        element.key: element
        for element in at.button
        if element.label.startswith(("Switch", "Remove", "Mask"))
    }
    assert asked.keys() == {
        "layers_act",
        "greedy_act",
        "cells_act",
        "removal_act_0",
        "other_ablation_means_act",
    }
    assert "effects_layers" not in [element.key for element in at.get("bidi_component")]
    asked["layers_act"].click().run()
    at = until_drawn(at)
    off = embedded.trace(text, interventions=[ScaledOutput(factor=0.0, layer=2)]).last_hidden_state[3]
    length = np.linalg.norm(off - embedded.trace(text).last_hidden_state[3])
    assert float(component(at, "effects_layers")["rows"][2]["amount"]) == pytest.approx(length, rel=0.01)
    assert {"greedy_act", "cells_act"} < {element.key for element in at.button}  # which still wait


@pytest.mark.nightly
def test_the_state_of_the_selected_token():
    at = until_drawn(open_page(PAGE, outcome="state:7"))
    assert_no_exception(at)
    in_headline = facts(headline(at))
    assert (in_headline.quoted[0], in_headline.numbers[0]) == ("it", "7")
    assert in_headline.numbers[1].startswith("0.0")


@pytest.mark.parametrize("outcome", first_gates("what", "state:99", "similarity:  "))
def test_an_outcome_that_there_is_not_is_explained(outcome):
    at = open_page(PAGE, outcome=outcome)
    assert_no_exception(at)
    assert [line for line in (*errors(at), *notices(at)) if "asked for" in line or "was to be read" in line]


@pytest.mark.nightly
def test_a_head_is_picked_everywhere():
    at = until_drawn(open_page(PAGE, text="it opened", layer=3, head=1))
    assert component(at, "effects_grid")["picked"] == [3, 1]
    assert shown(at)["layer"] == "3" and shown(at)["head"] == "1"
