"""The page "Patching": shares are those of runs of the bundled model with one state carried over, worked out anew here."""

from types import SimpleNamespace

import numpy as np
import pytest

from attnviz.model.interventions import ReplacedState
from attnviz.model.states import hidden_states
from tests.app.screen import (
    DOOR,
    Facts,
    alt,
    assert_no_exception,
    captions,
    charts,
    errors,
    facts,
    figure,
    headline,
    numbers,
    open_page,
    unescaped,
    until_drawn,
)
from tests.app.test_effects_page import OTHER, cosine
from ui.rooms.compare.patching.two_texts import Screen

PAGE = "pages/patching.py"


def shares(at):
    return numbers(figure(at, "patching_shares")["data"][0]["z"])


def test_every_layer_and_token(embedded):
    at = until_drawn(open_page(PAGE))
    assert_no_exception(at)
    drawn_shares = shares(at)
    assert drawn_shares.shape == (6, 11)
    other = embedded.trace(OTHER)
    states = hidden_states(embedded, other).layers
    base = cosine(embedded.trace(DOOR).last_hidden_state, other.last_hidden_state)
    for layer, token in ((0, 5), (2, 8), (5, 0), (3, 5)):
        replaced = ReplacedState(states=states["encoder", layer], layer=layer, positions=(token,))
        after = cosine(
            embedded.trace(DOOR, interventions=[replaced]).last_hidden_state, other.last_hidden_state
        )
        assert drawn_shares[layer, token] == pytest.approx((after - base) / (1 - base), abs=1e-4)
    row, token = np.unravel_index(drawn_shares.argmax(), drawn_shares.shape)
    in_headline = facts(headline(at))
    assert in_headline.quoted == (other.tokens.labels[token].replace("window", "door"),)
    assert in_headline.numbers == (str(row), f"{100 * drawn_shares[row, token]:.0f}%")
    assert "“door” → “window”" in unescaped(captions(at))
    assert drawn_shares[0, 5] > 0.5 > abs(drawn_shares[0, 1])  # the word that differs
    assert alt(at, "patching_shares").startswith("Share of the difference")


def test_a_sentence_without_a_word_to_exchange_asks_for_sentence_b_or_takes_the_bundled_pair():
    at = open_page(PAGE, text="Rain.")
    assert_no_exception(at)
    assert at.text_input(key="field_patch_text").value == "" and not charts(at)
    at.button(key="bundled_pair").click().run()
    at = until_drawn(at)
    assert at.text_input(key="field_patch_text").value == OTHER
    assert shares(at).shape == (6, 11)


def test_heads_of_the_layer():
    at = until_drawn(open_page(PAGE, patch_carried="heads", patch_at="each", layer=3))
    assert_no_exception(at)
    assert shares(at).shape == (12, 11)
    row = int(np.nanargmax(shares(at))) // 11
    assert facts(headline(at)).heads == ((3, row),)


def test_another_number_of_tokens_is_explained():
    at = open_page(PAGE, patch_text="I was watching the door.")
    assert_no_exception(at)
    assert facts(errors(at)[0]).has("11", "8")  # tokens


def test_the_same_sentence_has_no_difference():
    at = until_drawn(open_page(PAGE, patch_text=DOOR))
    assert_no_exception(at)
    assert facts(headline(at)) == Facts()  # where nothing differs, no state has a share
    assert alt(at, "patching_shares").startswith("Change of the outcome")


@pytest.mark.parametrize(("end", "expected"), [(None, 6 * 4), ("the outcome", 2 * 6 * 4)])
def test_work_is_counted_in_tokens_of_all_runs(end, expected):
    """On a path each sender takes two runs; what takes long waits for its button."""
    screen = SimpleNamespace(
        n_cells=6,
        patches=SimpleNamespace(end=end),
        view=SimpleNamespace(trace=SimpleNamespace(tokens=["the", "cat", "sat", "."])),
    )
    assert Screen.n_tokens.fget(screen) == expected
