"""What the parts of the page Profiles draw, of profiles whose rows are written down."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.figures.numbers import cell_text, number_text, share_text
from attnviz.records import Head
from tests import hand_made
from tests.app.screen import component, drawn, facts, figure, numbers, ranked_lists
from tests.profiles import KINDS, of_kind, profile_of
from ui.sections.profiles import one_head, overview
from ui.sections.profiles.overview import n_apart, with_interval
from ui.sections.profiles.screen import Number, Screen, difference, number, number_names

PLACE = Head(1, 1)
AT = 4


@pytest.fixture(autouse=True)
def _without_other_pages(monkeypatch):
    monkeypatch.setattr(one_head, "link_to", lambda *args, **named: None)


def screen_of(
    seed: int, kind: str, **changes: Any
) -> tuple[Screen, list[dict[str, Any]], list[dict[str, Any]]]:
    profile, rows, examples = profile_of(seed)
    names = [*number_names(profile, kind)]
    x, y = number(profile, kind, names[0]), number(profile, kind, names[1])
    given = {
        "view": SimpleNamespace(
            theme="light",
            trace=SimpleNamespace(kinds=()),
            selection=SimpleNamespace(but=lambda **named: None),
        ),
        "corpus": "",
        "profile": profile,
        "kind": kind,
        "heads": profile.heads(kind),
        "head": PLACE,
        "x": x,
        "y": y,
        "ranked": y,
        "is_compared": False,
        "kept": profile.heads(kind),
    }
    return Screen(**given | changes), of_kind(rows, kind), of_kind(examples, kind)


CASES = [(seed, kind) for seed in range(3) for kind in KINDS]


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_the_selected_head(seed, kind):
    screen, rows, examples = screen_of(seed, kind)
    row = rows[AT]

    def draw() -> None:
        one_head.places(screen)
        one_head.relations(screen)
        one_head.pairs(screen)
        one_head.examples(screen)

    at = drawn(draw)
    has_distances = row["distances"] is not None
    if has_distances:
        np.testing.assert_allclose(numbers(figure(at, "profile_distances")["data"][0]["y"]), row["distances"])
    np.testing.assert_allclose(numbers(figure(at, "profile_positions")["data"][0]["y"]), row["positions"])
    assert figure(at, "profile_positions")["data"][0]["customdata"] == [str(one) for one in range(32)]

    there = [one for one in row["relations"] if one["words"] >= 20]
    there.sort(key=lambda one: one["offset_accuracy"] - one["accuracy"])
    if there:
        found = component(at, "profile_relations")["rows"]
        for shown, one in zip(found, there, strict=True):
            assert shown["text"].endswith(f", {one['direction']}")
            assert ("dobj" in shown["text"]) == (one["relation"] == "dobj")
            expected = [share_text(one[name]) for name in ("accuracy", "low", "high", "offset_accuracy")]
            assert list(facts(shown["amount"]).numbers) == expected
            assert shown["length"] == one["accuracy"] and not shown["picked"]
        [said] = [facts(one.value) for one in at.caption if "direct object" in one.value]
        first = there[0]
        assert said.has("95%", f"{first['words']:,}", f"{first['offset']:+d}", "20")

    for key, name in (("profile_tokens", "token_pairs"), ("profile_parts", "part_pairs")):
        pairs = row[name][:10]
        assert [one.key for one in at.get("bidi_component")].count(key) == bool(pairs)
        if not pairs:
            continue
        most = pairs[0]["mass"] - pairs[0]["expected"]
        for shown, one in zip(component(at, key)["rows"], pairs, strict=True):
            assert (shown["text"], shown["key"]) == (one["query"], one["key"])
            assert list(facts(shown["amount"]).numbers) == [
                number_text(one["mass"]),
                number_text(one["expected"]),
            ]
            assert shown["length"] == pytest.approx((one["mass"] - one["expected"]) / most)

    def examples_of(decile: int | None) -> None:
        own = [one for one in examples if (one["layer"], one["head"]) == PLACE and one["decile"] == decile]
        keys = [one.key for one in at.get("bidi_component") if str(one.key).startswith("profile_arcs_")]
        shown = [component(at, key) for key in keys]
        assert [one["labels"] for one in shown] == [one["labels"] for one in own]
        assert [one["weights"] for one in shown] == [list(one["weights"]) for one in own]
        assert [one["query"] for one in shown] == [None if kind == "cross" else one["query"] for one in own]
        written = [cell_text(one["activation"]) for one in own]
        assert [one.value for one in at.markdown if one.value in written] == written

    examples_of(None)
    for decile in (10, 1, 3):
        at.segmented_control(key="profile_decile").set_value(str(decile)).run()
        examples_of(decile)


@pytest.mark.parametrize("own", [0.5, 3.2, 99.0, None])
def test_the_decile_of_the_readers_sentence_is_told(own, monkeypatch):
    screen, _, _ = screen_of(0, "decoder")
    monkeypatch.setattr(one_head, "own_activation", lambda screen: own)
    at = drawn(lambda: one_head.examples(screen))
    said = [facts(one.value) for one in at.markdown if one.value.startswith("Your sentence")]
    deciles = [one for one in range(1, 11) if own is not None and own >= one + 1 / 8]
    assert said == [] if own is None else said[0].numbers == (cell_text(own), str(max([1, *deciles])), "10")
    if own is not None:
        assert said[0].heads == (PLACE,)


@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("has_matrix", [False, True])
def test_how_much_a_head_adds_to_the_readers_sentence(has_lengths, has_matrix):
    """The longest of what it adds to its own tokens; nothing where the profile's lengths are after a W_O that is not here."""
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 5, (2, 3, 4, 4)).astype(float)
    weights /= weights.sum(axis=-1, keepdims=True)
    lengths = rng.integers(1, 9, (2, 3, 4)).astype(np.float32) if has_matrix else None
    trace = hand_made.trace(weights, ["[CLS]", "cat", "door", "[SEP]"], lengths=lengths)
    columns = {"entropy_norms": np.array([0.5 if has_lengths else math.nan] * 6)}

    class Numbers:
        def numbers(self, name: str, kind: str) -> np.ndarray:
            return columns[name]

    screen = SimpleNamespace(view=SimpleNamespace(trace=trace), kind="encoder", head=PLACE, profile=Numbers())
    found = one_head.own_activation(screen)
    if has_lengths and not has_matrix:
        assert found is None
        return
    own = [1, 2]
    scale = lengths[1, 1] if has_matrix else np.ones(4)
    expected = [
        math.sqrt(math.fsum((float(weights[1, 1, query, key]) * float(scale[key])) ** 2 for key in range(4)))
        for query in own
    ]
    assert found == pytest.approx(max(expected), rel=1e-5)
    assert one_head.own_activation(SimpleNamespace(**vars(screen) | {"kind": "cross"})) is None
    assert one_head.own_activation(SimpleNamespace(**vars(screen) | {"head": Head(2, 0)})) is None


