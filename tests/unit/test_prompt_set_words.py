"""What pages say and draw of means over pairs of prompts, of numbers that are worked out on paper."""

from types import SimpleNamespace

import numpy as np
import pytest

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.logit_attribution import DirectParts
from attnviz.effects.over_pairs import mean_direct_effects, mean_head_effects, mean_patches
from attnviz.effects.patching import PatchEffects
from attnviz.figures.lens import draw_layer_parts
from attnviz.figures.numbers import spread_text
from tests.hand_made import tokens
from ui.rooms.cause.heads_off.effects_of_heads import set_finding
from ui.rooms.cause.lens import added_parts
from ui.rooms.compare.patching import finding_of_set, note_of_set


def effects(base, heads):
    return HeadEffects(kind="decoder", ablation="zero", base=base, heads=np.array(heads, dtype=np.float32))


def parts(factor):
    """Heads add 1, -2 and 0 to layer 0 and 0, 0, 4 to layer 1, MLPs 3 and 5, all times the factor."""
    return DirectParts(
        unit="difference of logits",
        total=float(12 * factor),
        embedding=float(factor),
        heads=np.array([[1, -2, 0], [0, 0, 4]], dtype=np.float32) * factor,
        mlps=np.array([3, 5], dtype=np.float32) * factor,
        biases=np.zeros(2, dtype=np.float32),
        bias=0.0,
    )


def test_no_spread_of_one_pair():
    assert spread_text(0.25) == " ± 0.250"
    assert spread_text(float("nan")) == ""


def test_the_largest_mean_effect():
    """Changes of head 1: -1 and -3, of head 0: 2 and -2, whose mean is 0."""
    averaged = mean_head_effects([effects(4.0, [[6.0, 3.0]]), effects(5.0, [[3.0, 2.0]])])
    assert set_finding(SimpleNamespace(mean=averaged)) == (
        "Largest mean effect: without layer 0, head 1 the logit difference of the answers falls from 4.50 to 2.50 "
        "(mean over 2 pairs, standard deviation 1.41)"
    )
    alone = mean_head_effects([effects(4.0, [[4.0, 4.0]])])
    assert set_finding(SimpleNamespace(mean=alone)) == "No head changes the outcome, 4.00 (mean over 1 pair)"


def test_the_largest_mean_direct_effect():
    """4 and 12 of the last head: mean 8, standard deviation 4 √2."""
    averaged = mean_direct_effects([parts(np.float32(1)), parts(np.float32(3))])
    sentence = added_parts.set_finding(averaged)
    assert "layer 1, head 2" in sentence and "8.00; that difference is 24.0" in sentence
    assert sentence.endswith("(mean over 2 pairs, standard deviation 5.66)")


def test_bars_have_lines_of_one_standard_deviation():
    """Heads of layer 0 add -1 and -3 together, of layer 1 4 and 12; MLPs 3 and 9, 5 and 15; the embedding 1 and 3."""
    averaged = mean_direct_effects([parts(np.float32(1)), parts(np.float32(3))])
    attention, mlps, embedding = draw_layer_parts(averaged.mean, over=averaged).data
    root = np.sqrt(2)
    for bars, means, spreads in (
        (attention, [-2, 8], [root, 4 * root]),
        (mlps, [6, 10], [3 * root, 5 * root]),
        (embedding, [2], [root]),
    ):
        np.testing.assert_allclose(bars.y, means)
        np.testing.assert_allclose(bars.error_y.array, spreads, rtol=1e-6)
    assert attention.hovertemplate[1].startswith("layer %{x}, all heads: ")
    assert " ± 5.66" in attention.hovertemplate[1]
    of_one_text = draw_layer_parts(parts(np.float32(1))).data
    assert all(bars.error_y.array is None for bars in of_one_text)
    assert not any("±" in template for bars in of_one_text for template in bars.hovertemplate)


def test_means_of_opposite_effects_cancel_but_their_spread_stays():
    averaged = mean_head_effects([effects(4.0, [[6.0, 3.0]]), effects(5.0, [[3.0, 2.0]])])
    assert averaged.effects.mean[0, 0] == 0
    assert averaged.effects.spread[0, 0] == pytest.approx(np.sqrt(8))


@pytest.mark.parametrize("columns", ["token", "head"])
def test_columns_of_tokens_are_those_of_the_first_pair(columns):
    outcome = SimpleNamespace(mean=np.float32(1), spread=np.float32(0.5))
    patches = SimpleNamespace(clean=outcome, corrupted=outcome, mean=SimpleNamespace(columns=columns))
    note = note_of_set(SimpleNamespace(refused=["Pair 2 was refused."]), patches)
    assert ("first pair" in note) == (columns == "token")
    assert "Pair 2 was refused" in note


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ([0.5], "25% of the difference (mean over 1 pair)"),
        ([0.5, 1.0], "38% of the difference (mean over 2 pairs, standard deviation 18%)"),
    ],
)
def test_the_largest_mean_share(moved, words):
    """Of the way from 3 to 5 a quarter and a half: mean 3/8, and the root of 1/32 apart."""
    averaged = mean_patches(
        [
            PatchEffects(
                receiver_tokens=tokens(["a"]),
                donor_tokens=tokens(["a"]),
                kind="encoder",
                carried="heads",
                base=3.0,
                donor=5.0,
                outcomes=np.array([[3.0 + by, 3.0]], dtype=np.float32),
            )
            for by in moved
        ]
    )
    run = SimpleNamespace(tokens=tokens(["door"]))
    sentence = finding_of_set(run, averaged)
    assert sentence == f"Swapping in the output of layer 0, head 0 accounts for {words}"
