"""The page Lens, with answers and parts drawn at random: grids, lists and sentences are worked out again."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.lens import FollowedTokens, LayerSimilarities, Lens
from attnviz.effects.logit_attribution import DirectEffects
from attnviz.effects.outcome import Similarity, TokenAnswer
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.figures.numbers import number_text
from attnviz.records import Head
from tests.app.screen import alt, component, drawn, facts, figure, numbers, unescaped
from tests.app.views import LABELS, drawn_of, trace_of, view_of, whole
from tests.drawn_parts import drawn as noted
from ui.rooms.cause.lens import answers, followed, heads, jobs, over_set
from ui.rooms.cause.lens import screen as lens_screen
from ui.rooms.cause.lens.screen import Screen

N_LAYER = 4


def screen_of(kind: str = "encoder", layer: int = 1, **chosen: Any) -> Screen:
    view = view_of(trace_of(0, kind=kind), layer=layer, **chosen)
    return Screen(view=view, outcome=TokenAnswer(position=1, token="cat", against="door"))


def lens_of(seed: int, n_layer: int = N_LAYER) -> Lens:
    rng = np.random.default_rng(seed)
    shape = (n_layer, 5, 2)
    return Lens(
        kind="encoder",
        ids=rng.integers(0, 9, shape),
        labels=tuple(
            tuple((f"a{layer}{at}", f"b{layer}{at}") for at in range(5)) for layer in range(n_layer)
        ),
        probabilities=rng.integers(1, 16, shape).astype(np.float32) / 16,
        answers=tuple(f"c{at}" for at in range(5)),
        answer_probabilities=rng.integers(1, 16, shape[:2]).astype(np.float32) / 16,
        answer_ranks=rng.integers(0, 3, shape[:2]) * (np.arange(n_layer) < n_layer - 1)[:, None],
    )


def similarities_of(seed: int, n_layer: int = N_LAYER) -> LayerSimilarities:
    numbers_ = np.random.default_rng(seed).integers(-8, 17, (n_layer, 5)).astype(np.float32) / 16
    return LayerSimilarities(kind="encoder", similarities=numbers_)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("has_head", [True, False])
@pytest.mark.parametrize("n_layer", [N_LAYER, 12, 13])
def test_the_selected_token_layer_by_layer(seed, has_head, n_layer):
    lens = similarities_of(seed, n_layer)
    if has_head:
        lens = lens_of(seed, n_layer)
    screen = screen_of(layer=1)

    def draw() -> None:
        answers.of_token(screen, lens)
        answers.grid(screen, lens)

    at = drawn(draw)
    listed = component(at, "lens_layers")
    assert not listed["isRanked"]
    n_row = len(lens.labels) if has_head else n_layer
    assert listed["scrolls"] == (n_layer > 12)
    assert len(listed["rows"]) == n_row
    for layer, row in enumerate(listed["rows"]):
        own = float(lens.probabilities[layer, 2, 0] if has_head else lens.similarities[layer, 2])
        assert row["text"] == (f"Layer {layer}: a{layer}2" if has_head else f"Layer {layer}")
        assert row["amount"] == number_text(own) and row["length"] == max(own, 0.0)
        assert row["picked"] == (layer == 1)
    assert facts(at.markdown[0].value).quoted == ("door",)
    drawn_ = figure(at, "lens_grid")
    own = lens.probabilities[..., 0] if has_head else lens.similarities
    z = numbers(drawn_["data"][0]["z"])
    np.testing.assert_array_equal(z, own if n_row <= 12 else own.T)
    [frame] = drawn_["layout"]["shapes"]
    along = "x" if n_row <= 12 else "y"
    assert (frame[f"{along}0"], frame[f"{along}1"]) == (1.5, 2.5)
    assert ("Most likely" in alt(at, "lens_grid")) == has_head


def effects_of(seed: int, **changes: Any) -> DirectEffects:
    rng = np.random.default_rng(seed)
    cells = whole(rng, 2, 4, 5)
    cells[:, :, 4] = 0
    given = {
        "unit": "logit",
        "total": 1.0,
        "embedding": 0.25,
        "heads": cells.sum(axis=2),
        "mlps": whole(rng, 2),
        "biases": whole(rng, 2),
        "bias": -0.125,
        "kind": "encoder",
        "position": 2,
        "sources": tuple(cells),
    }
    return DirectEffects(**given | changes)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_pair", [0, 2])
def test_the_parts_with_the_largest_effects(seed, n_pair):
    effects = effects_of(seed)
    of_pairs = [effects_of(seed + 10 * number) for number in range(1, n_pair + 1)]
    view = screen_of(layer=1).view
    at = drawn_of(view, lambda: heads.parts(view, effects, of_pairs))

    def named(direct_effects: DirectEffects) -> dict[str, float]:
        own = {"Embedding": 0.25, "Final biases": -0.125}
        for layer in range(2):
            own |= {Head(layer, head).title: float(direct_effects.heads[layer, head]) for head in range(4)}
            own |= {
                f"Layer {layer}, MLP": float(direct_effects.mlps[layer]),
                f"Layer {layer}, biases": float(direct_effects.biases[layer]),
            }
        return own

    parts = named(effects)
    rows = component(at, "lens_parts")["rows"]
    sizes = sorted(map(abs, parts.values()), reverse=True)[:8]
    assert [abs(parts[row["text"]]) for row in rows] == [size for size in sizes if size]
    for row in rows:
        own = parts[row["text"]]
        written = number_text(own)
        if n_pair:
            pairs = [named(of_pair)[row["text"]] for of_pair in of_pairs]
            middle = sum(pairs) / 2
            spread = math.sqrt(sum((pair - middle) ** 2 for pair in pairs))
            written += f" ± {number_text(spread)}"
        assert row["amount"].split(" ± ")[0] == written.split(" ± ")[0]
        assert (" ± " in row["amount"]) == bool(n_pair)
        if n_pair:
            given = (
                float(row["amount"].split(" ± ")[1].replace("−", "-")) if "×" not in row["amount"] else spread
            )
            assert given == pytest.approx(spread, rel=6e-3, abs=1e-6)
        assert row["length"] == pytest.approx(own / sizes[0])
        assert row["picked"] == (row["text"] == Head(1, 2).title)
    assert ("mean" in at.markdown[0].value) == bool(n_pair)
    assert at.markdown[1].value == heads.total(effects)


@pytest.mark.parametrize("seed", range(3))
def test_what_a_head_adds_by_the_tokens_that_it_reads(seed, monkeypatch):
    monkeypatch.setattr(heads, "_MOST_PARTS", 3 if seed else 8)
    effects = effects_of(seed)
    screen = screen_of(layer=1, key=1)
    at = drawn(lambda: heads.sources(screen, effects))
    own = [float(source) for source in effects.sources[1][2]]
    most = 3 if seed else 8
    rows = component(at, "lens_sources")["rows"]
    there = [number for number in range(5) if own[number]]
    order = sorted(there, key=lambda number: -abs(own[number]))[:most]
    assert [row["text"] for row in rows] == [f"{LABELS[index]} ({index})" for index in order]
    assert [row["amount"] for row in rows] == [number_text(own[index]) for index in order]
    assert [row["length"] for row in rows] == pytest.approx(
        [own[index] / max(map(abs, own)) for index in order]
    )
    assert [row["picked"] for row in rows] == [index == 1 for index in order]
    in_caption = facts(at.caption[0].value).numbers
    assert in_caption[-1] == number_text(float(effects.heads[1, 2]))
    assert in_caption[:-1] == ((str(len(order)), str(len(there))) if len(order) < len(there) else ())


def test_what_is_drawn_selects_what_it_shows():
    screen, effects = screen_of(layer=1), effects_of(1)
    course = FollowedTokens(
        kind="encoder",
        position=1,
        labels=("cat",),
        logits=np.zeros((N_LAYER, 1), dtype=np.float32),
        probabilities=np.zeros((N_LAYER, 1), dtype=np.float32),
        ranks=np.ones((N_LAYER, 1), dtype=np.int64),
    )
    with noted(answers, followed, heads, known_names=lambda view: None) as page:
        answers.of_token(screen, lens_of(0))
        answers.grid(screen, lens_of(0))
        drawn_ = followed.followed(screen, course)
        heads.heads(screen, screen.answer, effects)
        heads.parts(screen.view, effects)
        heads.sources(screen, effects)
        heads.layers(screen.view, effects)

    def picked(key: str, *clicked: Any) -> list[dict[str, Any]]:
        page.changes.clear()
        with page.noted():
            page.keyed(key)["on_pick"](*clicked)
        return page.changes

    assert picked("lens_layers", 3) == [{"layer": 3}]
    assert picked("lens_grid", [3, 0]) == [{"layer": 3, "query": 0}]
    assert picked("lens_followed", 2) == [{"layer": 2}] and picked("lens_followed", None) == []
    assert [line.x0 for line in drawn_.layout.shapes] == [1] * len(drawn_.layout.shapes)
    assert page.keyed("lens_heads")["signed"]
    assert picked("lens_heads", 0, 3) == [{"layer": 0, "head": 3}]
    for layer in (0, 1):
        assert picked("lens_layer_parts", layer) == [{"layer": layer}]
    assert picked("lens_layer_parts", -1) == picked("lens_layer_parts", None) == []  # the embedding
    of_heads = {Head(*at).title: {"layer": at[0], "head": at[1]} for at in np.ndindex(2, 4)}
    titles = [row.text for row in page.rows("lens_parts")]
    assert 0 < sum(title in of_heads for title in titles) < len(titles)
    for number, title in enumerate(titles):
        assert picked("lens_parts", number) == ([of_heads[title]] if title in of_heads else [])
    for number, row in enumerate(page.rows("lens_sources")):
        assert picked("lens_sources", number) == [{"key": int(row.text.split("(")[1][:-1])}]


ASKED = TokenAnswer(position=1, token="cat", against="door")
OWN = TokenAnswer(position=2, token="it")


@pytest.mark.parametrize("has_head", [True, False])
@pytest.mark.parametrize("outcome", ["", str(Similarity(text="A.")), str(ASKED)])
@pytest.mark.parametrize(
    "error", [None, SelectionError("No token."), UnsupportedArchitectureError("Not linear.")]
)
def test_what_is_taken_apart(has_head, outcome, error, monkeypatch):
    """An answer that was asked for, or else the model's own; the last hidden state where there is none, or none that is a sum."""
    model = SimpleNamespace(head="head" if has_head else None)
    trace = SimpleNamespace(last_tokens=LABELS)

    def attribute_token(*given, against):
        if error is not None:
            raise error
        return (*given, against)

    monkeypatch.setattr(jobs.with_model, "own", {"m": model}.__getitem__)
    monkeypatch.setattr(jobs, "own_answer", lambda *given: OWN if given == (model, trace, 3) else None)
    monkeypatch.setattr(jobs, "attribute_token", attribute_token)
    monkeypatch.setattr(jobs, "attribute_state", lambda *given: given)
    answer = ASKED if outcome == str(ASKED) else OWN
    place = answer.position
    if has_head and isinstance(error, SelectionError) and answer is ASKED:
        with pytest.raises(SelectionError, match="No token"):
            jobs.direct_effects("m", trace, 3, outcome)
        return
    effects = jobs.direct_effects("m", trace, 3, outcome)
    if has_head and error is None:
        assert effects == (answer, (model, trace, place, answer.token, answer.against))
    else:
        assert effects == (None, (model, trace, place if has_head else 3))