@pytest.mark.parametrize(("seed", "kind"), CASES)
@pytest.mark.parametrize("is_compared", [False, True])
def test_the_ranking_and_the_points(seed, kind, is_compared, monkeypatch):
    plain, _, _ = screen_of(seed, kind)
    heads = plain.heads
    rng = np.random.default_rng(seed)
    other = Number(
        name=plain.y.name,
        title="Other",
        means=rng.integers(0, 9, 6) / 8,
        ends=None if seed == 2 else (plain.y.means - 1, plain.y.means + 1),
    )
    ranked = difference(plain.y, other) if is_compared else plain.y
    kept = [heads[one] for one in rng.permutation(6)[: 6 if seed else 3]]
    screen, _, _ = screen_of(seed, kind, ranked=ranked, is_compared=is_compared, kept=kept)
    if seed:
        monkeypatch.setattr(overview, "MOST_ROWS", 4)

    def draw() -> None:
        overview.points(screen)
        overview.ranking(screen)

    at = drawn(draw)
    [found] = ranked_lists(at)
    shown = kept[: 4 if seed else 3]
    means = [float(ranked.means[heads.index(one)]) for one in shown]
    largest = np.nanmax(np.abs(means)) if np.any(np.nan_to_num(means)) else 1.0
    assert [row["text"] for row in found] == [one.title for one in shown]
    assert [row["picked"] for row in found] == [one == PLACE for one in shown]
    for row, one, mean in zip(found, shown, means, strict=True):
        assert row["amount"] == with_interval(ranked, heads.index(one))
        if np.isfinite(mean) and np.isfinite(means).all():
            assert row["length"] == pytest.approx(mean / largest)
    said = facts(" ".join(one.value for one in at.caption)).numbers
    expected = ["4", "6"] if seed else []
    if is_compared and ranked.ends is not None:
        expected = [str(n_apart(ranked)), "6", *expected]
    assert list(said) == expected
    [points] = figure(at, "profile_heads")["data"]
    np.testing.assert_array_equal(numbers(points["y"]), screen.y.means)
    np.testing.assert_array_equal(numbers(points["x"]), screen.x.means)
    opacities = numbers(points["marker"]["opacity"])
    assert [one > 0.5 for one in opacities] == [one in kept or one == PLACE for one in heads]


def test_no_head_of_a_name():
    screen, _, _ = screen_of(0, "decoder", kept=[])
    at = drawn(lambda: overview.ranking(screen))
    assert ranked_lists(at) == [] and len(at.caption) == 1
