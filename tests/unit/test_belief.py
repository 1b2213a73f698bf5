"""What is said of a map of queries and keys: its verdict, by numbers that are written down here."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.records import Axis, Faithfulness, Projection
from tests.app.screen import unescaped
from tests.hand_made import tokens
from ui.sections.query_key_map import belief
from ui.words.findings import map_note
from ui.words.judgement import FAIR, READ, judge


def projection(
    mean: float, worst: float = -0.9, nearest: float = 1.0, before: float | None = None
) -> Projection:
    """A map with these figures; its queries are those of `QUERIES`."""
    one = tokens(["[CLS]", "door", "*it*"])

    def figures(correlation: float) -> Faithfulness:
        return Faithfulness(
            order_correlation=correlation, worst_correlation=worst, worst_query=2, nearest_agreement=nearest
        )

    return Projection(
        points=np.zeros((6, 2), dtype=np.float32),
        method="tsne",
        space="raw",
        parameters={},
        in_map=figures(mean),
        in_space=None if before is None else figures(before),
        trustworthiness=0.9,
        role=("query",) * 3 + ("key",) * 3,
        position=np.array([0, 1, 2, 0, 1, 2]),
        query_tokens=one,
        key_tokens=one,
        kind="encoder",
        layer=0,
        head=0,
        provenance=attnviz.Provenance(model="none", revision="none", dtype="float32", versions={}),
    )


def said(map_: Projection, chance: float = -0.5, *, has_bias: bool = False) -> str:
    return unescaped(belief.verdict(map_, chance, Axis.of(map_.query_tokens), has_bias=has_bias))


@pytest.mark.parametrize(
    ("mean", "judgement"),
    [
        (-0.1, "misleads"),
        (0.6, "misleads"),
        (-0.49, "misleads"),
        (-0.51, "rough"),
        (-0.69, "rough"),
        (-0.71, "fair"),
    ],
)
def test_by_the_correlation_and_what_chance_gives(mean, judgement):
    assert judge(projection(mean).in_map, -0.5) == judgement
    start = {
        "misleads": ":red[**This t-SNE map misleads:**]",
        "rough": "**This t-SNE map is rough:**",
        "fair": "**This t-SNE map can be read:**",
    }
    assert said(projection(mean)).startswith(start[judgement])
    assert READ[judgement] in map_note(projection(mean), -0.5)


def test_a_fair_map_of_few_keys_may_be_chance():
    assert judge(projection(-0.71).in_map, -0.8) == "misleads"
    assert judge(projection(-1.0).in_map, -1.2) == "unknown"
    assert "too few tokens" in said(projection(-1.0), -1.2)


def test_no_order_at_all():
    found = replace(projection(float("nan")), trustworthiness=float("nan"))
    assert "no query sees two keys" in said(found, float("nan"))


def test_the_numbers_are_in_it():
    assert (
        "correlation of distance and score is −0.10 (−1 is perfect); at most one shuffled map in twenty goes below "
        "−0.50." in said(projection(-0.1))
    )
    assert "the nearest has the largest weight for 83% of the queries." in said(
        projection(-0.8, nearest=0.83)
    )
    assert "for only 33% of the queries" in said(projection(-0.8, nearest=0.33))
    assert "for only 33% of the queries" in said(projection(-0.6, nearest=0.33))
    assert "largest weight for 67%" in said(projection(-0.6, nearest=0.67))


def test_a_query_that_is_served_badly_is_left_out_by_name():
    assert "The distances of the query “*it*” say little, though (−0.20)." in said(
        projection(-0.8, worst=-0.2)
    )
    assert "Leave out" not in said(projection(-0.8, worst=-0.6))


def test_where_the_order_was_lost():
    lost = said(projection(-0.1, before=-0.95))
    assert lost.endswith("(correlation −0.95); this t-SNE map in 2 dimensions does not keep that.")
    assert "among the vectors fed in either (correlation −0.30)" in said(projection(-0.1, before=-0.3))
    assert said(projection(-0.1, before=-0.3)).endswith("among lifted ones Euclidean distance does.")
    assert "fed in" not in said(projection(-0.1))
    biased = said(projection(-0.1, before=-0.3), has_bias=True)
    assert biased.endswith(
        "among lifted ones Euclidean distance follows q·k, but not the bias that this layer adds to it."
    )


def test_share_of_pairs_in_order_is_as_its_constant_says():
    share = 0.5 + np.arcsin(2 * np.sin(np.pi * -FAIR / 6)) / np.pi
    random = np.random.default_rng(0)
    linear = 2 * np.sin(np.pi * -FAIR / 6)  # of normal numbers whose ranks correlate with 0.7
    one, other = random.multivariate_normal([0, 0], [[1, linear], [linear, 1]], size=(2, 50_000)).transpose(
        2, 0, 1
    )
    assert np.mean((one[0] < one[1]) == (other[0] < other[1])) == pytest.approx(share, abs=0.01)
    assert share == pytest.approx(0.75, abs=0.01)