@pytest.mark.parametrize("has_head", [True, False])
def test_answers_or_similarities_of_layers(has_head, monkeypatch):
    model = SimpleNamespace(head="head" if has_head else None)
    monkeypatch.setattr(jobs.with_model, "own", {"m": model}.__getitem__)
    for name in ("lens", "layer_similarities"):
        monkeypatch.setattr(jobs.logit_lens, name, lambda *given, name=name: (name, *given))
    assert jobs.lens("m", "trace") == ("lens" if has_head else "layer_similarities", model, "trace")


@pytest.mark.parametrize("has_set", [True, False])
@pytest.mark.parametrize("is_done", [True, False])
def test_a_set_of_prompts_is_taken_apart(has_set, is_done):
    """Until all pairs are done, what is known is drawn."""
    of_pairs, shown, doing = {1: effects_of(1), 2: effects_of(2)}, [], []
    mean = (of_pairs[1].heads + of_pairs[2].heads) / 2

    def until_done(sentence, so_far):
        doing.append(sentence)
        so_far()
        return is_done

    prompts = SimpleNamespace(
        table=lambda view: "pairs" if has_set else None,
        set_run=lambda *given: given,
        grid=lambda view, of_heads, **named: shown.append((view, of_heads.mean, named["what"])),
    )
    run = SimpleNamespace(view="view", results=of_pairs, is_done=until_done)
    with noted(over_set, prompts=prompts):
        asked = over_set.run_of("view")
        averaged = over_set.attributed(run)
    assert asked == (("view", "pairs", jobs.attribute_pair, ()) if has_set else None)
    [(view, of_heads, what)] = shown
    np.testing.assert_allclose(of_heads, mean, rtol=1e-6)
    assert (view, what, doing) == ("view", "mean direct effect", ["Taking apart"])
    assert (averaged is not None) == is_done
    if averaged is not None:
        np.testing.assert_allclose(averaged.mean.heads, mean, rtol=1e-6)


