"""Kinds of attention: what a mask does to matrices, outputs and predictions, worked out again cell by cell."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.cost.streaming import stream_head
from attnviz.effects.masking import mask_effect
from attnviz.figures.numbers import share_text
from attnviz.figures.sources import Sizes, draw_sources
from attnviz.figures.theme import LIGHT
from attnviz.model.answers import Predictions
from attnviz.records import KINDS
from tests import hand_made
from tests.app.screen import alt, facts, figure, numbers, unescaped
from tests.app.views import LABELS, drawn_of, trace_of, view_of, whole
from ui.choice.fields import Cell
from ui.rooms.how_it_works.kinds_of_attention import graph as graph_section
from ui.rooms.how_it_works.kinds_of_attention import mask, matrices, output, predictions, sources, streaming

N = len(LABELS)
PAIR = ["[CLS]", "cat", "[SEP]", "door", "[SEP]"]


@pytest.fixture(autouse=True)
def _without_other_pages(monkeypatch):
    monkeypatch.setattr(matrices, "link_to", lambda *args, **named: None)


def softmax(row: list[float]) -> list[float]:
    counts = [math.exp(value) for value in row]
    return [count / (math.fsum(counts) or 1.0) for count in counts]


def under(trace: Any, allowed: np.ndarray) -> list[list[float]]:
    """The weights of the selected head while a query sees the allowed keys only."""
    rows = []
    for query in range(N):
        scores = [
            0.5 * math.fsum(float(a) * float(b) for a, b in zip(*pair, strict=True))
            if allowed[query, key]
            else -math.inf
            for key in range(N)
            for pair in [(trace.query(1, 2)[query], trace.key(1, 2)[key])]
        ]
        rows.append(softmax(scores))
    return rows


def masks(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((N, N)) < 0.6


@pytest.mark.parametrize("seed", range(3))
def test_the_matrix_beside_the_masked_one(seed):
    trace, allowed = trace_of(seed), masks(seed)
    allowed[3] = seed != 0
    view = view_of(trace, mask="causal")
    at = drawn_of(view, lambda: matrices.matrices(view, allowed, 1))
    before, after = (numbers(figure(at, key)["data"][0]["z"]) for key in ("mask_before", "mask_after"))
    np.testing.assert_allclose(before, trace.weights(1, 2), rtol=1e-5)
    expected = under(trace, allowed)
    np.testing.assert_allclose(np.nan_to_num(after), expected, rtol=1e-4, atol=1e-6)
    largest = max(float(trace.weights(1, 2).max()), max(map(max, expected)))
    for key in ("mask_before", "mask_after"):
        assert figure(at, key)["data"][0]["zmax"] == pytest.approx(largest)
    hatches = [shape for shape in figure(at, "mask_after")["layout"]["shapes"] if shape["type"] == "path"]
    assert bool(hatches) == (not allowed.all())
    titles = [element.value for element in at.markdown if element.value.startswith("**")]
    assert titles == ["**The model's own**", "**Mask: causal**"]
    button = at.button(key="paint")
    assert unescaped(button.label) == f"{'Mask' if allowed[2, 1] else 'Allow'} “door” → “cat”"
    assert (button.proto.icon == ":material/edit_off:") == bool(allowed[2, 1])
    in_caption = facts(at.caption[0].value)
    n_empty = sum(not any(row) for row in allowed.tolist())
    assert in_caption.numbers == (str(int(allowed.sum())), "25", *[str(n_empty)] * bool(n_empty))
    assert ("queries see" in at.caption[0].value) == (n_empty > 1)
    assert ("query sees" in at.caption[0].value) == (n_empty == 1)


def test_the_matrices_of_two_texts_say_how_many_queries_and_keys_they_have():
    view = view_of(trace_of(0, kind="cross", targets=["le", "chat", "porte"]))
    at = drawn_of(view, lambda: matrices.matrices(view, np.ones((3, N), dtype=bool), 1))
    assert alt(at, "mask_before") == "The model's own, attention matrix of 3 queries and 5 keys"
    assert unescaped(at.button(key="paint").label) == "Mask “porte” → “cat”"


def test_one_query_that_sees_nothing_and_two():
    pattern = trace_of(0).pattern(1, 2)
    for n in (0, 1, 2):
        allowed = np.ones((N, N), dtype=bool)
        allowed[:n] = False
        sentence = matrices.cells_left(replace(pattern, allowed=allowed))
        assert ("queries see" in sentence, "query sees" in sentence) == (n == 2, n == 1)


def of_pair(trace: Any) -> Any:
    tokens = hand_made.tokens(PAIR)
    return replace(
        trace, tokens=replace(tokens, text_pair="door", segment=np.array([0, 0, 0, 1, 1]), text="cat")
    )


def test_masks_on_offer_and_their_names():
    single, pair = trace_of(0), of_pair(trace_of(0))
    cross = trace_of(0, kind="cross", targets=["a", "b"])
    assert mask.offered(view_of(single)) == ["none", "causal", "window"]
    assert mask.offered(view_of(pair)) == ["none", "causal", "window", "sentences"]
    assert mask.offered(view_of(cross)) == ["none"]
    assert mask.mask_name(view_of(pair, mask="sentences")) == "sentences"
    assert mask.mask_name(view_of(single, mask="sentences")) == "none"
    for choice, title in (
        ({"mask": "window"}, "Mask: sliding window"),
        ({"mask": "causal", "painted": (Cell(0, 1),)}, "Mask: causal and painted cells"),
        ({"mask": "causal", "hidden_keys": (1,)}, "Mask: causal and painted cells"),
    ):
        assert mask.mask_title(view_of(single, **choice)) == title


def test_a_cell_is_painted_and_wiped(monkeypatch):
    chosen, changed = SimpleNamespace(masking=SimpleNamespace(painted=(Cell(0, 1), Cell(2, 3)))), []
    monkeypatch.setattr(mask.state, "chosen", lambda: chosen)
    monkeypatch.setattr(mask.state, "change", lambda **named: changed.append(named["painted"]))
    mask.paint(2, 3)
    mask.paint(3, 2)
    assert changed == [(Cell(0, 1),), (Cell(0, 1), Cell(2, 3), Cell(3, 2))]


@pytest.mark.parametrize("choice", [{}, {"mask": "window"}, {"painted": (Cell(0, 1),)}], ids=str)
def test_the_controls_of_a_mask(choice):
    view = view_of(trace_of(0), **choice)
    at = drawn_of(view, lambda: mask.controls(view))
    assert [element.key for element in at.number_input] == ["field_reach"] * ("mask" in choice)
    assert at.multiselect(key="field_hidden_keys").options == [
        f"{label}·{at_}" for at_, label in enumerate(LABELS)
    ]
    assert at.button(key="unpaint").disabled == ("painted" not in choice)


@pytest.mark.parametrize("where", ["all layers", "this layer", "this head"])
@pytest.mark.parametrize("bundle", ["", "0" * 64])
def test_where_the_mask_is_applied(where, bundle, monkeypatch):
    trace, asked = trace_of(0), []
    hidden = whole(np.random.default_rng(0), N, 6)
    trace = replace(trace, last_hidden_state=hidden)
    changed = replace(trace, last_hidden_state=hidden[::-1].copy())
    allowed = masks(1)

    def masked(source, kind, layer, head, cells):
        asked.append((kind, layer, head, cells))
        return changed

    monkeypatch.setattr(output.cache, "masked_trace", masked)
    predicted = []
    monkeypatch.setattr(output, "predictions", lambda *given: predicted.append(given))
    monkeypatch.setattr(output, "read_alone", lambda *given: predicted.append("alone"))
    view = view_of(trace, applied_in=where, mask="window", bundle=bundle)
    at = drawn_of(view, lambda: output.output(view, allowed))
    if bundle:
        assert len(at.info) == 1 and not asked
        return
    place = {"all layers": (None, None), "this layer": (1, None), "this head": (1, 2)}[where]
    assert asked == [("encoder", *place, allowed.tobytes())]
    effect = mask_effect(trace, changed, allowed, "encoder", layer=place[0], head=place[1])
    [bars] = figure(at, "mask_effect")["data"]
    cosines = [
        math.fsum(float(a) * float(b) for a, b in zip(before, after, strict=True))
        / math.hypot(*map(float, before))
        / math.hypot(*map(float, after))
        for before, after in zip(hidden, hidden[::-1], strict=True)
    ]
    assert numbers(bars["y"]).tolist() == pytest.approx([1 - cosine for cosine in cosines], abs=1e-6)
    assert np.flatnonzero(numbers(bars["marker"]["line"]["width"])).tolist() == [2]
    assert f"{effect.n_masked} cells are masked in {where}" in at.markdown[-1].value
    assert predicted == [(view, changed, f"Mask: sliding window, in {where}")]


@pytest.mark.parametrize("where", ["all layers", "this layer"])
@pytest.mark.parametrize("name", ["sentences", "causal"])
def test_a_sentence_is_read_alone_where_the_mask_keeps_sentences_apart(where, name, monkeypatch):
    trace = of_pair(trace_of(0))
    calls = []
    monkeypatch.setattr(output.cache, "masked_trace", lambda *given: trace)
    monkeypatch.setattr(output, "predictions", lambda *given: None)
    monkeypatch.setattr(output, "read_alone", lambda view, changed: calls.append(changed))
    view = view_of(trace, applied_in=where, mask=name)
    drawn_of(view, lambda: output.output(view, masks(0)))
    assert len(calls) == (where == "all layers" and name == "sentences")


@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_no_bar_is_marked_where_the_states_are_of_another_text(kind):
    targets = None if kind == "encoder" else ["a", "b", "c", "d", "e"]
    trace = trace_of(0, kind=kind, targets=targets)
    effect = SimpleNamespace(
        change=np.full(N, 0.5, dtype=np.float32),
        n_masked=1,
        is_unchanged=False,
        most=(0,),
        mean=0.5,
        largest=0.5,
    )
    view = view_of(trace)
    at = drawn_of(view, lambda: output.turned(view, effect))
    widths = numbers(figure(at, "mask_effect")["data"][0]["marker"]["line"]["width"])
    assert np.flatnonzero(widths).tolist() == [2]
    of_encoder = view_of(trace_of(0, targets=["a", "b", "c", "d", "e"])) if kind == "cross" else None
    if of_encoder is not None:
        at = drawn_of(of_encoder, lambda: output.turned(of_encoder, effect))
        widths = numbers(figure(at, "mask_effect")["data"][0]["marker"]["line"]["width"])
        assert np.flatnonzero(widths).tolist() == []


@pytest.mark.parametrize("choice", [{}, {"painted": (Cell(0, 1),)}, {"hidden_keys": (1,)}], ids=str)
@pytest.mark.parametrize("same", [True, False])
def test_the_first_sentence_read_alone(choice, same, monkeypatch):
    """Its tokens are compared where they are those that it has in the pair, and nothing else is masked."""
    trace = of_pair(trace_of(0))
    states = whole(np.random.default_rng(0), N, 6)
    changed = replace(trace, last_hidden_state=states)
    tokens = hand_made.tokens(PAIR[:3])
    ids = trace.tokens.ids[:3] if same else trace.tokens.ids[:3] + 1
    asked = []

    def alone(source):
        asked.append(source)
        return SimpleNamespace(tokens=replace(tokens, ids=ids.copy()), last_hidden_state=states[:3].copy())

    monkeypatch.setattr(output.cache, "trace", alone)
    view = view_of(trace, masked=(1, 3), second="door", **choice)
    at = drawn_of(view, lambda: output.read_alone(view, changed))
    if choice:
        assert not asked and not at.markdown
        return
    assert (asked[0].second, asked[0].masked) == ("", (1,))
    assert len(at.markdown) == same
    if same:
        assert at.markdown[0].value.startswith(":material/calculate: Read twice")
        assert facts(at.markdown[0].value).numbers[0] == "3"


def likely(labels: list[str], numbers_: list[float]) -> Predictions:
    return Predictions(
        position=1,
        ids=np.arange(len(labels)),
        labels=tuple(labels),
        probabilities=np.array(numbers_, dtype=np.float32),
    )


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
@pytest.mark.parametrize("masked", [(), (1,), (1, 2), (1, 3)])
@pytest.mark.parametrize("has_head", [True, False])
def test_what_the_model_predicts(kind, masked, has_head, monkeypatch):
    labels = [("[MASK]" if at in masked else label) for at, label in enumerate(LABELS)]
    trace = trace_of(0, labels, kind=kind)
    changed = replace(trace, last_hidden_state=np.ones((N, 6), dtype=np.float32))
    asked = []

    def predicted(source, trace_, position):
        asked.append(position)
        likeliest = (
            likely(["mat", "cat"], [0.5, 0.25]) if trace_ is trace else likely(["door", "it"], [0.75, 0.125])
        )
        return likeliest if has_head else None

    monkeypatch.setattr(predictions.cache, "predictions", predicted)
    monkeypatch.setattr(predictions.cache, "mask_label", lambda source: "[MASK]")
    view = view_of(trace)
    at = drawn_of(view, lambda: predictions.predictions(view, changed, "Mask: causal, in all layers"))
    expected = 2 if not masked or 2 in masked else 1
    assert asked == [expected] * 2
    if not has_head:
        assert "has no masked-language head" in at.markdown[0].value and not at.dataframe
        return
    sentence = at.markdown[0].value
    assert ("of following" in sentence) == (kind == "decoder")
    assert ("sees that token here" in sentence) == (kind == "encoder" and expected not in masked)
    assert facts(sentence).quoted == (labels[expected],)
    titles = [element.value for element in at.markdown if element.value.startswith("**")]
    assert titles == ["**The model's own**", "**Mask: causal, in all layers**"]
    assert [element.value["token"].tolist() for element in at.dataframe] == [["mat", "cat"], ["door", "it"]]
    assert [element.value["probability"].tolist() for element in at.dataframe] == [[50, 25], [75, 12.5]]


def boxes(drawn: Any) -> list[tuple[str, tuple[float, float, float, float], str]]:
    """Text, frame and colour of each box."""
    [texts] = drawn.data
    frames = [
        (round(shape.x0, 2), round(shape.x1, 2), round(shape.y0, 2), round(shape.y1, 2))
        for shape in drawn.layout.shapes
    ]
    for x, y, frame in zip(texts.x, texts.y, frames, strict=True):
        assert ((frame[0] + frame[1]) / 2, (frame[2] + frame[3]) / 2) == pytest.approx((x, y), abs=0.01)
    return [
        (text, frame, shape.line.color)
        for text, frame, shape in zip(texts.text, frames, drawn.layout.shapes, strict=True)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_here", [True, False])
def test_where_queries_keys_and_values_come_from(kind, is_here):
    """Five rows of boxes as wide as they are told, and arrows from each box to what is made of it."""
    drawn_ = draw_sources(kind, Sizes(query=5, key=7, d_model=16, d_head=4) if is_here else None)
    n, m, width, d = (
        ("5", "7", "16", "4") if is_here else ("n", "m" if kind == "cross" else "n", "d_model", "d_k")
    )
    drawn_boxes = boxes(drawn_)
    top = {
        "encoder": [(f"text<br>{n} × {width}", 0, 3)],
        "decoder": [(f"text so far<br>{n} × {width}", 0, 3)],
        "cross": [(f"decoder's text<br>{n} × {width}", 0, 1), (f"encoder's text<br>{m} × {width}", 1, 3)],
    }[kind]
    mask_ = " + mask" * (kind == "decoder")
    expected = [(text, left, right, 0) for text, left, right in top]
    expected += [(f"W_{name}<br>{width} × {d}", at, at + 1, 1) for at, name in enumerate("QKV")]
    expected += [
        (f"<b>{name}</b><br>{size} × {d}", at, at + 1, 2)
        for at, (name, size) in enumerate(zip("QKV", (n, m, m), strict=True))
    ]
    expected += [
        (f"softmax(Q Kᵀ / √d_k{mask_})<br>weights, {n} × {m}", 0, 2, 3),
        (f"weights × V<br>output, {n} × {d}", 0, 3, 4),
    ]
    assert [(text, frame) for text, frame, _ in drawn_boxes] == [
        (text, (left + 0.04, right - 0.04, round(row - 0.33, 2), row + 0.33))
        for text, left, right, row in expected
    ]
    if is_here:
        colours = dict(zip("QKV", (LIGHT.query, LIGHT.key, LIGHT.value), strict=True))
        for text, _, colour in drawn_boxes:
            for name, own in colours.items():
                if text.startswith((f"W_{name}", f"<b>{name}")):
                    assert colour == own
    dashes = {shape.line.dash for shape in drawn_.layout.shapes}
    assert dashes == {"solid" if is_here else "dot"}
    arrows = [
        (annotation.ax, annotation.ay, annotation.x, annotation.y) for annotation in drawn_.layout.annotations
    ]
    assert all(annotation.showarrow and annotation.text == "" for annotation in drawn_.layout.annotations)
    below = [(at + 0.5, row) for row in (0, 1) for at in range(3)] + [(0.5, 2), (1.5, 2), (1.0, 3), (2.5, 2)]
    ends = [1, 1, 1, 2, 2, 2, 3, 3, 4, 4]
    assert [(a, round(b, 2), c, round(d_, 2)) for a, b, c, d_ in arrows] == [
        (x, round(row + 0.33, 2), x, round(end - 0.33, 2)) for (x, row), end in zip(below, ends, strict=True)
    ]
    low, high = drawn_.layout.yaxis.range
    assert low > 4.3 and high < -0.3 and tuple(drawn_.layout.xaxis.range) == (0, 3)


def test_sizes_and_kinds_that_a_model_has():
    trace = trace_of(0, kind="cross", targets=["a", "b", "c"], scale=0.25)
    view = view_of(trace)
    model_sizes = sources.sizes(view, "cross")
    assert (model_sizes.query, model_sizes.key, model_sizes.d_model, model_sizes.d_head) == (3, 5, 6, 4)
    at = drawn_of(view, lambda: sources.sources(view))
    titles = [element.value for element in at.markdown if element.value.startswith("**")]
    assert [("not in this model" in title) for title in titles] == [True, True, False]
    assert all(sources.SOURCES[kind][0] in title for kind, title in zip(KINDS, titles, strict=True))
    texts = [figure(at, f"sources_{kind}")["data"][0]["text"][0] for kind in KINDS]
    assert texts == ["text<br>n × d_model", "text so far<br>n × d_model", "decoder's text<br>3 × 6"]
    captions = [element.value for element in at.caption]
    assert "in layer 1 it multiplies by 0.25" in captions[-1]
    plain = view_of(trace_of(0))
    at = drawn_of(plain, lambda: sources.sources(plain))
    assert "n and m stand for" in at.caption[-1].value and len(at.caption) == 4


@pytest.mark.parametrize("tile", [1, 2, 4])
@pytest.mark.parametrize("tiles", [1, 2, 9])
def test_a_row_that_is_read_tile_by_tile(tile, tiles, monkeypatch):
    trace = trace_of(5)
    monkeypatch.setattr(
        streaming.cache, "streamed", lambda *given: list(stream_head(trace, 1, 2, "encoder", tile=given[-1]))
    )
    view = view_of(trace, tile=tile, tiles=tiles)
    at = drawn_of(view, lambda: streaming.streaming(view))
    n_tile = -(-N // tile)
    n_read = min(tiles, n_tile)
    number = at.number_input(key="field_tiles")
    assert (number.value, number.max, number.label) == (n_read, n_tile, f"Tiles read (1–{n_tile})")
    table = at.dataframe[0].value
    named = [f"{label}·{at_}" for at_, label in enumerate(LABELS)]
    assert table["keys"].tolist() == [
        f"{named[first]} … {named[min(first + tile, N) - 1]}" for first in range(0, n_read * tile, tile)
    ]
    scores = [
        0.5 * math.fsum(float(a) * float(b) for a, b in zip(trace.query(1, 2)[2], key, strict=True))
        for key in trace.key(1, 2)
    ]
    most = [max(scores[: min((at_ + 1) * tile, N)]) for at_ in range(n_read)]
    assert table["m′, maximum so far"].tolist() == pytest.approx(most, rel=1e-5)
    assert table["largest score in the tile"].tolist() == pytest.approx(
        [max(scores[at_ * tile : (at_ + 1) * tile]) for at_ in range(n_read)], rel=1e-5
    )
    in_caption = facts(at.caption[0].value)
    assert in_caption.quoted == ("door",)
    assert in_caption.numbers[:3] == (str(n_read), str(n_tile), "5")
    assert ("All keys are read" in at.caption[0].value) == (n_read == n_tile)


def test_the_words_beside_the_graph():
    trace = trace_of(2, with_matrix=True)
    view = view_of(trace, mask="causal")
    allowed = np.tril(np.ones((N, N), dtype=bool))
    at = drawn_of(view, lambda: graph_section.graph(view, allowed, 1))
    row = under(trace, allowed)[2]
    in_finding = facts(at.markdown[0].value)
    strongest = max(range(3), key=lambda key: row[key])
    assert LABELS[strongest] in in_finding.quoted and share_text(row[strongest]) in in_finding.numbers
    arrows = next(part for part in figure(at, "mask_graph")["data"] if part.get("name") == "edges")
    assert f"{len(numbers(arrows['x']))} arrows from key to query" in alt(at, "mask_graph")
    assert alt(at, "mask_graph").startswith("Mask: causal:")
    assert facts(at.caption[0].value).has("15")
    without = view_of(trace_of(2))
    assert "norms" not in without.trace.measures("encoder")
    drawn_of(without, lambda: graph_section.graph(without, allowed, 1))


def test_the_graph_of_two_texts_names_a_key_by_its_own_text():
    targets = ["le", "chat", "porte"]
    trace = trace_of(2, kind="cross", targets=targets)
    view = view_of(trace)
    at = drawn_of(view, lambda: graph_section.graph(view, np.ones((3, N), dtype=bool), 1))
    row = trace.weights(1, 2, "cross")[2].tolist()
    assert facts(at.markdown[0].value).quoted[:2] == ("porte", LABELS[row.index(max(row))])
