"""What the step from tokens to vectors says of a family, from small anatomies that are written down here."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.model.anatomy import LayerAnatomy
from attnviz.model.normalisation import Normalisation
from ui.rooms.how_it_works.step_by_step.to_vectors import of_vectors
from ui.rooms.how_it_works.step_by_step.walk import listed_keys, listed_note

PART = np.zeros((2, 5), dtype=np.float32)


def sentences(
    *, layer=0, kind="encoder", ingredients=("token", "position"), leads="as it is", norm=None
) -> list[str]:
    """The sentences, with terms as they stand in them."""
    anatomy = LayerAnatomy(
        kind=kind,
        layer=layer,
        ingredients=dict.fromkeys(ingredients, PART),
        norm=norm,
        leads_to_first_layer=leads,
        hidden=None,
        sources=None,
        projections={},
        output=None,
        output_weight=None,
        output_bias=None,
    )
    walk: Any = SimpleNamespace(
        place=(layer, 1),
        view=SimpleNamespace(kind=kind),
        term=lambda name, shown="": shown or name.lower(),
    )
    return of_vectors(walk, anatomy)


def test_each_token_becomes_a_vector():
    assert sentences()[0] == (
        "Each token is looked up in a table and becomes a vector of 5 numbers, whatever its length."
    )


@pytest.mark.parametrize("method", ["layer", "rms"])
@pytest.mark.parametrize("has_bias", [True, False])
def test_how_the_sum_is_normalised(method, has_bias):
    numbers = np.ones(5, dtype=np.float32)
    norm = Normalisation(
        method=method, weight=numbers, bias=numbers.copy() if has_bias else None, eps=1e-5, made=PART
    )
    [sentence] = [sentence for sentence in sentences(norm=norm) if "learned numbers" in sentence]
    assert ("its mean $\\mu$ is subtracted" in sentence) == (method == "layer")
    assert ("root of the mean of its squares" in sentence) == (method == "rms")
    learned = "$\\gamma$ and $\\beta$ stretch and move" if has_bias else "$\\gamma$ stretch"
    assert sentence.endswith(f"learned numbers {learned} each dimension.")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            "To it a vector for its position is added; without positions an encoder could not tell one order of the words from "
            "another.",
        ),
        (
            {"kind": "decoder"},
            "To it a vector for its position is added; without positions only the causal mask would tell one order of the words "
            "from another.",
        ),
        (
            {"ingredients": ["token"]},
            "This family adds no vector for the position here; it brings positions in where queries meet keys.",
        ),
    ],
    ids=str,
)
def test_positions(changes, words):
    assert sentences(**changes)[1] == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "That is M, which layer 0 reads."),
        ({"leads": "by a matrix"}, "A matrix makes M of these, which layer 0 reads."),
        ({"leads": None}, "What the model does to this before layer 0 reads it, as M, is not followed here."),
        ({"layer": 1}, "M, which layer 1 reads, is what layer 0 made of this."),
        ({"layer": 3}, "M, which layer 3 reads, is what layers 0 to 2 made of this."),
        ({"kind": "cross"}, "M, which layer 0 reads, is what the self-attention before it made of this."),
    ],
    ids=str,
)
def test_what_the_layer_reads(changes, words):
    assert sentences(**changes)[-1] == words


@pytest.mark.parametrize(
    ("n", "own", "words"),
    [
        (12, 1, ""),
        (15, 1, "The 12 strongest keys; what is not listed, 3 keys, has 9.4% of the weight."),
        (
            15,
            0.5,
            "The 11 strongest keys and the selected one; what is not listed, 3 keys, has 9.4% of the weight.",
        ),
    ],
)
def test_which_keys_are_listed(n, own, words):
    """The three that are not listed have 1/32 each; the selected one, the last, as much or half of it."""
    row = np.array([8, 5, 4, 3, 2, *[1] * (n - 6), own], dtype=np.float32) / 32
    assert listed_note(listed_keys(row, n - 1)) == words