def test_bars_of_the_selected_layer_are_framed():
    screen = screen_of(layer=1)
    at = drawn_of(screen.view, lambda: heads.layers(screen.view, effects_of(0)))
    *of_layers, embedding = figure(at, "lens_layer_parts")["data"]
    assert {tuple(numbers(bars["marker"]["line"]["width"]) > 0) for bars in of_layers} == {(False, True)}
    assert embedding["name"] == "embedding" and "line" not in embedding["marker"]


@pytest.mark.parametrize("answer", [None, "alone", "against"])
@pytest.mark.parametrize("has_head", [True, False])
@pytest.mark.parametrize("passed", [True, False])
def test_what_all_heads_add(answer, has_head, passed, monkeypatch):
    effects = effects_of(4)
    effects = effects_of(4, total=float(effects.summed) + (0.0 if passed else 5.0))
    token = None
    if answer is not None:
        token = TokenAnswer(position=1, token="cat", against="door" if answer == "against" else None)
    monkeypatch.setattr(heads, "known_names", lambda view: None)
    network = SimpleNamespace(head=object() if has_head else None)
    monkeypatch.setattr(lens_screen.cache, "model", lambda name: network)
    screen = screen_of(layer=1)
    at = drawn(lambda: heads.heads(screen, token, effects))
    in_finding = facts(at.markdown[0].value)
    own = {(layer, head): float(effects.heads[layer, head]) for layer in range(2) for head in range(4)}
    most = max(own, key=lambda head: abs(own[head]))
    assert in_finding.heads == (most,)
    assert in_finding.numbers[-2:] == (number_text(own[most]), number_text(effects.total))
    names = {None: ("door",), "alone": ("cat", "door"), "against": ("cat", "door", "door")}[answer]
    assert in_finding.quoted == names
    whole_ = {None: "that vector’s length is", "alone": "the logit is", "against": "the difference is"}
    assert f"{whole_[answer]} {number_text(effects.total)}" in at.markdown[0].value
    grid = component(at, "lens_heads")
    cells = [cell for row in grid["rows"] for cell in row] if "rows" in grid else grid["cells"]
    texts = [cell if isinstance(cell, str) else str(cell) for cell in np.ravel(cells)]
    for (layer, head), effect in own.items():
        assert any(Head(layer, head).title in text and number_text(effect) in text for text in texts)
    note = unescaped(at.caption[0].value)
    assert ("is not a sum of parts here" in note) == (answer is None and has_head)
    assert ("more than rounding" in note) == (not passed)
    assert number_text(effects.total) in note
    assert ("length of the last hidden state" in note) == (answer is None)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_what_a_screen_is_of(kind):
    screen = screen_of(kind)
    assert screen.predicts_next == (kind == "decoder")
    assert screen.answer is screen.outcome and screen.tokens is screen.view.trace.tokens


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_where_and_since_when_the_answer_is_the_answer(seed, kind):
    lens, screen = lens_of(seed), screen_of(kind)
    sentence = answers.finding(screen, lens)
    ranks = lens.answer_ranks[:, 2].tolist()
    since = next(layer for layer in range(N_LAYER) if not any(ranks[layer:]))
    assert sentence.startswith("**After" if kind == "decoder" else "**At")
    share = f"{100 * float(lens.answer_probabilities[-1, 2]):.1f}%"
    assert facts(sentence).quoted == ("door", "c2") and facts(sentence).numbers == (share, str(since))
    assert ("only after the last" in sentence) == (since == N_LAYER - 1)
