"""What the scale does to a row, and how a model departs from the formula, in words."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.lessons.history import Departure, ScaleEffect, departure, scale_effect, scoring_variants
from ui.rooms.how_it_works.history import departure_words, scale_said


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (
            ScaleEffect(scaled=0.8, unscaled=0.97, largest_change=0.17),
            "Without the scale the attention concentrates on fewer keys: its largest weight goes from 80.0% to 97.0%.",
        ),
        (
            ScaleEffect(scaled=0.8, unscaled=0.801, largest_change=0.001),
            "Without the scale this row hardly changes: its largest weight goes from 80.0% to 80.1%.",
        ),
        (
            ScaleEffect(scaled=0.8, unscaled=0.85, largest_change=0.05),
            "Without the scale the attention concentrates on fewer keys: its largest weight goes from 80.0% to 85.0%.",
        ),
        (  # two keys change, and the largest is neither
            ScaleEffect(scaled=0.5, unscaled=0.52, largest_change=0.2),
            "Without the scale the attention concentrates on fewer keys: its largest weight goes from 50.0% to 52.0%.",
        ),
    ],
)
def test_the_largest_weight_with_and_without(effect, words):
    assert scale_said(effect) == words


@pytest.mark.parametrize("seed", range(5))
def test_the_scale_on_rows_that_are_drawn(seed, tiny_model):
    """By loops over the keys, for two variants of a tiny model."""
    trace = tiny_model("bert").trace("the cat sat on a mat")
    *_, dot, scaled = scoring_variants(trace, 0, 1, seed, other=0)
    effect = scale_effect(scaled, dot)
    rows = list(zip(scaled.weights.tolist(), dot.weights.tolist(), strict=True))
    assert effect.scaled == max(weight for weight, _ in rows)
    assert effect.unscaled == max(other for _, other in rows)
    assert effect.largest_change == pytest.approx(max(abs(other - weight) for weight, other in rows))
    assert effect.unscaled >= effect.scaled


def test_a_weight_that_falls_counts_as_much_as_one_that_rises(tiny_model):
    *_, dot, scaled = scoring_variants(tiny_model("bert").trace("a"), 0, 0, 0, other=0)
    rows = [np.array(row, dtype=np.float32) for row in ([0.5, 0.4, 0.1], [0.2, 0.1, 0.7])]
    effect = scale_effect(
        *(replace(step, weights=row) for step, row in zip((scaled, dot), rows, strict=True))
    )
    assert effect.largest_change == pytest.approx(0.6)
    effect = scale_effect(
        *(replace(step, weights=row) for step, row in zip((scaled, dot), rows[::-1], strict=True))
    )
    assert (effect.scaled, effect.unscaled) == (pytest.approx(0.7), pytest.approx(0.5))
    assert effect.largest_change == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("departed", "words"),
    [
        (
            Departure(difference=0.25, scale=1.0, softcap=None, has_bias=True),
            "This model departs from the formula of 2017: it multiplies by 1 and adds a bias to each score. The weights of its "
            "trace differ from the last row by up to 25.0%.",
        ),
        (
            Departure(difference=0.25, scale=None, softcap=None, has_bias=False),
            "This model departs from the formula of 2017. The weights of its trace differ from the last row by up to 25.0%.",
        ),
    ],
)
def test_a_model_that_departs_from_the_formula(departed, words):
    assert departure_words(departed) == words


@pytest.mark.parametrize(("difference", "is_same"), [(3e-7, True), (9.9e-5, True), (1e-4, False)])
def test_one_that_does_not_is_recomputed(difference, is_same):
    words = departure_words(Departure(difference=difference, scale=None, softcap=None, has_bias=False))
    assert ("Recomputed" in words) == is_same == ("departs" not in words)


def test_departures_are_those_of_the_trace(tiny_model):
    for family, kind in (("bert", "encoder"), ("t5", "encoder")):
        given = ("the cat sat", "a door") if family == "t5" else ("the cat sat",)
        trace = tiny_model(family).trace(*given)
        scaled = scoring_variants(trace, 1, 1, 2, kind, other=0)[-1]
        departed = departure(trace, 1, 1, 2, scaled, kind)
        call = trace.attention(1, kind)
        assert departed.has_bias == (family == "t5") == (call.bias is not None)
        assert departed.scale == (1.0 if family == "t5" else None)
        differences = np.abs(trace.weights(1, 1, kind)[2] - scaled.weights)
        assert departed.difference == pytest.approx(float(differences.max()))
